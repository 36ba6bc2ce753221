"""Capitalized words inside sentences, which may be names. Pure.

A word at the beginning of a sentence, a heading or a cell has its capital from there, so it is not evidence of a name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from agent_memory.knowledge.entities.spans import SpanSet
from agent_memory.language.languages import guess_languages

if TYPE_CHECKING:
    from collections.abc import Iterator

_PRONOUN: Final = r"I(?:['\u2019]\w+|ve|ll|m|d)?(?![\w'\u2019])"
_CAPITALIZED: Final = rf"(?!{_PRONOUN})(?=[^\W\d_])(?![a-zß-öø-ÿ])[^\W_](?:[\w-]|['\u2019&](?=\w)|\.(?=[a-z0-9]))*"
_RUN: Final = re.compile(
    rf"(?<![\w@/#.$<=\-]){_CAPITALIZED}(?:[ ](?:(?:of the|of|and the|de la|de|del|van|von)[ ])?{_CAPITALIZED})*"
)
_QUOTED: Final = re.compile(r"[\"\u201c](?P<title>[^\"\u201c\u201d\n]{2,80}?)[.,!?]?[\"\u201d]")
_HEADING: Final = re.compile(r"(?m)^[ \t]*[#|].*$")
_CODE: Final = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)
_INSIDE: Final = re.compile(r"(?:[\w,;)%'\u2019][ ]|[\w][ ][\"\u201c'\u2018(])$")
_ADDRESSED: Final = re.compile(r"(?:^|[.!?\u2026\n:-])\W{0,4}[\w'\u2019]{1,20}(?: [A-Z][\w'\u2019]{0,20})?,[ ]$")
_GOES_ON: Final = re.compile(r"['\u2019]| [a-z]")
"""One word and a comma, then a word that goes on: the sentence proper begins there, as in "Yeah, Here it is"."""
_LOOK_BACK: Final = 48
_POSSESSIVE: Final = re.compile(r"['\u2019][sS]$")
_MODIFIER: Final = re.compile(r" [a-z]{4}")
_DATE: Final = re.compile(
    r"(?:mon|tues?|wed(?:nes)?|thu(?:rs?)?|fri|sat(?:ur)?|sun)(?:days?)?|jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|"
    r"apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?",
    re.IGNORECASE,
)
_ACRONYM: Final = re.compile(r"[\W\dA-Z]+s?")
_PROGRAM_TEXT: Final = re.compile(r"[(_=]|::|\.\w")
_MOST_WORDS: Final = 8


@dataclass(frozen=True, slots=True)
class CapitalizedRun:
    """A run of capitalized words inside a sentence.

    Attributes:
        name: Words of the run, without a possessive ending.
        start: First character in the text.
        end: End, exclusive.
        is_evidence: True if the place of the run shows that it is a name.
    """

    name: str
    start: int
    end: int
    is_evidence: bool


def hide_code(text: str) -> str:
    """Return a text of the same length with spaces instead of code."""
    return _CODE.sub(lambda match: " " * len(match[0]), text) if "`" in text else text


def find_runs(prose: str) -> Iterator[CapitalizedRun]:
    """Yield capitalized runs inside sentences, and quoted titles.

    A language that capitalizes all nouns has none.
    """
    if "de" in guess_languages(prose):
        return
    prose = _HEADING.sub(lambda match: " " * len(match[0]), prose)
    titles = SpanSet()
    for match in _QUOTED.finditer(prose):
        words = match["title"].split()
        if 1 < len(words) <= _MOST_WORDS and words[0][0].isupper() and words[-1][0].isupper():
            titles.add(*match.span("title"))
            yield CapitalizedRun(match["title"], *match.span("title"), is_evidence=True)
    for match in _RUN.finditer(prose):
        name, (start, end) = _POSSESSIVE.sub("", match[0]), match.span()
        end = start + len(name)
        if _is_inside(prose, start, end) and not _is_refused(prose, name, end) and titles.add(start, end):
            yield CapitalizedRun(name, start, end, is_evidence=not is_modifier(prose, name, end))


def _is_inside(prose: str, start: int, end: int) -> bool:
    """Return True if words of the same sentence precede a word."""
    before = prose[max(0, start - _LOOK_BACK) : start]
    begins = _ADDRESSED.search(before) is not None and _GOES_ON.match(prose, end) is not None
    return _INSIDE.search(before) is not None and not begins


def is_modifier(prose: str, name: str, end: int) -> bool:
    """Return True if a word may describe the next, as in "Italian food"."""
    return " " not in name and _MODIFIER.match(prose, end) is not None


def _is_refused(prose: str, name: str, end: int) -> bool:
    """Return True for days, months, acronyms and parts of programs."""
    words = name.split()
    is_acronym = _ACRONYM.fullmatch(name) is not None
    is_date = all(map(_DATE.fullmatch, words))
    return is_acronym or is_date or "_" in name or _PROGRAM_TEXT.match(prose, end) is not None
