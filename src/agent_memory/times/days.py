"""Spans of days, periods of time, and calendar arithmetic."""

from __future__ import annotations

from datetime import date, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from datetime import datetime

MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
WEEKDAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")

_MAX_COUNT: Final = 4_000
"""Largest number of units that a text may count."""
_DAYS_OF: Final = {"day": 1, "week": 7, "fortnight": 14, "weekend": 7}
_MONTHS_OF: Final = {"month": 1, "quarter": 3, "half": 6, "year": 12, "decade": 120}
_MONTH_LENGTHS: Final = range(28, 32)


Bounds = tuple[date | None, date | None]
"""First day and end day; None for an open end."""


class DaySpan(NamedTuple):
    """Days from `first_day` to the exclusive `end_day`."""

    first_day: date
    end_day: date

    @property
    def length(self) -> int:
        """The number of days."""
        return (self.end_day - self.first_day).days


def add_days(day: date, count: int) -> date:
    """Return the day `count` days later."""
    return day + timedelta(days=count)


def make_day(day: date) -> DaySpan:
    """Return a span of one day."""
    return DaySpan(day, add_days(day, 1))


def get_week(day: date) -> DaySpan:
    """Return the week of a day, Monday to Sunday."""
    monday = add_days(day, -day.weekday())
    return DaySpan(monday, add_days(monday, 7))


def get_months(year: int, month: int, length: int = 1) -> DaySpan:
    """Return `length` months; `month` is 1 to 12."""
    return DaySpan(date(year, month, 1), date(year + (month + length - 1) // 12, (month + length - 1) % 12 + 1, 1))


def get_years(first: int, count: int = 1) -> DaySpan:
    """Return whole years."""
    return DaySpan(date(first, 1, 1), date(first + count, 1, 1))


def get_iso_week(year: int, number: int) -> DaySpan:
    """Return a week by its number in ISO 8601."""
    return get_week(date.fromisocalendar(year, number, 1))


def get_week_in_month(month: DaySpan, nth: int) -> DaySpan:
    """Return the nth week of a month; -1 is the last.

    The first week is the first with a Thursday.
    """
    if nth < 0:
        return get_week(add_days(month.end_day, -4))
    thursday = add_days(month.first_day, (3 - month.first_day.weekday()) % 7)
    return get_week(add_days(thursday, 7 * (nth - 1)))


def get_nth_weekday(month: DaySpan, weekday: int, nth: int) -> date:
    """Return the nth weekday of a month; -1 is the last.

    Raises:
        ValueError: The month has no such day.
    """
    last = add_days(month.end_day, -1)
    if nth < 0:
        return add_days(last, -((last.weekday() - weekday) % 7))
    day = add_days(month.first_day, (weekday - month.first_day.weekday()) % 7 + 7 * (nth - 1))
    if day > last:
        raise ValueError("no such day")
    return day


def subtract_months(day: date, count: int) -> date:
    """Return the day `count` months earlier, within that month."""
    month = 12 * day.year + day.month - 1 - count
    last = add_days(get_months(month // 12, month % 12 + 1).end_day, -1)
    return last.replace(day=min(day.day, last.day))


def shift(day: date, unit: str, count: int) -> date:
    """Return the day `count` units later.

    Raises:
        ValueError: The count is too large.
    """
    if abs(count) > _MAX_COUNT:
        raise ValueError("too many units")
    if unit in _DAYS_OF:
        return add_days(day, _DAYS_OF[unit] * count)
    return subtract_months(day, -_MONTHS_OF[unit] * count)


def get_unit(day: date, unit: str, step: int = 0) -> DaySpan:
    """Return the unit of a day, or the one `step` units later."""
    if unit == "day":
        return make_day(add_days(day, step))
    if unit in {"week", "fortnight"}:
        monday = get_week(day).first_day
        return DaySpan(shift(monday, unit, step), shift(monday, unit, step + 1))
    if unit == "weekend":
        saturday = add_days(get_week(day).first_day, 5 + 7 * step)
        return DaySpan(saturday, add_days(saturday, 2))
    length = _MONTHS_OF[unit]
    month = (12 * day.year + day.month - 1) // length * length + step * length
    return get_months(month // 12, month % 12 + 1, length)


def get_half(days: DaySpan, *, late: bool) -> DaySpan:
    """Return the first or second half of a span.

    The second half of a week begins on Thursday.
    """
    if days.length in _MONTH_LENGTHS:
        middle = add_days(days.first_day, 15)
    elif days.length > _MONTH_LENGTHS[-1]:
        middle = subtract_months(days.first_day, -round(days.length / 30.4) // 2)
    else:
        middle = add_days(days.first_day, days.length // 2)
    return DaySpan(middle, days.end_day) if late else DaySpan(days.first_day, middle)


class Period(NamedTuple):
    """Span of time with optional bounds.

    Attributes:
        start: First aware moment; None for an open start.
        end: Aware moment of the end, exclusive; None for an open end.
    """

    start: datetime | None
    end: datetime | None

    def is_over(self, now: datetime) -> bool:
        """Return True if the period has ended."""
        return self.end is not None and self.end <= now
