"""What follows from the records of a state, updated with each change: replacements, links, counts, recency. Pure."""

from __future__ import annotations

from bisect import bisect_left, insort
from itertools import islice
from typing import TYPE_CHECKING, Final, Generic, Protocol

from agent_memory.models import LISTED_BY, SUSPECT, RecordCounts, listed_as, may_stand_for
from agent_memory.models.kind import R

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping
    from datetime import datetime

    from agent_memory.models import Facet, Record

    Key = tuple[datetime, int, str]


class SealedReplacements(Protocol):
    """What sealed records say they replace."""

    @property
    def replaces_any(self) -> bool:
        """Whether any of them replaces another record."""

    def replacing(self, record_id: str) -> list[str]:
        """Return the ids of those that say they replace a record, in the order of storing."""

    def replaced(self) -> Iterable[str]:
        """Return the id of every record that one of them replaces."""


class Replacements:
    """Answers what replaced a record, from the `supersedes` of the others.

    Args:
        records: All of them, as they are at any time.
        sealed: What those of them replace that are sealed.

    Attributes:
        circles: Records that replace each other all around, or itself, by the newest of them, which counts as replaced
            by none of them: without that all would be hidden. No program of ours writes such a thing.
    """

    def __init__(self, records: Mapping[str, Record], sealed: SealedReplacements | None = None) -> None:
        self._records = records
        self._sealed = sealed
        self._by: dict[str, list[str]] = {}
        self.circles: dict[str, frozenset[str]] = {}

    def __bool__(self) -> bool:
        """Whether anything was ever superseded."""
        return bool(self._by) or (self._sealed is not None and self._sealed.replaces_any)

    def note(self, changed: Mapping[str, Record | None]) -> None:
        """Learn which records have come, changed or gone: None for one that is gone."""
        for record_id, record in changed.items():
            if record is not None and record.supersedes:
                by = self._by.setdefault(record.supersedes, [])
                if record_id not in by:
                    by.append(record_id)
        if self:
            for record_id in changed:
                self._look_around(record_id)

    def of(self, record_id: str, now: datetime) -> str | None:
        """Return the newest valid record that supersedes this one, or None; of two with one time, by their ids."""
        circle, older = self.circles.get(record_id, ()), self._records.get(record_id)
        there = (self._records.get(one) for one in self._replacing(record_id) if one not in circle)
        newest: Record | None = None
        for record in there:
            if record is None or record.supersedes != record_id or record.is_expired(now):
                continue
            if _may_replace(record, older) and (newest is None or _age(record) > _age(newest)):
                newest = record
        return newest.id if newest is not None else None

    def all(self, now: datetime) -> dict[str, str]:
        """Return every replaced record with the one that replaces it."""
        every = dict.fromkeys([*(self._sealed.replaced() if self._sealed is not None else ()), *self._by])
        pairs = ((record_id, self.of(record_id, now)) for record_id in every)
        return {record_id: by for record_id, by in pairs if by is not None and record_id in self._records}

    def beside_sealed(self, now: datetime) -> dict[str, bool]:
        """Tell of records whether they are replaced, where what is sealed alone may say it wrongly.

        That is where one that is not sealed says that it replaces them, and in a circle, which is closed by such a one.
        """
        return {one: self.of(one, now) is not None for one in (*self._by, *self.circles)}

    def older(self, record_id: str) -> list[str]:
        """Return the ids that a record replaced, directly or through others, newest first."""
        return [each for each in dict.fromkeys(path(record_id, self._older)) if each != record_id]

    def complaints(self) -> list[str]:
        """Return what is wrong, a sentence for each circle."""
        return [_about_circle(newest, members) for newest, members in self.circles.items()]

    def _look_around(self, record_id: str) -> None:
        """Note whether a record that has come, changed or gone closes a circle, or opens one."""
        opened = [newest for newest, members in self.circles.items() if record_id in members] if self.circles else []
        near = {record_id}.union(*(self.circles.pop(newest) for newest in opened))
        for each in near:
            if self._replacing(each) and (met := circle(each, self._older)):  # nothing replaces what is new
                newest = max(met, key=lambda member: _age(self._records[member]))
                self.circles[newest] = frozenset(met)

    def _replacing(self, record_id: str) -> list[str]:
        """Return the ids of all that say, or once said, that they replace a record."""
        known = self._by.get(record_id, [])
        return known if self._sealed is None else [*self._sealed.replacing(record_id), *known]

    def _older(self, record_id: str) -> str | None:
        """Return the id of the record that one replaced, if that is there."""
        record = self._records.get(record_id)
        older = self._records.get(record.supersedes) if record is not None and record.supersedes else None
        return older.id if older is not None and record is not None and _may_replace(record, older) else None


