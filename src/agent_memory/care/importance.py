"""How important a memory is: one number of its type, age, use, length and relations. Pure functions; no storage.

The weights are those of the contract of `MemoryStore`; they sum to 1.10, so what is best in everything is clipped to 1.
With `normalised` the sum is divided by 1.10, and nothing is clipped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol

from agent_memory.care.entry_types import ImportanceLevel, MemoryEntryType, type_of
from agent_memory.models import as_utc, is_told, utc_now

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from agent_memory.models import Clock, Record

CRITICAL: Final = "critical"
"""The weight of what is pinned, whatever its type."""
TYPE_WEIGHTS: Final[Mapping[str, float]] = {
    CRITICAL: 1.0,
    MemoryEntryType.CORRECTION: 0.9,
    MemoryEntryType.INSIGHT: 0.8,
    MemoryEntryType.LEARNING: 0.7,
    MemoryEntryType.INTERACTION: 0.6,
    MemoryEntryType.CONTEXT: 0.5,
    MemoryEntryType.PATTERN: 0.7,
    MemoryEntryType.PREFERENCE: 0.6,
    MemoryEntryType.KNOWLEDGE: 0.8,
}
OTHER_WEIGHT: Final = 0.5
"""Of a type without a weight, such as an error or a success."""
TYPE, RECENCY, ACCESS, CONTENT, RELATION = 0.4, 0.25, 0.2, 0.1, 0.15
DECAY_DAYS: Final = 30
LEAST_RECENCY: Final = 0.1
FULL_ACCESSES: Final = 10
FULL_CHARS: Final = 1000
FULL_RELATED: Final = 5
"""From which count each of them is full."""
TOTAL: Final = TYPE + RECENCY + ACCESS + CONTENT + RELATION


class Rated(Protocol):
    """What an importance is calculated of, such as a `MemoryEntry`."""

    @property
    def entry_type(self) -> str:
        """One of `MemoryEntryType`, or another one."""

    @property
    def timestamp(self) -> datetime:
        """When it was so; a naive one is taken as local time."""

    @property
    def access_count(self) -> int:
        """How often it was used."""

    @property
    def content(self) -> Any:
        """What it says; its length as text counts."""

    @property
    def related_entries(self) -> Sequence[str]:
        """The ids of entries that it has to do with."""


class ImportanceCalculator:
    """Calculates importances.

    Args:
        normalised: Divide by what the weights sum to, instead of clipping.
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

    async def calculate_importance(self, entry: Rated, *, normalised: bool | None = None) -> float:
        """Return the importance of an entry by the formula, 0..1, whatever importance it says it has.

        Args:
            entry: Which; if it has `pinned` and that is true, its type weighs as `critical`.
            normalised: Instead of that of the calculator.
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
    """Return the importance of a record, 0..1: 1 if it is pinned, else what was said of it, else the formula's.

    Args:
        record: Which; a memory, most often.
        now: The present, aware.
        related: How many records it has to do with; None counts its own links.
        normalised: Divide the formula by what its weights sum to.
        explicit: Whether a pin and a given importance win; without, the formula's alone.
    """
    if explicit and record.pinned:
        return ImportanceLevel.CRITICAL
    if explicit and record.importance is not None:
        return record.importance
    text = getattr(record, "content", "")
    return formula(
        CRITICAL if record.pinned else type_of(record),
        (now - (record.moment)).days,
        record.access_count,
        getattr(record, "chars", 0) or len(text),
        sum(is_told(link.rel) for link in record.links) if related is None else related,
        normalised=normalised,
    )


def formula(entry_type: str, days: int, accesses: int, chars: int, related: int, *, normalised: bool = False) -> float:
    """Return .4 type + .25 recency + .2 access + .1 content + .15 relation, clipped to 0..1.

    Args:
        entry_type: One of `MemoryEntryType`, or `critical`; another one weighs .5.
        days: Whole days since then, of which 27 use up all but .1 of recency; those to come count as none.
        accesses: Full at 10.
        chars: Full at 1,000.
        related: Full at 5.
        normalised: Divide by 1.10, which the weights sum to.
    """
    score = (
        TYPE * TYPE_WEIGHTS.get(entry_type, OTHER_WEIGHT)
        + RECENCY * max(LEAST_RECENCY, 1 - max(0, days) / DECAY_DAYS)
        + ACCESS * min(1.0, accesses / FULL_ACCESSES)
        + CONTENT * min(1.0, chars / FULL_CHARS)
        + RELATION * min(1.0, related / FULL_RELATED)
    )
    return min(1.0, max(0.0, score / TOTAL if normalised else score))
