"""Access of tools to the knowledge of a session's agent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from agent_memory.errors import AgentMemoryError, CategoryNotFoundError
from agent_memory.tools.agent_tool import AgentTool, InputT
from agent_memory.tools.consent import LOW_TRUST

if TYPE_CHECKING:
    from agent_memory.knowledge import LanguageModel, MemoryItem, MemoryManager, ModelBudget
    from agent_memory.memory import MemoryService
    from agent_memory.tools.host_session import HostSession


class KnowledgeAccess:
    """Knowledge of a session's agent, opened at the first use.

    Args:
        session: Session of the model.
        model: Language model that answers prompts, or None.
        budget: Limits of its use in this session.
    """

    def __init__(
        self, session: HostSession, model: LanguageModel | None = None, budget: ModelBudget | None = None
    ) -> None:
        self.session, self._model, self._budget = session, model, budget
        self._open: tuple[MemoryService, MemoryManager] | None = None

    async def open_manager(self) -> MemoryManager:
        """Return the manager of the active agent.

        Raises:
            AgentMemoryError: Memory is off or cannot be opened, or the group of the session is unknown.
        """
        from agent_memory.knowledge import MemoryManager, MemoryRetryConfig  # loads the knowledge package

        self.session.group()
        service = await self.session.require()
        if self._open is None or self._open[0] is not service:
            await self.close()
            manager = MemoryManager(
                service=service,
                model=self._model,
                budget=self._budget,
                retry=MemoryRetryConfig(retrieval_max_retries=0),  # a call waits, and providers retry by themselves
                caller=lambda: self.session.caller,
            )
            self._open = (service, manager)
        return self._open[1]

    async def note_items(self, items: list[MemoryItem]) -> None:
        """Note items that an answer shows."""
        service = await self.session.require()
        shown = [await service.storage.get(item.item_id) for item in items]
        self.session.note_returned(memory for memory in shown if memory is not None)

    def note_untrusted(self) -> None:
        """Note that an answer shows an untrusted source's words."""
        self.session.taint.note(LOW_TRUST)

    async def note_page(self, page: str) -> None:
        """Note untrusted words on the page of a topic.

        They are marked, or belong to items of low trust.
        """
        from agent_memory.knowledge.topics.markdown import parse  # loads the knowledge package

        service = await self.session.require()
        topic = parse(page)
        items = await service.storage.valid_among(topic.items)
        self.session.note_returned(item for item in items.values() if item.trust == "low")
        if any(claim.is_untrusted for claim in topic.claims):
            self.note_untrusted()

    async def close(self) -> None:
        """Close the manager. May be called more than once."""
        opened, self._open = self._open, None
        if opened is not None:
            await opened[1].close()


class KnowledgeTool(AgentTool[InputT]):
    """Base of the knowledge tools, which answer with a text.

    Args:
        access: Knowledge of the session's agent.
    """

    properties: ClassVar[dict[str, Any]]
    required: ClassVar[list[str]]
    failure: ClassVar[str] = ""

    def __init__(self, access: KnowledgeAccess) -> None:
        super().__init__(access.session)
        self._access = access

    @property
    def input_schema(self) -> dict[str, Any]:
        """JSON Schema of the arguments, as a model is shown it."""
        return {"type": "object", "properties": self.properties, "required": self.required}

    async def _run(self, args: InputT) -> dict[str, Any]:
        return {"text": await self._write_text(await self._access.open_manager(), args)}

    async def _write_text(self, manager: MemoryManager, args: InputT) -> str:
        """Return the text of the answer; raises AgentMemoryError on failure."""
        raise NotImplementedError

    def _describe_error(self, error: AgentMemoryError) -> dict[str, Any]:
        message = error.message
        if isinstance(error, CategoryNotFoundError):
            from agent_memory.knowledge.tool_answers import not_found  # loads the knowledge package

            message = not_found(error)
        return {**super()._describe_error(error), "message": f"{self.failure}{message}"}
