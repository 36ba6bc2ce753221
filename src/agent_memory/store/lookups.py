"""Replacements, links, counts and recency of records. Pure.

They are derived from the records of a state, and updated with each change.
"""

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
    from agent_memory.store.sealed_records import SealedReferences, SealedReplacements

    RecencyKey = tuple[datetime, int, str]
    """Time of a record, its number in the order of storing, and its ID."""

_MOST_LINKED: Final = 64
"""Linked records that are loaded to see whether they may be shown."""


class ReplacementIndex:
    """Records that replaced others, from their `supersedes`.

    Args:
        records: All records, as they are at any time.
        sealed: Replacements among sealed records.

    Attributes:
        circles: Records that replace each other in a circle, by the newest of them, which counts as not replaced by
            any: else all would be hidden. No program of ours writes such a circle.
    """

    def __init__(self, records: Mapping[str, Record], sealed: SealedReplacements | None = None) -> None:
        self._records = records
        self._sealed = sealed
        self._newer: dict[str, list[str]] = {}
        self.circles: dict[str, frozenset[str]] = {}

    def __bool__(self) -> bool:
        """Return True if any record was ever superseded."""
        return bool(self._newer) or (self._sealed is not None and bool(self._sealed.references))

    def note(self, changed: Mapping[str, Record | None]) -> None:
        """Note records that were stored, changed or deleted (None)."""
        for record_id, record in changed.items():
            if record is not None and record.supersedes:
                newer = self._newer.setdefault(record.supersedes, [])
                if record_id not in newer:
                    newer.append(record_id)
        if self:
            for record_id in changed:
                self._update_circles(record_id)

    def get_newer(self, record_id: str, now: datetime) -> str | None:
        """Return the newest valid record that supersedes a record.

        Of two with one time, their IDs decide.
        """
        members, older = self.circles.get(record_id, ()), self._records.get(record_id)
        newest: Record | None = None
        for newer_id in self._find_newer(record_id):
            record = self._records.get(newer_id) if newer_id not in members else None
            if record is None or record.supersedes != record_id or record.is_expired(now):
                continue
            if _may_replace(record, older) and (newest is None or _get_age(record) > _get_age(newest)):
                newest = record
        return newest.id if newest is not None else None

    def map_all(self, now: datetime) -> dict[str, str]:
        """Map every replaced record to the record that replaces it."""
        sealed = self._sealed.iter_replaced() if self._sealed is not None else ()
        pairs = ((record_id, self.get_newer(record_id, now)) for record_id in dict.fromkeys([*sealed, *self._newer]))
        return {record_id: newer for record_id, newer in pairs if newer is not None and record_id in self._records}

    def list_overrides(self, now: datetime) -> dict[str, bool]:
        """Return, by ID, True for replaced records and False for others.

        Only for records of which the sealed records alone may say it wrongly.

        That is where an unsealed record replaces them, and in a circle, which an unsealed record closes.
        """
        return {record_id: self.get_newer(record_id, now) is not None for record_id in (*self._newer, *self.circles)}

    def list_older(self, record_id: str) -> list[str]:
        """Return the IDs a record replaced, also indirectly, newest first."""
        return [older for older in dict.fromkeys(follow_chain(record_id, self._get_older)) if older != record_id]

    def describe_circles(self) -> list[str]:
        """Return a sentence for each circle."""
        return [_describe_circle(newest, members) for newest, members in self.circles.items()]

    def _update_circles(self, record_id: str) -> None:
        """Note whether a changed record closes or opens a circle."""
        opened = [newest for newest, members in self.circles.items() if record_id in members]
        for member_id in {record_id}.union(*(self.circles.pop(newest) for newest in opened)):
            # A new record is replaced by none, and so in no circle.
            if self._find_newer(member_id) and (members := find_circle(member_id, self._get_older)):
                newest = max(members, key=lambda member: _get_age(self._records[member]))
                self.circles[newest] = frozenset(members)

    def _find_newer(self, record_id: str) -> list[str]:
        """Return the IDs of all records that ever replaced a record."""
        newer = self._newer.get(record_id, [])
        return newer if self._sealed is None else [*self._sealed.references.find_naming(record_id), *newer]

    def _get_older(self, record_id: str) -> str | None:
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


