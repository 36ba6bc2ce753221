"""What names days of the calendar: a date, a month, a year, a quarter, a week by its number, a holiday."""

from __future__ import annotations

from datetime import date, timedelta
from typing import TYPE_CHECKING, Final

from agent_memory.times.days import Days, one_day, some_months
from agent_memory.times.reading import calendars
from agent_memory.times.reading.grammar import Node, Rule
from agent_memory.times.reading.holidays import HOLIDAYS

if TYPE_CHECKING:
    from agent_memory.times.reading.grammar import Seen, Values

_MONTHS, _QUARTERS, _HALVES, _WEEKS, _WEEKS_OF_MONTH = 12, 4, 2, 53, 5  # of a year, and the last of a month


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


def _marked_year(values: Values, seen: Seen) -> Node | None:
    year = _year(values)
    return None if year is None else _plain_year({"year": year}, seen)


def _dotted(values: Values, seen: Seen) -> Node | None:
    return _mixed(values, seen) if seen.day_first else None


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
    return calendars.of_year(calendars.day_of(values["month"], values["day"]), _chosen_year(values, seen), seen)


def _month_of_year(values: Values, seen: Seen) -> Node | None:
    return calendars.of_year(calendars.month(values["month"]), _chosen_year(values, seen), seen)


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


def _likely_year(values: Values, seen: Seen) -> Node | None:
    return _plain_year(values, seen) if _LIKELY[0] <= values["year"] <= _LIKELY[1] else None


def _plain_year(values: Values, seen: Seen) -> Node:
    del seen
    return Node(calendars.years(values["year"]))


