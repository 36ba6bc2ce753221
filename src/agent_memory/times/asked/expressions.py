"""Expressions of time in a text, and the days that each may stand for, seen from a moment."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from agent_memory.times.asked import calendar_days, doubts, relative
from agent_memory.times.asked.english import EXPRESSION

if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from agent_memory.times.days import Days


class Named(NamedTuple):
    """An expression in a text.

    Attributes:
        start, end: Where it stands.
        days: Which days it may be.
        kind: Which group of `EXPRESSION` it fills.
        words: Those that tell a day, which a text may hold; empty where it is none.
        recurs: How often the like comes round, where it says not which one is meant: "week", "year" or "".
    """

    start: int
    end: int
    days: tuple[Days, ...]
    kind: str
    words: str
    recurs: str

    @property
    def is_relative(self) -> bool:
        """Whether which days it is depends on the moment of asking."""
        return self.kind in {"span", "ago", "unit", "weekend", "relative", "weekday"}

    @property
    def is_day(self) -> bool:
        """Whether it is one day."""
        return all((days.behind - days.first).days == 1 for days in self.days)


def expressions(text: str, now: datetime) -> Iterator[Named]:
    """Yield the expressions of a text, in order."""
    for match in EXPRESSION.finditer(text):
        with suppress(ValueError, OverflowError):  # 31 February, 900 years ago
            kind = next(name for name in _READERS if match[name])
            days = () if doubts.is_elsewhen(text, match.start()) else _READERS[kind](match, now)
            if days:
                words = match["iso"] or (match[0] if kind in _DATES else "")
                yield Named(*match.span(), tuple(days), kind, words, _recurs(match, kind))


def _recurs(match: re.Match[str], kind: str) -> str:
    if kind == "weekday":
        return "week"
    if kind in {"season", "month3", "day1", "day2", "quarter", "nth"}:
        is_told = any(match[f"year{number}"] for number in (1, 2, 3, 4, 5)) or match["slashed_year"]
        return "" if is_told else "year"
    return ""


_READERS: Final[dict[str, Callable[[re.Match[str], datetime], list[Days]]]] = {
    "iso": calendar_days.iso_day,
    "iso_week": calendar_days.iso_week,
    "quarter_behind": calendar_days.quarter,
    "iso_month": calendar_days.iso_month,
    "dotted": calendar_days.dotted_day,
    "slashed": calendar_days.slashed_day,
    "day1": calendar_days.day_of_month,
    "day2": calendar_days.day_of_month,
    "span": relative.last_so_many,
    "ago": relative.so_long_ago,
    "unit": relative.unit_of_time,
    "weekend": relative.weekend,
    "relative": relative.nearby_day,
    "quarter": calendar_days.quarter,
    "nth": calendar_days.quarter,
    "half": calendar_days.half_year,
    "nth_half": calendar_days.half_year,
    "week": calendar_days.calendar_week,
    "week_number": calendar_days.calendar_week,
    "season": calendar_days.season,
    "weekday": relative.day_of_week,
    "month3": calendar_days.whole_month,
    "year6": calendar_days.whole_year,
}
"""What reads an expression, by the group of `EXPRESSION` that it fills."""

_DATES: Final = ("iso", "dotted", "slashed", "day1", "day2")