def follow_chain(start: str, following: Callable[[str], str | None]) -> list[str]:
    """Return the IDs of a chain, `start` first.

    A circle ends with a repeated ID.
    """
    chain = {start: None}
    step = following(start)
    while step is not None and step not in chain:
        chain[step] = None
        step = following(step)
    return [*chain, *([step] if step is not None else [])]


def find_circle(start: str, following: Callable[[str], str | None]) -> list[str]:
    """Return the IDs of a chain that is a circle, else nothing."""
    chain = follow_chain(start, following)
    return chain if chain[1:] and chain[-1] == start else []


def _get_age(record: Record) -> tuple[datetime, str]:
    return record.timestamp, record.id


def _may_replace(record: Record, older: Record | None) -> bool:
    return older is None or may_stand_for(record.trust, older.trust)


def _describe_circle(newest: str, members: frozenset[str]) -> str:
    if len(members) == 1:
        return f"{newest}: it replaces itself; it is shown all the same"
    return f"{', '.join(sorted(members))}: they replace each other all around; {newest}, the newest, is shown"


class LinkIndex:
    """Records that are linked to others.

    Args:
        records: All records, as they are at any time.
        sealed: Links of sealed records.
    """

    def __init__(self, records: Mapping[str, Record], sealed: SealedReferences | None = None) -> None:
        self._records = records
        self._sealed = sealed
        self._sources: dict[str, dict[str, None]] = {}

    def note(self, changed: Mapping[str, Record | None]) -> None:
        """Note records that were stored, changed or deleted (None)."""
        for record_id, record in changed.items():
            for target in listed_as(record.links) if record is not None else ():
                sources = self._sources.setdefault(target, {})
                sources.pop(record_id, None)
                sources[record_id] = None

    def iter_linked(self, record_id: str, most: int | None = _MOST_LINKED) -> Iterator[Record]:
        """Yield the records linked to a record, the latest first.

        Args:
            record_id: ID of the target.
            most: Number of records to load, None for all.
        """
        for record in self._iter_sources(record_id, most):
            if any(link.id == record_id for link in record.links):
                yield record

    def iter_undecided(self) -> Iterator[Record]:
        """Yield the records that may conflict with older ones; loads no others."""
        for record in self._iter_sources(SUSPECT, None):
            if any(link.rel == SUSPECT for link in record.links):
                yield record

    def _iter_sources(self, target: str, most: int | None) -> Iterator[Record]:
        sealed: Iterable[str] = ()
        if self._sealed is not None:
            sealed = islice(self._sealed.find_naming(target, latest_first=True), most)
        for record_id in islice(dict.fromkeys([*reversed(self._sources.get(target, {})), *sealed]), most):
            record = self._records.get(record_id)  # an ID stays listed when its record is changed or deleted
            if record is not None:
                yield record


