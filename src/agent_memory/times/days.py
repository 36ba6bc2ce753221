"""Spans of whole days: a day, a week, some months, counted from a day. Pure arithmetic of the calendar."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Final, NamedTuple

MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
WEEKDAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


class Days(NamedTuple):
    """Days from `first` to the one before `behind`."""

    first: date
    behind: date


def month_of(name: str) -> int:
    """Return the number of a month, of its name in English."""
    return MONTHS.index(name[:3].lower()) + 1


def one_day(day: date) -> Days:
    """Return a day."""
    return Days(day, day + timedelta(days=1))


def week_of(day: date) -> Days:
    """Return the week of a day, from Monday on."""
    monday = day - timedelta(days=day.weekday())
    return Days(monday, monday + timedelta(days=7))


def last_weekday(name: str, today: date) -> Days:
    """Return the last day of that name before today."""
    return one_day(today - timedelta(days=(today.weekday() - WEEKDAYS.index(name)) % 7 or 7))


def some_months(year: int, month: int, length: int = 1) -> Days:
    """Return months from one on, 1 to 12."""
    return Days(date(year, month, 1), date(year + (month + length - 1) // 12, (month + length - 1) % 12 + 1, 1))


def latest_months(month: int, length: int, today: date) -> Days:
    """Return the last such months that have begun."""
    return some_months(today.year - (month > today.month), month, length)


def months_in(year: int | None, month: int, length: int, today: date) -> Days:
    """Return months of a year, or the last such that have begun."""
    return some_months(year, month, length) if year else latest_months(month, length, today)


def months_back(day: date, count: int) -> date:
    """Return the day so many months before, or the last of that month."""
    at = 12 * day.year + day.month - 1 - count
    last = some_months(at // 12, at % 12 + 1).behind - timedelta(days=1)
    return last.replace(day=min(day.day, last.day))
