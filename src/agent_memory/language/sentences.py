"""Sentences and clauses of a text, and words of time. Takes time in proportion to the text. Pure."""

from __future__ import annotations

import re
from itertools import chain
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

CLAUSE_END: Final = re.compile(r"[,;:()\u2014\u3001\uff0c\uff1b\uff1a]|\s[-\u2013]\s")
"""Mark between two clauses of a sentence."""
MAX_CHARS: Final = 1_000
"""Characters of a sentence; a longer run is cut, at a space if it has one."""

_END: Final = (
    r"(?<=[.!?\N{HORIZONTAL ELLIPSIS}\N{ARABIC QUESTION MARK}])"
    r"(?:[*_\]]{0,3}\s+(?=\S)|[\"')\]*_\u201d\u2019\u00bb]{1,3}\s+(?=[^\sa-z]))"
    r"|(?<=[\u3002\uff01\uff1f])(?=[^\s\u300d\u300f])"
)
"""Sentence end; a small letter after a closing quote or parenthesis continues the sentence."""
_BOUNDARY: Final = re.compile(rf"{_END}|\n\s*")
_WRAPPED_BOUNDARY: Final = re.compile(rf"{_END}|\n\s*\n")
_ABBREVIATION: Final = re.compile(
    r"(?:(?<![\w.])(?<!\d )(?:e\.g|i\.e|vs|cf|approx|aprox|resp|incl|dr|mr|mrs|ms|prof|st|sra?|z\.\s?b|d\.\s?h|u\.\s?a"
    r"|bzw|ca|evtl|ggf|p\.\s?ex|ej)|(?<!\w)(?-i:[A-HJ-Za-z])|(?<![\w.-])\d{1,2})\. .$"
    r"|\b(?:no|nr|fig)\. \d$|\b(?:etc|usw)\. (?-i:[a-z\u00df-\u00ff])$",
    re.IGNORECASE,
)
"""Abbreviation before a space and the next character: "no. 5" has one, "I said no. Then" has not."""
_TAIL: Final = 12
_TIME: Final = re.compile(
    r"\b(?:yesterday|today|tonight|tomorrow|last|next|ago|weeks?|weekends?|months?|years?|since|recently|morning"
    r"|(?:mon|tues|wednes|thurs|fri|satur|sun)days?|january|february|march|april|june|july|august|september|october"
    r"|november|december|gestern|heute|morgen|letzte[nrs]?)\b",
    re.IGNORECASE,
)


def find_breaks(text: str, start: int = 0, end: int | None = None, *, is_wrapped: bool = False) -> Iterator[int]:
    """Yield where each sentence but the first begins.

    Args:
        text: Text with the sentences.
        start: First character that is read.
        end: End of what is read, exclusive; by default that of the text.
        is_wrapped: True if lines are wrapped by width: then a blank line ends a sentence, and a line break does not.
    """
    stop = len(text) if end is None else end
    for boundary in (_WRAPPED_BOUNDARY if is_wrapped else _BOUNDARY).finditer(text, start, stop):
        before = text[max(start, boundary.start() - _TAIL) : boundary.start()]
        after = text[boundary.end() : boundary.end() + 1]
        if boundary[0].count("\n") > is_wrapped or not _ABBREVIATION.search(f"{before} {after}"):
            start = boundary.end()
            yield start


def find_sentences(text: str, start: int = 0, end: int | None = None) -> Iterator[tuple[int, int]]:
    """Yield start and end of each sentence, without spaces around it."""
    for cut in chain(find_breaks(text, start, end), (len(text) if end is None else end,)):
        while cut - start > MAX_CHARS:
            space = text.rfind(" ", start + MAX_CHARS // 2, start + MAX_CHARS)
            part_end = space + 1 if space > 0 else start + MAX_CHARS
            yield from trim_span(text, start, part_end)
            start = part_end
        yield from trim_span(text, start, cut)
        start = cut


def trim_span(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield a span without the spaces around it, or nothing if it is blank."""
    part = text[start:end]
    if part.strip():
        first = start + len(part) - len(part.lstrip())
        yield first, first + len(part.strip())


def names_time(text: str) -> bool:
    """Return True if a text names a day, a month or a relative date."""
    return _TIME.search(text) is not None
