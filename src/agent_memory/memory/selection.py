"""`Selection`: rule for the entries of a scratchpad and their order. No I/O."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from agent_memory.models import Record

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

R = TypeVar("R", bound=Record)


@dataclass(frozen=True, slots=True)
class Selection:
    """Rule of one scratchpad; a storage uses it to keep a shortlist.

    Attributes:
        size: Maximum number of entries, pinned ones included.
        promotion_threshold: Number of accesses from which an access counts as a promotion.
    """

    size: int
    promotion_threshold: int

    def moment(self, record: Record) -> datetime:
        """Return the time by which a record is ordered."""
        moment = record.timestamp
        if record.promoted_at is not None and record.promoted_at > moment:
            moment = record.promoted_at
        if record.access_count >= self.promotion_threshold and record.last_accessed and record.last_accessed > moment:
            moment = record.last_accessed
        return moment

    def admits(self, record: Record) -> bool:
        """Return True if a valid record can be an entry."""
        if record.trust == "low" or record.is_item:
            return False
        return record.evicted_at is None or record.pinned or record.evicted_at < self.moment(record)

    def choose(self, records: Iterable[R]) -> list[R]:
        """Return the entries in order: pinned first, then the latest.

        Args:
            records: Valid ones (neither expired nor superseded), in the order of storing.
        """
        known = list(records)
        # Newest first, so that the heap is rarely changed.
        candidates = (
            (record.pinned, self.moment(record), order, record)
            for order, record in zip(range(len(known), 0, -1), reversed(known), strict=True)
            if self.admits(record)
        )
        # Among equal moments the last stored comes first; `order` is unique, so records are never compared.
        return [record for _, _, _, record in heapq.nlargest(self.size, candidates)]
