"""`Listing`: which records are listed, in which order, and how much of the list is wanted."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Generic, Literal, TypeVar

from agent_memory.models.search import SearchFilters

if TYPE_CHECKING:
    from agent_memory.models.record import Record

ListOrder = Literal["newest", "oldest", "used", "accessed"]
RecordState = Literal["valid", "expired", "superseded"]
ANY_STATE: Final[frozenset[RecordState]] = frozenset({"valid", "expired", "superseded"})
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Listing:
    """A part of a list.

    Attributes:
        order: By when records were stored, `newest` or `oldest` first, when they were last found (`used`), or how often
            (`accessed`). Among equals the one stored last comes first, except with the oldest first.
        filters: Conditions that every one meets.
        states: What they may be: neither expired nor superseded, or one of these.
        trust: Their trust; None for any.
        pinned: Only what is pinned.
        beginning: What their ids begin with.
        offset: How many are left out.
        limit: How many there are at most; None for all that are left.
        session: Which session made them; None for any. One that holds a whole talk may be left out: it stands in none.
    """

    order: ListOrder = "newest"
    filters: SearchFilters = field(default_factory=SearchFilters)
    states: frozenset[RecordState] = frozenset({"valid"})
    trust: str | None = None
    pinned: bool = False
    beginning: str = ""
    offset: int = 0
    limit: int | None = None
    session: str | None = None

    def admits(self, record: Record, *, expired: bool, superseded: bool) -> bool:
        """Tell whether a record is listed."""
        state = {"expired": expired, "superseded": superseded, "valid": not (expired or superseded)}
        return (
            any(state[one] for one in self.states)
            and self.trust in {None, record.trust}
            and (record.pinned or not self.pinned)
            and record.id.startswith(self.beginning)
            and self.session in {None, record.created_by_session}
            and self.filters.admits(record)
        )

    def key(self, record: Record) -> tuple[float, float]:
        """Return what orders records."""
        stored = record.timestamp.timestamp()
        if self.order == "used":
            found = record.last_accessed
            return (0.0, stored) if found is None else (1.0, found.timestamp())
        return (float(record.access_count), stored) if self.order == "accessed" else (stored, 0.0)

    @property
    def end(self) -> int | None:
        """How many of the list are looked at; None for all."""
        return None if self.limit is None else self.offset + self.limit


@dataclass(frozen=True, slots=True)
class Listed(Generic[R]):
    """A part of a list, and how long the whole list is."""

    records: list[R]
    total: int
