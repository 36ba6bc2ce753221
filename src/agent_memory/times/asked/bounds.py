"""Which days a question asks for, by what leads up to an expression of time and by what joins two of them."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import date, timedelta
from typing import TYPE_CHECKING, Final, TypeAlias

from agent_memory.times.asked.doubts import is_other_word, words_before
from agent_memory.times.asked.english import DAY, MONTH, YEAR
from agent_memory.times.days import Days, week_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from agent_memory.times.asked.expressions import Named

    Bounds: TypeAlias = tuple[date | None, date | None]

_ABOUT: Final = r"(?:(?:at\s+least|about|around|roughly|approximately|some\s?time|the)\s+)*"
_PART: Final = (
    r"(?:(?:the\s+)?(?:(?:end|start|beginning|middle|close|first|last|second|third|fourth)"
    r"(?:\s+(?:days?|weeks?|weekend|half))?\s+of|early|late|mid)[\s-]+)?(?:the\s+)?"
)
"""Where only a part of what is named is meant: that part is not looked at, what is named is."""
_BEGIN_OF: Final = r"(?:(?:the\s+)?(?:start|beginning)\s+of\s+)?(?:the\s+)?"
_WITHIN: Final = r"\s+(?:[\w'\u2019.-]+\s+){1,5}(?:in|of|on|from|at)\s+(?:the\s+)?"
"""Behind "since": something of that time, "since the release in ..."."""


def _led(words: str, behind: str = _ABOUT + _PART) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{words}){behind}$", re.IGNORECASE)


_LEADS: Final = (
    (_led(r"not\s+until\s+"), "nothing"),
    (_led(r"(?:not?\s+(?:before|earlier\s+than)|(?:on|in)\s+or\s+after)\s+"), "from"),
    (_led(r"(?:not?\s+(?:after|later\s+than)|(?:on|in)\s+or\s+before)\s+"), "to"),
    (_led(r"(?:before|prior\s+to|earlier\s+than|older\s+than)\s+", _BEGIN_OF), "before"),
    (_led(r"(?:until|till|up\s+to(?:\s+and\s+including)?|through|before|prior\s+to)\s+"), "to"),
    (_led(r"(?:since|starting(?:\s+(?:in|on|from|with))?|as\s+(?:of|from))\s+"), "from"),
    (
        _led(r"(?:after|following|(?:later|newer|more\s+recent)\s+than)\s+", r"(?:the\s+)?(?:end\s+of\s+)?(?:the\s+)?"),
        "after",
    ),
    (_led(r"(?:after|following|(?:later|newer|more\s+recent)\s+than)\s+"), "from"),
    (_led(r"by\s+"), "by"),
    (_led(r"since|after", _WITHIN), "from"),
    (_led(r"before|until|till", _WITHIN), "to"),
)
"""What leads up to an expression, and which of its bounds count; the first that fits does."""
_LONGER: Final = re.compile(r"\b(?:(?:more|longer|older)\s+than|over|at\s+least)\s+$", re.IGNORECASE)
_SHORTER: Final = re.compile(r"\b(?:(?:less|fewer|newer|shorter)\s+than|under|within)\s+$", re.IGNORECASE)
_WEEK_OF: Final = re.compile(r"\bweek\s+(?:of|from|beginning|starting|commencing)\s+(?:the\s+)?$", re.IGNORECASE)

_FROM: Final = re.compile(r"\bfrom\s+(?:the\s+)?$", re.IGNORECASE)
_ONWARDS: Final = re.compile(r"\s+on(?:wards?)?\b(?!\s+\w)", re.IGNORECASE)
_TO_NOW: Final = re.compile(
    r"\s+(?:(?:and|or)\s+(?:later|after(?:wards)?|newer|since)|(?:to|until|till|up\s+to|and|through)\s+(?:now|date|the"
    r"\s+present))\b",
    re.IGNORECASE,
)
_AND_EARLIER: Final = re.compile(r"\s+(?:and|or)\s+(?:earlier|before|older)\b(?!\s+\w)", re.IGNORECASE)
_BETWEEN: Final = re.compile(r"\bbetween\s+(?:the\s+)?$", re.IGNORECASE)
_AND: Final = re.compile(r"\s+and\s+(?:the\s+)?", re.IGNORECASE)
_TO: Final = re.compile(r"\s*(?:\b(?:to|until|till|through)\b|[-\u2013\u2014])\s*(?:the\s+)?", re.IGNORECASE)
_NUMBER: Final = re.compile(r"\s+(?:to|until|till|through|and|[-\u2013])\s+\d", re.IGNORECASE)

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
    if not year and is_other_word(match["month"], match.string, match.start(), match.end()):
        return match[0]
    return f"{match['first']} {match['month']}{year} {match['joint']} {match['last']}{year}"


def _spelt_after(match: re.Match[str]) -> str:
    year = match["year"] or ""
    return f"{match['first']}{year} {match['joint']} {match['month']} {match['last']}{year}"


def bounds_of(text: str, named: list[Named]) -> Iterator[tuple[Named, list[Bounds]]]:
    """Yield each expression that is asked for, with the bounds that it, or two that belong together, stand for."""
    at = 0
    while at < len(named):
        one = named[at]
        following = named[at + 1] if at + 1 < len(named) else None
        if following is not None and _are_joined(text, one, following):
            yield one, [_between(first, last, one, following) for first in one.days for last in following.days]
            yield following, []
            at += 2
            continue
        at += 1
        if bounds := _bounds(text, one):
            yield one, bounds


def _bounds(text: str, one: Named) -> list[Bounds]:
    led = words_before(text, one.start)
    if one.kind == "ago" and (_LONGER.search(led) or _SHORTER.search(led)):
        return [(None, days.behind) if _LONGER.search(led) else (days.first, None) for days in one.days]
    if _TO_NOW.match(text, one.end) or (_FROM.search(led) and _ONWARDS.match(text, one.end)):
        return [(days.first, None) for days in one.days]
    if _AND_EARLIER.match(text, one.end):
        return [(None, days.behind) for days in one.days]
    if one.is_day and _WEEK_OF.search(led):
        return [week_of(days.first) for days in one.days]
    lead = next((which for pattern, which in _LEADS if pattern.search(led)), "in")
    is_number = one.kind == "year6" and _NUMBER.match(text, one.end) is not None  # "from 2000 to 4000": no years
    if is_number or (lead == "by" and one.recurs):  # a deadline more often than not, and that may be the next one
        return []
    return [bounds for days in one.days for bounds in _BOUNDS[lead](days)]


_BOUNDS: Final[dict[str, Callable[[Days], list[Bounds]]]] = {
    "in": lambda days: [(days.first, days.behind)],
    "before": lambda days: [(None, days.first)],
    "to": lambda days: [(None, days.behind)],
    "by": lambda days: [(None, days.behind)],
    "from": lambda days: [(days.first, None)],
    "after": lambda days: [(days.behind, None)],
    "nothing": lambda _: [],
}


def _are_joined(text: str, one: Named, following: Named) -> bool:
    between = text[one.end : following.start]
    if _BETWEEN.search(words_before(text, one.start)):
        return (_AND.fullmatch(between) or _TO.fullmatch(between)) is not None
    return _TO.fullmatch(between) is not None


def _between(first: Days, last: Days, one: Named, following: Named) -> Bounds:
    with suppress(ValueError, OverflowError):
        if following.recurs == "year" and not one.recurs:  # from March 2025 to May
            last = _moved(last, first.first.year - last.first.year)
            last = _moved(last, 1) if last.behind <= first.first else last
        elif one.recurs == "year":  # from November to February, between March and May 2023
            first = _moved(first, last.first.year - first.first.year)
            first = _moved(first, -1) if first.first >= last.behind else first
        elif one.recurs == "week" and first.first >= last.behind:  # from Friday to Monday
            first = Days(*(day - timedelta(weeks=1) for day in first))
    return min(first.first, last.first), max(last.behind, first.first + timedelta(days=1))


def _moved(days: Days, years: int) -> Days:
    return Days(
        *(day.replace(year=day.year + years, day=28 if (day.month, day.day) == (2, 29) else day.day) for day in days)
    )
