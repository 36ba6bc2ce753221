"""Mount of the knowledge tools of a session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from amplifier_core import ChatRequest, Message, ToolResult

from agent_memory.integrations.amplifier import MemorySession, is_memory_assistant
from agent_memory.integrations.amplifier.hooks.session_model import SessionModel
from agent_memory.knowledge import ModelBudget
from agent_memory.knowledge.tool_settings import KnowledgeToolSettings
from agent_memory.settings import KNOWLEDGE_TOOLS
from agent_memory.tools import ALL_KNOWLEDGE_TOOLS, KnowledgeAccess

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from agent_memory.tools import AgentTool

MODULE_ID = "tool-memory-knowledge"
_SEMANTIC: Final = "tool-memory-semantic"
_INGESTION: Final = "hooks-memory-ingestion"
_PAGES: Final = ("list_categories", "get_category", "digest")

__all__ = ["MODULE_ID", "mount"]


class AmplifierTextTool:
    """Tool whose answers are texts.

    Args:
        tool: Agent tool that does the work.
    """

    def __init__(self, tool: AgentTool[Any]) -> None:
        self.name, self.description, self.input_schema = tool.name, tool.description, tool.input_schema
        self.session = tool.session
        self._tool = tool

    async def execute(self, input: Any) -> ToolResult:  # noqa: A002 - the host's name for it
        """Run the tool on the arguments of a model."""
        answer = await self._tool.answer({} if input is None else input)
        if answer.output is None:
            return ToolResult(success=False, error=answer.error)
        warnings = [f"Warning: {warning}" for warning in answer.output.get("warnings", ())]
        return ToolResult(success=True, output="\n".join([answer.output["text"], *warnings]))


async def mount(coordinator: Any, config: dict[str, Any] | None = None) -> Callable[[], Awaitable[None]]:
    """Offer the knowledge tools to a session; open nothing.

    After a wrong configuration, every tool returns that error. Where memory is switched off, no tool is offered, so
    that no request gets longer.
    """
    session = MemorySession.of(coordinator)
    settings = session.configure(MODULE_ID, KnowledgeToolSettings, config)
    if session.consent.is_switched_off(session.settings):
        return session.leaving().aclose
    if settings is not None:
        session.group_settings.add_settings(settings.tenant_id, settings.group)
    names = settings.tools if settings is not None else None
    if names is None:
        names = _choose_names(coordinator)
    may_write = not (session.is_child and is_memory_assistant(coordinator))
    access = _build_access(session, settings, coordinator)
    for tool_class in ALL_KNOWLEDGE_TOOLS:
        if tool_class.name in names and (may_write or tool_class.only_reads):
            await coordinator.mount("tools", AmplifierTextTool(tool_class(access)), name=tool_class.name)
    leaving = session.leaving()
    leaving.push_async_callback(access.close)
    return leaving.aclose


def _build_access(session: MemorySession, settings: KnowledgeToolSettings | None, coordinator: Any) -> KnowledgeAccess:
    """Return the knowledge of the session, with the configured model."""
    if settings is None or not settings.model:
        return KnowledgeAccess(session)
    budget = ModelBudget(settings.model_calls, settings.model_tokens, seconds=settings.model_timeout)
    return KnowledgeAccess(session, SessionModel(coordinator, _build_request), budget)


def _choose_names(coordinator: Any) -> tuple[str, ...]:
    """Return the tools to offer without a setting, by the session's plan."""
    if not _lists_module(coordinator, "tools", _SEMANTIC):
        return KNOWLEDGE_TOOLS
    # memory_search does not find what was said in earlier sessions.
    return ("recall", *_PAGES) if _lists_module(coordinator, "hooks", _INGESTION) else _PAGES


def _lists_module(coordinator: Any, kind: str, module_id: str) -> bool:
    """Return True if the session's plan lists a module."""
    plan = getattr(coordinator, "config", None)
    entries: Mapping[str, Any] = plan if isinstance(plan, dict) else {}
    return any(isinstance(entry, dict) and entry.get("module") == module_id for entry in entries.get(kind) or ())


def _build_request(prompt: str, tokens: int) -> ChatRequest:
    """Build a request without streaming."""
    return ChatRequest(
        messages=[Message(role="user", content=prompt)], max_output_tokens=tokens, metadata={"stream": False}
    )
