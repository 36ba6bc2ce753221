"""Mounts the tools of a session: those that read topics, and where nothing else finds memories, those that do, too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from amplifier_core import ChatRequest, Message

from agent_memory.integrations.amplifier import MemorySession, is_memory_assistant
from agent_memory.integrations.amplifier.provider import SessionModel
from agent_memory.knowledge import ModelBudget
from agent_memory.knowledge.tool_settings import KnowledgeToolSettings
from agent_memory.settings import KNOWLEDGE_TOOLS
from amplifier_module_tool_memory_knowledge.shelf import Shelf
from amplifier_module_tool_memory_knowledge.tools import ALL_TOOLS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

MODULE_ID = "tool-memory-knowledge"
_SEMANTIC: Final = "tool-memory-semantic"
_INGESTION: Final = "hooks-memory-ingestion"
_PAGES: Final = ("list_categories", "get_category", "digest")

__all__ = ["MODULE_ID", "mount"]


async def mount(coordinator: Any, config: dict[str, Any] | None = None) -> Callable[[], Awaitable[None]]:
    """Offer the tools to a session. Opens nothing.

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
        names = _offered(coordinator)
    may_write = not (session.is_child and is_memory_assistant(coordinator))
    shelf = _shelf(session, settings, coordinator)
    for tool_class in ALL_TOOLS:
        if tool_class.name in names and (may_write or tool_class.only_reads):
            tool = tool_class(shelf)
            await coordinator.mount("tools", tool, name=tool.name)
    leaving = session.leaving()
    leaving.push_async_callback(shelf.close)
    return leaving.aclose


def _shelf(session: MemorySession, settings: KnowledgeToolSettings | None, coordinator: Any) -> Shelf:
    """Return what the tools share; with a model only where the settings say so."""
    if settings is None or not settings.model:
        return Shelf(session)
    budget = ModelBudget(settings.model_calls, settings.model_tokens, seconds=settings.model_timeout)
    return Shelf(session, SessionModel(coordinator, _request), budget)


def _offered(coordinator: Any) -> tuple[str, ...]:
    """Return the tools to offer where no setting names them: by the session's plan, whatever is mounted first."""
    if not _has(coordinator, "tools", _SEMANTIC):
        return KNOWLEDGE_TOOLS
    # What was said in earlier sessions is no memory of the agent's own: memory_search does not find it.
    return ("recall", *_PAGES) if _has(coordinator, "hooks", _INGESTION) else _PAGES


def _has(coordinator: Any, kind: str, module: str) -> bool:
    """Return True if the session's plan lists a module."""
    plan = getattr(coordinator, "config", None)
    listed: Mapping[str, Any] = plan if isinstance(plan, dict) else {}
    return any(isinstance(one, dict) and one.get("module") == module for one in listed.get(kind) or ())


def _request(prompt: str, tokens: int) -> ChatRequest:
    """Build a request without streaming."""
    return ChatRequest(
        messages=[Message(role="user", content=prompt)], max_output_tokens=tokens, metadata={"stream": False}
    )
