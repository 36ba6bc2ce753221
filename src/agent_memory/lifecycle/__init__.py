"""Earlier path of importance, archive, backups and briefings, now in `care`.

Each name loads what it needs when it is first asked for.
"""

from typing import TYPE_CHECKING

from agent_memory.late import offer as _offer

if TYPE_CHECKING:
    from agent_memory.care.archive import Archive as Archive
    from agent_memory.care.importance import ImportanceCalculator as ImportanceCalculator
    from agent_memory.care.importance import ImportanceLevel as ImportanceLevel
    from agent_memory.care.importance import MemoryEntryType as MemoryEntryType
    from agent_memory.care.importance import importance_of as importance_of
    from agent_memory.care.tidying import LifecycleSettings as LifecycleSettings
    from agent_memory.care.tidying import Tidying as Tidying
    from agent_memory.care.tidying import TidyingPlan as TidyingPlan
    from agent_memory.compat.leonidas import MemoryStore as MemoryStore
    from agent_memory.compat.leonidas import MemoryStoreSignalBusIntegration as MemoryStoreSignalBusIntegration
    from agent_memory.compat.leonidas import MemoryStoreWorldModelIntegration as MemoryStoreWorldModelIntegration
    from agent_memory.compat.leonidas import RAGIntegration as RAGIntegration
    from agent_memory.compat.leonidas_entries import ContextBuilder as ContextBuilder
    from agent_memory.compat.leonidas_entries import MemoryEntry as MemoryEntry
    from agent_memory.compat.leonidas_entries import RelevanceFilter as RelevanceFilter
    from agent_memory.compat.leonidas_entries import Signal as Signal
    from agent_memory.compat.leonidas_entries import UnifiedSignalBus as UnifiedSignalBus
    from agent_memory.compat.leonidas_entries import WorldModel as WorldModel
    from agent_memory.compat.leonidas_management import ArchivalConfig as ArchivalConfig
    from agent_memory.compat.leonidas_management import ArchivalManager as ArchivalManager
    from agent_memory.compat.leonidas_management import CleanupConfig as CleanupConfig
    from agent_memory.compat.leonidas_management import CleanupManager as CleanupManager
    from agent_memory.compat.leonidas_management import EmbeddingConfig as EmbeddingConfig
    from agent_memory.compat.leonidas_management import MemoryPerformanceMetrics as MemoryPerformanceMetrics
    from agent_memory.compat.leonidas_management import MemoryStoreConfig as MemoryStoreConfig
    from agent_memory.memory.briefing import Briefer as Briefer
    from agent_memory.memory.briefing import SessionBriefing as SessionBriefing
    from agent_memory.memory.results import Briefing as Briefing


if not TYPE_CHECKING:  # a type checker would take it for every name there is
    __getattr__, __dir__ = _offer(__name__)