async def find_current(
    replaced_by: Callable[[Collection[str]], Awaitable[dict[str, str]]], record_ids: Collection[str]
) -> dict[str, str]:
    """Return the current record that replaced each of some records."""
    current = following = await replaced_by(record_ids)
    while following := await replaced_by(following.values()):
        current = {record_id: following.get(newer, newer) for record_id, newer in current.items()}
    return current


def path(start: str, following: Callable[[str], str | None]) -> list[str]:
    """Return the ids on the way from one on, itself first; the last one stands there twice if the way is a circle."""
    met = {start: None}
    step = following(start)
    while step is not None and step not in met:
        met[step] = None
        step = following(step)
    return [*met, *([step] if step is not None else [])]


def circle(start: str, following: Callable[[str], str | None]) -> list[str]:
    """Return the ids on the way from one on, if it leads back to that; else nothing."""
    met = path(start, following)
    return met if met[1:] and met[-1] == start else []


def _age(record: Record) -> tuple[datetime, str]:
    return record.timestamp, record.id


def _may_replace(record: Record, older: Record | None) -> bool:
    """Tell whether a record hides one it supersedes."""
    return older is None or may_stand_for(record.trust, older.trust)


def _about_circle(newest: str, circle: frozenset[str]) -> str:
    if len(circle) == 1:
        return f"{newest}: it replaces itself; it is shown all the same"
    return f"{', '.join(sorted(circle))}: they replace each other all around; {newest}, the newest, is shown"


_LOOKED_AT: Final = 64
"""Records that lead to one and are loaded to see whether they may be told."""


class SealedLinking(Protocol):
    """What sealed records are linked to."""

    def leading_to(self, record_id: str) -> Iterator[str]:
        """Yield the ids of those that are probably linked to a record, the latest first."""


class Linking:
    """Answers which records are linked to one.

    Args:
        records: All of them, as they are at any time.
        sealed: What those of them are linked to that are sealed.
    """

    def __init__(self, records: Mapping[str, Record], sealed: SealedLinking | None = None) -> None:
        self._records = records
        self._sealed = sealed
        self._from: dict[str, dict[str, None]] = {}

    def note(self, changed: Mapping[str, Record | None]) -> None:
        """Learn which records have come or changed: None for one that is gone."""
        for record_id, record in changed.items():
            for listed in listed_as(record.links) if record is not None else ():
                known = self._from.setdefault(listed, {})
                known.pop(record_id, None)
                known[record_id] = None

    def leading_to(self, record_id: str, most: int | None = _LOOKED_AT) -> Iterator[Record]:
        """Yield the records that are linked to one, the latest first; looks at `most` alone, None for all."""
        sealed: Iterable[str] = self._sealed.leading_to(record_id) if self._sealed is not None else ()
        every = dict.fromkeys([*reversed(self._from.get(record_id, {})), *islice(sealed, most)])
        for each in islice(every, most):
            record = self._records.get(each)  # an id stays listed when its record is changed or deleted
            if record is not None and any(link.id == record_id for link in record.links):
                yield record

    def undecided(self) -> Iterator[Record]:
        """Yield the records that are suspected not to be right together with older ones; loads no others."""
        sealed: Iterable[str] = self._sealed.leading_to(SUSPECT) if self._sealed is not None else ()
        for each in dict.fromkeys([*reversed(self._from.get(SUSPECT, {})), *sealed]):
            record = self._records.get(each)
            if record is not None and any(link.rel == SUSPECT for link in record.links):
                yield record


