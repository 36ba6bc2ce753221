"""`Shelf`: the `MemoryManager` of a session's agent, opened when first asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_memory.integrations.amplifier.taint import LOW_TRUST
from agent_memory.knowledge import MemoryManager, MemoryRetryConfig
from agent_memory.knowledge.topics.parsing import parse

if TYPE_CHECKING:
    from agent_memory.integrations.amplifier import MemorySession
    from agent_memory.knowledge import LanguageModel, MemoryItem, ModelBudget
    from agent_memory.memory import MemoryService


class Shelf:
    """What the tools of one session share.

    Args:
        session: The session's memory.
        model: Answers prompts; None for none.
        budget: What may be asked of it in this session.
    """

    def __init__(
        self, session: MemorySession, model: LanguageModel | None = None, budget: ModelBudget | None = None
    ) -> None:
        self.session, self._model, self._budget = session, model, budget
        self._open: tuple[MemoryService, MemoryManager] | None = None

    async def manager(self) -> MemoryManager:
        """Return the manager of the agent that is active now.

        Raises:
            AgentMemoryError: Memory is off, or cannot be opened, or it cannot be said whose the session is.
        """
        self.session.group()
        service = await self.session.require()
        if self._open is None or self._open[0] is not service:
            await self.close()
            manager = MemoryManager(
                service=service,
                model=self._model,
                budget=self._budget,
                retry=MemoryRetryConfig(retrieval_max_retries=0),  # somebody waits, and providers try again themselves
                caller=lambda: self.session.caller,
            )
            self._open = (service, manager)
        return self._open[1]

    async def note_shown(self, items: list[MemoryItem]) -> None:
        """Note what a tool's answer shows, so that the user's next words can mean it."""
        service = await self.session.require()
        shown = [await service.admin.get(item.item_id) for item in items]
        self.session.note_returned(memory for memory in shown if memory is not None)

    def note_strangers(self) -> None:
        """Note that a tool's answer has a stranger's words."""
        self.session.taint.note(LOW_TRUST)

    async def note_page(self, page: str) -> None:
        """Note a stranger's words on the page of a topic: what is marked so, or quoted of an item of low trust."""
        service = await self.session.require()
        shown = parse(page)
        items = await service.admin.valid_among(shown.items)
        self.session.note_returned(item for item in items.values() if item.trust == "low")
        if any(claim.is_untrusted for claim in shown.claims):
            self.note_strangers()

    async def close(self) -> None:
        """Close what was opened here; the service is the session's."""
        known, self._open = self._open, None
        if known is not None:
            await known[1].close()
