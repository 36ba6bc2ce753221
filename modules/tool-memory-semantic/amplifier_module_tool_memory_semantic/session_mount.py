"""Mount of the memory tools of a session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from amplifier_core import ToolResult

from agent_memory.errors import AgentMemoryError
from agent_memory.files.layout import resolve_root
from agent_memory.integrations.amplifier import MemorySession, is_memory_assistant, withdraw_assistant
from agent_memory.integrations.taint import ToolList
from agent_memory.registry import KINDS, KNOWLEDGE
from agent_memory.settings import OFFERED_TOOLS, ToolSettings
from agent_memory.tools import ALL_TOOLS, READING_TOOLS, StatusTool

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from agent_memory.tools import AgentTool

MODULE_ID = "tool-memory-semantic"

__all__ = ["MODULE_ID", "mount"]


class AmplifierTool:
    """Tool whose answers are results of the host.

    Args:
        tool: Agent tool that does the work.
    """

    def __init__(self, tool: AgentTool[Any]) -> None:
        self.name, self.description, self.input_schema = tool.name, tool.description, tool.input_schema
        self.session = tool.session
        self._tool = tool

    async def execute(self, input: Any) -> ToolResult:  # noqa: A002 - the host's name for it
        """Run the tool on the arguments of a model."""
        answer = await self._tool.answer(input)
        return ToolResult(success=answer.error is None, output=answer.output, error=answer.error)


async def mount(coordinator: Any, config: dict[str, Any] | None = None) -> Callable[[], Awaitable[None]]:
    """Offer the memory tools to a session; open nothing.

    After a wrong configuration, every tool returns that error. Where memory is switched off, only the status tool is
    offered, which says who decided. The memory-assistant gets the tools that only read.
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
    tool_settings = settings or ToolSettings()
    session.conversation.set_tools(
        ToolList(tool_settings.local_tools, tool_settings.untrusted_tools, tool_settings.trusted_tools)
    )
    leaving = session.leaving()
    tools = [tool_class(session) for tool_class in ALL_TOOLS if tool_class.name in names]
    if "memory_store" in names and has_documents(session.settings.storage_root):
        from agent_memory.knowledge.tools import DigestTool, KnowledgeAccess  # loads the knowledge package

        access = KnowledgeAccess(session)
        leaving.push_async_callback(access.close)
        tools.append(DigestTool(access))
    for tool in tools:
        await coordinator.mount("tools", AmplifierTool(tool), name=tool.name)
    return leaving.aclose


def has_documents(storage_root: str) -> bool:
    """Return True if an agent has documents that can be read."""
    try:
        return KNOWLEDGE.is_installed and any(resolve_root(storage_root).glob(f"*/{KINDS['resource'].file}"))
    except AgentMemoryError:
        return False  # each tool answers with this error
