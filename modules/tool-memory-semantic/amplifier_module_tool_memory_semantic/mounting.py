"""Mounts the tools of a session, and only those that read for the memory-assistant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_memory.errors import AgentMemoryError
from agent_memory.files.layout import root_of
from agent_memory.integrations.amplifier import MemorySession, is_memory_assistant, withdraw_assistant
from agent_memory.registry import KINDS
from agent_memory.settings import OFFERED_TOOLS, ToolSettings
from amplifier_module_tool_memory_semantic.tools import ALL_TOOLS, MemoryTool, StatusTool

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

MODULE_ID = "tool-memory-semantic"
READING_TOOLS = tuple(tool.name for tool in ALL_TOOLS if tool.only_reads)

__all__ = ["ALL_TOOLS", "MODULE_ID", "READING_TOOLS", "MemoryTool", "mount"]


async def mount(coordinator: Any, config: dict[str, Any] | None = None) -> Callable[[], Awaitable[None]]:
    """Offer the memory tools to a session. Opens nothing.

    After a wrong configuration, every tool returns that error. Where memory is switched off, only the status tool is
    offered, which says who decided.
    """
    session = MemorySession.of(coordinator)
    settings = session.configure(MODULE_ID, ToolSettings, config)
    names = settings.tools if settings else OFFERED_TOOLS
    if session.consent.is_switched_off(session.settings):
        withdraw_assistant(coordinator)
        names = (StatusTool.name,)
    if session.is_child and is_memory_assistant(coordinator):
        # The host joins an agent's list with the parent's instead of replacing it, so reading only is held here.
        names = tuple(name for name in names if name in READING_TOOLS)
    trusting = settings or ToolSettings()
    session.conversation.distrust_tools(trusting.low_trust_tools, trusting.trusted_tools)
    for tool_class in ALL_TOOLS:
        if tool_class.name in names:
            tool = tool_class(session)
            await coordinator.mount("tools", tool, name=tool.name)
    is_writing = not (session.is_child and is_memory_assistant(coordinator)) and "memory_store" in names
    if is_writing and has_documents(session.settings.storage_root):
        from amplifier_module_tool_memory_semantic.digest import DigestTool  # for agents with documents

        digest = DigestTool(session)
        await coordinator.mount("tools", digest, name=digest.name)
    return session.leaving().aclose


def has_documents(storage_root: str) -> bool:
    """Return True if an agent of the storage root was given documents."""
    try:
        return any(root_of(storage_root).glob(f"*/{KINDS['resource'].file}"))
    except AgentMemoryError:
        return False  # each tool answers with this error
