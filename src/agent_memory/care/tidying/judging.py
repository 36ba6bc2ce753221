"""How one memory stands: how old, how long not used, how important, and whether something keeps it. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_memory.files.wording import counted
from agent_memory.models import SUSPECT, is_told

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import datetime

    from agent_memory.care.tidying.rules import Cleanup
    from agent_memory.models import Memory

    Importance = Callable[[Memory, datetime], float]


class Judging:
    """Judges at one moment.

    Args:
        current: All memories that no other one replaces.
        cleanup: The rules.
        now: The moment.
        importance: Returns the importance of a memory, 0..1.
    """

    def __init__(self, current: Iterable[Memory], cleanup: Cleanup, now: datetime, importance: Importance) -> None:
        self._cleanup, self._now, self._importance = cleanup, now, importance
        self._linked = {
            link.id
            for memory in current
            if not memory.is_expired(now)
            for link in memory.links
            if is_told(link.rel) or link.rel == SUSPECT
        }

    def importance(self, memory: Memory) -> float:
        """Return its importance, 0..1."""
        return self._importance(memory, self._now)

    def is_kept(self, memory: Memory) -> bool:
        """Return True if something keeps it where it is, whatever its age."""
        in_pad = memory.promoted_at is not None and (
            memory.evicted_at is None or memory.evicted_at < memory.promoted_at
        )
        waits = any(link.rel == SUSPECT for link in memory.links)
        return memory.pinned or in_pad or waits or memory.id in self._linked or self.is_important(memory)

    def is_in_use(self, memory: Memory) -> bool:
        """Return True if it was opened lately, which keeps it but from a rule of its sort."""
        opened = memory.last_accessed
        return opened is not None and (self._now - opened).days < self._cleanup.keep_used_days

    def is_important(self, memory: Memory) -> bool:
        """Return True if an importance that was given keeps it."""
        least = self._cleanup.min_importance_threshold
        return memory.importance is not None and memory.importance >= least

    def is_standing(self, memory: Memory) -> bool:
        """Return True if it holds though nobody opens it: a preference is told at the start, and followed."""
        return memory.category == "preference" and memory.trust != "low"

    def age(self, memory: Memory) -> int:
        """Return how many days ago it was stored."""
        return (self._now - memory.timestamp).days

    def unused(self, memory: Memory) -> int:
        """Return for how many days nobody has opened it, or brought it into the scratchpad."""
        moments = (memory.timestamp, memory.last_accessed, memory.promoted_at)
        return (self._now - max(each for each in moments if each is not None)).days

    def why(self, memory: Memory) -> str:
        """Return how it stands, for people."""
        importance = self.importance(memory)
        unused = counted(self.unused(memory), "day")
        return f"not used for {unused}, importance {importance:.2f}, category {memory.category}"

    def weight(self, memory: Memory) -> tuple[bool, float, int, str]:
        """Return what orders memories: the least important first, words of strangers before others."""
        return memory.trust != "low", self.importance(memory), -self.unused(memory), memory.id
