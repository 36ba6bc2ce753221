"""Which memories a list shows, and in which order. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from datetime import datetime

    from agent_memory.models import Memory


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a memory must be to be listed.

    Attributes:
        category: Its category; None for any.
        tags: All of these it has.
        since: It was stored then or later.
        until: It was stored then or earlier.
        trust: Its trust; None for any.
        pinned: Only if it is pinned.
        expired: Only if it has expired; with `superseded`, or if it is replaced.
        superseded: Only if a newer one replaced it. With neither, only if it is valid.
    """

    category: str | None = None
    tags: frozenset[str] = frozenset()
    since: datetime | None = None
    until: datetime | None = None
    trust: str | None = None
    pinned: bool = False
    expired: bool = False
    superseded: bool = False

    def admits(self, memory: Memory, now: datetime, replaced: Mapping[str, str]) -> bool:
        """Tell whether a memory is to be listed."""
        is_expired, is_replaced = memory.is_expired(now), memory.id in replaced
        if self.expired or self.superseded:
            in_state = (self.expired and is_expired) or (self.superseded and is_replaced)
        else:
            in_state = not (is_expired or is_replaced)
        return (
            in_state
            and (self.category is None or memory.category == self.category)
            and self.tags <= set(memory.tags)
            and (self.since is None or memory.timestamp >= self.since)
            and (self.until is None or memory.timestamp <= self.until)
            and (self.trust is None or memory.trust == self.trust)
            and (memory.pinned or not self.pinned)
        )


_ORDERS: Final[dict[str, Callable[[Memory], Any]]] = {
    "newest": lambda memory: memory.timestamp,
    "oldest": lambda memory: memory.timestamp,
    "used": lambda memory: (memory.last_accessed is not None, memory.last_accessed or memory.timestamp),
    "accessed": lambda memory: (memory.access_count, memory.timestamp),
}


def ordered(memories: Iterable[Memory], order: str) -> list[Memory]:
    """Return memories, given in the order of storing, newest or oldest first, or by when or how often they were found.

    Among equals the one stored last comes first, except with the oldest first.
    """
    found = list(memories)
    if order == "oldest":
        return sorted(found, key=_ORDERS[order])
    found.reverse()  # sorting is stable
    return sorted(found, key=_ORDERS[order], reverse=True)
