"""tool-memory-workspace: tables and steps that agents share, as tools. A thin adapter over `agent_memory.workspace`."""

from amplifier_module_tool_memory_workspace import library

__amplifier_module_type__ = "tool"

try:
    library.choose()
    from amplifier_module_tool_memory_workspace.mounting import MODULE_ID, WorkspaceTool, mount
except (ImportError, AttributeError) as error:
    library.problem(error)
    mount = library.mount_nothing

__all__ = ["MODULE_ID", "WorkspaceTool", "mount"]
