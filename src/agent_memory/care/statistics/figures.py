"""What statistics say. Plain values, and how memories are counted by weeks."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

_WEEK: Final = timedelta(days=7)
MOST_WEEKS: Final = 520
"""Ten years: one memory with a wrong date must not make thousands of empty weeks."""


@dataclass(frozen=True, slots=True)
class Week:
    """A week.

    Attributes:
        begin: Its Monday, UTC.
        stored: Memories that were stored in it, and are there now.
        total: How many of those there are now had been stored by its end.
        used: Memories that were last used in it.
        forgotten: How many were forgotten in it, as far as the log of changes goes back.
    """

    begin: date
    stored: int
    total: int
    used: int
    forgotten: int


@dataclass(frozen=True, slots=True)
class Used:
    """A memory that is used much: its id, how often it was used, and its text."""

    id: str
    accesses: int
    content: str


@dataclass(frozen=True, slots=True)
class Embedded:
    """How many of the texts that are embedded were found so: have a vector that is kept."""

    texts: int = 0
    found: int = 0

    @property
    def share(self) -> float | None:
        """Of all texts, 0..1; None where there is none."""
        return self.found / self.texts if self.texts else None


@dataclass(frozen=True, slots=True)
class Captures:
    """What capture kept, as far as the log of changes goes back, and what became of it."""

    captured: int = 0
    kept: int = 0
    forgotten: int = 0


@dataclass(frozen=True, slots=True)
class Statistics:
    """How much one agent knows, how that grew and what of it is used.

    Attributes:
        agent_id: Whose.
        memories, items: How many there are; items were drawn from documents and talks.
        superseded, expired, pinned: Of the memories.
        by_category, by_trust, by_source, by_project, by_group: Memories and items by each; those of no
            project, or of no group, are in none.
        others: Records that are no memories, by the name of their journal.
        accesses: How often all of them were used, together.
        never_used: How many were never used.
        most_used: Those that were used most, the first more than the others.
        weeks: One after the other, from the first memory to now.
        embedded: Texts with a vector.
        captures: What became of captures.
        sizes: Bytes on the disk, by what they hold.
    """

    agent_id: str
    memories: int = 0
    items: int = 0
    superseded: int = 0
    expired: int = 0
    pinned: int = 0
    by_category: dict[str, int] = field(default_factory=dict)
    by_trust: dict[str, int] = field(default_factory=dict)
    by_source: dict[str, int] = field(default_factory=dict)
    by_project: dict[str, int] = field(default_factory=dict)
    by_group: dict[str, int] = field(default_factory=dict)
    others: dict[str, int] = field(default_factory=dict)
    accesses: int = 0
    never_used: int = 0
    most_used: tuple[Used, ...] = ()
    weeks: tuple[Week, ...] = ()
    embedded: Embedded = Embedded()
    captures: Captures = Captures()
    sizes: dict[str, int] = field(default_factory=dict)

    @property
    def never_used_share(self) -> float | None:
        """Of all memories and items, 0..1; None where there is none."""
        every = self.memories + self.items
        return self.never_used / every if every else None

    def as_dict(self) -> dict[str, Any]:
        """Return it for programs."""
        return {
            **asdict(self),
            "never_used_share": self.never_used_share,
            "embedded": {**asdict(self.embedded), "share": self.embedded.share},
            "weeks": [{**asdict(week), "begin": week.begin.isoformat()} for week in self.weeks],
            "most_used": [asdict(each) for each in self.most_used],
        }


def monday_of(moment: datetime) -> date:
    """Return the Monday of the week that a moment in UTC lies in."""
    return moment.date() - timedelta(days=moment.weekday())


def by_weeks(
    stored: Iterable[datetime], used: Iterable[datetime], forgotten: Iterable[datetime], now: datetime
) -> tuple[Week, ...]:
    """Return the weeks from the first that anything was stored in to the present one, ten years at most.

    Args:
        stored: When each was stored; what lies in the future counts as now.
        used: When each that was used was used last.
        forgotten: When each was forgotten.
        now: The present, UTC.
    """
    last = monday_of(now)
    new, seen, gone = (Counter(min(monday_of(each), last) for each in every) for every in (stored, used, forgotten))
    if not new:
        return ()
    first = max(min(new), last - (MOST_WEEKS - 1) * _WEEK)
    total = sum(count for week, count in new.items() if week < first)
    weeks = []
    while first <= last:
        total += new[first]
        weeks.append(Week(first, new[first], total, seen[first], gone[first]))
        first += _WEEK
    return tuple(weeks)
