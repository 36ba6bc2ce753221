"""`CompactionPolicy`: how much of a journal a compaction would drop, and whether one pays now. Pure."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from agent_memory.journal import GRACE
from agent_memory.models import ACCESS, ESTIMATES, PLACE, to_text

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime, timedelta

    from agent_memory.journal import Change, Entry
    from agent_memory.models import Kind

_DAY: Final = len("2026-03-01")
_NEVER: Final = "~"
_BOOKKEEPING: Final = ACCESS | PLACE | ESTIMATES
"""Fields that hold no text: a patch of these alone ends none."""
_COMPACT_AT: Final = 1000
"""Lines that could go, from which on a compaction may pay; with more memories than that, as many as there are."""


class CompactionPolicy:
    """The lines of one journal, counted while they are read.

    What could go: accesses noted since the last compaction, for it adds them up; and lines older than the grace time,
    of which one for each memory stays. So the file never has more than twice as many lines as there are memories, plus
    a thousand, plus what the grace time keeps.

    That number is only nearly right: a clock that jumped, lines of a newer version and memories that were forgotten a
    moment ago keep lines alive that look as if they could go. Therefore a compaction must also be worth its time:
    either the file has grown by half since the last one, or a day has passed.

    However few lines there are, one pays once a day when a text that was forgotten or replaced is past its grace time.

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
        self._first_end = _NEVER

    def go_on(self, compacted_seq: int, now: datetime) -> None:
        """Go on with the file compacted, of which nothing was read again.

        What is older than the grace time counts as gone. A text whose time was over may be there still for what no
        compaction passes: that costs another one, on another day.
        """
        oldest_kept = to_text(now - self._grace)[:_DAY]
        self._compacted_seq = compacted_seq
        self._compacted_on = to_text(now)[:_DAY]
        self._touches = self._grown = 0
        self._by_day = Counter({day: count for day, count in self._by_day.items() if day >= oldest_kept})
        self._lines = self._by_day.total()
        self._first_end = max(self._first_end, oldest_kept)

    def to_json(self) -> dict[str, Any]:
        """Return what was counted, for another process that goes on from here."""
        return {**vars(self), "_grace": None}

    def resume(self, said: Mapping[str, Any]) -> None:
        """Go on from what `to_json` gave; nothing where that is not what it gives."""
        if said.keys() == vars(self).keys():
            vars(self).update(said, _grace=self._grace, _by_day=Counter(said["_by_day"]))

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
            if day < self._first_end and any(map(_ends_a_text, entry.changes)):
                self._first_end = day

    def pays(self, live: int, now: datetime) -> bool:
        """Tell whether a compaction is worth its time, with so many memories at this moment."""
        least = max(_COMPACT_AT, live)
        if self._lines <= least and self._first_end == _NEVER:
            return False  # most calls end here
        oldest_kept = to_text(now - self._grace)[:_DAY]
        if self._first_end < oldest_kept and not self.is_of_today(now):
            return True
        if self._lines <= least:
            return False
        aged = sum(count for day, count in self._by_day.items() if day < oldest_kept)
        if self._touches + max(0, aged - live) <= least:
            return False
        left = self._lines - self._grown
        return self._grown > max(least, left // 2) or not self.is_of_today(now)

    def is_of_today(self, now: datetime) -> bool:
        """Tell whether the file was compacted today, or at a time that is yet to come."""
        return self._compacted_on >= to_text(now)[:_DAY]


def is_counted(entry: Entry, kind: Kind[Any]) -> bool:
    """Tell whether a line counts for the records of a kind: not where it is all about others in the same journal."""
    others = {each.name for each in kind.beside()}
    return not others or not entry.changes or any(change.kind not in others for change in entry.changes)


def _ends_a_text(change: Change) -> bool:
    return change.op == "delete" or (change.op == "patch" and not change.data.keys() <= _BOOKKEEPING)
