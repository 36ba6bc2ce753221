"""What `MemoryManager` takes and gives: plain values by the names of its contract, as views of records.

A resource, an item and a category are a `Resource`, a `Memory` and a `Topic` of `agent_memory.models`; these forms of
them carry their contract's field names. Nothing is kept here.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Literal

from agent_memory.errors import ValidationError
from agent_memory.models import as_utc, to_text
from agent_memory.models.memory import FROM, SECTION

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from agent_memory.models import Memory, Topic, Trust
    from agent_memory.models import Resource as ResourceRecord

Importance = Literal["low", "normal", "high"]
RESOURCE_TYPES: Final = ("conversation", "document", "config", "feedback")
"""Types of what a user gives. Texts of another type, such as mails and web pages, have low trust."""
SOURCE_DELETED: Final = "source_deleted"
"""Name of that link once the resource is gone."""

_IMPORTANCE: Final[Mapping[Importance, float | None]] = {"low": 0.2, "normal": None, "high": 0.8}
_HIGH: Final = 0.65
_LOW: Final = 0.35
_CONFIDENCE: Final[Mapping[Trust, float]] = {"high": 0.9, "medium": 0.6, "low": 0.3}
"""Of an item whose rule says none: one number in each of the bands high, medium and low."""


@dataclass(frozen=True, slots=True)
class Resource:
    """A text as it came in: `resource_type`, whole content, metadata, and when it was stored."""

    resource_id: str
    resource_type: str
    content: str
    metadata: dict[str, Any]
    created_at: datetime

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {**asdict(self), "created_at": to_text(self.created_at)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Resource:
        """Return what `to_dict` made JSON of.

        Raises:
            ValidationError: Names the field that is missing or wrong.
        """
        try:
            created = as_utc(datetime.fromisoformat(data["created_at"]))
            known, kind, content = (str(data[name]) for name in ("resource_id", "resource_type", "content"))
            return cls(known, kind, content, dict(data.get("metadata") or {}), created)
        except (KeyError, TypeError, ValueError) as error:
            raise ValidationError(f"This is no resource: {type(error).__name__} at {error}.") from None


@dataclass(slots=True)
class MemoryItem:
    """A statement that was drawn from a resource.

    Attributes:
        item_id: Its id.
        content: What it says.
        embedding: None: vectors stay in the index.
        source_resource_id: What it was drawn from; empty for an agent's own note, which a search finds, too.
        category: Its topic; None where it has none.
        confidence: How sure it is that the resource says so, 0..1.
        created_at: When it was stored.
        importance: low, normal or high; high ones come first among those that answer equally well.
        speaker: Who said it, by name or role; empty where nobody did.
        trust: Whose words it rests on: `high` a person's, `medium` a model's or a file's, `low` a stranger's.
        section: Heading path of a digested statement, empty for other items.
    """

    item_id: str
    content: str
    embedding: list[float] | None
    source_resource_id: str
    category: str | None
    confidence: float
    created_at: datetime
    importance: Importance = "normal"
    speaker: str = ""
    trust: Trust = "medium"
    section: str = ""

    def __post_init__(self) -> None:
        if not 0 <= self.confidence <= 1:
            raise ValidationError(f"The confidence of an item lies between 0 and 1, got {self.confidence}.")


@dataclass(frozen=True, slots=True)
class MemoryCategory:
    """A topic with its page in Markdown, the ids of the items it is made of, and when it was made."""

    category_id: str
    name: str
    description: str
    markdown_content: str
    item_ids: list[str]
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class MemoryStats:
    """How much there is, as of the last call that looked (`MemoryManager.check` does)."""

    total_resources: int = 0
    total_items: int = 0
    total_categories: int = 0
    vector_index_size: int = 0
    storage_bytes: int = 0
    resources_by_type: dict[str, int] = field(default_factory=dict)
    items_by_category: dict[str, int] = field(default_factory=dict)
    last_extraction_at: datetime | None = None
    last_consolidation_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class MemoryConfig:
    """How the three layers work.

    Attributes:
        storage_dir: Root of all agents' folders; None takes that of the settings, `~/.amplifier/memory`.
        embedding_model: Another model than that of the settings; one of OpenAI's by its name.
        embedding_dimension: What its vectors must have; None takes what the embedder has.
        max_resource_size: Characters of a resource, at most 1,000,000.
        default_k: How many items an answer has where nobody says.
        escalation_threshold: Least confidence of an answer that no language model is asked to better, 0..1.
        consolidation_interval: New items of a topic after which its page is rebuilt.
        retention_days: Age from which `MemoryManager.outdated` lists a resource; nothing is deleted unasked.
        resource_types: Those that may be stored.
    """

    storage_dir: Path | str | None = None
    embedding_model: str | None = None
    embedding_dimension: int | None = None
    max_resource_size: int = 1_000_000
    default_k: int = 5
    escalation_threshold: float = 0.6
    consolidation_interval: int = 10
    retention_days: int = 90
    resource_types: tuple[str, ...] = RESOURCE_TYPES


@dataclass(frozen=True, slots=True)
class MemoryRetryConfig:
    """How often a call of an embedder or a language model is tried again, and how many seconds lie between.

    The pause doubles each time, from `…_backoff_base` up to `embedding_backoff_max`.
    """

    embedding_max_retries: int = 3
    embedding_backoff_base: float = 1.0
    embedding_backoff_max: float = 30.0
    extraction_max_retries: int = 2
    extraction_backoff_base: float = 2.0
    consolidation_max_retries: int = 2
    consolidation_backoff_base: float = 2.0
    retrieval_max_retries: int = 2
    retrieval_backoff_base: float = 1.0


def is_local(resource_type: str) -> bool:
    """Return True for a type of text that a user gives."""
    return resource_type in RESOURCE_TYPES


def resource_of(record: ResourceRecord, content: str) -> Resource:
    """Return the view of a resource whose whole text is `content`."""
    return Resource(record.id, record.resource_type, content, dict(record.metadata), record.timestamp)


def get_source_id(memory: Memory) -> str:
    """Return the id of what an item was drawn from, empty where it names none."""
    return next((link.id for link in memory.links if link.rel in {FROM, SOURCE_DELETED}), "")


def item_of(memory: Memory) -> MemoryItem:
    """Return the view of a memory."""
    sure = _CONFIDENCE[memory.trust] if memory.confidence is None else memory.confidence
    said, speaker = word_of(memory.importance), memory.metadata.get("speaker")
    by = speaker if isinstance(speaker, str) else ""
    return MemoryItem(
        memory.id,
        memory.content,
        None,
        get_source_id(memory),
        memory.topic or None,
        sure,
        memory.timestamp,
        said,
        by,
        memory.trust,
        str(memory.metadata.get(SECTION, "")),
    )


def category_of(topic: Topic) -> MemoryCategory:
    """Return the view of a topic; one without a page yet says so."""
    title = topic.name.replace("_", " ").title()
    updated = topic.consolidated_at or topic.timestamp
    body = topic.body or f"# {title}\n\n*No items yet.*"
    return MemoryCategory(topic.id, topic.name, topic.description, body, list(topic.item_ids), updated)


def word_of(importance: float | None) -> Importance:
    """Return an importance as a word."""
    if importance is None or _LOW < importance < _HIGH:
        return "normal"
    return "high" if importance >= _HIGH else "low"


def number_of(importance: str) -> float | None:
    """Return an importance as a number, None for normal.

    Raises:
        ValidationError: It is none of low, normal and high.
    """
    for name, value in _IMPORTANCE.items():
        if name == importance:
            return value
    raise ValidationError(f"importance is one of {', '.join(_IMPORTANCE)}, got {importance!r}.")
