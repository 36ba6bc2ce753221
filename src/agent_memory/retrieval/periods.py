"""Stretches of time that a question names: "last week", "before June", "between 20 and 31 July", "on 24.07.2026".

The one place that reads time out of words. Pure functions of the text and the moment of asking; English. A month, day
or season without a year is the last one that has begun; a date such as 3/4/2026 may be either. Bounds are whole days
in the zone of that moment.
"""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import date, datetime, time, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

from agent_memory.retrieval.dates import MONTHS, WEEKDAYS
from agent_memory.retrieval.results import Period
from agent_memory.retrieval.spans import (
    Days,
    last_weekday,
    latest_months,
    months_back,
    months_in,
    one_day,
    some_months,
    week_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_MAX_CHARS: Final = 2_000  # of a question; days in what is longer are not asked for
_MOST: Final = 4  # each is searched by itself

_SEASONS: Final = {"winter": 12, "spring": 3, "summer": 6, "autumn": 9, "fall": 9}
"""The month each begins with, in the north."""

_UP_TO_TWELVE: Final = "a/an/one two/couple three/few four five six seven eight nine ten eleven twelve"
_NUMBERS: Final = {word: at for at, words in enumerate(_UP_TO_TWELVE.split(), 1) for word in words.split("/")}
_NTH: Final = {"first": 1, "second": 2, "third": 3, "fourth": 4, "1st": 1, "2nd": 2, "3rd": 3, "4th": 4}

_MONTH: Final = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b\.?"
)
_DAY: Final = r"[0-3]?\d(?:st|nd|rd|th)?"
_YEAR: Final = r"(?:19|20)\d\d"
_COUNT: Final = rf"(?:\d{{1,3}}|{'|'.join(_NUMBERS)})(?:\s+of)?"
_UNIT: Final = r"(?:day|week|month|year)"
_NAMED_UNIT: Final = rf"(?:week(?:end)?|month|quarter|year|{'|'.join(WEEKDAYS)}|{'|'.join(_SEASONS)}|{_MONTH})"

_EXPRESSION: Final = re.compile(
    r"(?<![\w./-])(?:"
    r"(?P<iso>\d{4}[-/]\d{1,2}[-/]\d{1,2})"
    r"|(?P<iso_month>(?:19|20)\d\d-(?:0[1-9]|1[0-2]))"
    r"|(?P<dotted>\d{1,2}\.\s?\d{1,2}\.\s?(?:\d{4}|\d\d))"
    r"|(?P<slashed>\d{1,2}/\d{1,2}/(?:\d{4}|\d\d))"
    rf"|(?P<day1>{_DAY})\s+(?:of\s+)?(?P<month1>{_MONTH})(?:,?\s+(?P<year1>{_YEAR}))?"
    rf"|(?P<month2>{_MONTH})\s+(?:the\s+)?(?P<day2>{_DAY})(?!\d)(?:,?\s+(?P<year2>{_YEAR}))?"
    rf"|(?:the\s+)?(?:last|past|previous)\s+(?P<span>{_COUNT})\s+(?P<span_unit>{_UNIT})s?"
    rf"|(?P<ago>{_COUNT})\s+(?P<ago_unit>{_UNIT})s?\s+ago"
    rf"|(?P<which>this|last|past|previous|current)\s+(?P<unit>{_NAMED_UNIT})"
    r"|(?P<relative>today|tonight|this\s+(?:morning|afternoon|evening)|last\s+night|(?:the\s+)?day\s+before\s+yesterday"
    r"|yesterday)"
    rf"|(?:(?P<quarter>q[1-4])|(?P<nth>{'|'.join(_NTH)})\s+quarter)(?:\s+(?:of\s+)?(?P<year3>{_YEAR}))?"
    rf"|(?P<season>{'|'.join(_SEASONS)})(?:\s+(?:of\s+)?(?P<year4>{_YEAR}))?"
    rf"|on\s+(?P<weekday>{'|'.join(WEEKDAYS)})"
    rf"|(?P<month3>{_MONTH})(?:,?\s+(?:of\s+)?(?P<year5>{_YEAR}))?"
    rf"|(?P<year6>{_YEAR})"
    r")(?![\w-])",
    re.IGNORECASE,
)
_REACH: Final = 60  # characters before an expression in which what leads up to it stands
_LED: Final = re.compile(
    r"\b(?:in|of|since|until|till|during|before|after|by|from|last|this|early|late|mid|between|year"
    rf"|(?:\d\d|{_MONTH}|{'|'.join(_SEASONS)})\s+(?:and|to|through))[ -](?:the\s+)?$",
    re.IGNORECASE,
)
"""What stands before a year, a season, or a month that may be another word."""
_ACTS: Final = re.compile(r"\b(?:do|does|did)\s+$", re.IGNORECASE)  # "what did April say": somebody of that name

