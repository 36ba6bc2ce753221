"""`Weight`: how much of a journal a compaction would drop, and whether one pays now. Pure: entries in, answer out."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from agent_memory.journal import GRACE
from agent_memory.models import to_text

if TYPE_CHECKING:
    from datetime import datetime, timedelta

    from agent_memory.journal import Entry

_DAY: Final = len("2026-03-01")
_COMPACT_AT: Final = 1000
"""Lines that could go, from which on a compaction may pay; with more memories than that, as many as there are."""


class Weight:
    """The lines of one journal, counted while they are read.

    What could go: accesses noted since the last compaction, for it adds them up; and lines older than the grace time,
    of which one for each memory stays. So the file never has more than twice as many lines as there are memories, plus
    a thousand, plus what the grace time keeps.

    That number is only nearly right: a clock that jumped, lines of a newer version and memories that were forgotten a
    moment ago keep lines alive that look as if they could go. Therefore a compaction must also be worth its time:
    either the file has grown by half since the last one, or a day has passed.

    Args:
        grace: How long replaced and deleted versions stay.
    """

    def __init__(self, grace: timedelta = GRACE) -> None:
        self._grace = grace
        self.clear(0)

    def clear(self, compacted_seq: int) -> None:
        """Begin with a file whose last compaction saw the numbers up to `compacted_seq`; 0 before the first."""
        self._compacted_seq = compacted_seq
        self._compacted_on = ""
        self._touches = self._grown = self._lines = 0
        self._by_day: Counter[str] = Counter()

    @property
    def is_empty(self) -> bool:
        """Whether no line was counted yet."""
        return self._lines == 0

    def add(self, entry: Entry) -> None:
        """Count a line."""
        self._lines += 1
        day, is_new = entry.at[:_DAY], entry.seq > self._compacted_seq
        self._grown += is_new
        if not is_new:
            self._compacted_on = max(self._compacted_on, day)
        if is_new and entry.changes and all(change.op == "touch" for change in entry.changes):
            self._touches += 1
        else:
            self._by_day[day] += 1

    def pays(self, live: int, now: datetime) -> bool:
        """Tell whether a compaction is worth its time, with so many memories at this moment."""
        least = max(_COMPACT_AT, live)
        if self._lines <= least:
            return False  # most calls end here
        oldest_kept = to_text(now - self._grace)[:_DAY]
        aged = sum(count for day, count in self._by_day.items() if day < oldest_kept)
        if self._touches + max(0, aged - live) <= least:
            return False
        left = self._lines - self._grown
        return self._grown > max(least, left // 2) or self._compacted_on < to_text(now)[:_DAY]
