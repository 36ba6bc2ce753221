"""hooks-memory-ingestion: keeps conversations as they were said. A thin adapter over `agent_memory.knowledge`."""

from amplifier_module_hooks_memory_ingestion import library

__amplifier_module_type__ = "hook"

try:
    library.choose()
    from amplifier_module_hooks_memory_ingestion.mounting import (
        MODULE_ID,
        STATISTICS_CAPABILITY,
        IngestionHooks,
        Intake,
        mount,
    )
except (ImportError, AttributeError) as error:
    library.problem(error)
    mount = library.mount_nothing

__all__ = ["MODULE_ID", "STATISTICS_CAPABILITY", "IngestionHooks", "Intake", "mount"]