_LEADS_UP: Final = re.compile(
    r"(?:^|\s)(?:(?:in|on|of|since|until|till|during|before|prior|earlier|than|after|following|later|by|from|between"
    r"|and|to|up|through|starting|as|early|late|mid|the|end)[\s-]+)+$",
    re.IGNORECASE,
)
_ENDS: Final = re.compile(r"\b(?:before|prior\s+to|earlier\s+than)\s+(?:the\s+)?$", re.IGNORECASE)
_ENDS_WITH: Final = re.compile(r"\b(?:until|till|up\s+to|through)\s+(?:the\s+)?(?:end\s+of\s+)?$", re.IGNORECASE)
_BEGINS_WITH: Final = re.compile(r"\b(?:since|starting|as\s+of)\s+(?:the\s+)?$", re.IGNORECASE)
_BEGINS_AFTER: Final = re.compile(r"\b(?:after|following|later\s+than)\s+(?:the\s+)?(?:end\s+of\s+)?$", re.IGNORECASE)
_FROM: Final = re.compile(r"\bfrom\s+(?:the\s+)?$", re.IGNORECASE)
_ONWARDS: Final = re.compile(r"\s+on(?:wards?)?\b(?!\s+\w)", re.IGNORECASE)
_BETWEEN: Final = re.compile(r"\bbetween\s+(?:the\s+)?$", re.IGNORECASE)
_AND: Final = re.compile(r"\s+and\s+(?:the\s+)?", re.IGNORECASE)
_TO: Final = re.compile(r"\s*(?:\b(?:to|until|till|through)\b|[-\u2013\u2014])\s*(?:the\s+)?", re.IGNORECASE)
_JOINT: Final = r"\s*(?P<joint>\band\b|\bto\b|\buntil\b|\btill\b|\bthrough\b|[-\u2013\u2014])\s*"
_DAYS_OF_MONTH: Final = re.compile(
    rf"(?<![\w./-])(?P<first>{_DAY}){_JOINT}(?P<last>{_DAY}\s+(?:of\s+)?(?P<month>{_MONTH}))(?P<year>,?\s+{_YEAR})?\b",
    re.IGNORECASE,
)
_MONTHS_DAYS: Final = re.compile(
    rf"(?<![\w./-])(?P<first>(?P<month>{_MONTH})\s+{_DAY}){_JOINT}(?P<last>{_DAY})(?![\w./-])(?P<year>,?\s+{_YEAR})?",
    re.IGNORECASE,
)


class _Named(NamedTuple):
    """An expression in a text: where, which days it may be, if these depend on the moment of asking, if it is a day."""

    start: int
    end: int
    days: tuple[Days, ...]
    is_relative: bool
    is_date: bool


class Reading(NamedTuple):
    """What a question says of time.

    Attributes:
        periods: The first stretches of time it names, each once; what it asks for may lie in any.
        rest: The question without them, and without what leads up to them.
        kept: The question without those that depend on the moment of asking: no text holds these words for that.
        dates: The words of days, which a text may hold.
    """

    periods: tuple[Period, ...]
    rest: str
    kept: str
    dates: str


def named_periods(question: str, now: datetime) -> tuple[Period, ...]:
    """Return the first stretches of time that a question names, see `Reading`."""
    return read_periods(question, now).periods


def read_periods(question: str, now: datetime) -> Reading:
    """Read the time out of a question.

    Args:
        question: Any text.
        now: The moment of asking, aware.
    """
    if len(question) > _MAX_CHARS:
        return Reading((), question, question, "")
    text = _MONTHS_DAYS.sub(_spelt_after, _DAYS_OF_MONTH.sub(_spelt_before, question))
    named = list(_expressions(text, now.date()))
    if not named:
        return Reading((), question, question, "")
    bounds = [pair for at in _walk(text, named) for pair in at]
    periods = tuple(dict.fromkeys([_period(first, behind, now) for first, behind in bounds]))[:_MOST]
    dates = " ".join(text[one.start : one.end] for one in named if one.is_date)
    return Reading(periods, _without(text, named), _without(text, [one for one in named if one.is_relative]), dates)


def _before(text: str, at: int) -> str:
    return text[max(0, at - _REACH) : at]


def _without(text: str, named: list[_Named]) -> str:
    """Leave out expressions, and what leads up to them."""
    kept, behind = "", 0
    for one in named:
        kept += _LEADS_UP.sub(" ", text[behind : one.start])
        behind = one.end
    return " ".join((kept + text[behind:]).split()) if named else text