class RecordCounter(Generic[R]):
    """Counts of unsealed records, updated with each change.

    Counting 100,000 records takes a second, and the count is needed with every write of knowledge. So all records are
    counted at the first question, and only changes after it.

    Args:
        records: Records that are not sealed, as they are at any time.
    """

    def __init__(self, records: Mapping[str, R]) -> None:
        self._records = records
        self._counted: dict[str, R] | None = None
        self._by_facet: dict[Facet, set[str]] = {}
        self._order: dict[str, int] = {}
        self._stored = 0
        self._tally = RecordCounts()

    def note(self, changed: Mapping[str, R | None]) -> None:
        """Note records that were stored, changed or deleted (None)."""
        if self._counted is None:
            return
        for record_id, record in changed.items():
            old = self._counted.pop(record_id, None) if record is None else self._counted.get(record_id)
            if old is record:
                continue
            if old is not None:
                self._add(old, -1)
            if record is None:
                self._order.pop(record_id, None)
                continue
            self._counted[record_id] = record
            self._stored += 1
            self._order.setdefault(record_id, self._stored)
            self._add(record, 1)

    def copy_tally(self) -> RecordCounts:
        """Return a copy of the counts, without superseded and expired records."""
        self._count_all()
        return self._tally.copy()

    def find_having(self, facets: Collection[Facet]) -> Collection[R] | None:
        """Return the records with indexed facets among some, in their order.

        None if none of the facets is indexed.
        """
        indexed = [facet for facet in facets if facet[0] == LISTED_BY]
        if not indexed:
            return None
        self._count_all()
        ids = min((self._by_facet.get(facet, set[str]()) for facet in indexed), key=len)
        return [self._records[record_id] for record_id in sorted(ids, key=self._order.__getitem__)]

    def _count_all(self) -> None:
        if self._counted is None:
            self._counted = {}
            self.note(dict(self._records))

    def _add(self, record: R, number: int) -> None:
        tally, number_of_notes = self._tally, 0 if record.is_item else number
        for name, value in record.facets:
            tally.add_facet(name, value, number_of_notes, number)
            if name == LISTED_BY:
                ids = self._by_facet.setdefault((name, value), set())
                (ids.add if number > 0 else ids.discard)(record.id)
        if record.is_item:
            tally.items += number
            if number > 0 and (tally.last_item is None or record.timestamp > tally.last_item):
                tally.last_item = record.timestamp
            return
        tally.records += number
        tally.pinned += number * record.pinned
        tally.by_trust[record.trust] += number


class RecencyRule(Protocol):
    """A scratchpad's rule of recency; a hashable value."""

    @property
    def size(self) -> int:
        """Number of records wanted."""

    @property
    def promotion_threshold(self) -> int:
        """Accesses from which on the last access makes a record recent."""

    def moment(self, record: Record) -> datetime:
        """Return the time that gives a record its place."""

    def admits(self, record: Record) -> bool:
        """Return True if a valid record counts.

        Never one of low trust, nor an item: they are left out unread.
        """


class RecencyIndex:
    """IDs of records by their recency.

    Of equal times the record stored later is more recent.

    Sorting all of 100,000 records takes 50 ms, and the order is needed with every store. So only changed records are
    moved. The rule is the scratchpad's (`agent_memory.memory.scratchpad_entries`).

    Args:
        rule: Rule that gives a record its time.
    """

    def __init__(self, rule: RecencyRule) -> None:
        self._rule = rule
        self._sorted: list[RecencyKey] = []
        self._keys: dict[str, RecencyKey] = {}
        self._pinned: dict[str, None] = {}
        self._changed: dict[str, Record | None] = {}
        self._stored = 0

    def note(self, changed: Mapping[str, Record | None]) -> None:
        """Note records that were stored, changed or deleted (None).

        They are sorted by the next `choose`.
        """
        self._changed.update(changed)

    def choose(self, counts: Callable[[str], bool]) -> list[str]:
        """Return the pinned and the most recent records, in storing order."""
        self._sort_changed()
        latest = islice((record_id for _, _, record_id in reversed(self._sorted) if counts(record_id)), self._rule.size)
        chosen = dict.fromkeys([*filter(counts, self._pinned), *latest])
        return sorted(chosen, key=lambda record_id: self._keys[record_id][1])

    def _sort_changed(self) -> None:
        changed, self._changed = self._changed, {}
        are_few = len(changed) <= len(self._sorted) // 10
        for record_id, record in changed.items():
            old = self._keys.pop(record_id, None)
            self._pinned.pop(record_id, None)
            if old is not None and are_few:
                del self._sorted[bisect_left(self._sorted, old)]
            if record is None or record.is_item:
                continue
            self._stored += 1
            key = (self._rule.moment(record), old[1] if old is not None else self._stored, record_id)
            self._keys[record_id] = key
            if record.pinned:
                self._pinned[record_id] = None
            if are_few:
                insort(self._sorted, key)
        if not are_few:
            self._sorted = sorted(self._keys.values())
