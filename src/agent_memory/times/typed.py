"""Dates that a person types where a date is asked for: "yesterday", "last week", "7d", "March"."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from agent_memory.times.days import add_days, moved, one_day
from agent_memory.times.mentions import times_in

if TYPE_CHECKING:
    from datetime import date, datetime

_UNITS: Final = {"d": "day", "w": "week", "mo": "month", "y": "year"}
_COUNT: Final = re.compile(r"(\d{1,4})\s*(?:(d)(?:ays?)?|(w)(?:eeks?)?|(mo)(?:nths?)?|(y)(?:ears?)?)", re.IGNORECASE)
_WEEK: Final = 7
_LEAD: Final = "in "
"""A month alone is a name as well; after "in" it is a month."""
_LEADS_UP: Final = re.compile(r"in\s+(?:(?:in|on|the|from|since|until)\s+)*", re.IGNORECASE)


TypedDays = tuple["date | None", "date | None"]
"""First day and day after the last of a reading."""


def read_typed(text: str, now: datetime, *, is_ahead: bool | None) -> list[TypedDays]:
    """Return the readings of a typed date, none for other text.

    There are several for 3/4/2026, and for the name of a weekday typed on that weekday.

    Args:
        text: Words such as "last week"; nothing else may be in it.
        now: Aware present moment.
        is_ahead: True if "Friday" and "7d" are in the future, None if both may be.

    Raises:
        ValueError: The date is out of range.
    """
    if count := _COUNT.fullmatch(text.strip()):
        step = int(count[1]) if is_ahead else -int(count[1])
        return [one_day(moved(now.date(), _UNITS[count[count.lastindex or 0].lower()], step))]
    led = _LEAD + text.strip()
    mentions = times_in(led, now, is_ahead=is_ahead)
    if len(mentions) != 1 or mentions[0].end != len(led) or not _LEADS_UP.fullmatch(led[: mentions[0].start] or _LEAD):
        return []
    today, readings = now.date(), list(mentions[0].readings)
    days = {_get_day(*times_in(led, now, is_ahead=tense)[0].readings[0]) for tense in (False, True)}
    if len(readings) == 1 and days == {today, add_days(today, -_WEEK)}:
        return [one_day(today), one_day(add_days(today, _WEEK if is_ahead else -_WEEK))]
    return readings


def _get_day(first: date | None, behind: date | None) -> date | None:
    """Return the first known day of a span."""
    return first or (add_days(behind, -1) if behind else None)
