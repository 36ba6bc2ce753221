"""Arithmetic of the calendar for what words name: parts of years, weeks by number, the like before and behind."""

from __future__ import annotations

from datetime import date, timedelta
from typing import TYPE_CHECKING, Any, Final

from agent_memory.times.days import Days, months_back, one_day, some_months, week_of
from agent_memory.times.reading.grammar import Node

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_memory.times.reading.grammar import Seen

_LEAPS: Final = 8
"""Years in which 29 February comes round at least once."""
_FRIDAY, _SHORT_MONTH, _LONG_MONTH, _SHORT_YEAR = 4, 28, 31, 360
_MOST: Final = 4_000
"""Units that a text may count, on; more are no time that anybody tells."""


def days_from(day: date, count: int) -> date:
    """Return the day so many days behind another."""
    return day + timedelta(days=count)


def years(first: int, count: int = 1) -> Days:
    """Return whole years."""
    return Days(date(first, 1, 1), date(first + count, 1, 1))


def yearly(make: Callable[[int], Days | None], seen: Seen) -> Node | None:
    """Return what comes round each year: the latest that has begun, or the next where the words look ahead.

    Args:
        make: Of a year, its days; raises ValueError or returns None where that year has none.
        seen: Whence.
    """
    today = seen.today
    order = range(_LEAPS) if seen.ahead else range(0, -_LEAPS, -1)
    for step in order:
        days = _made(make, today.year + step)
        if days is not None and (days.behind > today if seen.ahead else days.first <= today):
            return Node(days, again=make)
    return None


def _made(make: Callable[[int], Days | None], year: int) -> Days | None:
    try:
        return make(year)
    except ValueError:
        return None


def of_year(make: Callable[[int], Days | None], year: int | None, seen: Seen) -> Node | None:
    """Return what a year has, or what comes round each year."""
    if year is None:
        return yearly(make, seen)
    days = make(year)
    return None if days is None else Node(days)


def month(number: int) -> Callable[[int], Days]:
    """Return what makes a month of a year."""
    return lambda year: some_months(year, number)


def day_of(number: int, day: int) -> Callable[[int], Days]:
    """Return what makes a day of a year."""
    return lambda year: one_day(date(year, number, day))


def week_number(number: int) -> Callable[[int], Days]:
    """Return what makes a week of a year, by ISO 8601; the last of 53 where that year has 52."""
    return lambda year: week_of(date.fromisocalendar(year, number, 1))


def last_week(year: int) -> Days:
    """Return the last week of a year, by ISO 8601: that of 28 December."""
    return week_of(date(year, 12, 28))


def week_in_month(nth: int, days: Days) -> Days:
    """Return the nth week of a month, whose first one has its first Thursday; the last one for -1."""
    if nth < 0:
        return week_of(days_from(days.behind, -4))
    thursday = days_from(days.first, (3 - days.first.weekday()) % 7)
    return week_of(days_from(thursday, 7 * (nth - 1)))


def nth_weekday(year: int, at: int, weekday: int, nth: int) -> date:
    """Return such as the fourth Thursday of a month, or the last for -1."""
    days = some_months(year, at)
    if nth < 0:
        last = days_from(days.behind, -1)
        return days_from(last, -((last.weekday() - weekday) % 7))
    return days_from(days.first, (weekday - days.first.weekday()) % 7 + 7 * (nth - 1))


def weekday_from(weekday: int, seen: Seen) -> Days:
    """Return the last such day before today, or the next from today on where the words look ahead."""
    if seen.ahead:
        return one_day(days_from(seen.today, (weekday - seen.today.weekday()) % 7))
    return one_day(days_from(seen.today, -((seen.today.weekday() - weekday) % 7 or 7)))


def easter(year: int) -> date:
    """Return Easter Sunday of a year: Butcher's rule for the Gregorian calendar."""
    a, b, c = year % 19, year // 100, year % 100
    d = (19 * a + b - b // 4 - (b - (b + 8) // 25 + 1) // 3 + 15) % 30
    e = (32 + 2 * (b % 4) + 2 * (c // 4) - d - c % 4) % 7
    f = d + e - 7 * ((a + 11 * d + 22 * e) // 451) + 114
    return date(year, f // 31, f % 31 + 1)


def moved(day: date, unit: str, count: int) -> date:
    """Return the day so many units behind another, or before it where `count` is negative.

    Raises:
        ValueError: The count is beyond all telling, or the calendar's end.
    """
    if abs(count) > _MOST:
        raise ValueError("too many")
    if unit == "business":
        return _workdays(day, count)
    if unit in _DAYS:
        return days_from(day, _DAYS[unit] * count)
    return months_back(day, -_MONTHS[unit] * count)


_DAYS: Final = {"day": 1, "week": 7, "fortnight": 14, "weekend": 7}
_MONTHS: Final = {"month": 1, "quarter": 3, "year": 12, "decade": 120, "century": 1200}


def _workdays(day: date, count: int) -> date:
    step = 1 if count > 0 else -1
    for _ in range(min(abs(count), 400)):
        day = days_from(day, step)
        while day.weekday() > _FRIDAY:
            day = days_from(day, step)
    return day


def unit_at(day: date, unit: str, step: int) -> Days:
    """Return the unit that a day is in, or one so many units on."""
    if unit in {"day", "business"}:
        return one_day(moved(day, unit, step))
    if unit in {"week", "fortnight"}:
        return Days(moved(week_of(day).first, unit, step), moved(week_of(day).first, unit, step + 1))
    if unit == "weekend":
        saturday = days_from(week_of(day).first, 5 + 7 * step)
        return Days(saturday, days_from(saturday, 2))
    length = _MONTHS[unit]
    at = (12 * day.year + day.month - 1) // length * length + step * length
    if length >= _MONTHS["decade"]:
        return years(at // 12, length // 12)
    return some_months(at // 12, at % 12 + 1, length)


def halved(days: Days, *, late: bool) -> Days:
    """Return the first or the second half of a stretch; the second one of a week is from Thursday on."""
    length = (days.behind - days.first).days
    if length > _SHORT_YEAR:
        whole = 12 * (days.behind.year - days.first.year)
        middle = months_back(days.first, -whole // 2)
    elif _SHORT_MONTH <= length <= _LONG_MONTH:
        middle = days_from(days.first, 15)
    elif length == _DAYS["week"]:
        middle = days_from(days.first, 3)
    else:
        middle = days_from(days.first, length // 2)
    return Days(middle, days.behind) if late else Days(days.first, middle)


def hour_and_minute(value: Any) -> tuple[int, int]:
    """Return the hour and minute that a tag tells."""
    return value if isinstance(value, tuple) else (int(value), 0)
