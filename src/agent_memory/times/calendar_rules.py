"""Rules for days of the calendar: "3 May 2023", "Q3", "the last Friday of June", "week 21"."""

from __future__ import annotations

from datetime import date, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from agent_memory.times.days import (
    Days,
    add_days,
    get_iso_week,
    get_months,
    get_nth_weekday,
    get_unit,
    get_week,
    get_week_in_month,
    get_years,
    make_day,
)
from agent_memory.times.grammar import Node, Rule

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_memory.times.grammar import Viewpoint

_LEAP_YEARS: Final = 8
"""Years among which one has 29 February."""
_LIKELY_YEARS: Final = range(1900, 2100)
_MONTHS: Final = 12
_WEEKDAY_MONTHS: Final = 13
"""Months in which "Friday the 13th" comes at least once."""


def find_yearly(view: Viewpoint, make: Callable[[int], Days]) -> Node | None:
    """Return the nearest past or next occurrence of yearly days."""
    for step in range(_LEAP_YEARS):
        try:
            days = make(view.today.year + (step if view.is_future else -step))
        except ValueError:
            continue
        if days.end_day > view.today if view.is_future else days.first_day <= view.today:
            return Node(days, make)
    return None


def _of_year(view: Viewpoint, make: Callable[[int], Days], year: int | None, offset: int | None = None) -> Node | None:
    if year is None and offset is None:
        return find_yearly(view, make)
    return Node(make(view.today.year + (offset or 0) if year is None else year))


def build_yearly_day(month: int, day: int) -> Callable[[int], Days]:
    """Return a function that makes a day of a given year."""
    return lambda year: make_day(date(year, month, day))


def _date(view: Viewpoint, value: tuple[int, int, int] | datetime) -> Node:
    """Resolve a date, or a moment in the zone of saying."""
    if isinstance(value, datetime):
        return Node(make_day(value.astimezone(view.moment.tzinfo).date()))
    return Node(make_day(date(*value)))


def _order(view: Viewpoint, first: int, second: int) -> tuple[int, int]:
    """Return month and day; the order decides only if both may be months."""
    is_day_first = first > _MONTHS or (view.day_first and second <= _MONTHS)
    return (second, first) if is_day_first else (first, second)


def _date_pair(view: Viewpoint, pair: tuple[int, int, int]) -> Node:
    month, day = _order(view, pair[0], pair[1])
    return Node(make_day(date(pair[2], month, day)))


def _pair(view: Viewpoint, pair: tuple[int, int], year: int | None = None) -> Node | None:
    return _of_year(view, build_yearly_day(*_order(view, pair[0], pair[1])), year)


def _month_day(view: Viewpoint, month: int, day: int, year: int | None = None) -> Node | None:
    return _of_year(view, build_yearly_day(month, day), year)


def _month(
    view: Viewpoint, month: int, year: int | None = None, offset: int | None = None, unit: str = "year"
) -> Node | None:
    return _of_year(view, partial(get_months, month=month), year, offset) if unit == "year" else None


def _month_by(view: Viewpoint, offset: int, month: int) -> Node:
    """Resolve "last May", "next May" and "this May"."""
    year, now = view.today.year, view.today.month
    if offset:
        year += (month <= now) if offset > 0 else -(month >= now)
    return Node(get_months(year, month))


def _day_span(
    view: Viewpoint,
    month: int,
    day: int = 0,
    last: int = 0,
    pair: tuple[int, int] | None = None,
    year: int | None = None,
) -> Node | None:
    """Resolve days of one month, "3 to 12 September"."""
    day, last = pair or (day, last)
    if day >= last:
        return None
    node = _of_year(view, lambda year: Days(date(year, month, day), make_day(date(year, month, last)).end_day), year)
    if node is None:
        return None
    ends = make_day(node.days.first_day), make_day(add_days(node.days.end_day, -1))
    return node._replace(bound="range", named=ends)


