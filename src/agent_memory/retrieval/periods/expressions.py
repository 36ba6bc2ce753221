"""Expressions of time in a text, and the days that each may stand for, seen from a day."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import date, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

from agent_memory.retrieval.dates import MONTHS, WEEKDAYS
from agent_memory.retrieval.periods.english import ACTS, EXPRESSION, LED, NTH, NUMBERS, SEASONS
from agent_memory.retrieval.periods.spans import (
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

_REACH: Final = 60  # characters before an expression in which what leads up to it stands


class Named(NamedTuple):
    """An expression in a text: where, which days it may be, if these depend on the moment of asking, if it is a day."""

    start: int
    end: int
    days: tuple[Days, ...]
    is_relative: bool
    is_date: bool


def words_before(text: str, at: int) -> str:
    """Return what stands before a place, as far as it may lead up to it."""
    return text[max(0, at - _REACH) : at]


def expressions(text: str, today: date) -> Iterator[Named]:
    """Yield the expressions of a text, in order."""
    for match in EXPRESSION.finditer(text):
        with suppress(ValueError, OverflowError):  # 31 February, 900 years ago
            days = _days_of(match, today)
            if days:
                filled = {name for name, value in match.groupdict().items() if value}
                at = match.span()
                yield Named(*at, tuple(days), not filled.isdisjoint(_RELATIVE), not filled.isdisjoint(_DATES))


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
    return words.search(words_before(match.string, match.start())) is not None


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
    month, length = (SEASONS[unit], 3) if unit in SEASONS else (_month(unit), 1)
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
    number = int(match["quarter"][1]) if match["quarter"] else NTH[match["nth"].lower()]
    return [months_in(match["year3"], 3 * number - 2, 3, today)]


def _season(match: re.Match[str], today: date) -> list[Days]:
    if not (match["year4"] or _leads(LED, match)):
        return []
    return [months_in(match["year4"], SEASONS[match["season"].lower()], 3, today)]


def _on_weekday(match: re.Match[str], today: date) -> list[Days]:
    return [last_weekday(match["weekday"].lower(), today)]


def _whole_month(match: re.Match[str], today: date) -> list[Days]:
    name, year = match["month3"], match["year5"]
    # Tell the month from the verb, from a name that is cut short, and from somebody of that name.
    is_word = name.lower() in {"may", "mar", "march", "jan", "dec", "sept", "sep"} and not _leads(LED, match)
    if not year and (is_word or _leads(ACTS, match)):
        return []
    return [months_in(year, _month(name), 1, today)]


def _whole_year(match: re.Match[str], _: date) -> list[Days]:
    return [some_months(int(match["year6"]), 1, 12)] if _leads(LED, match) else []


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
"""What reads an expression, by the group of `EXPRESSION` that it fills."""

_DATES: Final = ("iso", "dotted", "slashed", "day1", "day2")
_RELATIVE: Final = ("span", "ago", "unit", "relative", "weekday")


def _month(name: str) -> int:
    return MONTHS.index(name[:3].lower()) + 1


def _full(year: int) -> int:
    return year + 2000 * (year < 100)  # noqa: PLR2004 - of two figures


def _count(words: str) -> int:
    word = words.split(maxsplit=1)[0].lower()
    return int(word) if word.isdigit() else NUMBERS[word]
