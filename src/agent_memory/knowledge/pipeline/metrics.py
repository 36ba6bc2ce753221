"""Metrics of ingestion; see `agent_memory.logs`."""

from __future__ import annotations

from typing import Final, Literal, get_args

from agent_memory.logs import CounterMetric, GaugeMetric, HistogramMetric
from agent_memory.models.knowledge import RELATION_TYPES, EntityType

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
