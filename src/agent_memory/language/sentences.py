"""Sentences of a text, and their words of time. Takes time in proportion to the text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_CHARS: Final = 1_000
"""Longer runs are no sentences; they are cut, at a space where there is one."""

_BOUNDARY: Final = re.compile(
    r"(?<=[.!?\u2026])[\"')\]*_\u201d\u2019\u00bb]{0,3}\s+(?=\S)|(?<=[\u3002\uff01\uff1f])(?=[^\s\u300d\u300f])|\n\s*"
)
_ABBREVIATION: Final = re.compile(
    r"(?:\b(?:e\.g|i\.e|vs|cf|approx|dr|mr|mrs|ms|prof|st|nr|z\.\s?b|d\.\s?h|bzw|ca|ggf)|(?<!\w)[A-HJ-Za-z]|(?<![\w.])\d{1,2})\.$",
    re.IGNORECASE,
)
_TAIL: Final = 12
_TIME: Final = re.compile(
    r"\b(?:yesterday|today|tonight|tomorrow|last|next|ago|weeks?|weekends?|months?|years?|since|recently|morning"
    r"|(?:mon|tues|wednes|thurs|fri|satur|sun)days?|january|february|march|april|june|july|august|september|october"
    r"|november|december|gestern|heute|morgen|letzte[nrs]?)\b",
    re.IGNORECASE,
)


def spans_of(text: str, begin: int = 0, end: int | None = None) -> Iterator[tuple[int, int]]:
    """Yield start and end of each sentence between `begin` and `end`, without spaces around it."""
    stop = len(text) if end is None else end
    at = begin
    for boundary in _BOUNDARY.finditer(text, begin, stop):
        breaks = "\n" in boundary[0]
        if breaks or not _ABBREVIATION.search(text[max(at, boundary.start() - _TAIL) : boundary.start()]):
            yield from _bare(text, at, boundary.end())
            at = boundary.end()
    yield from _bare(text, at, stop)


def _bare(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    while end - start > MAX_CHARS:
        space = text.rfind(" ", start + MAX_CHARS // 2, start + MAX_CHARS)
        cut = space + 1 if space > 0 else start + MAX_CHARS
        yield from _stripped(text, start, cut)
        start = cut
    yield from _stripped(text, start, end)


def _stripped(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    piece = text[start:end]
    first, last = start + len(piece) - len(piece.lstrip()), end - len(piece) + len(piece.rstrip())
    if first < last:
        yield first, last


def is_of_a_time(text: str) -> bool:
    """Return True if a text names a time: a day, a month or a relative date."""
    return _TIME.search(text) is not None
