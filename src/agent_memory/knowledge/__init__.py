"""Knowledge: documents, conversations, and what is made of them.

Names of the specification "sigil" are in `compat`. Each name is loaded at its first use.
"""

from typing import TYPE_CHECKING

from agent_memory.late import offer as _offer

if TYPE_CHECKING:
    from agent_memory.compat.sigil import MemoryManager as MemoryManager
    from agent_memory.compat.sigil import MemoryRetryConfig as MemoryRetryConfig
    from agent_memory.compat.sigil import MemoryStats as MemoryStats
    from agent_memory.compat.sigil_layers import CategoryLayer as CategoryLayer
    from agent_memory.compat.sigil_layers import ItemLayer as ItemLayer
    from agent_memory.compat.sigil_layers import MemoryCategory as MemoryCategory
    from agent_memory.compat.sigil_layers import MemoryConfig as MemoryConfig
    from agent_memory.compat.sigil_layers import MemoryItem as MemoryItem
    from agent_memory.compat.sigil_layers import Resource as Resource
    from agent_memory.compat.sigil_layers import ResourceLayer as ResourceLayer
    from agent_memory.compat.sigil_operations import CategoryConsolidatedPayload as CategoryConsolidatedPayload
    from agent_memory.compat.sigil_operations import CategoryCreatedPayload as CategoryCreatedPayload
    from agent_memory.compat.sigil_operations import ConfidenceScorer as ConfidenceScorer
    from agent_memory.compat.sigil_operations import EventStore as EventStore
    from agent_memory.compat.sigil_operations import HybridRetriever as HybridRetriever
    from agent_memory.compat.sigil_operations import ItemDeletedPayload as ItemDeletedPayload
    from agent_memory.compat.sigil_operations import ItemsExtractedPayload as ItemsExtractedPayload
    from agent_memory.compat.sigil_operations import LLMRetriever as LLMRetriever
    from agent_memory.compat.sigil_operations import MemoryEvent as MemoryEvent
    from agent_memory.compat.sigil_operations import MemoryEventType as MemoryEventType
    from agent_memory.compat.sigil_operations import RAGRetriever as RAGRetriever
    from agent_memory.compat.sigil_operations import ResourceDeletedPayload as ResourceDeletedPayload
    from agent_memory.compat.sigil_operations import ResourceStoredPayload as ResourceStoredPayload
    from agent_memory.compat.sigil_operations import RetrievalMode as RetrievalMode
    from agent_memory.compat.sigil_operations import RetrievalPerformedPayload as RetrievalPerformedPayload
    from agent_memory.compat.sigil_operations import RetrievalResult as RetrievalResult
    from agent_memory.knowledge.llm.language_model import Asking as Asking
    from agent_memory.knowledge.llm.language_model import LanguageModel as LanguageModel
    from agent_memory.knowledge.llm.language_model import ModelBudget as ModelBudget


if not TYPE_CHECKING:  # a type checker would accept every name
    __getattr__, __dir__ = _offer(__name__)
