"""tool-memory-knowledge: what an agent was given, by topic, as tools. A thin adapter over `agent_memory.knowledge`."""

from amplifier_module_tool_memory_knowledge import library

__amplifier_module_type__ = "tool"

try:
    library.choose()
    from amplifier_module_tool_memory_knowledge.mounting import MODULE_ID, mount
    from amplifier_module_tool_memory_knowledge.tools import ALL_TOOLS, KnowledgeTool
except (ImportError, AttributeError) as error:
    library.problem(error)
    mount = library.mount_nothing

__all__ = ["ALL_TOOLS", "MODULE_ID", "KnowledgeTool", "mount"]
