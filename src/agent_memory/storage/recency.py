"""`Recency`: records in the order in which they were last stored, promoted or often accessed, kept while they change.

What the scratchpad is chosen from. Sorting all of 100,000 records takes 50 ms, and it is wanted with every store; so
the order is kept, and only what changed is moved. Must not know what is shown.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from agent_memory.models import Record

    Key = tuple[datetime, int, str]


def recency(record: Record, promotion_threshold: int) -> datetime:
    """Return the moment that gives a record its place: stored, promoted, or accessed once it is accessed often."""
    moment = record.timestamp
    if record.promoted_at is not None and record.promoted_at > moment:
        moment = record.promoted_at
    if record.access_count >= promotion_threshold and record.last_accessed and record.last_accessed > moment:
        moment = record.last_accessed
    return moment


class Recency:
    """Ids of records, by `recency`; of equal moments the one first heard of later is the more recent.

    Args:
        promotion_threshold: From this many accesses on, an access counts.
    """

    def __init__(self, promotion_threshold: int) -> None:
        self._threshold = promotion_threshold
        self._sorted: list[Key] = []
        self._keys: dict[str, Key] = {}
        self._pinned: dict[str, None] = {}
        self._changed: dict[str, Record | None] = {}
        self._heard = 0

    def update(self, changed: Mapping[str, Record | None]) -> None:
        """Note records as they are now, None for those that are gone; sorting them waits until somebody asks."""
        self._changed.update(changed)

    def choose(self, count: int, counts: Callable[[str], bool]) -> list[str]:
        """Return all pinned records that count, and the `count` most recent ones, in the order of hearing of them."""
        self._absorb()
        latest = islice((one for _, _, one in reversed(self._sorted) if counts(one)), count)
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
            if record is None:
                continue
            self._heard += 1
            key = (recency(record, self._threshold), old[1] if old is not None else self._heard, record_id)
            self._keys[record_id] = key
            if record.pinned:
                self._pinned[record_id] = None
            if few:
                insort(self._sorted, key)
        if not few:
            self._sorted = sorted(self._keys.values())