def _weekday_and_day(values: Values, seen: Seen) -> Node | None:
    """Return the nearest day that is such a day of the week and of the month: "Friday the 13th"."""
    at = 12 * seen.today.year + seen.today.month - 1
    number = values["day"] or values["day2"]
    for step in range(25):
        for sign in (1, -1) if seen.ahead else (-1, 1):
            month = at + sign * step
            days = some_months(month // 12, month % 12 + 1)
            day = days.first + timedelta(days=number - 1)
            fits = day < days.behind and day.weekday() == values["weekday"]
            if fits and (step or day >= seen.today or sign < 0):
                return Node(one_day(day))
    return None


def _years(values: Values, seen: Seen) -> Node | None:
    del seen
    first, last = values["year"], values["year2"]
    if first >= last:
        return None
    return Node(
        calendars.years(first, last - first + 1), bound="range", named=(calendars.years(first), calendars.years(last))
    )


def _season(values: Values, seen: Seen) -> Node | None:
    number = values["season"]
    return calendars.of_year(lambda year: some_months(year, number, 3), _year(values), seen)


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


def _year_part(values: Values, seen: Seen) -> Node | None:
    del seen
    kind, year, number = values["part"]
    if kind == "week":
        return Node(calendars.week_number(number)(year))
    length = 3 if kind == "q" else 6
    return Node(some_months(year, length * (number - 1) + 1, length)) if number <= _MONTHS // length else None


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


_MD: Final = "month:MONTH DOT? THE? day:DAY"
_LAST: Final = "THE? day2:DAY DOT? OF?"
_MARKED: Final = "month:MONTH_NUMBER MONTH_MARK day:DIGITS DAY_MARK"
_YEAR_MARKED: Final = "((year:YEAR|short_year:SHORT_YEAR) YEAR_MARK)"
_OF_YEAR: Final = "(COMMA? (IN|OF)? year:YEAR)?"
_LIKELY: Final = (1900, 2099)
"""Of numbers that stand alone, those that are years."""
RULES: Final = (
    Rule("date", "date:DATE", _full),
    Rule("date in digits", "date:DATE_MIXED", _mixed),
    Rule("date in digits", "date:DATE_DOTTED", _dotted),
    Rule("day in digits", "(?<=DATE_LEAD) pair:PAIR DOT? (?!x|SEP|NUM)", _pair),
    Rule("day in digits", "pair:DOTTED DOT year:YEAR", _pair),
    Rule("day month", "day:DIGITS OF month:MONTH_NUMBER OF year:YEAR", _month_day),
    Rule("day in digits", "(?<!.) pair:SLASHED (?!.)", _pair),
    Rule("days of a month", f"BETWEEN THE? day:DAY DOT? AND THE? day2:DAY DOT? month:MONTH {_OF_YEAR}", _day_span),
    Rule("days of a month", f"FROM? THE? day:DAY DOT? (TO|DASH) {_LAST} month:MONTH {_OF_YEAR}", _day_span),
    Rule(
        "month day",
        f"{_YEAR_MARKED} OF? month:MONTH_NUMBER MONTH_MARK OF? day:DIGITS DAY_MARK",
        _month_day,
    ),
    Rule("month day", "rel:REL_YEAR OF? month:MONTH_NUMBER MONTH_MARK OF? day:DIGITS DAY_MARK", _month_day),
    Rule("month day", "month:MONTH_NUMBER MONTH_MARK OF? day:DIGITS DAY_MARK", _month_day),
    Rule(
        "days of a month",
        f"FROM? {_YEAR_MARKED}? {_MARKED} TO day2:DIGITS DAY_MARK UNTIL_MARK?",
        _day_span,
    ),
    Rule("month", "(year:YEAR|short_year:SHORT_YEAR) YEAR_MARK OF? month:MONTH_NUMBER MONTH_MARK", _month_of_year),
    Rule("month", "rel:REL_YEAR OF? month:MONTH_NUMBER MONTH_MARK", _month_of_year),
    Rule("month", "month:MONTH_NUMBER MONTH_MARK", _month_of_year),
    Rule("year", "(year:YEAR|short_year:SHORT_YEAR) YEAR_MARK", _marked_year),
    Rule("decade", "decade:YEAR YEARS_MARK", _decade),
    Rule("decade", "decade:DECADE YEARS_MARK", _decade),
    Rule("century", "nth:NUM CENTURY_MARK", _century),
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
    Rule(
        "days of a month",
        f"BETWEEN? FROM? month:MONTH DOT? THE? day:DAY (TO|DASH|AND) THE? day2:DAY {_OF_YEAR}",
        _day_span,
    ),
    Rule("days of a month", f"BETWEEN? FROM? month:MONTH DOT? pair:SPREAD {_OF_YEAR}", _spread),
    Rule("days of a month", f"(BETWEEN|FROM)? pair:SPREAD DOT? OF? month:MONTH {_OF_YEAR}", _spread),
    Rule("days in digits", "FROM? pair:PAIR (TO|DASH) pair2:PAIR (COMMA year:YEAR)?", _pairs),
    Rule("days in digits", "FROM? pair:PAIR (TO|DASH) date:DATE_MIXED", _pairs),
    Rule("days in digits", "FROM? pair:PAIR (TO|DASH) pair2:PAIR COMMA? year:YEAR", _pairs),
    Rule("day in digits", "ON pair:PAIR", _pair),
    Rule("day in digits", "(?<=DAY_LEAD) pair:SLASHED (?!x|SEP)", _pair),
    Rule("days of a month", f"month:MONTH BETWEEN THE? day:DAY AND THE? day2:DAY {_OF_YEAR}", _day_span),
    Rule("days of a month", "FROM THE? day:DAY TO month:MONTH THE? day2:DAY (COMMA? year:YEAR)?", _day_span),
    Rule(
        "days of a month",
        f"(BETWEEN|FROM) THE? day:DAY (TO|DASH|AND) THE? day2:DAY OF? month:MONTH {_OF_YEAR}",
        _day_span,
    ),
    Rule("days of a month", f"THE? day:DAY (TO|DASH) THE? day2:DAY OF? month:MONTH {_OF_YEAR}", _day_span),
    Rule("month", "month:MONTH short_year:OLD_YEAR", _month_of_year),
    Rule("month", "year:YEAR SEP month:MONTH_NUMBER (?!SEP|x)", _month_of_year),
    Rule("month", "month:MONTH_NUMBER SEP year:YEAR (?!SEP|x)", _month_of_year),
    Rule("month", f"month:SURE_MONTH DOT? {_OF_YEAR} (?!NAME|DIGITS|ORDINAL)", _month_of_year),
    Rule("month", "THE? (MONTH_WORD OF)? month:MONTH DOT? COMMA? (OF|IN|SEP)? year:YEAR", _month_of_year),
    Rule("month", "month:MONTH (OF|OF? APOSTROPHE) short_year:SHORT_YEAR", _month_of_year),
    Rule("month", "(?<=PREPOSITION) month:MONTH DOT? (?!NAME|DIGITS|ORDINAL)", _month_of_year),
    Rule("month", "month:CAPITAL_MONTH DOT? (?=TO)", _month_of_year),
    Rule("month", "(?<=TO) month:CAPITAL_MONTH", _month_of_year),
    Rule("month", "(?<=DASH) month:CAPITAL_MONTH", _month_of_year),
    Rule("weekday and day", "weekday:WEEKDAY COMMA? (THE day:DAY|day2:ORDINAL)", _weekday_and_day),
    Rule("years", "(FROM|BETWEEN|IN)? year:YEAR (TO|DASH) THE? YEAR_WORD? year2:YEAR (?!NOT_BEHIND_YEAR|DASH)", _years),
    Rule("years", "BETWEEN year:YEAR AND year2:YEAR", _years),
    Rule("season", "(IN|OF|SINCE|BY|DURING) THE? season:SEASON (OF? year:YEAR)? (?!NAME)", _season),
    Rule("season", "THE? season:SEASON OF? year:YEAR", _season),
    Rule("quarter", "quarter:QUARTER (OF? SEP? (year:YEAR|rel:REL YEAR_WORD))? (?!OF|IN)", _quarter),
    Rule("quarter", "year:YEAR SEP? quarter:QUARTER", _quarter),
    Rule("quarter", "THE? quarter:ORDINAL QUARTER_WORD (OF? (year:YEAR|rel:REL YEAR_WORD))? (?!OF|IN)", _quarter),
    Rule("part of a year", "part:YEAR_PART", _year_part),
    Rule("half", "half:HALF (OF? (year:YEAR|rel:REL YEAR_WORD))", _half),
    Rule("half", "THE? half:ORDINAL HALF_WORD OF (year:YEAR|rel:REL YEAR_WORD)", _half),
    Rule("week number", "CALENDAR_WEEK week:WEEK_NUMBER (OF? year:YEAR)?", _week_number),
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
    Rule("holiday", "THE? holiday:HOLIDAY (OF? (year:YEAR|rel:REL YEAR_WORD))?", _holiday),
    Rule("year", "THE? CALENDAR? YEAR_WORD OF? year:YEAR", _plain_year),
    Rule("year", "year:YEAR (?=(AND|OR) GREATER)", _plain_year),
    Rule("year", "(?<=IN) year:YEAR (?!NOT_BEHIND_YEAR|NUM|UNIT|TIME_UNIT)", _plain_year),
    Rule("year", "(?<=BEFORE_YEAR) year:YEAR (?!NOT_BEHIND_YEAR|NUM|UNIT|TIME_UNIT|SEP)", _likely_year),
)
