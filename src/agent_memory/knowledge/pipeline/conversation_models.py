"""What ingestion takes and gives: plain values by the names of its contract, as views of records."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

from agent_memory.errors import ValidationError
from agent_memory.knowledge.tool_settings import GROUP
from agent_memory.models import utc_now

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from agent_memory.knowledge.entities.relations import ExtractedRelationship
    from agent_memory.models import Episode as EpisodeRecord
    from agent_memory.models import Summary, Trust
    from agent_memory.models.knowledge import EntityType

EpisodeSource = Literal["user", "agent", "system"]
ContentType = Literal["message", "event", "summary", "meta_summary"]
SummaryType = Literal["window", "meta"]
Confidence = Literal["high", "medium", "low"]

SPEAKER: Final = "speaker"
"""Rule of people who speak."""
_GROUP: Final = re.compile(GROUP)
_SOURCES: Final[dict[str, EpisodeSource]] = {"user": "user", "assistant": "agent"}
_CONFIDENT: Final[tuple[tuple[Confidence, float], ...]] = (("high", 0.8), ("medium", 0.5), ("low", 0.0))
"""From which number on a confidence has which name."""


class Session(Protocol):
    """Whose a turn is: any object with these two, of which the group is made."""

    @property
    def tenant_id(self) -> str:
        """Who is served."""

    @property
    def id(self) -> str:
        """The session."""


@dataclass(frozen=True, slots=True)
class Turn:
    """What a user said and what the agent answered; either may be empty, not both.

    `metadata` is that of the first text that is not empty; `relations` in it declares relations of names in that text.
    """

    user_message: str = ""
    agent_response: str = ""
    id: str = ""
    timestamp: datetime = field(default_factory=utc_now)
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Episode:
    """A turn, an event or a summary.

    Attributes:
        id: `epi-…`, or `sum-…` of a summary.
        group_id: `tenant:session`; empty for none.
        content: What was said; of a text above 8,192 characters its beginning.
        source: user, agent or system.
        content_type: message, event, summary or meta_summary.
        source_metadata: Of an event `event_type` and what was given with it; of a turn `turn_id`, and `response_id`,
            the episode of the answer.
        metadata: Of a summary `summary_type`, how many it covers, and their ids.
        embedding: None: vectors are made behind the answer and kept by the hash of the text.
        embedding_model: What makes them; empty where nothing does.
        created_at, occurred_at: When it was stored, and when it was said.
        trust: Whose words they are, as of any record.
    """

    id: str
    group_id: str
    content: str
    source: EpisodeSource = "user"
    content_type: ContentType = "message"
    source_metadata: dict[str, Any] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)
    embedding: list[float] | None = None
    embedding_model: str = ""
    created_at: datetime = field(default_factory=utc_now)
    occurred_at: datetime | None = None
    trust: Trust = "medium"


@dataclass(frozen=True, slots=True)
class ExtractedEntity:
    """An entity that an episode names.

    Attributes:
        name: As it stands there.
        entity_type: One of the closed list.
        confidence: By name; `score` is the number.
        start, end: Place of the name in the text; 0 and 0 of a speaker whose name is not in it.
        rule: Rule that found the name.
    """

    name: str
    entity_type: EntityType = "other"
    confidence: Confidence = "medium"
    score: float = 0.5
    start: int = 0
    end: int = 0
    rule: str = ""


@dataclass(frozen=True, slots=True)
class EntityExtractionResult:
    """Entities and relations of an episode, and reasons against declared ones."""

    entities: list[ExtractedEntity] = field(default_factory=list)
    relationships: list[ExtractedRelationship] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)


def group_id_of(session: Session) -> str:
    """Return `tenant:session`.

    Raises:
        ValidationError: The two make no such name; the message quotes neither.
    """
    tenant, session_id = (getattr(session, name, None) for name in ("tenant_id", "id"))
    # without this, all that forget to say their tenant would share one called None
    return checked_group("" if tenant is None or session_id is None else f"{tenant}:{session_id}")


def checked_group(group_id: str) -> str:
    """Return a group's name.

    Raises:
        ValidationError: It is none; the message does not quote it.
    """
    if not isinstance(group_id, str) or not _GROUP.fullmatch(group_id):
        raise ValidationError(
            "A group is a tenant and a session with a colon between them, such as acme:7f3a; nothing was stored.",
            code="invalid_group",
            recovery="Give a tenant of letters, digits and . _ @ - and a session without spaces, colons and characters "
            "that are not seen.",
        )
    return group_id


def confidence_name(score: float) -> Confidence:
    """Return high, medium or low."""
    return next(name for name, least in _CONFIDENT if score >= least)


def least_score(confidence: Confidence) -> float:
    """Return the number from which on a confidence has this name or a better one."""
    return dict(_CONFIDENT)[confidence]


def episode_of(record: EpisodeRecord, embedding_model: str = "", **source_metadata: Any) -> Episode:
    """Return the view of an episode."""
    event = {"event_type": record.event_type} if record.event_type else {}
    return Episode(
        id=record.id,
        group_id=record.group,
        content=record.content,
        source="system" if record.event_type else _SOURCES.get(record.role, "system"),
        content_type="event" if record.content_type == "event" else "message",
        source_metadata={**event, **record.metadata, **source_metadata},
        embedding_model=embedding_model,
        created_at=record.timestamp,
        occurred_at=record.observed_at,
        trust=record.trust,
    )


def summary_of(record: Summary) -> Episode:
    """Return the view of a summary."""
    is_meta = record.level == "meta"
    what = {"summaries_covered": len(record.covers), "summary_ids": record.covers}
    if not is_meta:
        what = {"episodes_covered": len(record.covers), "episode_ids": record.covers}
    return Episode(
        id=record.id,
        group_id=record.group,
        content=record.content,
        source="system",
        content_type="meta_summary" if is_meta else "summary",
        metadata={**record.metadata, "summary_type": record.level, **what},
        created_at=record.timestamp,
        occurred_at=record.observed_at,
        trust=record.trust,
    )
