"""A text as a row of tokens with tags: numbers, dates in digits, times of day, and words that a lexicon knows."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from agent_memory.times.reading.grammar import Item

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from agent_memory.times.reading.lexicon import Lexicon

_TOKEN: Final = re.compile(
    r"(?=\S)(?:(?P<word>(?<!\w)[qh][1-4](?!\w)|[^\W\d_]{1,40}(?:['\u2019][^\W\d_]{1,3}(?!\w))?)"
    r"|(?P<mark>[^\w\s])"
    r"|(?P<iso>(?<!\d)(?<!\d[.:/-])(?:1[5-9]|20)\d\d(?P<sep>[-/.])(?:0?[1-9]|1[0-2])(?P=sep)(?:3[01]|[12]\d|0?[1-9])(?![\d]|[./]\d)"
    r"(?:T\d\d:?\d\d(?::?\d\d(?:[.,]\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?)?)"
    r"|(?P<dmy>(?<![\w./=])(?P<a>\d{1,2})(?P<sep2>[-/.])(?P<b>\d{1,2})(?P=sep2)(?P<y>\d{4}|\d\d)(?![\w]|[./]\w))"
    r"|(?P<compact>(?<![\w./-])(?:19|20)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])(?![\w/-]|\.\w))"
    r"|(?P<ym>(?<![\w./-])(?P<ym_y>(?:19|20)\d\d)[-/](?P<ym_m>0?[1-9]|1[0-2])(?![\w./-])"
    r"|(?<![\w./-])(?P<my_m>0?[1-9]|1[0-2])[-/](?P<my_y>(?:19|20)\d\d)(?![\w/-]|\.\w))"
    r"|(?P<clock>(?<![\w.:/])(?P<h>[01]?\d|2[0-4])(?:(?::(?P<mi>[0-5]\d)(?::[0-5]\d(?:[.,]\d{1,6})?)?)\s?(?P<ap>[ap]\.?m\.?|[ap](?![\w']))?"
    r"|(?:[.](?P<mi2>[0-5]\d))?(?:\s?\.?(?P<ap2>[ap]m|[ap]\.m\.)|(?P<ap3>[ap]))|(?P<uhr>h[0-5]\d))(?![\w:]|\.\d))"
    r"|(?P<md>(?<![\w./$:])(?P<md_a>\d{1,2})(?P<md_sep>[-/.])(?P<md_b>\d{1,2})(?![\w%:]|[./]\w))"
    r"|(?P<decade>(?<![\w./])(?:(?P<dec_c>1[5-9]|20)?(?P<dec>\d)0)(?:\s?'?s)(?!\w))"
    r"|(?P<part>(?<![\w./])(?P<part_y>(?:19|20)\d\d)[ /-]?(?P<part_of>[qh][1-4]|W(?P<week>[0-5]\d)(?:-[1-7])?)(?!\w))"
    r"|(?P<ordinal>(?<![\w./-])\d{1,2}(?:st|nd|rd|th|er|re|e|\u00ba|\u00aa)(?!\w))"
    r"|(?P<number>\d{1,12}(?:[.,:]\d{1,12}){0,8})"
    r"|(?P<other>\w{1,40}))|(?P<break>\n[ \t]*\n)",
    re.IGNORECASE,
)
_GLUE_BEFORE: Final = "_$@#\\=&{%<[`"
_GLUE_BEHIND: Final = frozenset("_@(=\\[`{")
_MONEY: Final = "$\u20ac\u00a3\u00a5#"
_MARKS: Final = {
    ",": {"COMMA": 0}, "-": {"DASH": 0, "SEP": 0}, "\u2013": {"DASH": 0}, "\u2014": {"DASH": 0}, "~": {"DASH": 0},
    "\uff5e": {"DASH": 0}, "\u301c": {"DASH": 0}, "/": {"SEP": 0}, ".": {"DOT": 0}, "(": {"OPEN": 0}, ")": {"CLOSE": 0},
    "'": {"APOSTROPHE": 0}, "\u2019": {"APOSTROPHE": 0}, "\uff0c": {"COMMA": 0}, "\u3001": {"COMMA": 0},
}  # fmt: skip
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


def tokens(text: str, lexicon: Lexicon) -> list[Item]:
    """Return the tokens of a text, in order: white space is none, and a run of those without tags is one."""
    found: list[Item] = []
    tags_of, is_unspaced = lexicon.tags, lexicon.is_unspaced
    before: Mapping[str, Any] = _NONE
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup
        if kind == "word":
            word = match[0]
            if is_unspaced and not word.isascii():
                for item in lexicon.parted(word, match.start()):
                    if item.tags or (found and found[-1].tags):
                        found.append(item)
                before = _NONE
                continue
            tags = tags_of(word)
            if tags:
                tags = _NONE if _is_code(text, *match.span()) else tags
            elif before:
                tags = _behind(word, before)
        elif kind == "mark":
            tags = _MARKS.get(match[0], _NONE)
        else:
            tags = _TAGS[kind](text, match)
        if tags or before or not match.start():
            found.append(Item(*match.span(), tags))
        before = tags
    return lexicon.merged(found, text)


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


def _is_code(text: str, start: int, end: int) -> bool:
    """Tell whether a word is part of a name in code, or of an address."""
    is_member = start > 1 and text[start - 1] == "." and text[start - 2].isalpha()
    has_member = text[end : end + 1] == "." and text[end + 1 : end + 2].isalpha()
    is_glued = start > 0 and (text[start - 1] in _GLUE_BEFORE or text[start - 1].isdigit())
    return is_member or has_member or is_glued or text[end : end + 1] in _GLUE_BEHIND


def _behind(word: str, before: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the tags of a word that no lexicon has: a name behind what may be a first name, a noun behind a number."""
    if "YEAR" in before and word.endswith("s"):
        return NOUN
    if ("MONTH" in before or "SEASON" in before) and word[0].isupper() and word[-1].islower():
        return NAME
    return _NONE