class Counted(Generic[R]):
    """Counts records.

    Args:
        records: Those that are not sealed, as they are at any time.
    """

    def __init__(self, records: Mapping[str, R]) -> None:
        self._records = records
        self._known: dict[str, R] | None = None
        self._with: dict[Facet, set[str]] = {}
        self._places: dict[str, int] = {}
        self._stored = 0
        self._tally = RecordCounts()

    def note(self, changed: Mapping[str, R | None]) -> None:
        """Learn which records have come, changed or gone: None for one that is gone."""
        if self._known is None:
            return
        for record_id, record in changed.items():
            old = self._known.pop(record_id, None) if record is None else self._known.get(record_id)
            if old is record:
                continue
            if old is not None:
                self._count(old, -1)
            if record is None:
                self._places.pop(record_id, None)
            else:
                self._known[record_id] = record
                self._stored += 1
                self._places.setdefault(record_id, self._stored)
                self._count(record, 1)
            self._look_up(record_id, old, record)

    def tally(self) -> RecordCounts:
        """Return the counts, a copy, but for what depends on the moment: what is superseded and expired."""
        self._begin()
        return self._tally.copy()

    def having(self, facets: Collection[Facet]) -> Collection[R] | None:
        """Return the records with those of these facets that are looked up, in their order; None for none of these."""
        named = [facet for facet in facets if facet[0] == LISTED_BY]
        if not named:
            return None
        self._begin()
        ids = min((self._with.get(facet, set[str]()) for facet in named), key=len)
        return [self._records[one] for one in sorted(ids, key=self._places.__getitem__)]

    def _begin(self) -> None:
        if self._known is None:
            self._known = {}
            self.note(dict(self._records))

    def _count(self, record: R, by: int) -> None:
        tally, own = self._tally, 0 if record.is_item else by
        for name, value in record.facets:
            tally.add_facet(name, value, own, by)
        if record.is_item:
            tally.items += by
            if by > 0 and (tally.last_item is None or record.timestamp > tally.last_item):
                tally.last_item = record.timestamp
            return
        tally.records += by
        tally.pinned += by * record.pinned
        tally.by_trust[record.trust] += by

    def _look_up(self, record_id: str, old: R | None, record: R | None) -> None:
        before, after = (
            {facet for facet in each.facets if facet[0] == LISTED_BY} if each is not None else set()
            for each in (old, record)
        )
        for facet in before - after:
            self._with[facet].discard(record_id)
        for facet in after - before:
            self._with.setdefault(facet, set()).add(record_id)


class Order(Protocol):
    """A scratchpad's rule, as far as keeping its order needs it; a value that can be hashed."""

    @property
    def size(self) -> int:
        """How many are wanted."""

    @property
    def promotion_threshold(self) -> int:
        """From this many accesses on, an access counts."""

    def moment(self, record: Record) -> datetime:
        """Return the moment that gives a record its place."""

    def admits(self, record: Record) -> bool:
        """Tell whether a valid record counts."""


class Recency:
    """Ids of records by their moment; of equal moments the one stored later is the more recent.

    Args:
        order: Tells the moment.
    """

    def __init__(self, order: Order) -> None:
        self._order = order
        self._sorted: list[Key] = []
        self._keys: dict[str, Key] = {}
        self._pinned: dict[str, None] = {}
        self._changed: dict[str, Record | None] = {}
        self._noted = 0

    def update(self, changed: Mapping[str, Record | None]) -> None:
        """Note records as they are now, None for those that are gone; they are sorted at the next query."""
        self._changed.update(changed)

    def choose(self, counts: Callable[[str], bool]) -> list[str]:
        """Return all pinned records that count, and the most recent ones, in the order of storing."""
        self._absorb()
        latest = islice((one for _, _, one in reversed(self._sorted) if counts(one)), self._order.size)
        chosen = dict.fromkeys([*filter(counts, self._pinned), *latest])
        return sorted(chosen, key=lambda one: self._keys[one][1])

    def _absorb(self) -> None:
        changed, self._changed = self._changed, {}
        few = len(changed) <= len(self._sorted) // 10
        for record_id, record in changed.items():
            old = self._keys.pop(record_id, None)
            self._pinned.pop(record_id, None)
            if old is not None and few:
                del self._sorted[bisect_left(self._sorted, old)]
            if record is None or record.is_item:
                continue
            self._noted += 1
            key = (self._order.moment(record), old[1] if old is not None else self._noted, record_id)
            self._keys[record_id] = key
            if record.pinned:
                self._pinned[record_id] = None
            if few:
                insort(self._sorted, key)
        if not few:
            self._sorted = sorted(self._keys.values())
