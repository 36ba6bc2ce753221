"""What a token with digits may be: a number, a date, a time of day, a part of a year."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from agent_memory.times.reading.marks import NONE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_MONEY: Final = "$\u20ac\u00a3\u00a5#"
_KEPT: Final = 4_096
"""Of the tags of numbers."""
_TWO, _FOUR = 2, 4  # digits
_MONTHS, _HOURS, _DAYS, _WEEKS = 12, 24, 31, 53
_OLDEST_TENS: Final = 20
"""Decades of two digits are from the twenties of the last century on."""
_YEARS: Final = (1000, 2199)
_OLDEST: Final = 1900
"""Of the years of a date with points, which may be a version."""
_PIVOT: Final = 30
"""A year of two digits below this is of this century."""


@lru_cache(maxsize=_KEPT)
def number_tags(digits: str) -> Mapping[str, Any]:
    """Return the tags of an integer: what it may be the number of."""
    value = int(digits)
    tags: dict[str, Any] = {"NUM": value}
    if len(digits) <= _TWO:
        if value <= _HOURS:
            tags["HOUR"] = (value, 0)
        if 1 <= value <= _DAYS:
            tags |= {"DAY": value, "DIGITS": value}
        if 1 <= value <= _MONTHS:
            tags["MONTH_NUMBER"] = value
        if 1 <= value <= _WEEKS:
            tags["WEEK_NUMBER"] = value
        if len(digits) == _TWO:
            tags["SHORT_YEAR"] = full_year(value)
            if value > _DAYS:
                tags["OLD_YEAR"] = full_year(value)
    elif len(digits) == _FOUR and _YEARS[0] <= value <= _YEARS[1]:
        tags["YEAR"] = value
    return tags


def full_year(two: int) -> int:
    """Return the year that two digits mean."""
    return two + (2000 if two < _PIVOT else 1900)


def _number(text: str, match: re.Match[str]) -> Mapping[str, Any]:
    start, end = match.span()
    digits = match[0]
    if not digits.isdecimal() or not digits.isascii():
        return NONE
    before = text[start - 1] if start else " "
    behind = text[end : end + 1]
    if before in _MONEY or before in "_\\=" or behind in ("%", "_") or (behind.isalpha() and behind.isascii()):
        return NONE
    if before.isalpha() and before.isascii():
        return {"GLUED": int(digits)} if len(digits) <= _TWO and 1 <= int(digits) <= _DAYS else {}
    if before in ".:" and start > 1 and text[start - 2].isdigit():
        return NONE
    return number_tags(digits)


def _iso(text: str, match: re.Match[str]) -> Mapping[str, Any]:
    del text
    year, month, day = (int(part) for part in re.split(r"[-/.]", match[0][:10].rstrip("Tt"))[:3])
    return {"DATE": (year, month, day)}


def _dmy(text: str, match: re.Match[str]) -> Mapping[str, Any]:
    del text
    year = match["y"]
    full = int(year) if len(year) == _FOUR else full_year(int(year))
    dotted = match["sep2"] == "."
    if not (_OLDEST if dotted else _YEARS[0]) <= full <= _YEARS[1]:
        return NONE
    if dotted and len(year) < _FOUR:  # a version in most languages
        return {"DATE_DOTTED": (int(match["a"]), int(match["b"]), full)}
    return {"DATE_MIXED": (int(match["a"]), int(match["b"]), full)}


def _compact(text: str, match: re.Match[str]) -> Mapping[str, Any]:
    del text
    return {"DATE": (int(match[0][:4]), int(match[0][4:6]), int(match[0][6:]))}


def _year_month(text: str, match: re.Match[str]) -> Mapping[str, Any]:
    del text
    return {"YEAR_MONTH": (int(match["ym_y"] or match["my_y"]), int(match["ym_m"] or match["my_m"]))}


def _clock(text: str, match: re.Match[str]) -> Mapping[str, Any]:
    del text
    hour, minute = int(match["h"]), int(match["mi"] or match["mi2"] or (match["uhr"] or "h0")[1:])
    half = (match["ap"] or match["ap2"] or match["ap3"] or "").lower()[:1]
    if half and hour > _MONTHS:
        return NONE
    return {"CLOCK": (hour % 12 + 12 * (half == "p") if half else hour, minute)}


def _month_day(text: str, match: re.Match[str]) -> Mapping[str, Any]:
    del text
    one, other = int(match["md_a"]), int(match["md_b"])
    if not (1 <= one <= _DAYS and 1 <= other <= _DAYS):
        return NONE
    value = (one, other)
    return {
        "-": {"PAIR": value, "SPREAD": value},
        "/": {"PAIR": value, "SLASHED": value},
        ".": {"PAIR": value, "DOTTED": value},
    }[match["md_sep"]]


def _ordinal(text: str, match: re.Match[str]) -> Mapping[str, Any]:
    del text
    value = int(re.sub(r"\D", "", match[0]))
    return {"DAY": value, "ORDINAL": value, "ORDINAL_DIGITS": value} if 1 <= value <= _DAYS else {}


def _decade(text: str, match: re.Match[str]) -> Mapping[str, Any]:
    del text
    tens = 10 * int(match["dec"])
    if match["dec_c"] is None:
        return {"DECADE": 1900 + tens} if tens >= _OLDEST_TENS else {}
    return {"DECADE": 100 * int(match["dec_c"]) + tens}


def _part(text: str, match: re.Match[str]) -> Mapping[str, Any]:
    """Return the days of such as 2016H2, 2016-Q3 and 2016-W05."""
    del text
    year = int(match["part_y"])
    if match["week"] is not None:
        return {"YEAR_PART": ("week", year, int(match["week"]))}
    return {"YEAR_PART": (match["part_of"][0].lower(), year, int(match["part_of"][1]))}


def _nothing(text: str, match: re.Match[str]) -> Mapping[str, Any]:
    del text, match
    return {}


DIGITS: Final[Mapping[str | None, Callable[[str, re.Match[str]], Mapping[str, Any]]]] = {
    "iso": _iso,
    "dmy": _dmy,
    "compact": _compact,
    "ym": _year_month,
    "clock": _clock,
    "md": _month_day,
    "decade": _decade,
    "part": _part,
    "ordinal": _ordinal,
    "number": _number,
    "break": _nothing,
    "other": _nothing,
}
"""By the name of its group in the pattern of tokens, the tags of a token in a text."""
