"""`ScratchpadContext`: a context manager that adds the scratchpad to each request's view and leaves all else alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_memory.errors import AgentMemoryError
from agent_memory.integrations.amplifier import is_memory_assistant
from agent_memory.language.budget import estimate_tokens
from agent_memory.memory.scratchpad_render import RenderedPad, render
from agent_memory.settings import ScratchpadSettings
from amplifier_module_context_memory_scratchpad.briefed import Briefed
from amplifier_module_context_memory_scratchpad.reserve import reduced

if TYPE_CHECKING:
    from agent_memory.integrations.amplifier import MemorySession
    from agent_memory.memory import MemoryService
    from agent_memory.models import Scratchpad

Message = dict[str, Any]
_NOTHING = RenderedPad()
_OURS = {"source": "agent-memory"}


class ScratchpadContext:
    """Decorates the mounted context manager.

    The scratchpad stands right after the system message, with role user: it is data. It is never stored in the
    history. It is made once and then frozen, so that it does not void the provider's prompt cache; made anew after a
    compaction, a change of agent, or when something in it was forgotten, replaced or reworded by whatever process, or
    has expired. The briefing stands behind it. It is made once, for the first prompt, and never again in the session;
    it goes with what made it untrue.

    Args:
        inner: The context manager that keeps the conversation.
        session: The memory of this session.
        settings: What to show; None shows nothing (the configuration was wrong).
        coordinator: The host's, which says whose session this is.
    """

    def __init__(
        self, inner: Any, session: MemorySession, settings: ScratchpadSettings | None, coordinator: Any
    ) -> None:
        self.inner = inner
        self._session = session
        self._settings = settings
        self._coordinator = coordinator
        self._pad = _NOTHING
        self._made: Scratchpad | None = None
        self._made_at = self._compactions = 0
        tokens = settings.briefing_tokens if settings is not None and settings.briefing else None
        self.briefed = Briefed(session, inner, tokens)

    def __getattr__(self, name: str) -> Any:
        if name == "inner":  # not there yet, while being copied or unpickled
            raise AttributeError(name)
        return getattr(self.inner, name)

    async def add_message(self, message: Message) -> None:
        """Append a message to the conversation."""
        await self.inner.add_message(message)

    async def get_messages(self) -> list[Message]:
        """Return the whole conversation, without the scratchpad: this is what a host saves."""
        messages: list[Message] = await self.inner.get_messages()
        return messages

    async def set_messages(self, messages: list[Message]) -> None:
        """Replace the conversation, as on resume."""
        self._made_at = -1
        await self.inner.set_messages(messages)

    async def clear(self) -> None:
        """Forget the conversation; the memories stay."""
        await self.inner.clear()
        if not self._session.is_child:
            self._session.taint.clear()

    async def get_messages_for_request(self, token_budget: int | None = None, provider: Any = None) -> list[Message]:
        """Return the inner manager's view for one request, with the scratchpad after the system message."""
        pad = await self._frozen_pad()
        changes = await self._changes()
        reserve = pad.tokens + self.briefed.now.tokens + (estimate_tokens(changes) if changes else 0)
        budget, seen_provider = reduced(token_budget, provider, self.inner, reserve)
        view = list(await self.inner.get_messages_for_request(token_budget=budget, provider=seen_provider))
        text = "\n\n".join(filter(None, [pad.text, self.briefed.now.text]))
        if text:
            position = 1 if view and view[0].get("role") == "system" else 0
            view.insert(position, {"role": "user", "content": text, "metadata": _OURS})
        if changes:
            view.insert(_find_last_prompt(view), {"role": "user", "content": changes, "metadata": _OURS})
        return view

    def note_compaction(self) -> None:
        """Have the scratchpad made anew: the request's prefix changes anyway."""
        self._compactions += 1

    async def _changes(self) -> str:
        """Return the lines about memory of this turn; a sub-session has none."""
        if self._session.is_child or self._settings is None:
            return ""
        try:
            return await self._session.lines.get_injection()
        except AgentMemoryError as error:
            await self._session.conversation.report_degraded("scratchpad", error)
            return ""

    async def _frozen_pad(self) -> RenderedPad:
        service = await self._session.service() if self._settings is not None and self._shows() else None
        if service is None:
            self.briefed.drop()
            return _NOTHING
        try:
            if not await self._may_stay(service):
                await self._make_anew(service)
            await self.briefed.make_once(service, [each.id for each in self._made.entries] if self._made else [])
        except AgentMemoryError as error:
            await self._session.conversation.report_degraded("scratchpad", error)
            # What was found untrue, or was another agent's, is gone by now; what cannot be looked at stays as it was.
        return self._pad

    async def _may_stay(self, service: MemoryService) -> bool:
        """Tell whether the scratchpad that was shown is to be shown again; one that is untrue is never shown again."""
        made = self._made
        if made is None:
            return False
        shown = [*made.entries, *self.briefed.now.memories]
        is_same = made.agent_id == service.agent_id
        if not is_same or not await service.pad.still_true(shown) or not await self.briefed.stands():
            self._made, self._pad = None, _NOTHING
            self.briefed.drop()
            return False
        return self._made_at == self._compactions

    async def _make_anew(self, service: MemoryService) -> None:
        compactions = self._compactions
        made = await service.scratchpad(self._session.caller)
        total = (await service.admin.tally()).count_current(self._session.caller.group)
        self._pad = render(made.entries, made.agent_id, self._settings or ScratchpadSettings(), total)
        self._made, self._made_at = made, compactions

    def _shows(self) -> bool:
        if not self._session.is_child:
            return True
        wanted = self._settings is not None and self._settings.inject_in_subsessions
        return wanted or is_memory_assistant(self._coordinator)


def _find_last_prompt(view: list[Message]) -> int:
    """Return the position of the user's last message, or the end."""
    positions = (
        n for n in range(len(view) - 1, -1, -1) if view[n].get("role") == "user" and not view[n].get("metadata")
    )
    return next(positions, len(view))
