"""Time as this project keeps it: aware, in UTC. The only place that reads the clock."""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Annotated, Any, Final

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


OFFSET: Final = "utc_offset"
"""Key of a record's metadata: the offset of a message, such as "-05:00"."""

FILE_TIME: Final = "file_time"
"""Key of a record's metadata: its day of saying is not known, only the modification time of its file."""


def get_saying_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata about the moment of saying."""
    return {key: metadata[key] for key in (OFFSET, FILE_TIME) if key in metadata}


def build_offset(moment: datetime) -> dict[str, str]:
    """Return metadata with the offset of an aware moment; none for UTC."""
    return {OFFSET: moment.isoformat()[-6:]} if moment.utcoffset() else {}


def to_own_zone(moment: datetime, metadata: Mapping[str, object], default: tzinfo | None = UTC) -> datetime:
    """Return the moment of a record with the offset in its metadata, else in a default zone (None: the local one)."""
    try:
        return moment.astimezone(datetime.fromisoformat(f"2000-01-01T00:00:00{metadata[OFFSET]}").tzinfo)
    except (KeyError, ValueError):
        return moment.astimezone(default)


def from_seconds(seconds: float) -> datetime:
    """Return the moment so many seconds after 1970, in UTC.

    A float cannot tell the last microseconds of the year 9999 from the year 10000, in which there is no moment.
    """
    return _LAST if seconds >= _END else datetime.fromtimestamp(seconds, UTC)


def to_text(moment: datetime) -> str:
    """Return `moment` as ISO 8601 with a `Z`, e.g. `2026-01-30T16:00:00.250000Z`."""
    return as_utc(moment).isoformat().replace("+00:00", "Z")


def parse_bound(text: str, *, end: bool, is_ahead: bool | None = False, now: datetime | None = None) -> datetime:
    """Return one bound of a date range that a person typed.

    A day, month, year or week means all its local days: their first microsecond as a start, their last as an end.

    Args:
        text: ISO 8601 date, month or moment, or words such as "yesterday", "last week", "7d", "March".
        end: True for the end of a range.
        is_ahead: True if "Friday" and "7d" are in the future, False if no words may name a day in the future.
        now: Aware present moment; the clock by default.

    Raises:
        ValueError: `text` is not a date, may be several days, or is in the future though the past is asked for.
    """
    text = text.strip()
    try:
        first, last = _find_days(text)
    except ValueError:
        try:
            return as_utc(datetime.fromisoformat(text))
        except ValueError:
            return _parse_words(text, end=end, is_ahead=is_ahead, now=now)
    if not end:
        return as_utc(datetime.combine(first, time.min))
    return _find_end(last, text)


def _find_end(last: date, text: str) -> datetime:
    try:
        return as_utc(datetime.combine(last, time.min) + timedelta(days=1)) - timedelta(microseconds=1)
    except OverflowError as error:
        raise ValueError(f"{text!r} is too late a date") from error


def _parse_words(text: str, *, end: bool, is_ahead: bool | None, now: datetime | None) -> datetime:
    from agent_memory.times.typed import read_typed  # its patterns are only for words

    now = (now or utc_now()).astimezone()
    problem = "is not a single date; write 2026-01-30, 2026-01, 2026-01-30T16:00:00Z, yesterday, last week, 7d or March"
    with suppress(ValueError, OverflowError):
        readings = read_typed(text, now, is_ahead=is_ahead)
        names = [_name_days(*reading) for reading in readings if reading != (None, None)]
        if len(names) > 1:
            problem = f"is not a single date: it may be {' or '.join(names)}; write one of these"
        elif len(readings) == 1:
            first, last = _get_days(*readings[0])
            if is_ahead is False and (first or last or now.date()) > now.date():
                problem = "is in the future; write today or a day before it, such as yesterday, 7d or 2026-01-30"
            elif last is not None and (end or first is None):
                return _find_end(last, text)
            elif first is not None:
                return as_utc(datetime.combine(first, time.min))
    from agent_memory.redaction import quoted  # its patterns load only for an invalid date

    raise ValueError(f"{quoted(text)} {problem}")


def _get_days(first: date | None, behind: date | None) -> tuple[date | None, date | None]:
    """Return the first and the last day of a span."""
    return first, None if behind is None else behind - timedelta(days=1)


def _name_days(first: date | None, behind: date | None) -> str:
    """Return the first and the last day of a span as text."""
    first, last = _get_days(first, behind)
    return " to ".join(dict.fromkeys(f"{day}" for day in (first, last) if day is not None))


def _find_days(text: str) -> tuple[date, date]:
    """Return the first and last day of a day, month or year."""
    if not _MONTH_OR_YEAR.fullmatch(text):
        day = date.fromisoformat(text)
        return day, day
    first = date.fromisoformat(f"{text}-01-01"[:10])
    return first, date.fromisoformat(f"{text[:4]}-{text[5:7] or 12}-{monthrange(first.year, int(text[5:7] or 12))[1]}")


UtcDatetime = Annotated[datetime, AfterValidator(as_utc)]
"""A pydantic field type: any ISO 8601 input, held aware and in UTC."""
