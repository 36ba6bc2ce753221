"""Mount of the tools of a workspace."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from amplifier_core import ToolResult

from agent_memory.errors import AgentMemoryError, ConfigurationError, refused_by_system
from agent_memory.integrations.amplifier import MemorySession, is_memory_assistant
from agent_memory.integrations.amplifier.identity import find_working_folder
from agent_memory.logs import get_logger
from agent_memory.models import visible_values
from agent_memory.settings import build_settings, did_you_mean
from agent_memory.workspace import SessionToolset
from agent_memory.workspace.toolset.session_toolset import EVENTS, WorkspaceToolSettings

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

MODULE_ID: Final = "tool-memory-workspace"
_PROBLEM_DESCRIPTION: Final = "What is to be done in the workspace. It cannot be used now; a call says why."
_PROBLEM_SCHEMA: Final = {"type": "object", "properties": {"limit": {"type": "integer"}}, "required": ["limit"]}

log = get_logger(__name__)

__all__ = ["MODULE_ID", "WorkspaceTool", "mount"]


class WorkspaceTool:
    """Tool of a workspace in the form that the host calls."""

    def __init__(self, toolset: SessionToolset, name: str, description: str, input_schema: dict[str, Any]) -> None:
        self.name, self.description, self.input_schema = name, description, input_schema
        self._toolset = toolset

    async def execute(self, input: Any) -> ToolResult:  # noqa: A002 - the host's name for it
        """Run the tool on the arguments of a model."""
        try:
            return ToolResult(success=True, output=await self._toolset.call(self.name, input))
        except AgentMemoryError as error:
            return ToolResult(success=False, error=visible_values(error.as_dict()))
        except (OSError, MemoryError, RuntimeError) as error:
            refused = refused_by_system(error)
            if refused is None:
                raise
            return ToolResult(success=False, error=visible_values(refused.as_dict()))


async def mount(coordinator: Any, config: Any = None) -> Callable[[], Awaitable[None]]:
    """Offer the tools to a session; read the declaration, and open nothing.

    Nothing is offered to the memory-assistant, which inherits the tools of its session and may only read memories.
    After a wrong configuration, or without a workspace, `next_steps` is offered alone and returns the error.
    """
    session = MemorySession.of(coordinator)
    toolset = SessionToolset(
        str(coordinator.session_id),
        lambda: load_settings(config),
        lambda: find_working_folder(coordinator) or Path.cwd(),
        session.conversation.emit,
        lambda: session.taint.by is not None,
        session.taint.note,
    )
    leaving = session.leaving()
    leaving.push_async_callback(toolset.close)
    if session.is_child and is_memory_assistant(coordinator):
        return leaving.aclose
    offered = await asyncio.to_thread(toolset.list_tools)
    tools = [WorkspaceTool(toolset, name, tool.description, tool.input_schema) for name, tool in offered.items()]
    if toolset.problem is not None:
        tools.append(WorkspaceTool(toolset, "next_steps", _PROBLEM_DESCRIPTION, dict(_PROBLEM_SCHEMA)))
    for tool in tools:
        await coordinator.mount("tools", tool, name=tool.name)
    coordinator.register_contributor("observability.events", MODULE_ID, lambda: list(EVENTS))
    return leaving.aclose


def load_settings(config: Any) -> WorkspaceToolSettings:
    """Return the settings; unknown ones are logged.

    Raises:
        ConfigurationError: A value is wrong.
    """
    if config is not None and not hasattr(config, "items"):
        raise ConfigurationError(f"The configuration of {MODULE_ID} is not a mapping of keys to values.")
    known = WorkspaceToolSettings.model_fields
    values = {str(key): value for key, value in (config or {}).items() if value is not None}
    for key in values.keys() - known.keys():
        warning = f"{MODULE_ID}: unknown setting {key!r} is ignored{did_you_mean(key, known)}"
        log.warning_once("setting_not_understood", warning=warning)
    own_values = {key: value for key, value in values.items() if key in known}
    return build_settings(MODULE_ID, WorkspaceToolSettings, own_values)
