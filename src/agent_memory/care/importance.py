"""Importance of a memory from its type, age, use, length and relations.

The weights are those of the contract of `MemoryStore`; they sum to 1.10, so the best value is clipped to 1. If
`normalised`, the sum is divided by 1.10 instead. An entry type is a view of a record: it is derived by
`get_entry_type`, not stored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

from agent_memory.models import EPISODE, RESOURCE, SUMMARY, as_utc, is_told, utc_now

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from agent_memory.models import Clock, Record

ENTRY_TYPE: Final = "entry_type"
"""Key of `metadata` with the type if no field of the record decides it."""
OUTCOME: Final = "outcome"
"""Key of `metadata` with the outcome of an action: `error` or `success`."""


class MemoryEntryType:
    """The ten types of entries.

    An interaction is an episode and a context a resource; all others are memories. Insight, pattern and preference are
    categories, learning is a discovery, knowledge a note. An error is a bugfix and a success a discovery with that
    `outcome` in `metadata`. A correction is a memory that supersedes another.
    """

    INTERACTION: Final = "interaction"
    INSIGHT: Final = "insight"
    CORRECTION: Final = "correction"
    CONTEXT: Final = "context"
    LEARNING: Final = "learning"
    ERROR: Final = "error"
    SUCCESS: Final = "success"
    PATTERN: Final = "pattern"
    PREFERENCE: Final = "preference"
    KNOWLEDGE: Final = "knowledge"


class ImportanceLevel:
    """Five values of an importance, 0..1.

    Critical and pinned memories are never proposed for deletion.
    """

    CRITICAL: Final = 1.0
    HIGH: Final = 0.8
    MEDIUM: Final = 0.6
    LOW: Final = 0.4
    MINIMAL: Final = 0.2


_Type = MemoryEntryType
ENTRY_TYPES: Final = tuple(value for name, value in vars(MemoryEntryType).items() if name.isupper())
"""All entry types."""
CATEGORY_OF: Final[Mapping[str, str]] = {
    _Type.INSIGHT: "insight",
    _Type.CORRECTION: "note",
    _Type.LEARNING: "discovery",
    _Type.ERROR: "bugfix",
    _Type.SUCCESS: "discovery",
    _Type.PATTERN: "pattern",
    _Type.PREFERENCE: "preference",
    _Type.KNOWLEDGE: "note",
}
"""Category of a memory by the type of its entry; an interaction and a context are not memories."""
_BY_CATEGORY: Final[Mapping[str, str]] = {
    "insight": _Type.INSIGHT,
    "pattern": _Type.PATTERN,
    "preference": _Type.PREFERENCE,
    "discovery": _Type.LEARNING,
    "bugfix": _Type.ERROR,
    "note": _Type.KNOWLEDGE,
    "decision": _Type.KNOWLEDGE,
}
"""Other categories, such as a task or a question, are a context."""
_BY_KIND: Final[Mapping[str, str]] = {
    EPISODE.prefix: _Type.INTERACTION,
    RESOURCE.prefix: _Type.CONTEXT,
    SUMMARY.prefix: _Type.CONTEXT,
}
CRITICAL: Final = "critical"
"""Type of pinned records for their weight."""
TYPE_WEIGHTS: Final[Mapping[str, float]] = {
    CRITICAL: 1.0,
    _Type.CORRECTION: 0.9,
    _Type.INSIGHT: 0.8,
    _Type.LEARNING: 0.7,
    _Type.INTERACTION: 0.6,
    _Type.CONTEXT: 0.5,
    _Type.PATTERN: 0.7,
    _Type.PREFERENCE: 0.6,
    _Type.KNOWLEDGE: 0.8,
}
OTHER_WEIGHT: Final = 0.5
"""Weight of other types, such as an error or a success."""
TYPE, RECENCY, ACCESS, CONTENT, RELATION = 0.4, 0.25, 0.2, 0.1, 0.15
DECAY_DAYS: Final = 30
LEAST_RECENCY: Final = 0.1
FULL_ACCESSES: Final = 10
FULL_CHARS: Final = 1000
FULL_RELATED: Final = 5
"""Count from which each part is full."""
TOTAL: Final = TYPE + RECENCY + ACCESS + CONTENT + RELATION


def get_entry_type(record: Record) -> str:
    """Return the entry type of a record.

    `entry_type` in `metadata` comes first, then a superseding memory is a correction, then the outcome decides, then
    the category.
    """
    by_kind = _BY_KIND.get(record.id[: len(EPISODE.prefix)])
    if by_kind is not None:
        return by_kind
    stated = record.metadata.get(ENTRY_TYPE)
    if stated in ENTRY_TYPES:
        return str(stated)
    if record.supersedes is not None:
        return _Type.CORRECTION
    outcome = record.metadata.get(OUTCOME)
    if outcome in {_Type.ERROR, _Type.SUCCESS}:
        return str(outcome)
    return _BY_CATEGORY.get(str(getattr(record, "category", "")), _Type.CONTEXT)


class ImportanceCalculator:
    """Calculates importances of entries.

    Args:
        normalised: True to divide by the sum of the weights instead of clipping.
        clock: Source of the present.
    """

    IMPORTANCE_FACTORS: ClassVar[Mapping[str, Any]] = {
        "entry_type_weights": TYPE_WEIGHTS,
        "recency_decay_days": DECAY_DAYS,
        "access_frequency_weight": ACCESS,
        "content_length_weight": CONTENT,
        "relationship_weight": RELATION,
    }

    def __init__(self, *, normalised: bool = False, clock: Clock = utc_now) -> None:
        self._normalised, self._clock = normalised, clock

    async def calculate_importance(self, entry: Any, *, normalised: bool | None = None) -> float:
        """Return the formula's importance of an entry, ignoring its own.

        Args:
            entry: Entry such as a `MemoryEntry`, with type, timestamp, accesses, content and related entries; the type
                of a pinned one weighs as `critical`.
            normalised: Overrides the calculator's own setting.
        """
        return formula(
            CRITICAL if getattr(entry, "pinned", False) else entry.entry_type,
            (self._clock() - as_utc(entry.timestamp)).days,
            entry.access_count,
            len(str(entry.content)) if entry.content else 0,
            len(entry.related_entries),
            normalised=self._normalised if normalised is None else normalised,
        )


def importance_of(
    record: Record, now: datetime, *, related: int | None = None, normalised: bool = False, explicit: bool = True
) -> float:
    """Return the importance of a record: 1 if pinned, stored, or calculated.

    Args:
        record: Record of any kind, usually a memory.
        now: The present, aware.
        related: Number of related records; None counts its own links.
        normalised: True to divide the formula by the sum of the weights.
        explicit: False to ignore a pin and a stored importance.
    """
    if explicit and record.pinned:
        return ImportanceLevel.CRITICAL
    if explicit and record.importance is not None:
        return record.importance
    text = getattr(record, "content", "")
    return formula(
        CRITICAL if record.pinned else get_entry_type(record),
        (now - (record.moment)).days,
        record.access_count,
        getattr(record, "chars", 0) or len(text),
        sum(is_told(link.rel) for link in record.links) if related is None else related,
        normalised=normalised,
    )


def formula(entry_type: str, days: int, accesses: int, chars: int, related: int, *, normalised: bool = False) -> float:
    """Return the weighted sum of the five parts, clipped to 0..1.

    Args:
        entry_type: Value of `MemoryEntryType`, or `critical`; another one weighs .5.
        days: Age in whole days; after 27 days recency is .1. A future moment counts as now.
        accesses: Number of accesses, full at 10.
        chars: Length of the text, full at 1,000.
        related: Number of related records, full at 5.
        normalised: True to divide by 1.10, the sum of the weights.
    """
    score = (
        TYPE * TYPE_WEIGHTS.get(entry_type, OTHER_WEIGHT)
        + RECENCY * max(LEAST_RECENCY, 1 - max(0, days) / DECAY_DAYS)
        + ACCESS * min(1.0, accesses / FULL_ACCESSES)
        + CONTENT * min(1.0, chars / FULL_CHARS)
        + RELATION * min(1.0, related / FULL_RELATED)
    )
    return min(1.0, max(0.0, score / TOTAL if normalised else score))