def _pair_span(view: Viewpoint, pair: tuple[int, int], pair2: tuple[int, ...], year: int | None = None) -> Node | None:
    month, day = _order(view, *pair2[:2])
    last = _of_year(view, build_yearly_day(month, day), pair2[2] if pair2[2:] else year)
    if last is None:
        return None
    for step in (0, -1):
        first = _pair(view, pair, last.days.first_day.year + step)
        if first is not None and first.days.first_day <= last.days.first_day:
            return Node(Days(first.days.first_day, last.days.end_day), bound="range", named=(first.days, last.days))
    return None


def _year(_view: Viewpoint, year: int, unit: str = "year") -> Node | None:
    return Node(get_years(year)) if unit == "year" and year in _LIKELY_YEARS else None


def _years(_view: Viewpoint, year: int, last: int) -> Node | None:
    if not _LIKELY_YEARS.start <= year < last < _LIKELY_YEARS.stop:
        return None
    return Node(get_years(year, last - year + 1), bound="range", named=(get_years(year), get_years(last)))


def _season(view: Viewpoint, season: int, year: int | None = None, offset: int | None = None) -> Node | None:
    return _of_year(view, partial(get_months, month=season, length=3), year, offset)


def _season_by(view: Viewpoint, offset: int, season: int) -> Node:
    """Resolve "last summer", "this summer" and "next summer"."""
    days = get_months(view.today.year, season, 3)
    if offset < 0 and days.end_day > view.today:
        days = get_months(view.today.year - 1, season, 3)
    if offset > 0 and days.first_day <= view.today:
        days = get_months(view.today.year + 1, season, 3)
    return Node(days)


def _part_of_year(view: Viewpoint, part: str, year: int | None = None, offset: int | None = None) -> Node | None:
    return _nth_part(view, int(part[1]), "quarter" if part[0] == "q" else "half", year, offset)


def _nth_part_of(view: Viewpoint, nth: int, unit: str, whole: str, offset: int = 0) -> Node | None:
    return _nth_part(view, nth, unit, None, offset) if whole == "year" else None


def _nth_part(view: Viewpoint, nth: int, unit: str, year: int | None = None, offset: int | None = None) -> Node | None:
    if unit == "week":
        return _week(view, nth, year, offset) if year is not None or offset is not None else None
    length = {"quarter": 3, "half": 6}.get(unit)
    if length is None or length * nth > _MONTHS:
        return None
    return _of_year(view, partial(get_months, month=length * (nth - 1) + 1, length=length), year, offset)


def _year_part(view: Viewpoint, value: tuple[int, Any]) -> Node | None:
    year, part = value
    if isinstance(part, str):
        return _part_of_year(view, part, year)
    week, weekday = part
    days = get_iso_week(year, week)
    return Node(make_day(add_days(days.first_day, weekday - 1)) if weekday else days)


def _week(view: Viewpoint, week: int, year: int | None = None, offset: int | None = None) -> Node | None:
    """Resolve a calendar week; without a year, of this year."""
    return Node(get_iso_week(view.today.isocalendar().year + (offset or 0) if year is None else year, week))


def _week_of_month(view: Viewpoint, unit: str, month: int, nth: int = -1, year: int | None = None) -> Node | None:
    if unit != "week":
        return None
    return _of_year(view, lambda year: get_week_in_month(get_months(year, month), nth), year)


def _nth_weekday(view: Viewpoint, weekday: int, month: int, nth: int = -1, year: int | None = None) -> Node | None:
    return _of_year(view, lambda year: make_day(get_nth_weekday(get_months(year, month), weekday, nth)), year)


def find_monthly(view: Viewpoint, day: int, weekday: int | None = None) -> Node | None:
    """Resolve "the 15th" or "Friday the 13th"."""
    for step in range(_WEEKDAY_MONTHS):
        month = get_unit(view.today, "month", step if view.is_future else -step)
        found = add_days(month.first_day, day - 1)
        is_near = found >= view.today if view.is_future else found <= view.today
        if found < month.end_day and is_near and weekday in {None, found.weekday()}:
            return Node(make_day(found))
    return None


def _last_week(_view: Viewpoint, unit: str, year: int) -> Node | None:
    return Node(get_week(date(year, 12, 28))) if unit == "week" else None


