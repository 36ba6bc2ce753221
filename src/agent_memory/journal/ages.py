"""How old a journal's lines are, although clocks jump. Pure.

A line's age is what has passed since, from line to line and to the present: a clock that was set back adds nothing, and
neither does a leap of more than a year, which is rather a clock that is wrong than a memory that nobody used.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_memory.journal.format import Entry

LEAP: Final = timedelta(days=366)
_NOTHING: Final = timedelta()


def first_young(entries: Sequence[Entry], now: datetime, grace: timedelta) -> int:
    """Return the position of the first entry that is not older than `grace`, or the number of entries.

    By position: entries are in the order of writing, whatever the clock said. Without any grace none is young, not even
    what was written this moment.
    """
    if grace <= _NOTHING:
        return len(entries)
    later, age = now, _NOTHING
    for position in range(len(entries) - 1, -1, -1):
        moment = datetime.fromisoformat(entries[position].at)
        passed = later - moment
        if _NOTHING < passed <= LEAP:
            age += passed
        if age > grace:
            return position + 1
        later = moment
    return 0
