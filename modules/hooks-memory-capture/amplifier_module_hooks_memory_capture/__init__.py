"""hooks-memory-capture: notices what is worth remembering in a conversation. A thin adapter over the library."""

from amplifier_module_hooks_memory_capture import library

__amplifier_module_type__ = "hook"

try:
    library.choose()
    from amplifier_module_hooks_memory_capture.mounting import (
        MODULE_ID,
        STATISTICS_CAPABILITY,
        CaptureHooks,
        Recorder,
        mount,
    )
except (ImportError, AttributeError) as error:
    library.problem(error)
    mount = library.mount_nothing

__all__ = ["MODULE_ID", "STATISTICS_CAPABILITY", "CaptureHooks", "Recorder", "mount"]
