"""Which days a question asks for, by what leads up to an expression of time and by what joins two of them."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import date, timedelta
from typing import TYPE_CHECKING, Final

from agent_memory.retrieval.periods.english import DAY, MONTH, YEAR
from agent_memory.retrieval.periods.expressions import words_before

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_memory.retrieval.periods.expressions import Named
    from agent_memory.retrieval.periods.spans import Days

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
    rf"(?<![\w./-])(?P<first>{DAY}){_JOINT}(?P<last>{DAY}\s+(?:of\s+)?(?P<month>{MONTH}))(?P<year>,?\s+{YEAR})?\b",
    re.IGNORECASE,
)
_MONTHS_DAYS: Final = re.compile(
    rf"(?<![\w./-])(?P<first>(?P<month>{MONTH})\s+{DAY}){_JOINT}(?P<last>{DAY})(?![\w./-])(?P<year>,?\s+{YEAR})?",
    re.IGNORECASE,
)


def spelt_out(text: str) -> str:
    """Name the month of both days: of "20 and 31 July", of "July 20-31"."""
    return _MONTHS_DAYS.sub(_spelt_after, _DAYS_OF_MONTH.sub(_spelt_before, text))


def _spelt_before(match: re.Match[str]) -> str:
    """Name the month of both days: of "20 and 31 July", of "20-31 July 2026"."""
    year = match["year"] or ""
    return f"{match['first']} {match['month']}{year} {match['joint']} {match['last']}{year}"


def _spelt_after(match: re.Match[str]) -> str:
    year = match["year"] or ""
    return f"{match['first']}{year} {match['joint']} {match['month']} {match['last']}{year}"


def bounds_of(text: str, named: list[Named]) -> Iterator[list[tuple[date | None, date | None]]]:
    """Yield the bounds that each expression, or two that belong together, stand for."""
    at = 0
    while at < len(named):
        one = named[at]
        before = words_before(text, one.start)
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


def _are_joined(text: str, one: Named, following: Named) -> bool:
    between = text[one.end : following.start]
    if _BETWEEN.search(words_before(text, one.start)):
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
