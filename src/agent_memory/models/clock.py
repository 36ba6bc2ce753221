"""Moments in UTC and typed dates. Only this module reads the clock."""

from __future__ import annotations

import contextlib
import re
from calendar import monthrange
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Annotated, Any, Final

from pydantic import AfterValidator

from agent_memory.late import compile_late

OFFSET: Final = "utc_offset"
"""Key of a record's metadata: the offset of a message, such as "-05:00"."""
FILE_TIME: Final = "file_time"
"""Key of a record's metadata: its day of saying is unknown, only the modification time of its file is known."""
_LAST: Final = datetime.max.replace(tzinfo=UTC)
_END: Final = _LAST.timestamp()
_MONTH_OR_YEAR: Final = compile_late(r"(\d{4})(?:-(\d\d))?", re.ASCII)
_UNITS: Final = {"d": "day", "w": "week", "mo": "month", "y": "year"}
_COUNT: Final = compile_late(r"(\d{1,4})\s*(?:(d)(?:ays?)?|(w)(?:eeks?)?|(mo)(?:nths?)?|(y)(?:ears?)?)", re.IGNORECASE)
_WEEK: Final = 7
_LEAD: Final = "in "
"""A month alone is a name as well; after "in" it is a month."""
_LEADS_UP: Final = compile_late(r"in\s+(?:(?:in|on|the|from|since|until)\s+)*", re.IGNORECASE)

Clock = Callable[[], datetime]
"""Returns the present moment as an aware datetime in UTC."""
_Days = tuple[date | None, date | None]
"""First and last day; an open end is None."""


def utc_now() -> datetime:
    """Return the present moment, aware, in UTC."""
    return datetime.now(UTC)


def as_utc(moment: datetime) -> datetime:
    """Return a moment in UTC; a naive one is local time.

    Raises:
        ValueError: The converted moment is outside the years 1 to 9999.
    """
    try:
        return moment.astimezone(UTC)
    except (OverflowError, OSError) as error:
        raise ValueError(f"{moment!s} cannot be expressed in UTC") from error


UtcDatetime = Annotated[datetime, AfterValidator(as_utc)]
"""A pydantic field type: any ISO 8601 input, stored aware and in UTC."""


def get_saying_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata about the moment of saying."""
    return {key: metadata[key] for key in (OFFSET, FILE_TIME) if key in metadata}


def build_offset(moment: datetime) -> dict[str, str]:
    """Return metadata with the offset of an aware moment; empty for UTC."""
    return {OFFSET: moment.isoformat()[-6:]} if moment.utcoffset() else {}


def to_own_zone(moment: datetime, metadata: Mapping[str, object], default: tzinfo | None = UTC) -> datetime:
    """Return a record's moment in the zone of its message.

    Args:
        moment: Aware moment of the record.
        metadata: Metadata of the record, with the offset of its message if known.
        default: Zone of a record without an offset; None for the local zone.
    """
    try:
        return moment.astimezone(datetime.fromisoformat(f"2000-01-01T00:00:00{metadata[OFFSET]}").tzinfo)
    except (KeyError, ValueError):
        return moment.astimezone(default)


def from_seconds(seconds: float) -> datetime:
    """Return the moment a number of seconds after 1970, in UTC.

    A float cannot distinguish the last microseconds of the year 9999 from the year 10000, which has no moments.
    """
    return _LAST if seconds >= _END else datetime.fromtimestamp(seconds, UTC)


def to_text(moment: datetime) -> str:
    """Return a moment as ISO 8601 with a `Z`, e.g. `2026-01-30T16:00:00.250000Z`."""
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
            first, last = _read_words(text, (now or utc_now()).astimezone(), is_ahead=is_ahead)
    if first is not None and (last is None or not end):
        return as_utc(datetime.combine(first, time.min))
    try:
        return as_utc(datetime.combine(last or date.max, time.min) + timedelta(days=1)) - timedelta(microseconds=1)
    except OverflowError as error:
        raise ValueError(f"{text!r} is too late a date") from error


def _find_days(text: str) -> _Days:
    """Return the days of an ISO 8601 day, month or year."""
    match = _MONTH_OR_YEAR.fullmatch(text)
    if match is None:
        day = date.fromisoformat(text)
        return day, day
    year, month = int(match[1]), int(match[2] or 0)
    last_month = month or 12
    return date(year, month or 1, 1), date(year, last_month, monthrange(year, last_month)[1])


def _read_words(text: str, now: datetime, *, is_ahead: bool | None) -> _Days:
    """Return the first and last day that words name."""
    readings: list[_Days] = []
    with contextlib.suppress(ValueError, OverflowError):
        readings = _find_readings(text, now, is_ahead=is_ahead)
    names = [" to ".join(dict.fromkeys(f"{day}" for day in days if day is not None)) for days in readings]
    problem = "is not a single date; write 2026-01-30, 2026-01, 2026-01-30T16:00:00Z, yesterday, last week, 7d or March"
    if len(readings) > 1:
        problem = f"is not a single date: it may be {' or '.join(filter(None, names))}; write one of these"
    elif readings:
        first, last = readings[0]
        if is_ahead is not False or (first or last or now.date()) <= now.date():
            return first, last
        problem = "is in the future; write today or a day before it, such as yesterday, 7d or 2026-01-30"
    from agent_memory.redaction import quoted  # its patterns load only for an invalid date

    raise ValueError(f"{quoted(text)} {problem}")


def _find_readings(text: str, now: datetime, *, is_ahead: bool | None) -> list[_Days]:
    """Return the days of each reading of words, none for other text.

    There are several for 3/4/2026, and for the name of a weekday typed on that weekday.

    Raises:
        ValueError, OverflowError: A day is out of range.
    """
    from agent_memory.times import times_in  # its patterns are only for words
    from agent_memory.times.days import add_days, shift

    today, words = now.date(), _LEAD + text
    if count := _COUNT.fullmatch(text):
        step = int(count[1]) if is_ahead else -int(count[1])
        day = shift(today, _UNITS[count[count.lastindex or 0].lower()], step)
        return [(day, day)]
    mentions = times_in(words, now, is_ahead=is_ahead)
    if (
        len(mentions) != 1
        or mentions[0].end != len(words)
        or not _LEADS_UP.fullmatch(words[: mentions[0].start] or _LEAD)
    ):
        return []
    spans = [(first, end and add_days(end, -1)) for first, end in mentions[0].readings]
    spans = [span for span in spans if span != (None, None)]
    if len(spans) == 1:
        tenses = [times_in(words, now, is_ahead=tense)[0].readings[0] for tense in (False, True)]
        days = {first or (end and add_days(end, -1)) for first, end in tenses}
        if days == {today, add_days(today, -_WEEK)}:
            week_away = add_days(today, _WEEK if is_ahead else -_WEEK)
            return [(today, today), (week_away, week_away)]
    return spans
