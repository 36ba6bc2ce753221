"""tool-memory-semantic: an agent's memory as tools. A thin adapter over `agent_memory.memory`."""

from amplifier_module_tool_memory_semantic import library

__amplifier_module_type__ = "tool"

try:
    library.choose()
    from amplifier_module_tool_memory_semantic.mounting import ALL_TOOLS, MODULE_ID, READING_TOOLS, MemoryTool, mount
except (ImportError, AttributeError) as error:
    from amplifier_module_tool_memory_semantic.absence import mount_explanation

    mount = mount_explanation(library.problem(error))

__all__ = ["ALL_TOOLS", "MODULE_ID", "READING_TOOLS", "MemoryTool", "mount"]
