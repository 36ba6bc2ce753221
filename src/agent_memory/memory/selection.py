"""`Selection`: which memories are in a scratchpad, and in which order. The one place that says so; pure."""

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
    """The rule of one scratchpad. A storage is handed it to keep an order, and to narrow what is chosen from.

    Attributes:
        size: Entries at most, pinned ones included.
        promotion_threshold: From this many accesses on, an access counts as a promotion.
    """

    size: int
    promotion_threshold: int

    def moment(self, record: Record) -> datetime:
        """Return the moment that gives a record its place: stored, promoted, or accessed once it is accessed often."""
        moment = record.timestamp
        if record.promoted_at is not None and record.promoted_at > moment:
            moment = record.promoted_at
        if record.access_count >= self.promotion_threshold and record.last_accessed and record.last_accessed > moment:
            moment = record.last_accessed
        return moment

    def admits(self, record: Record) -> bool:
        """Tell whether a valid record can be shown: it is trusted, no item, and was not taken out since its moment."""
        if record.trust == "low" or record.is_item:
            return False
        return record.evicted_at is None or record.pinned or record.evicted_at < self.moment(record)

    def choose(self, records: Iterable[R]) -> list[R]:
        """Return the entries in order: pinned first, then the last stored, promoted or often accessed.

        Args:
            records: Valid ones (neither expired nor superseded), in the order of storing.
        """
        known = list(records)
        # The newest first: the heap then fills with what stays, instead of replacing its least with each record.
        candidates = (
            (record.pinned, self.moment(record), order, record)
            for order, record in zip(range(len(known), 0, -1), reversed(known), strict=True)
            if self.admits(record)
        )
        # Among equal moments the last stored comes first; `order` is unique, so records are never compared.
        return [record for _, _, _, record in heapq.nlargest(self.size, candidates)]
