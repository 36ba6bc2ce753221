"""What names days by itself: a date, a day of the week, a month, "two weeks ago", "next quarter", a holiday."""

from __future__ import annotations

from datetime import date, timedelta
from typing import TYPE_CHECKING, Final

from agent_memory.times.days import Days, one_day, some_months, week_of
from agent_memory.times.reading import calendars
from agent_memory.times.reading.grammar import Node, Rule
from agent_memory.times.reading.holidays import HOLIDAYS

if TYPE_CHECKING:
    from agent_memory.times.reading.grammar import Seen, Values

_MONTHS, _QUARTERS, _HALVES, _WEEKS, _WEEKS_OF_MONTH = 12, 4, 2, 53, 5  # of a year, and the last of a month
_MOST_SECONDS: Final = 100_000_000


def _year(values: Values) -> int | None:
    for name in ("year", "short_year"):
        if values.get(name) is not None:
            return int(values[name])
    return None


def _full(values: Values, seen: Seen) -> Node:
    del seen
    return Node(one_day(date(*values["date"])))


def _mixed(values: Values, seen: Seen) -> Node:
    one, other, year = values["date"]
    if (seen.day_first or one > _MONTHS) and other <= _MONTHS:
        one, other = other, one
    return Node(one_day(date(year, one, other)))


def _pair(values: Values, seen: Seen) -> Node | None:
    """Return a month and a day in digits; where both may be a month, the language decides."""
    one, other = values["pair"]
    if (seen.day_first or one > _MONTHS) and other <= _MONTHS:
        one, other = other, one
    if one > _MONTHS:
        return None
    return calendars.of_year(calendars.day_of(one, other), _year(values), seen)


def _year_month(values: Values, seen: Seen) -> Node:
    del seen
    return Node(some_months(*values["at"]))


def _month_day(values: Values, seen: Seen) -> Node | None:
    return calendars.of_year(calendars.day_of(values["month"], values["day"]), _year(values), seen)


def _month_of_year(values: Values, seen: Seen) -> Node | None:
    return calendars.of_year(calendars.month(values["month"]), _year(values), seen)


def _day_span(values: Values, seen: Seen) -> Node | None:
    """Return days of one month, "3 to 12 September": named are its two ends."""
    number, first, last = values["month"], values["day"], values["day2"]
    if first >= last:
        return None

    def make(year: int) -> Days:
        return Days(date(year, number, first), date(year, number, last) + timedelta(days=1))

    node = calendars.of_year(make, _year(values), seen)
    if node is None:
        return None
    ends = (one_day(node.days.first), one_day(node.days.behind - timedelta(days=1)))
    return node._replace(bound="range", named=ends)


def _spread(values: Values, seen: Seen) -> Node | None:
    first, last = values["pair"]
    return _day_span({**values, "day": first, "day2": last}, seen)


def _pairs(values: Values, seen: Seen) -> Node | None:
    """Return days from one month and day in digits to another: named are its two ends."""
    last = _pair({**values, "pair": values["pair2"]}, seen) if "pair2" in values else _mixed(values, seen)
    if last is None:
        return None
    for year in range(last.days.first.year, last.days.first.year - 2, -1):
        first = _pair({"pair": values["pair"], "year": year}, seen)
        if first is not None and first.days.first <= last.days.first:
            days = Days(first.days.first, last.days.behind)
            return Node(days, bound="range", named=(first.days, last.days))
    return None


def _holiday(values: Values, seen: Seen) -> Node | None:
    make = HOLIDAYS[values["holiday"]]
    return calendars.of_year(lambda year: one_day(make(year)), _chosen_year(values, seen), seen)


def _plain_year(values: Values, seen: Seen) -> Node:
    del seen
    return Node(calendars.years(values["year"]))


def _weekday(values: Values, seen: Seen) -> Node:
    return Node(calendars.weekday_from(values["weekday"], seen))


def _weekday_of_week(values: Values, seen: Seen) -> Node:
    """Return a day of this, the next or the last week."""
    monday = week_of(seen.today).first
    return Node(one_day(monday + timedelta(days=7 * values["rel"] + values["weekday"])))


