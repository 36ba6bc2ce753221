"""Settings and metrics of ingestion: entities, summaries and the queue."""

from __future__ import annotations

from typing import Final, Literal, get_args

from pydantic import Field

from agent_memory.logs import CounterMetric, GaugeMetric, HistogramMetric
from agent_memory.models.knowledge import RELATION_TYPES, EntityType
from agent_memory.settings import Settings


class EntityExtractionConfig(Settings):
    """Settings of entity extraction.

    `llm_provider`, `model`, `max_tokens` and `temperature` have no effect: rules extract entities.
    """

    enabled: bool = True
    llm_provider: str = "anthropic"
    model: str = "haiku"
    max_tokens: int = Field(default=1024, ge=1)
    temperature: float = Field(default=0.3, ge=0, le=2)
    batch_size: int = Field(default=10, ge=1, le=1000)
    timeout_ms: int = Field(
        default=3000, ge=1, description="Has no effect: rules have no timeout, and no model is asked."
    )
    min_confidence: Literal["high", "medium", "low"] = "medium"


class EntityDeduplicationConfig(Settings):
    """Stages and thresholds of entity comparison."""

    exact_match_enabled: bool = True
    fuzzy_match_enabled: bool = True
    fuzzy_threshold: float = Field(default=0.85, ge=0, le=1)
    embedding_match_enabled: bool = True
    embedding_threshold: float = Field(
        default=0.80,
        ge=0,
        le=1,
        description="Least cosine similarity of compared entities; it merges none.",
    )
    rule_based_enabled: bool = True


class SummarizationConfig(Settings):
    """Settings of summaries."""

    class WindowConfig(Settings):
        """Settings of summaries of consecutive turns, each up to `max_tokens`.

        `llm_provider`, `model` and `temperature` are accepted and change nothing, as in `EntityExtractionConfig`.
        """

        turns_per_summary: int = Field(default=20, ge=2, le=90)
        llm_provider: str = "anthropic"
        model: str = "haiku"
        max_tokens: int = Field(default=256, ge=16)
        temperature: float = Field(default=0.5, ge=0, le=2)

    class MetaConfig(Settings):
        """Settings of summaries of long conversations, each up to `max_tokens`.

        `llm_provider`, `model` and `temperature` are accepted and change nothing, as in `EntityExtractionConfig`.
        """

        summaries_per_meta: int = Field(default=5, ge=2, le=90)
        enabled_at_turn_count: int = Field(default=100, ge=2)
        llm_provider: str = "anthropic"
        model: str = "haiku"
        max_tokens: int = Field(default=512, ge=16)
        temperature: float = Field(default=0.5, ge=0, le=2)

    enabled: bool = True
    window: WindowConfig = Field(default_factory=WindowConfig)
    meta: MetaConfig = Field(default_factory=MetaConfig)


WindowConfig = SummarizationConfig.WindowConfig
MetaConfig = SummarizationConfig.MetaConfig


class MemoryIngestionConfig(Settings):
    """Settings of ingestion."""

    enabled: bool = True
    embedding_enabled: bool = True
    entity_extraction_enabled: bool = True
    summarization_enabled: bool = True
    async_extraction: bool = Field(
        default=True, description="Extract entities in the background, else before the answer."
    )
    async_summarization: bool = Field(default=True, description="Summarize in the background, else before the answer.")
    queue_backend: Literal["redis", "inmemory"] = Field(
        default="inmemory",
        description="Queue that wakes up other processes. The backlog itself is always the journal.",
    )
    redis_url: str = Field(default="redis://127.0.0.1:6379/0", description="URL of the server, for `redis` only.")
    max_ingestion_latency_ms: int = Field(
        default=500, ge=1, description="Slower ingestion of a turn is logged as slow."
    )
    entity_extraction: EntityExtractionConfig = Field(default_factory=EntityExtractionConfig)
    deduplication: EntityDeduplicationConfig = Field(default_factory=EntityDeduplicationConfig)
    summarization: SummarizationConfig = Field(default_factory=SummarizationConfig)


EpisodeSource = Literal["user", "agent", "system"]
ContentType = Literal["message", "event", "summary", "meta_summary"]
SummaryType = Literal["window", "meta"]

_OPERATIONS: Final = ("episode_create", "event_create")
_EXTRACTIONS: Final = ("entity_extract", "deduplicate", "summarize_window", "summarize_meta")

EPISODES_CREATED: Final = CounterMetric(
    "focal_episodes_created",
    "Episodes that were taken in.",
    {"content_type": get_args(ContentType), "source": get_args(EpisodeSource)},
)
ENTITIES_EXTRACTED: Final = CounterMetric(
    "focal_entities_extracted", "Entities that episodes name.", {"entity_type": get_args(EntityType)}
)
RELATIONSHIPS_CREATED: Final = CounterMetric(
    "focal_relationships_created", "Relations that were kept.", {"relation_type": RELATION_TYPES}
)
SUMMARIES_CREATED: Final = CounterMetric(
    "focal_summaries_created", "Summaries that were kept.", {"summary_type": get_args(SummaryType)}
)
DEDUPLICATION_MATCHES: Final = CounterMetric(
    "focal_deduplication_matches",
    "Entities that were found to be known, by the stage that found it.",
    {"stage": ("exact", "fuzzy", "embedding", "rule")},
)
INGESTION_LATENCY: Final = HistogramMetric(
    "focal_ingestion_latency_milliseconds", "From the call until it is on the disk.", {"operation": _OPERATIONS}
)
EXTRACTION_LATENCY: Final = HistogramMetric(
    "focal_extraction_latency_milliseconds", "Of one piece of background work.", {"operation": _EXTRACTIONS}
)
ACTIVE_SESSIONS: Final = GaugeMetric(
    "focal_active_sessions", "Sessions whose turns this process has taken in and not ended."
)