_NONE: Final[Mapping[str, Any]] = {}
NOUN: Final[Mapping[str, Any]] = {"NOT_BEHIND_YEAR": 0}
NAME: Final[Mapping[str, Any]] = {"NAME": 0}


def _number(text: str, match: re.Match[str]) -> Mapping[str, Any]:
    start, end = match.span()
    digits = match[0]
    if not digits.isdecimal() or not digits.isascii():
        return _NONE
    before = text[start - 1] if start else " "
    behind = text[end : end + 1]
    if before in _MONEY or before in "_\\=" or behind in ("%", "_") or (behind.isalpha() and behind.isascii()):
        return _NONE
    if before.isalpha() and before.isascii():
        return {"GLUED": int(digits)} if len(digits) <= _TWO and 1 <= int(digits) <= _DAYS else {}
    if before in ".:" and start > 1 and text[start - 2].isdigit():
        return _NONE
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
        return _NONE
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
        return _NONE
    return {"CLOCK": (hour % 12 + 12 * (half == "p") if half else hour, minute)}


def _month_day(text: str, match: re.Match[str]) -> Mapping[str, Any]:
    del text
    one, other = int(match["md_a"]), int(match["md_b"])
    if not (1 <= one <= _DAYS and 1 <= other <= _DAYS):
        return _NONE
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


_TAGS: Final[Mapping[str | None, Callable[[str, re.Match[str]], Mapping[str, Any]]]] = {
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
TAG_SETS: Final = (
    *(frozenset(number_tags(f"{value}")) for value in (*range(100), 1000, 2000, 3000)),
    *(frozenset(number_tags(f"{value:02}")) for value in range(10)),
    *(frozenset(tags) for tags in _MARKS.values()),
    *(
        frozenset({tag})
        for tag in ("DATE", "DATE_MIXED", "DATE_DOTTED", "YEAR_MONTH", "CLOCK", "GLUED", "DECADE", "YEAR_PART")
    ),
    *(frozenset({"PAIR", tag}) for tag in ("SPREAD", "SLASHED", "DOTTED")),
    frozenset({"DAY", "ORDINAL", "ORDINAL_DIGITS"}),
    frozenset({"YEAR", "NUM"}),
    frozenset(NOUN),
    frozenset(NAME),
)
"""The sets of tags of tokens that are no words."""
