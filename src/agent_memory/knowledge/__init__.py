"""Knowledge: documents, conversations, and what is made of them.

Names of the specification "sigil" are in `compat`. Each name is loaded at its first use.
"""

from typing import TYPE_CHECKING

from agent_memory.late import offer as _offer

if TYPE_CHECKING:
    from agent_memory.compat.sigil import MemoryManager, MemoryRetryConfig, MemoryStats
    from agent_memory.compat.sigil_layers import (
        CategoryLayer,
        ItemLayer,
        MemoryCategory,
        MemoryConfig,
        MemoryItem,
        Resource,
        ResourceLayer,
    )
    from agent_memory.compat.sigil_operations import (
        CategoryConsolidatedPayload,
        CategoryCreatedPayload,
        ConfidenceScorer,
        EventStore,
        HybridRetriever,
        ItemDeletedPayload,
        ItemsExtractedPayload,
        LLMRetriever,
        MemoryEvent,
        MemoryEventType,
        RAGRetriever,
        ResourceDeletedPayload,
        ResourceStoredPayload,
        RetrievalMode,
        RetrievalPerformedPayload,
        RetrievalResult,
    )
    from agent_memory.knowledge.llm.language_model import Asking, LanguageModel, ModelBudget

__all__ = [
    "Asking",
    "CategoryConsolidatedPayload",
    "CategoryCreatedPayload",
    "CategoryLayer",
    "ConfidenceScorer",
    "EventStore",
    "HybridRetriever",
    "ItemDeletedPayload",
    "ItemLayer",
    "ItemsExtractedPayload",
    "LLMRetriever",
    "LanguageModel",
    "MemoryCategory",
    "MemoryConfig",
    "MemoryEvent",
    "MemoryEventType",
    "MemoryItem",
    "MemoryManager",
    "MemoryRetryConfig",
    "MemoryStats",
    "ModelBudget",
    "RAGRetriever",
    "Resource",
    "ResourceDeletedPayload",
    "ResourceLayer",
    "ResourceStoredPayload",
    "RetrievalMode",
    "RetrievalPerformedPayload",
    "RetrievalResult",
]

if not TYPE_CHECKING:  # a type checker would accept every name
    __getattr__, __dir__ = _offer(__name__)
