"""Which memories are in the scratchpad: a pure function of what is known."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

from agent_memory.storage.recency import recency

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
        if may_be_shown(memory, moment := recency(memory, promotion_threshold))
    )
    # Among equal moments the last stored comes first; `order` is unique, so memories are never compared.
    return [memory for _, _, _, memory in heapq.nlargest(max_entries, candidates)]


def may_be_shown(memory: Memory, moment: datetime) -> bool:
    """Tell whether a memory can be in a scratchpad: no outsider said it, and nobody took it out since `moment`."""
    if memory.trust == "low":
        return False
    return memory.evicted_at is None or memory.pinned or memory.evicted_at < moment
