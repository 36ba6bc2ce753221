"""`Recency`: records in the order that a scratchpad's rule gives them, kept while they change.

Sorting all of 100,000 records takes 50 ms, and the order is wanted with every store; so it is kept, and only what
changed is moved. The rule is the scratchpad's (`agent_memory.memory.scratchpad_entries`) and handed down.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from itertools import islice
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from agent_memory.models import Record

    Key = tuple[datetime, int, str]


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
