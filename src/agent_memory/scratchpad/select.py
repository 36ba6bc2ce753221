"""Which memories are in the scratchpad: a pure function of what is known."""

from __future__ import annotations

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
    candidates = [(recency(memory, promotion_threshold), memory) for memory in memories]
    shown = [
        (moment, memory) for moment, memory in candidates if memory.trust != "low" and not _evicted(memory, moment)
    ]
    shown.reverse()  # among equal moments the last stored comes first; sorting is stable
    shown.sort(key=lambda pair: (pair[1].pinned, pair[0]), reverse=True)
    return [memory for _, memory in shown[:max_entries]]


def recency(memory: Memory, promotion_threshold: int) -> datetime:
    """Return the moment that gives a memory its place: stored, promoted, or accessed once it is accessed often."""
    moments = [memory.timestamp]
    if memory.promoted_at:
        moments.append(memory.promoted_at)
    if memory.last_accessed and memory.access_count >= promotion_threshold:
        moments.append(memory.last_accessed)
    return max(moments)


def _evicted(memory: Memory, moment: datetime) -> bool:
    """A person took it out, and nothing has brought it back since."""
    return memory.evicted_at is not None and memory.evicted_at >= moment and not memory.pinned
