"""What came in from outside, raw: resources and episodes; and what is made of it: items, topics and their pages.

Each name loads what it needs when it is first asked for.
"""

from typing import TYPE_CHECKING

from agent_memory.late import offer as _offer

if TYPE_CHECKING:
    from agent_memory.knowledge.facade.categories import CategoryLayer
    from agent_memory.knowledge.facade.events import (
        CategoryConsolidatedPayload,
        CategoryCreatedPayload,
        EventStore,
        ItemDeletedPayload,
        ItemsExtractedPayload,
        MemoryEvent,
        MemoryEventType,
        ResourceDeletedPayload,
        ResourceStoredPayload,
        RetrievalPerformedPayload,
    )
    from agent_memory.knowledge.facade.layers import ItemLayer, ResourceLayer
    from agent_memory.knowledge.facade.manager import MemoryManager
    from agent_memory.knowledge.facade.retrieval import (
        ConfidenceScorer,
        HybridRetriever,
        LLMRetriever,
        RAGRetriever,
        RetrievalMode,
        RetrievalResult,
    )
    from agent_memory.knowledge.facade.shapes import (
        MemoryCategory,
        MemoryConfig,
        MemoryItem,
        MemoryRetryConfig,
        MemoryStats,
        Resource,
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

if not TYPE_CHECKING:  # a type checker would take it for every name there is
    __getattr__, __dir__ = _offer(__name__)
