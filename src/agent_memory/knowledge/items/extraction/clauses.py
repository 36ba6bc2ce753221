"""`clauses_of`: where the clauses of a text begin and end: parts of a sentence that can stand without each other."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from agent_memory.knowledge.items.extraction.sentences import spans_of

if TYPE_CHECKING:
    from collections.abc import Iterator

_LEAST_WORDS: Final = 3
_MOST_WHOLE: Final = 120
"""Characters of a sentence that is not cut: what its parts would spare is less than they lose to readers."""
_WORD: Final = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)*")
_CUT: Final = re.compile(
    r"""(?:,\s|\s)\s{0,40}(?=(?:and|but|so|plus|yet)\s(?:i|we|he|she|they|it)(?:['\u2019][a-z]+)?\s)
    |,\s+(?=(?:and|but|so|plus|yet)\s(?:my|our|the|this|these|those|there|you)(?:['\u2019][a-z]+)?\s)
    |(?:,|\s[-\u2013\u2014]{1,2}|\u2014|;|\.\.\.|\u2026)\s+(?=(?:i|we|he|she|they|it)(?:['\u2019][a-z]+)?\s)
    |(?:,\s|\s)\s{0,40}(?=(?:because|which)\s)
    |\s[-\u2013\u2014]{1,2}\s+""",
    re.IGNORECASE | re.VERBOSE,
)
_NOT_ALONE: Final = re.compile(
    r"(?:(?:and|but|so)\s)?(?:when|whenever|if|unless|while|as|since|after|before|because|although|though|once|until|even"
    r"|every|not only|the more|in|on|at|last|this|next|one|during|by|with|for)\b",
    re.IGNORECASE,
)
_NOT_ONLY: Final = re.compile(r"\bnot (?:just|only|even)\b", re.IGNORECASE)
_STANDS: Final = re.compile(r"(?:(?:and|but|so|plus|yet)\s)?(?:i|we|my|our|the|there|you)\b", re.IGNORECASE)
_TURNS: Final = re.compile(
    r"(?:but|yet)\b.*(?:n['\u2019]t\b|\b(?:not?|never|none|nothing|nobody|hardly)\b)", re.IGNORECASE
)


class Clause(NamedTuple):
    """A part of a sentence, with its place.

    Attributes:
        start, end: Its place in the text.
        sentence: Number of its sentence.
        is_part: Whether its sentence has others.
        is_tail: Whether it says nothing without the clause before it.
    """

    start: int
    end: int
    sentence: int
    is_part: bool = False
    is_tail: bool = False


def clauses_of(text: str) -> Iterator[Clause]:
    """Yield the clauses of a text in order. What denies the clause before it ("but it did not") stays with it."""
    for number, (start, end) in enumerate(spans_of(text)):
        cuts = list(_cuts(text, start, end))
        if not cuts:
            yield Clause(start, end, number)
            continue
        at, is_tail = start, False
        for stop, following, is_next_tail in [*cuts, (end, end, False)]:
            yield Clause(at, stop, number, is_part=True, is_tail=is_tail)
            at, is_tail = following, is_next_tail


def _cuts(text: str, start: int, end: int) -> Iterator[tuple[int, int, bool]]:
    """Yield where clauses of a sentence end and the next begin, and whether that one depends on what is before."""
    if (
        end - start <= _MOST_WHOLE
        or text[start] == "["
        or _NOT_ALONE.match(text, start, end)
        or _NOT_ONLY.search(text, start, end)
    ):
        return
    at = start
    for cut in _CUT.finditer(text, start, end):
        if _words(text, at, cut.start()) < _LEAST_WORDS or _words(text, cut.end(), end) < _LEAST_WORDS:
            continue
        if _TURNS.match(text, cut.end(), end):
            continue
        yield cut.start(), cut.end(), _STANDS.match(text, cut.end(), end) is None
        at = cut.end()


def _words(text: str, start: int, end: int) -> int:
    return sum(1 for _ in _WORD.finditer(text, start, end))
