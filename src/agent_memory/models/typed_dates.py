"""Dates that a person types where a date is asked for: "2026-01-30", "yesterday", "last week", "7d", "March"."""

from __future__ import annotations

import contextlib
import re
from calendar import monthrange
from datetime import date, datetime, time, timedelta
from typing import Final

from agent_memory.models.clock import as_utc, utc_now

_MONTH_OR_YEAR: Final = re.compile(r"(\d{4})(?:-(\d\d))?", re.ASCII)
_UNITS: Final = {"d": "day", "w": "week", "mo": "month", "y": "year"}
_COUNT: Final = re.compile(r"(\d{1,4})\s*(?:(d)(?:ays?)?|(w)(?:eeks?)?|(mo)(?:nths?)?|(y)(?:ears?)?)", re.IGNORECASE)
_LEAD: Final = "in "
"""A month alone is a name as well; after "in" it is a month."""
_LEADS_UP: Final = re.compile(r"in\s+(?:(?:in|on|the|from|since|until)\s+)*", re.IGNORECASE)


def parse_bound(text: str, *, end: bool, is_ahead: bool = False, now: datetime | None = None) -> datetime:
    """Return one bound of a date range that a person typed.

    A day, month, year or week means all its local days: their first microsecond as a start, their last as an end.

    Args:
        text: ISO 8601 date, month or moment, or words such as "yesterday", "last week", "7d", "March".
        end: True for the end of a range.
        is_ahead: True if "Friday" and "7d" are in the future.
        now: Aware present moment; the clock by default.

    Raises:
        ValueError: `text` is not a date, or may be several days.
    """
    text = text.strip()
    try:
        first, last = _find_days(text)
    except ValueError:
        try:
            return as_utc(datetime.fromisoformat(text))
        except ValueError:
            first, last = _read_words(text, (now or utc_now()).astimezone(), is_ahead=is_ahead)
    if first is not None and (last is None or not end):
        return as_utc(datetime.combine(first, time.min))
    try:
        return as_utc(datetime.combine(last or date.max, time.min) + timedelta(days=1)) - timedelta(microseconds=1)
    except OverflowError as error:
        raise ValueError(f"{text!r} is too late a date") from error


def _find_days(text: str) -> tuple[date | None, date | None]:
    """Return the first and last day of an ISO 8601 day, month or year."""
    match = _MONTH_OR_YEAR.fullmatch(text)
    if match is None:
        day = date.fromisoformat(text)
        return day, day
    year, month = int(match[1]), int(match[2] or 0)
    last_month = month or 12
    return date(year, month or 1, 1), date(year, last_month, monthrange(year, last_month)[1])


def _read_words(text: str, now: datetime, *, is_ahead: bool) -> tuple[date | None, date | None]:
    """Return the first and last day of words; an open end is None."""
    from agent_memory.times import times_in  # its patterns are only for words
    from agent_memory.times.days import add_days, shift

    words = _LEAD + text
    with contextlib.suppress(ValueError, OverflowError):
        if count := _COUNT.fullmatch(text):
            step = int(count[1]) if is_ahead else -int(count[1])
            day = shift(now.date(), _UNITS[count[count.lastindex or 0].lower()], step)
            return day, day
        (mention,) = times_in(words, now, is_ahead=is_ahead)
        is_whole = mention.end == len(words) and _LEADS_UP.fullmatch(words[: mention.start] or _LEAD)
        if is_whole and mention.is_resolved:
            return mention.first_day, mention.end_day and add_days(mention.end_day, -1)
    from agent_memory.redaction import quoted  # its patterns load only for an invalid date

    raise ValueError(
        f"{quoted(text)} is not a single date; write 2026-01-30, 2026-01, 2026-01-30T16:00:00Z, yesterday, "
        "last week, 7d or March"
    )
