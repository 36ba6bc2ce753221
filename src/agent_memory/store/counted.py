"""`Counted`: what the records of a state that are not sealed count for, kept while they change.

Counting 100,000 takes a second, and how many there are is wanted with every write of knowledge; so all are counted
once, when somebody first asks, and from then on what changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic

from agent_memory.models import LISTED_BY, RecordCounts
from agent_memory.models.kind import R

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from agent_memory.models import Facet


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
