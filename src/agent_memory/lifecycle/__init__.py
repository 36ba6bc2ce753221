"""What happens to memories with time: importance, archive, backups, briefings; how they are, and how much there is.

Each name loads what it needs when it is first asked for.
"""

from typing import TYPE_CHECKING

from agent_memory.late import offer as _offer

if TYPE_CHECKING:
    from agent_memory.care.archive import Archive
    from agent_memory.care.importance import ImportanceCalculator, ImportanceLevel, MemoryEntryType, importance_of
    from agent_memory.care.tidying import LifecycleSettings, Tidying, TidyingPlan
    from agent_memory.compat.leonidas import (
        MemoryStore,
        MemoryStoreSignalBusIntegration,
        MemoryStoreWorldModelIntegration,
        RAGIntegration,
    )
    from agent_memory.compat.leonidas_entries import (
        ContextBuilder,
        MemoryEntry,
        RelevanceFilter,
        Signal,
        UnifiedSignalBus,
        WorldModel,
    )
    from agent_memory.compat.leonidas_management import (
        ArchivalConfig,
        ArchivalManager,
        CleanupConfig,
        CleanupManager,
        EmbeddingConfig,
        MemoryPerformanceMetrics,
        MemoryStoreConfig,
    )
    from agent_memory.memory.briefing import Briefer, SessionBriefing
    from agent_memory.memory.results import Briefing

__all__ = [
    "ArchivalConfig",
    "ArchivalManager",
    "Archive",
    "Briefer",
    "Briefing",
    "CleanupConfig",
    "CleanupManager",
    "ContextBuilder",
    "EmbeddingConfig",
    "ImportanceCalculator",
    "ImportanceLevel",
    "LifecycleSettings",
    "MemoryEntry",
    "MemoryEntryType",
    "MemoryPerformanceMetrics",
    "MemoryStore",
    "MemoryStoreConfig",
    "MemoryStoreSignalBusIntegration",
    "MemoryStoreWorldModelIntegration",
    "RAGIntegration",
    "RelevanceFilter",
    "SessionBriefing",
    "Signal",
    "Tidying",
    "TidyingPlan",
    "UnifiedSignalBus",
    "WorldModel",
    "importance_of",
]

if not TYPE_CHECKING:  # a type checker would take it for every name there is
    __getattr__, __dir__ = _offer(__name__)