_MONTH, _YEAR_AFTER = "month:ANY_MONTH DOT?", "(COMMA? (IN|OF)? year:YEAR)?"
_YEAR_LEAD: Final = "IN|SINCE|UNTIL|BEFORE|AFTER|BY|BETWEEN|EARLY|LATE|MID|END|THAN|THE|SEASON"
_NO_NAME: Final = "(?!NAME|DAY|COUNT|DASH|SLASH)"
CALENDAR_RULES: Final = (
    Rule("date", "value:DATE", _date),
    Rule("date", "pair:DATE_PAIR", _date_pair),
    Rule("day", "(ON|UNTIL|BY|SINCE|BEFORE|AFTER) pair:PAIR DOT? (?!SLASH|DASH|COUNT)", _pair),
    Rule("day", f"(?<!LABEL) THE? day:DAY DOT? (OF|ON)? {_MONTH} {_YEAR_AFTER} (?!PLURAL)", _month_day),
    Rule("day", "THE? day:DAY OF? month:LOW_MONTH (COMMA|OF)? year:YEAR", _month_day),
    Rule("day", "THE? day:NTH_DIGITS OF? month:LOW_MONTH", _month_day),
    Rule("day", "month:LOW_MONTH day:DAY COMMA? year:YEAR", _month_day),
    Rule("day", "month:LOW_MONTH THE? day:NTH_DIGITS", _month_day),
    Rule("day", f"{_MONTH} (COMMA|DASH)? THE? day:DAY DOT? ((COMMA|DASH|OF)? year:YEAR)? (?!PLURAL)", _month_day),
    Rule("day", "day:DIGITS (DASH|SLASH) month:ANY_MONTH (DASH|SLASH) year:YEAR", _month_day),
    Rule("day", "month:ANY_MONTH (DASH|SLASH) day:DIGITS ((DASH|SLASH) year:YEAR)?", _month_day),
    Rule("day", "year:YEAR (COMMA|DASH|SLASH)? month:ANY_MONTH DOT? (DASH|SLASH)? day:DIGITS", _month_day),
    Rule(
        "days",
        f"(FROM|BETWEEN)? THE? day:DAY DOT? (UP_TO|AND) THE? last:DAY DOT? OF? {_MONTH} {_YEAR_AFTER}",
        _day_span,
    ),
    Rule("days", f"(FROM|BETWEEN)? {_MONTH} THE? day:DAY (UP_TO|AND) THE? last:DAY {_YEAR_AFTER}", _day_span),
    Rule("days", f"(FROM|BETWEEN)? pair:SPREAD DOT? OF? {_MONTH} {_YEAR_AFTER}", _day_span),
    Rule("days", f"(FROM|BETWEEN)? {_MONTH} pair:SPREAD {_YEAR_AFTER}", _day_span),
    Rule("days", "FROM pair:PAIR UP_TO pair2:PAIR (COMMA? year:YEAR)?", _pair_span),
    Rule("days", "FROM? pair:PAIR UP_TO pair2:DATE_PAIR", _pair_span),
    Rule("month", f"{_MONTH} (COMMA|OF|IN|SLASH|DASH)? year:YEAR (?!DASH|SLASH)", _month),
    Rule("month", "year:YEAR COMMA? month:ANY_MONTH", _month),
    Rule("month", f"{_MONTH} OF? offset:OFFSET unit:UNIT", _month),
    Rule("month", f"offset:OFFSET unit:UNIT (COMMA|IN)? {_MONTH}", _month),
    Rule("month", f"(?<!DAY|COUNT|DASH|SLASH) month:MONTH DOT? {_NO_NAME}", _month),
    Rule("month", f"(?<=LEADING_WORD|BY|FROM) THE? month:NAME_MONTH {_NO_NAME}", _month),
    Rule("month", f"(?<=LEADING_WORD) month:VERB_MONTH {_NO_NAME}", _month),
    Rule(
        "month",
        "month:ANY_MONTH (?=(TO|UNTIL|DASH) (ANY_MONTH|NOW)|(AND|OR) (LATER|AFTER|MORE|EARLIER|BEFORE|LESS))",
        _month,
    ),
    Rule("month", "(?<=(ANY_MONTH|SEASON|YEAR) (TO|UNTIL|DASH)) month:ANY_MONTH", _month),
    Rule("month", "(?<=(MID|EARLY|LATE) DASH) month:ANY_MONTH", _month),
    Rule("month", "(?<=BETWEEN ANY_MONTH AND) month:ANY_MONTH", _month),
    Rule("month by", f"offset:ANY_OFFSET month:ANY_MONTH {_NO_NAME}", _month_by),
    Rule("month", "(?<!LABEL) value:YEAR_MONTH", lambda _view, value: Node(get_months(*value))),
    Rule("year", f"(?<={_YEAR_LEAD}) year:YEAR (?!COUNT|DIGITS|UNIT|TIME_UNIT|MEASURE|PLURAL|NAME)", _year),
    Rule("year", "(?<=(END|EARLY|MID|LATE) OF) year:YEAR", _year),
    Rule("year", "THE? unit:UNIT OF? year:YEAR", _year),
    Rule("year", "year:YEAR (?=(AND|OR) (LATER|AFTER|MORE|EARLIER|BEFORE|LESS))", _year),
    Rule("years", "FROM? year:YEAR UP_TO last:YEAR (?!MEASURE|PLURAL|DASH|UNIT|TIME_UNIT)", _years),
    Rule("years", "BETWEEN year:YEAR AND last:YEAR", _years),
    Rule("decade", "THE? value:DECADE", lambda _view, value: Node(get_years(*value))),
    Rule("season", f"(?<=IN|OF|SINCE|BY|UNTIL|BEFORE|AFTER|FROM) THE? season:SEASON {_NO_NAME}", _season),
    Rule("season", "(?<=SEASON (TO|UNTIL|DASH)) season:SEASON", _season),
    Rule("season", "THE? season:SEASON OF? (year:YEAR|offset:OFFSET UNIT)", _season),
    Rule("season", f"offset:ANY_OFFSET season:SEASON {_NO_NAME}", _season_by),
    Rule("part of a year", "part:PART_OF_YEAR (OF|SLASH|COMMA|DASH)? (year:YEAR|offset:OFFSET UNIT)", _part_of_year),
    Rule("part of a year", "(?<=LEADING_WORD|BY|FROM|TO|FOR) part:PART_OF_YEAR (?!OF)", _part_of_year),
    Rule("part of a year", "THE? nth:ORDINAL unit:UNIT OF? year:YEAR", _nth_part),
    Rule("part of a year", "THE? nth:ORDINAL unit:UNIT OF? (THE|THE? offset:OFFSET) whole:UNIT", _nth_part_of),
    Rule("part of a year", "(?<=LEADING_WORD|BY|FROM|TO|FOR) THE nth:ORDINAL unit:UNIT (?!OF|IN)", _nth_part),
    Rule("part of a year", "value:YEAR_PART", _year_part),
    Rule("week", "CALENDAR_WEEK week:NUMBER ((COMMA|OF|SLASH)? (year:YEAR|offset:OFFSET UNIT))?", _week),
    Rule("week", "CALENDAR_WEEK value:YEAR_MONTH", lambda _view, value: Node(get_iso_week(*value))),
    Rule("week", "UNIT week:NUMBER OF? year:YEAR", _week),
    Rule("week of a month", f"THE? (nth:ORDINAL|OFFSET) unit:UNIT (OF|IN) {_MONTH} {_YEAR_AFTER}", _week_of_month),
    Rule("last week", "THE? OFFSET unit:UNIT OF year:YEAR", _last_week),
    Rule(
        "weekday of a month",
        f"THE? (nth:ORDINAL|OFFSET) weekday:ANY_WEEKDAY (OF|IN) {_MONTH} {_YEAR_AFTER}",
        _nth_weekday,
    ),
    Rule("weekday and day", "weekday:ANY_WEEKDAY COMMA? THE? day:ORDINAL (?!OF|ANY_MONTH|UNIT)", find_monthly),
)
