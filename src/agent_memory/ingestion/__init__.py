"""Earlier path of the ingestion of sessions, now in `knowledge`.

Each name loads what it needs when it is first asked for.
"""

from typing import TYPE_CHECKING

from agent_memory.late import offer as _offer

if TYPE_CHECKING:
    from agent_memory.compat.focal import ConversationSummarizer as ConversationSummarizer
    from agent_memory.compat.focal import EntityDeduplicator as EntityDeduplicator
    from agent_memory.compat.focal import EntityExtractor as EntityExtractor
    from agent_memory.compat.focal import Episode as Episode
    from agent_memory.compat.focal import MemoryIngestor as MemoryIngestor
    from agent_memory.compat.focal import Session as Session
    from agent_memory.compat.focal import Turn as Turn
    from agent_memory.errors import ExtractionError as ExtractionError
    from agent_memory.errors import IngestionError as IngestionError
    from agent_memory.errors import SummarizationError as SummarizationError
    from agent_memory.knowledge.entities.entity_drafts import EntityExtractionResult as EntityExtractionResult
    from agent_memory.knowledge.entities.entity_drafts import ExtractedEntity as ExtractedEntity
    from agent_memory.knowledge.entities.entity_repository import Entities as Entities
    from agent_memory.knowledge.entities.entity_repository import EntityReader as EntityReader
    from agent_memory.knowledge.entities.entity_repository import KnownEntity as KnownEntity
    from agent_memory.knowledge.entities.entity_repository import MergedEntity as MergedEntity
    from agent_memory.knowledge.entities.entity_repository import Moment as Moment
    from agent_memory.knowledge.entities.entity_repository import TimelineEntry as TimelineEntry
    from agent_memory.knowledge.entities.relations import ExtractedRelationship as ExtractedRelationship
    from agent_memory.knowledge.pipeline.background_work import runner_of as runner_of
    from agent_memory.knowledge.pipeline.ingestion_config import EntityDeduplicationConfig as EntityDeduplicationConfig
    from agent_memory.knowledge.pipeline.ingestion_config import EntityExtractionConfig as EntityExtractionConfig
    from agent_memory.knowledge.pipeline.ingestion_config import MemoryIngestionConfig as MemoryIngestionConfig
    from agent_memory.knowledge.pipeline.ingestion_config import MetaConfig as MetaConfig
    from agent_memory.knowledge.pipeline.ingestion_config import SummarizationConfig as SummarizationConfig
    from agent_memory.knowledge.pipeline.ingestion_config import WindowConfig as WindowConfig
    from agent_memory.knowledge.pipeline.wake_ups import InMemoryQueue as InMemoryQueue
    from agent_memory.knowledge.pipeline.wake_ups import Queue as Queue
    from agent_memory.models import Entity as Entity
    from agent_memory.models import Relation as Relation


if not TYPE_CHECKING:  # a type checker would take it for every name there is
    __getattr__, __dir__ = _offer(__name__)
