"""Which memories are in the scratchpad: a pure function of what is known."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from agent_memory.models import Memory


def select(memories: Iterable[Memory], *, max_entries: int, promotion_threshold: int) -> list[Memory]:
    """Return the entries in order: pinned first, then the last stored, promoted or often accessed.

    Args:
        memories: Valid memories (neither expired nor superseded), in the order of storing.
        max_entries: How many at most, pinned ones included.
        promotion_threshold: From this many accesses on, an access counts as a promotion.
    """
    known = list(memories)
    # The newest first: the heap then fills with what stays, instead of replacing its least with each memory.
    candidates = (
        (memory.pinned, moment, order, memory)
        for order, memory in zip(range(len(known), 0, -1), reversed(known), strict=True)
        if memory.trust != "low"
        and (moment := recency(memory, promotion_threshold))
        and (memory.evicted_at is None or not _evicted(memory, moment))
    )
    # Among equal moments the last stored comes first; `order` is unique, so memories are never compared.
    return [memory for _, _, _, memory in heapq.nlargest(max_entries, candidates)]


def recency(memory: Memory, promotion_threshold: int) -> datetime:
    """Return the moment that gives a memory its place: stored, promoted, or accessed once it is accessed often."""
    moment = memory.timestamp
    if memory.promoted_at is not None and memory.promoted_at > moment:
        moment = memory.promoted_at
    if memory.access_count >= promotion_threshold and memory.last_accessed and memory.last_accessed > moment:
        moment = memory.last_accessed
    return moment


def _evicted(memory: Memory, moment: datetime) -> bool:
    """A person took it out, and nothing has brought it back since."""
    return memory.evicted_at is not None and memory.evicted_at >= moment and not memory.pinned
