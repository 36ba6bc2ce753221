"""What sessions say and do, taken in group by group: episodes, and the entities, relations and summaries of them.

Each name loads what it needs when it is first asked for.
"""

from typing import TYPE_CHECKING

from agent_memory.late import offer as _offer

if TYPE_CHECKING:
    from agent_memory.compat.focal import (
        ConversationSummarizer,
        EntityDeduplicator,
        EntityExtractor,
        Episode,
        MemoryIngestor,
        Session,
        Turn,
    )
    from agent_memory.errors import ExtractionError, IngestionError, SummarizationError
    from agent_memory.knowledge.entities.entity_drafts import EntityExtractionResult, ExtractedEntity
    from agent_memory.knowledge.entities.entity_repository import (
        Entities,
        EntityReader,
        KnownEntity,
        MergedEntity,
        Moment,
        TimelineEntry,
    )
    from agent_memory.knowledge.entities.relations import ExtractedRelationship
    from agent_memory.knowledge.pipeline.background_work import runner_of
    from agent_memory.knowledge.pipeline.ingestion_config import (
        EntityDeduplicationConfig,
        EntityExtractionConfig,
        MemoryIngestionConfig,
        MetaConfig,
        SummarizationConfig,
        WindowConfig,
    )
    from agent_memory.knowledge.pipeline.wake_ups import InMemoryQueue, Queue
    from agent_memory.models import Entity, Relation

__all__ = [
    "ConversationSummarizer",
    "Entities",
    "Entity",
    "EntityDeduplicationConfig",
    "EntityDeduplicator",
    "EntityExtractionConfig",
    "EntityExtractionResult",
    "EntityExtractor",
    "EntityReader",
    "Episode",
    "ExtractedEntity",
    "ExtractedRelationship",
    "ExtractionError",
    "InMemoryQueue",
    "IngestionError",
    "KnownEntity",
    "MemoryIngestionConfig",
    "MemoryIngestor",
    "MergedEntity",
    "MetaConfig",
    "Moment",
    "Queue",
    "Relation",
    "Session",
    "SummarizationConfig",
    "SummarizationError",
    "TimelineEntry",
    "Turn",
    "WindowConfig",
    "runner_of",
]

if not TYPE_CHECKING:  # a type checker would take it for every name there is
    __getattr__, __dir__ = _offer(__name__)
