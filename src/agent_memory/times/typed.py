"""Dates that a person types where a date is asked for: "yesterday", "last week", "7d", "March"."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from agent_memory.times.days import moved, one_day
from agent_memory.times.mentions import times_in

if TYPE_CHECKING:
    from datetime import date, datetime

_UNITS: Final = {"d": "day", "w": "week", "mo": "month", "y": "year"}
_COUNT: Final = re.compile(r"(\d{1,4})\s*(?:(d)(?:ays?)?|(w)(?:eeks?)?|(mo)(?:nths?)?|(y)(?:ears?)?)", re.IGNORECASE)
_LEAD: Final = "in "
"""A month alone is a name as well; after "in" it is a month."""
_LEADS_UP: Final = re.compile(r"in\s+(?:(?:in|on|the|from|since|until)\s+)*", re.IGNORECASE)


def read_typed(text: str, now: datetime, *, is_ahead: bool) -> tuple[date | None, date | None]:
    """Return the first day and the day after the last of a typed date.

    Args:
        text: Words such as "last week"; nothing else may be in it.
        now: Aware present moment.
        is_ahead: True if "Friday" and "7d" are in the future.

    Raises:
        ValueError: The text is not a date, or not a single one, such as 3/4/2026.
    """
    if count := _COUNT.fullmatch(text.strip()):
        step = int(count[1]) if is_ahead else -int(count[1])
        return one_day(moved(now.date(), _UNITS[count[count.lastindex or 0].lower()], step))
    led = _LEAD + text.strip()
    mentions = times_in(led, now, is_ahead=is_ahead)
    if len(mentions) != 1 or mentions[0].end != len(led) or not _LEADS_UP.fullmatch(led[: mentions[0].start] or _LEAD):
        raise ValueError(f"{text!r} is not a date")
    if not mentions[0].is_resolved:
        raise ValueError(f"{text!r} may be several days")
    return mentions[0].first, mentions[0].behind
