"""Text of memory at the beginning of each request of a session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_memory.memory.results import Briefing
from agent_memory.memory.scratchpad_entries import RenderedPad, render

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from agent_memory.memory.briefing import SessionBriefing
    from agent_memory.memory.caller import Caller
    from agent_memory.memory.service import MemoryService
    from agent_memory.models import Memory, Scratchpad
    from agent_memory.settings import ScratchpadSettings


class SessionPreface:
    """Scratchpad and briefing of a session, as its model reads them.

    Both are built for the first request and then frozen, so that the provider's prompt cache stays valid. The
    scratchpad is rebuilt after `expire`, for another agent, and when one of its memories was forgotten, replaced or
    reworded by any process, or has expired. The briefing is built once, and discarded with what made it untrue.

    Args:
        settings: Fields and memories to show, and how many tokens.
        get_caller: Returns the session as a caller of the service.
        get_prompt: Returns the user's last message.
        is_briefed: True if the session gets a briefing.
    """

    def __init__(
        self,
        settings: ScratchpadSettings,
        get_caller: Callable[[], Caller],
        get_prompt: Callable[[], Awaitable[str]],
        *,
        is_briefed: bool,
    ) -> None:
        self._settings, self._get_caller, self._get_prompt = settings, get_caller, get_prompt
        self._needs_briefing = is_briefed
        self._source: SessionBriefing | None = None
        self._scratchpad: Scratchpad | None = None
        self._rendered, self._briefing = RenderedPad(), Briefing()
        self._generation = self._built_generation = 0

    @property
    def text(self) -> str:
        """Text of the last refresh; may be empty."""
        return "\n\n".join(filter(None, (self._rendered.text, self._briefing.text)))

    @property
    def memories(self) -> list[Memory]:
        """Memories that the text shows."""
        entries = self._scratchpad.entries if self._scratchpad else []
        return [*(entry for entry in entries if entry.id in self._rendered.text), *self._briefing.memories]

    @property
    def tokens(self) -> int:
        """Estimated tokens of the text."""
        return self._rendered.tokens + self._briefing.tokens

    def expire(self) -> None:
        """Rebuild the scratchpad at the next refresh, because the request changes anyway."""
        self._generation += 1

    def clear(self) -> None:
        """Discard the text."""
        self._scratchpad, self._rendered, self._briefing = None, RenderedPad(), Briefing()

    async def refresh(self, service: MemoryService) -> None:
        """Build what is missing, and discard what is not true any more.

        After an error, the text is what was built before, without anything known to be untrue.

        Args:
            service: Memory of the session's agent.

        Raises:
            StorageError: The stored memories cannot be read.
        """
        if not await self._is_current(service):
            generation, caller = self._generation, self._get_caller()
            scratchpad = await service.scratchpad(caller)
            total = (await service.storage.tally()).count_current(caller.group)
            self._rendered = render(scratchpad.entries, scratchpad.agent_id, self._settings, total)
            self._scratchpad, self._built_generation = scratchpad, generation
        if self._needs_briefing:
            from agent_memory.memory.briefing import SessionBriefing  # reads and ranks, for the first prompt

            self._needs_briefing = False  # also after an error: the work has begun
            shown_ids = [memory.id for memory in self._scratchpad.entries] if self._scratchpad else []
            self._source = SessionBriefing(service, self._settings.briefing_tokens)
            self._briefing = await self._source.make(await self._get_prompt(), self._get_caller(), shown_ids)
            if self._briefing.has_passages:  # the model is likely to search for more
                service.warm_up()

    async def _is_current(self, service: MemoryService) -> bool:
        """Return True if the scratchpad needs no rebuild.

        Untrue text is discarded.
        """
        if self._scratchpad is None:
            return False
        memories = [*self._scratchpad.entries, *self._briefing.memories]
        is_true = self._scratchpad.agent_id == service.agent_id and await service.pad.still_true(memories)
        if not is_true or (self._source is not None and not await self._source.turns_stand(self._briefing)):
            self.clear()
        return self._scratchpad is not None and self._built_generation == self._generation

    async def close(self) -> None:
        """Close what the briefing opened."""
        if self._source is not None:
            await self._source.close()