def _spelt_before(match: re.Match[str]) -> str:
    """Name the month of both days: of "20 and 31 July", of "20-31 July 2026"."""
    year = match["year"] or ""
    return f"{match['first']} {match['month']}{year} {match['joint']} {match['last']}{year}"


def _spelt_after(match: re.Match[str]) -> str:
    year = match["year"] or ""
    return f"{match['first']}{year} {match['joint']} {match['month']} {match['last']}{year}"


def _walk(text: str, named: list[_Named]) -> Iterator[list[tuple[date | None, date | None]]]:
    """Yield the bounds that each expression, or two that belong together, stand for."""
    at = 0
    while at < len(named):
        one = named[at]
        before = _before(text, one.start)
        following = named[at + 1] if at + 1 < len(named) else None
        if following is not None and _are_joined(text, one, following):
            yield [_between(first, last) for first in one.days for last in following.days]
            at += 2
            continue
        at += 1
        if _ENDS.search(before):
            yield [(None, days.first) for days in one.days]
        elif _ENDS_WITH.search(before):
            yield [(None, days.behind) for days in one.days]
        elif _BEGINS_WITH.search(before) or (_FROM.search(before) and _ONWARDS.match(text, one.end)):
            yield [(days.first, None) for days in one.days]
        elif _BEGINS_AFTER.search(before):
            yield [(days.behind, None) for days in one.days]
        else:
            yield [(days.first, days.behind) for days in one.days]


def _are_joined(text: str, one: _Named, following: _Named) -> bool:
    between = text[one.end : following.start]
    if _BETWEEN.search(_before(text, one.start)):
        return (_AND.fullmatch(between) or _TO.fullmatch(between)) is not None
    return _TO.fullmatch(between) is not None


def _between(first: Days, last: Days) -> tuple[date, date]:
    start = first.first
    if start >= last.behind:  # from November to February
        with suppress(ValueError, OverflowError):
            start = _year_before(start)
    return min(start, last.first), max(last.behind, start + timedelta(days=1))


def _year_before(day: date) -> date:
    return day.replace(year=day.year - 1, day=28 if (day.month, day.day) == (2, 29) else day.day)


def _period(first: date | None, behind: date | None, now: datetime) -> Period:
    def moment(day: date | None) -> datetime | None:
        return None if day is None else datetime.combine(day, time.min, now.tzinfo)

    return Period(moment(first), moment(behind))


def _expressions(text: str, today: date) -> Iterator[_Named]:
    for match in _EXPRESSION.finditer(text):
        with suppress(ValueError, OverflowError):  # 31 February, 900 years ago
            days = _days_of(match, today)
            if days:
                filled = {name for name, value in match.groupdict().items() if value}
                at = match.span()
                yield _Named(*at, tuple(days), not filled.isdisjoint(_RELATIVE), not filled.isdisjoint(_DATES))


def _days_of(match: re.Match[str], today: date) -> list[Days]:
    """Return which days an expression may stand for; none if it is none.

    Raises:
        ValueError, OverflowError: There is no such day.
    """
    found = match.groupdict()
    reader = next(read for name, read in _READERS.items() if found.get(name))
    return reader(match, today)


def _iso(match: re.Match[str], _: date) -> list[Days]:
    year, month, *day = (int(part) for part in re.split("[-/]", match["iso"] or match["iso_month"]))
    return [one_day(date(year, month, *day)) if day else some_months(year, month)]


def _dotted(match: re.Match[str], _: date) -> list[Days]:
    day, month, year = (int(part) for part in match["dotted"].split("."))
    return [one_day(date(_full(year), month, day))]


def _slashed(match: re.Match[str], _: date) -> list[Days]:
    one, other, year = (int(part) for part in match["slashed"].split("/"))
    found: dict[Days, None] = {}
    for month, day in ((one, other), (other, one)):
        with suppress(ValueError):
            found[one_day(date(_full(year), month, day))] = None
    return list(found)


def _day_of_month(match: re.Match[str], today: date) -> list[Days]:
    number = int(re.sub(r"\D", "", match["day1"] or match["day2"]))
    month, year = _month(match["month1"] or match["month2"]), match["year1"] or match["year2"]
    if year:
        return [one_day(date(int(year), month, number))]
    for back in range(9):  # to the last 29 February
        with suppress(ValueError):
            if (day := date(today.year - back, month, number)) <= today:
                return [one_day(day)]
    return []


def _leads(words: re.Pattern[str], match: re.Match[str]) -> bool:
    return words.search(_before(match.string, match.start())) is not None


