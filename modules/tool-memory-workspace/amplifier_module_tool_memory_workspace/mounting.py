"""Mounts the tools of a workspace, as its declaration and the settings say."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from amplifier_core import ToolResult

from agent_memory.errors import AgentMemoryError, refused_by_system
from agent_memory.integrations.amplifier import MemorySession, is_memory_assistant
from agent_memory.workspace.events import EVENTS
from amplifier_module_tool_memory_workspace.desk import MODULE_ID, Desk

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from agent_memory.workspace.toolset import Tool

_PROBLEM_SCHEMA: Final = {"type": "object", "properties": {"limit": {"type": "integer"}}, "required": ["limit"]}

__all__ = ["MODULE_ID", "WorkspaceTool", "mount"]


class WorkspaceTool:
    """A tool of a workspace, as the host calls it."""

    def __init__(self, desk: Desk, name: str, description: str, input_schema: dict[str, Any]) -> None:
        self.name, self.description, self.input_schema = name, description, input_schema
        self._desk = desk

    async def execute(self, input: Any) -> ToolResult:  # noqa: A002 - the host's name for it
        """Run the tool on whatever the model sent."""
        try:
            return ToolResult(success=True, output=await self._desk.call(self.name, input))
        except AgentMemoryError as error:
            return ToolResult(success=False, error=error.as_dict())
        except (OSError, MemoryError, RuntimeError) as error:
            refused = refused_by_system(error)
            if refused is None:
                raise
            return ToolResult(success=False, error=refused.as_dict())


async def mount(coordinator: Any, config: Any = None) -> Callable[[], Awaitable[None]]:
    """Offer the tools to a session. Reads the declaration, and opens nothing.

    Nothing is offered to the memory-assistant, which inherits the tools of its session and may only read memories.
    Where the configuration is wrong, or there is no workspace, `next_steps` is offered alone, and says so.
    """
    session = MemorySession.of(coordinator)
    leaving = session.leaving()
    desk = Desk(coordinator, config, session.taint)
    leaving.push_async_callback(desk.close)
    if session.is_child and is_memory_assistant(coordinator):
        return leaving.aclose
    offered = await asyncio.to_thread(desk.tools)
    session.conversation.speaks_for_itself(offered)
    for name, tool in offered.items():
        await coordinator.mount("tools", _offered(desk, tool), name=name)
    if desk.problem is not None:
        description = "What is to be done in the workspace. It cannot be used now; a call says why."
        await coordinator.mount(
            "tools", WorkspaceTool(desk, "next_steps", description, dict(_PROBLEM_SCHEMA)), name="next_steps"
        )
    coordinator.register_contributor("observability.events", MODULE_ID, lambda: list(EVENTS))
    return leaving.aclose


def _offered(desk: Desk, tool: Tool) -> WorkspaceTool:
    return WorkspaceTool(desk, tool.name, tool.description, tool.input_schema)