def _next_weekday(values: Values, seen: Seen) -> Node:
    return Node(one_day(calendars.days_from(seen.today, (values["weekday"] - seen.today.weekday() - 1) % 7 + 1)))


def _weekday_and_day(values: Values, seen: Seen) -> Node | None:
    """Return the nearest day that is such a day of the week and of the month: "Friday the 13th"."""
    at = 12 * seen.today.year + seen.today.month - 1
    for step in range(25):
        for sign in (1, -1) if seen.ahead else (-1, 1):
            month = at + sign * step
            days = some_months(month // 12, month % 12 + 1)
            day = days.first + timedelta(days=values["day"] - 1)
            fits = day < days.behind and day.weekday() == values["weekday"]
            if fits and (step or day >= seen.today or sign < 0):
                return Node(one_day(day))
    return None


def _day_of_month(values: Values, seen: Seen) -> Node | None:
    """Return the 15th of the month, or of another one: this one's where nothing is said."""
    days = calendars.unit_at(seen.today, "month", values.get("rel") or 0)
    day = days.first + timedelta(days=values["day"] - 1)
    return Node(one_day(day)) if day < days.behind else None


def _unit(values: Values, seen: Seen) -> Node:
    return Node(calendars.unit_at(seen.today, values["unit"], values.get("rel") or 0))


def _units(values: Values, seen: Seen) -> Node:
    """Return so many units up to today, or from tomorrow on."""
    today = seen.today
    if values["rel"] > 0:
        first = today + timedelta(days=1)
        return Node(Days(first, calendars.moved(first, values["unit"], values["count"])))
    return Node(Days(calendars.moved(today, values["unit"], -values["count"]), today))


def _ago(values: Values, seen: Seen) -> Node:
    return Node(one_day(calendars.moved(seen.today, values["unit"], -values["count"])))


def _ahead(values: Values, seen: Seen) -> Node:
    return Node(one_day(calendars.moved(seen.today, values["unit"], values["count"])))


def _time_ago(values: Values, seen: Seen) -> Node | None:
    return _seconds(-values["count"] * values["unit"], seen)


def _time_ahead(values: Values, seen: Seen) -> Node | None:
    return _seconds(values["count"] * values["unit"], seen)


def _seconds(count: int, seen: Seen) -> Node | None:
    if abs(count) > _MOST_SECONDS:
        return None
    moment = seen.moment + timedelta(seconds=count)
    return Node(one_day(moment.date()), clock=(moment.time(),))


def _relative_day(values: Values, seen: Seen) -> Node:
    return Node(one_day(seen.today + timedelta(days=values["relative"])))


def _two_days(values: Values, seen: Seen) -> Node | None:
    step = values["relative"]
    return Node(one_day(seen.today + timedelta(days=2 * step))) if step else None


def _day_behind(values: Values, seen: Seen) -> Node:
    del values
    return Node(one_day(seen.today + timedelta(days=1)))


def _part_of_day(values: Values, seen: Seen) -> Node:
    return Node(one_day(seen.today + timedelta(days=values["rel"])))


def _season(values: Values, seen: Seen) -> Node | None:
    number = values["season"]
    return calendars.of_year(lambda year: some_months(year, number, 3), _year(values), seen)


def _season_by(values: Values, seen: Seen) -> Node:
    number, rel = values["season"], values["rel"]
    latest = seen.today.year - (seen.today.month < number)
    days = some_months(latest, number, 3)
    if (rel == 0 and days.behind <= seen.today) or rel > 0:
        days = some_months(latest + 1, number, 3)
    elif rel < 0 and days.behind > seen.today:
        days = some_months(latest - 1, number, 3)
    return Node(days)


def _month_by(values: Values, seen: Seen) -> Node:
    """Return this, the next or the last such month."""
    number, rel, today = values["month"], values["rel"], seen.today
    if rel == 0:
        return Node(some_months(today.year, number))
    if rel > 0:
        return Node(some_months(today.year + (number <= today.month), number))
    return Node(some_months(today.year - (number >= today.month), number))


def _month_of_rel_year(values: Values, seen: Seen) -> Node:
    return Node(some_months(seen.today.year + values["rel"], values["month"]))


def _quarter(values: Values, seen: Seen) -> Node | None:
    number = values["quarter"]
    if number > _QUARTERS:
        return None
    return calendars.of_year(lambda year: some_months(year, 3 * number - 2, 3), _chosen_year(values, seen), seen)


def _half(values: Values, seen: Seen) -> Node | None:
    number = values["half"]
    if number > _HALVES:
        return None
    return calendars.of_year(lambda year: some_months(year, 6 * number - 5, 6), _chosen_year(values, seen), seen)


def _chosen_year(values: Values, seen: Seen) -> int | None:
    rel = values.get("rel")
    return _year(values) if rel is None else seen.today.year + rel


def _week_number(values: Values, seen: Seen) -> Node | None:
    number = values["week"]
    year = _chosen_year(values, seen)
    if not 1 <= number <= _WEEKS:
        return None
    return Node(calendars.week_number(number)(seen.today.year if year is None else year))


def _last_week_of(values: Values, seen: Seen) -> Node:
    del seen
    return Node(calendars.last_week(values["year"]))


def _week_of_month(values: Values, seen: Seen) -> Node | None:
    nth = values.get("nth") or -1
    number = values["month"]
    weekday = values.get("weekday")

    def make(year: int) -> Days:
        days = calendars.week_in_month(nth, some_months(year, number))
        return days if weekday is None else one_day(days.first + timedelta(days=weekday))

    return None if nth > _WEEKS_OF_MONTH else calendars.of_year(make, _year(values), seen)


def _nth_weekday(values: Values, seen: Seen) -> Node | None:
    nth, weekday, number = values.get("nth") or -1, values["weekday"], values["month"]

    def make(year: int) -> Days | None:
        day = calendars.nth_weekday(year, number, weekday, nth)
        return one_day(day) if day.month == number else None

    return calendars.of_year(make, _chosen_year(values, seen), seen)


def _decade(values: Values, seen: Seen) -> Node:
    del seen
    return Node(calendars.years(values["decade"], 10))


def _century(values: Values, seen: Seen) -> Node:
    del seen
    return Node(calendars.years(100 * values["nth"] - 100, 100))


def _end_of(values: Values, seen: Seen) -> Node:
    days = calendars.unit_at(seen.today, values["unit"], 0)
    return Node(days if values["unit"] == "day" else calendars.halved(days, late=True))


_MD: Final = "month:MONTH DOT? THE? day:DAY"
_OF_YEAR: Final = "(COMMA? (IN|OF)? year:YEAR)?"
RULES: Final = (
    Rule("date", "date:DATE", _full),
    Rule("date in digits", "date:DATE_MIXED", _mixed),
    Rule("month in digits", "at:YEAR_MONTH", _year_month),
    Rule("month day", f"{_MD} DAY_WORD? {_OF_YEAR}", _month_day),
    Rule("month day", f"{_MD} (OF|COMMA) APOSTROPHE? short_year:SHORT_YEAR", _month_day),
    Rule("month day", "month:MONTH day:GLUED (COMMA? year:YEAR)?", _month_day),
    Rule("month day", "month:MONTH SEP day:DIGITS (SEP year:YEAR)?", _month_day),
    Rule("month day", "month:MONTH SEP year:YEAR SEP day:DIGITS", _month_day),
    Rule("month day", "year:YEAR SEP month:MONTH SEP day:DIGITS", _month_day),
    Rule("month day", "year:YEAR SEP day:DIGITS SEP month:MONTH", _month_day),
    Rule("month day", "day:DIGITS SEP year:YEAR SEP month:MONTH", _month_day),
    Rule("day month", "day:DIGITS SEP month:MONTH SEP (year:YEAR|short_year:SHORT_YEAR)", _month_day),
    Rule("day month", f"THE? day:DAY DAY_WORD? DOT? OF? month:MONTH DOT? {_OF_YEAR}", _month_day),
    Rule("day month", "THE? day:DAY OF? month:MONTH OF? APOSTROPHE? short_year:SHORT_YEAR", _month_day),
    Rule("days of a month", f"BETWEEN? FROM? month:MONTH DOT? day:DAY (TO|DASH|AND) day2:DAY {_OF_YEAR}", _day_span),
    Rule("days of a month", f"BETWEEN? FROM? month:MONTH DOT? pair:SPREAD {_OF_YEAR}", _spread),
    Rule("days of a month", f"(BETWEEN|FROM)? pair:SPREAD DOT? OF? month:MONTH {_OF_YEAR}", _spread),
    Rule("days in digits", "FROM? pair:PAIR (TO|DASH) pair2:PAIR (COMMA year:YEAR)?", _pairs),
    Rule("days in digits", "FROM? pair:PAIR (TO|DASH) date:DATE_MIXED", _pairs),
    Rule("days in digits", "FROM? pair:PAIR (TO|DASH) pair2:PAIR COMMA? year:YEAR", _pairs),
    Rule("day in digits", "ON pair:PAIR", _pair),
    Rule(
        "days of a month",
        f"(BETWEEN|FROM) THE? day:DAY (TO|DASH|AND) THE? day2:DAY OF? month:MONTH {_OF_YEAR}",
        _day_span,
    ),
    Rule("days of a month", f"THE? day:DAY (TO|DASH) THE? day2:DAY OF? month:MONTH {_OF_YEAR}", _day_span),
    Rule("month", f"month:SURE_MONTH DOT? {_OF_YEAR} (?!NAME|DIGITS|ORDINAL)", _month_of_year),
    Rule("month", "month:MONTH DOT? COMMA? (OF|SEP)? year:YEAR", _month_of_year),
    Rule("month", "month:MONTH APOSTROPHE short_year:SHORT_YEAR", _month_of_year),
    Rule("month", "(?<=PREPOSITION) month:MONTH DOT? (?!NAME|DIGITS|ORDINAL)", _month_of_year),
    Rule("month", "month:CAPITAL_MONTH DOT? (?=TO)", _month_of_year),
    Rule("month", "(?<=TO) month:CAPITAL_MONTH", _month_of_year),
    Rule("month", "(?<=DASH) month:CAPITAL_MONTH", _month_of_year),
    Rule("month", "month:CAPITAL_MONTH DASH (?=MONTH)", lambda _, __: None),
    Rule("month by", "rel:REL month:MONTH", _month_by),
    Rule("month of a year", "month:MONTH OF? rel:REL YEAR_WORD", _month_of_rel_year),
    Rule("weekday", "THE? weekday:SURE_WEEKDAY", _weekday),
    Rule("weekday", "(?<=ON) weekday:WEEKDAY", _weekday),
    Rule("weekday", "weekday:CAPITAL_WEEKDAY (?=CLOCK)", _weekday),
    Rule("weekday by", "rel:REL weekday:WEEKDAY", _weekday_of_week),
    Rule("weekday by", "THIS? NEXT_ONE weekday:WEEKDAY", _next_weekday),
    Rule("weekday by", "weekday:WEEKDAY (OF|COMMA)? rel:REL WEEK_WORD", _weekday_of_week),
    Rule("weekday by", "ON? weekday:WEEKDAY OF rel:REL WEEK_WORD", _weekday_of_week),
    Rule("weekday by", "rel:REL WEEK_WORD (ON|COMMA)? weekday:WEEKDAY", _weekday_of_week),
    Rule("weekday and day", "weekday:WEEKDAY COMMA? THE? day:ORDINAL", _weekday_and_day),
    Rule("day of the month", "THE? day:ORDINAL (DAY_WORD)? OF (THE|rel:REL) MONTH_WORD", _day_of_month),
    Rule("unit", "THE? rel:REL CALENDAR? unit:UNIT", _unit),
    Rule("unit", "FOR THE unit:UNIT", _unit),
    Rule("weekend", "(OVER|AT|ON)? THE unit:WEEKEND", _unit),
    Rule("units", "THE? rel:REL count:NUM OF? unit:UNIT", _units),
    Rule("ago", "count:NUM A? OF? unit:UNIT AGO", _ago),
    Rule("ahead", "IN count:NUM A? OF? unit:UNIT", _ahead),
    Rule("ahead", "count:NUM unit:UNIT (FROM (RELATIVE_DAY|NOW)|LATER)", _ahead),
    Rule("time ago", "count:NUM A? OF? unit:TIME_UNIT AGO", _time_ago),
    Rule("time ahead", "IN count:NUM A? OF? unit:TIME_UNIT", _time_ahead),
    Rule("relative day", "relative:RELATIVE_DAY", _relative_day),
    Rule("now", "RIGHT relative:NOW", _relative_day),
    Rule("now", "(?<=BETWEEN) relative:NOW", _relative_day),
    Rule("now", "(?<=AND) relative:NOW", _relative_day),
    Rule("now", "(?<=TO) relative:NOW", _relative_day),
    Rule("relative day", "THE? DAY_WORD (BEFORE|AFTER) relative:RELATIVE_DAY", _two_days),
    Rule("day behind", "THE DAY_WORD AFTER", _day_behind),
    Rule("part of a day", "(EARLY|LATE)? rel:REL PART", _part_of_day),
    Rule("season", "(IN|OF|SINCE|BY|DURING) THE? season:SEASON (OF? year:YEAR)? (?!NAME)", _season),
    Rule("season", "THE? season:SEASON OF? year:YEAR", _season),
    Rule("season", "rel:REL season:SEASON", _season_by),
    Rule("quarter", "quarter:QUARTER (OF? SEP? (year:YEAR|rel:REL YEAR_WORD))?", _quarter),
    Rule("quarter", "year:YEAR SEP? quarter:QUARTER", _quarter),
    Rule("quarter", "THE? quarter:ORDINAL QUARTER_WORD (OF? (year:YEAR|rel:REL YEAR_WORD))?", _quarter),
    Rule("half", "half:HALF (OF? (year:YEAR|rel:REL YEAR_WORD))", _half),
    Rule("half", "THE? half:ORDINAL HALF_WORD OF (year:YEAR|rel:REL YEAR_WORD)", _half),
    Rule("week number", "CALENDAR? WEEK_WORD week:WEEK_NUMBER (OF? (year:YEAR|rel:REL YEAR_WORD))?", _week_number),
    Rule("week number", "THE? week:ORDINAL WEEK_WORD OF (year:YEAR|rel:REL YEAR_WORD)", _week_number),
    Rule("last week", "THE? LAST WEEK_WORD OF year:YEAR", _last_week_of),
    Rule(
        "week of a month",
        f"THE? (nth:ORDINAL|LAST) WEEK_WORD (OF|IN) month:MONTH DOT? {_OF_YEAR} (ON weekday:WEEKDAY)?",
        _week_of_month,
    ),
    Rule("nth weekday", f"THE? (nth:ORDINAL|LAST) weekday:WEEKDAY (OF|IN) month:MONTH DOT? {_OF_YEAR}", _nth_weekday),
    Rule("decade", "(THE|IN)? decade:DECADE", _decade),
    Rule("century", "THE? nth:ORDINAL CENTURY_WORD", _century),
    Rule("end of a unit", "THE? unit:END_OF", _end_of),
    Rule("end of a unit", "THE? END OF THE? unit:UNIT", _end_of),
    Rule("later in a unit", "LATER IN THE unit:UNIT", _end_of),
    Rule("holiday", "THE? holiday:HOLIDAY (OF? (year:YEAR|rel:REL YEAR_WORD))?", _holiday),
    Rule("year", "YEAR_WORD OF? year:YEAR", _plain_year),
    Rule("year", "(?<=BEFORE_YEAR) year:YEAR (?!NOT_BEHIND_YEAR|NUM|UNIT|TIME_UNIT|SLASH)", _plain_year),
)