def _last_so_many(match: re.Match[str], today: date) -> list[Days]:
    count, behind = _count(match["span"]), today + timedelta(days=1)
    unit = match["span_unit"].lower()
    if unit in {"day", "week"}:
        return [Days(behind - timedelta(days=count * (7 if unit == "week" else 1)), behind)]
    return [Days(months_back(today, count * (12 if unit == "year" else 1)), behind)]


def _so_long_ago(match: re.Match[str], today: date) -> list[Days]:
    count, unit = _count(match["ago"]), match["ago_unit"].lower()
    if unit == "day":
        return [one_day(today - timedelta(days=count))]
    if unit == "week":
        return [week_of(today - timedelta(weeks=count))]
    if unit == "month":
        back = months_back(today.replace(day=1), count)
        return [some_months(back.year, back.month)]
    return [some_months(today.year - count, 1, 12)]


def _unit(match: re.Match[str], today: date) -> list[Days]:
    unit, back = match["unit"].lower(), match["which"].lower() not in {"this", "current"}
    if unit.startswith("week") or unit in WEEKDAYS:
        return [_of_week(unit, today, back=back)]
    if unit == "year":
        return [some_months(today.year - back, 1, 12)]
    if unit in {"quarter", "month"}:
        length = 3 if unit == "quarter" else 1
        start = months_back(today.replace(day=1), (today.month - 1) % length + length * back)
        return [some_months(start.year, start.month, length)]
    month, length = (_SEASONS[unit], 3) if unit in _SEASONS else (_month(unit), 1)
    latest = latest_months(month, length, today)
    return [some_months(latest.first.year - 1, month, length) if back and latest.behind > today else latest]


def _of_week(unit: str, today: date, *, back: bool) -> Days:
    """Return the days of a week, of its end, or of one of its days."""
    week = week_of(today - timedelta(weeks=back))
    if unit == "week":
        return week
    if unit == "weekend":
        return week._replace(first=week.first + timedelta(days=5))
    return last_weekday(unit, today) if back else one_day(week.first + timedelta(days=WEEKDAYS.index(unit)))


def _relative(match: re.Match[str], today: date) -> list[Days]:
    words = match["relative"].lower().split()
    back = 2 if "before" in words else 1 if words in (["yesterday"], ["last", "night"]) else 0
    return [one_day(today - timedelta(days=back))]


def _quarter(match: re.Match[str], today: date) -> list[Days]:
    number = int(match["quarter"][1]) if match["quarter"] else _NTH[match["nth"].lower()]
    return [months_in(match["year3"], 3 * number - 2, 3, today)]


def _season(match: re.Match[str], today: date) -> list[Days]:
    if not (match["year4"] or _leads(_LED, match)):
        return []
    return [months_in(match["year4"], _SEASONS[match["season"].lower()], 3, today)]


def _on_weekday(match: re.Match[str], today: date) -> list[Days]:
    return [last_weekday(match["weekday"].lower(), today)]


def _whole_month(match: re.Match[str], today: date) -> list[Days]:
    name, year = match["month3"], match["year5"]
    # Tell the month from the verb, from a name that is cut short, and from somebody of that name.
    is_word = name.lower() in {"may", "mar", "march", "jan", "dec", "sept", "sep"} and not _leads(_LED, match)
    if not year and (is_word or _leads(_ACTS, match)):
        return []
    return [months_in(year, _month(name), 1, today)]


def _whole_year(match: re.Match[str], _: date) -> list[Days]:
    return [some_months(int(match["year6"]), 1, 12)] if _leads(_LED, match) else []


_READERS: Final[dict[str, Callable[[re.Match[str], date], list[Days]]]] = {
    "iso": _iso,
    "iso_month": _iso,
    "dotted": _dotted,
    "slashed": _slashed,
    "day1": _day_of_month,
    "day2": _day_of_month,
    "span": _last_so_many,
    "ago": _so_long_ago,
    "unit": _unit,
    "relative": _relative,
    "quarter": _quarter,
    "nth": _quarter,
    "season": _season,
    "weekday": _on_weekday,
    "month3": _whole_month,
    "year6": _whole_year,
}
"""What reads an expression, by the group of `_EXPRESSION` that it fills."""

_DATES: Final = ("iso", "dotted", "slashed", "day1", "day2")
_RELATIVE: Final = ("span", "ago", "unit", "relative", "weekday")


def _month(name: str) -> int:
    return MONTHS.index(name[:3].lower()) + 1


def _full(year: int) -> int:
    return year + 2000 * (year < 100)  # noqa: PLR2004 - of two figures


def _count(words: str) -> int:
    word = words.split(maxsplit=1)[0].lower()
    return int(word) if word.isdigit() else _NUMBERS[word]
