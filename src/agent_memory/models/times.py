"""Time as this project keeps it: aware, in UTC. The only place that reads the clock."""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated, Final

from pydantic import AfterValidator

_LAST: Final = datetime.max.replace(tzinfo=UTC)
_END: Final = _LAST.timestamp()
_MONTH_OR_YEAR: Final = re.compile(r"\d{4}(?:-\d\d)?", re.ASCII)

Clock = Callable[[], datetime]
"""Returns the present moment as an aware datetime in UTC."""


def utc_now() -> datetime:
    """Return now, aware, in UTC."""
    return datetime.now(UTC)


def as_utc(moment: datetime) -> datetime:
    """Return `moment` in UTC; a naive one is taken as local time, the way a person writes it.

    Raises:
        ValueError: The moment lies outside the years 1 to 9999 once converted.
    """
    try:
        return moment.astimezone(UTC)
    except (OverflowError, OSError) as error:
        raise ValueError(f"{moment!s} cannot be expressed in UTC") from error


def from_seconds(seconds: float) -> datetime:
    """Return the moment so many seconds after 1970, in UTC.

    A float cannot tell the last microseconds of the year 9999 from the year 10000, in which there is no moment.
    """
    return _LAST if seconds >= _END else datetime.fromtimestamp(seconds, UTC)


def to_text(moment: datetime) -> str:
    """Return `moment` as ISO 8601 with a `Z`, e.g. `2026-01-30T16:00:00.250000Z`."""
    return as_utc(moment).isoformat().replace("+00:00", "Z")


def parse_bound(text: str, *, end: bool) -> datetime:
    """Read one bound of a date range.

    A bare date means that whole local day, a month (2026-01) or a year all its days: their first microsecond as a
    start, their last as an end.

    Raises:
        ValueError: `text` is neither an ISO 8601 date nor a date and time.
    """
    text = text.strip()
    try:
        first, last = _find_days(text)
    except ValueError:
        try:
            return as_utc(datetime.fromisoformat(text))
        except ValueError:
            from agent_memory.redaction import quoted  # its patterns load only for an invalid date

            raise ValueError(
                f"{quoted(text)} is not a date (2026-01-30, 2026-01) or a date and time (2026-01-30T16:00:00Z)"
            ) from None
    if not end:
        return as_utc(datetime.combine(first, time.min))
    try:
        return as_utc(datetime.combine(last, time.min) + timedelta(days=1)) - timedelta(microseconds=1)
    except OverflowError as error:
        raise ValueError(f"{text!r} is too late a date") from error


def _find_days(text: str) -> tuple[date, date]:
    """Return the first and last day of a day, month or year."""
    if not _MONTH_OR_YEAR.fullmatch(text):
        day = date.fromisoformat(text)
        return day, day
    first = date.fromisoformat(f"{text}-01-01"[:10])
    return first, date.fromisoformat(f"{text[:4]}-{text[5:7] or 12}-{monthrange(first.year, int(text[5:7] or 12))[1]}")


UtcDatetime = Annotated[datetime, AfterValidator(as_utc)]
"""A pydantic field type: any ISO 8601 input, held aware and in UTC."""
