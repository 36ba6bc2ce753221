"""Discriminators of similar names: numbers, codes, negation, opposites. Pure functions."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from agent_memory.knowledge.entities.matching.normal import fold, has_digit
from agent_memory.knowledge.entities.matching.words import NEGATIONS, OPPOSED, SPELLINGS

if TYPE_CHECKING:
    from collections.abc import Iterable

_CHUNK: Final = re.compile(r"[^\W_]+(?:[-/.][^\W_]+)*")
_SEPARATOR: Final = re.compile(r"[-/.]")
_MEASURE: Final = re.compile(
    r"\d+(?:\.\d+)?(?:st|nd|rd|th|s|x|in|inch|mm|cm|m|km|ft|gb|mb|kb|tb|gib|mib|g|mg|kg|lb|lbs|oz|ml|l|w|kw|watt|watts|"
    r"v|mv|ma|mah|hz|khz|mhz|ghz|dpi|fps|p|i|k|mp|mbps|kbps|gbps|pc|pk|pack|packs|user|users|u|ch|d|day|days|hr|hrs|h|"
    r"min|sec|ms|port|ports|btu|cu|bit|bits|disc|discs|megapixel|ohm|ohms|year|years|yr|way|line|speed|cup|piece|"
    r"outlet|channel|page|pages|sheet|sheets|month|months|core|cores)"
)
_DATE_OR_VERSION: Final = re.compile(
    r"v?\d+(?:\.\d+)+|(?:19|20)\d\d[-/]\d\d?(?:[-/]\d\d?)?|\d\d?[-/]\d\d?[-/](?:\d\d){1,2}"
)
_YEAR: Final = re.compile(r"(?:19|20)\d\d")
_WORD_AND_NUMBER: Final = re.compile(r"[^\W\d_]{5,}\d+")
_DIGITS: Final = re.compile(r"\d")
_LONGEST_LETTERS: Final = 4
"""Of a part of a code that is written with hyphens; what is longer is a word beside a number."""
_SHORTEST_CODE, _SHORTEST_NUMBER, _FEWEST_DIGITS = 4, 5, 2


def opposite(one: str, other: str) -> bool:
    """Return True if two words exclude each other, as left and right."""
    shared = OPPOSED.get(one, frozenset()) & OPPOSED.get(other, frozenset())
    return bool(shared) and SPELLINGS[one] != SPELLINGS[other]


def opposed(ours: Iterable[str], theirs: Iterable[str]) -> set[str]:
    """Return our words that have an opposite among theirs."""
    others = [word for word in theirs if word in OPPOSED]
    return {word for word in ours if word in OPPOSED and any(opposite(word, each) for each in others)}


def marks_of(words: Iterable[str]) -> frozenset[str]:
    """Return words with a digit, of one letter, and negations."""
    return frozenset(word for word in words if has_digit(word) or len(word) == 1 or word in NEGATIONS)


def is_measure(word: str) -> bool:
    """Return True for a number with its unit, as `16gb` or `1080p`."""
    return _MEASURE.fullmatch(word) is not None


def codes_of(text: str) -> frozenset[str]:
    """Return possible model numbers, article numbers and IDs, without hyphens.

    Examples are `th42px80u` and `260236`. Measures, versions, dates and years are none.
    """
    return frozenset(code for chunk in _CHUNK.findall(fold(text)) if has_digit(chunk) for code in _codes(chunk))


def models_of(text: str) -> frozenset[str]:
    """Return codes of mixed letters and digits, as `th42px80u`.

    None are digits alone, which shops number things by and exams (`70-292`), nor a word with a number grown on
    (`vault360`), nor letters that a hyphen parts from digits (`wd-1000-0900`), nor a version (`v6-cd`).
    """
    chunks = (chunk for chunk in _CHUNK.findall(fold(text)) if any(map(_is_mixed, _SEPARATOR.split(chunk))))
    return frozenset(code for chunk in chunks for code in _codes(chunk) if not code.isdigit())


def _is_mixed(part: str) -> bool:
    return _is_code(part) and not part.isdigit() and _WORD_AND_NUMBER.fullmatch(part) is None


def _codes(chunk: str) -> Iterable[str]:
    parts = _SEPARATOR.split(chunk)
    whole = "".join(parts)
    if len(parts) == 1:
        parts = []
    elif _DATE_OR_VERSION.fullmatch(chunk):
        return
    if _is_code(whole) and all(_may_be_of_a_code(part) for part in parts):
        yield whole
    yield from filter(_is_code, parts)


def _may_be_of_a_code(part: str) -> bool:
    return not is_measure(part) if has_digit(part) else len(part) <= _LONGEST_LETTERS


def _is_code(text: str) -> bool:
    if not has_digit(text) or is_measure(text) or _YEAR.fullmatch(text):
        return False
    return len(text) >= (_SHORTEST_NUMBER if text.isdigit() else _SHORTEST_CODE)


def is_rich(code: str) -> bool:
    """Return True if a code has two digits, unlike `log4j`."""
    return len(_DIGITS.findall(code)) >= _FEWEST_DIGITS


def variant(one: str, other: str) -> bool:
    """Return True if one code begins or ends with the other."""
    short, long = sorted((one, other), key=len)
    return len(short) >= _SHORTEST_CODE and short != long and (long.startswith(short) or long.endswith(short))
