"""context-memory-scratchpad: shows an agent its scratchpad. A decorator around the session's context manager.

List it under `tools:`, so that it is mounted after the context manager it wraps. As `session.context` it works too, on
a base of its own.
"""

from amplifier_module_context_memory_scratchpad import library

__amplifier_module_type__ = "context"

try:
    library.choose()
    from amplifier_module_context_memory_scratchpad.mounting import MODULE_ID, ScratchpadContext, mount
except (ImportError, AttributeError) as error:
    library.problem(error)
    mount = library.mount_nothing

__all__ = ["MODULE_ID", "ScratchpadContext", "mount"]
