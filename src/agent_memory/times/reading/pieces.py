"""A text in pieces, runs of letters and what stands between them, and what each kind of piece has to do with time.

Of most pieces the letters alone tell that they have nothing to do with it; a table tells so without looking at
each token.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from agent_memory.times.reading.digits import number_tags
from agent_memory.times.reading.marks import MARKS, NONE, Tags

if TYPE_CHECKING:
    from collections.abc import Callable


class Between(tuple[tuple[int, int, Tags], ...]):
    """The tokens of a piece between words: where each begins and ends in it, and its tags."""

    __slots__ = ()


class Number(Between):
    """The same of a piece with a number, if no `OF_DIGITS` is behind it."""

    __slots__ = ()


Kind = Tags | Between
"""Of a piece: the tags of a word, what stands between words, or `CAREFULLY`. What is empty has nothing to do with
time."""

PARTS: Final = re.compile(r"([^\W\d_]+(?:['\u2019][^\W\d_]{1,3}(?!\w))?)")
"""Splits a text so that each second piece is a word, with an ending such as "'s"."""
LONGEST: Final = 40
"""Letters of one token."""
CAREFULLY: Final = Between(((0, 0, NONE),))
"""The kind of a piece that has to be read token by token, since more than its letters tell what it is."""
OF_DIGITS: Final = re.compile(r"(?:[apsqhw]|[ap]m)(?![^\W\d_])", re.IGNORECASE)
"""A word that may belong to digits before it: "7 pm", "90 s", "2016 H2"."""

_TOKENS: Final = re.compile(r"(?P<mark>[^\w\s])|(?P<break>\n[ \t]*\n)|\d+")
_ALONE: Final = re.compile(r"[^\w\s]{0,3}\s[0-9]{1,4}[.,;:!?)]?[ \n]")
"""A number that is a token by itself, but for `OF_DIGITS`."""
_DIGITS: Final = re.compile(r"[\d_]")
_BEGIN_PARTS: Final = frozenset("qh")
"""Of a year: what "Q3" and "h1" begin with."""
_ASKING: Final = frozenset(("MONTH", "SEASON", "YEAR"))
_KEPT: Final = 8_192
"""Pieces whose kinds are kept."""
_LONGEST_KEPT: Final = 24
"""Characters of such a piece."""


class Pieces(dict[str, Kind]):
    """The kinds of pieces, each told when it is asked for the first time.

    Args:
        tags: Of a word.
    """

    def __init__(self, tags: Callable[[str], Tags]) -> None:
        super().__init__()
        self._tags = tags

    def __missing__(self, piece: str) -> Kind:
        """Return the kind of a piece that was not asked for lately."""
        kind = self._of_word(piece) if piece[:1].isalpha() or PARTS.match(piece) else _of_rest(piece)
        if len(piece) <= _LONGEST_KEPT:
            if len(self) >= _KEPT:
                self.clear()
            self[piece] = kind
        return kind

    def _of_word(self, word: str) -> Kind:
        return CAREFULLY if len(word) > LONGEST or word.lower() in _BEGIN_PARTS else self._tags(word)


def _of_rest(piece: str) -> Kind:
    """Return the kind of what stands between two words."""
    is_number = _ALONE.fullmatch(piece) is not None
    if _DIGITS.search(piece) and not is_number:
        return CAREFULLY
    found = [(each.start(), each.end(), _tags(each)) for each in _TOKENS.finditer(piece)]
    if is_number:
        return CAREFULLY if any(asks_behind(tags) for *_, tags in found) else Number(found)
    has_break = any(piece[start:end].isspace() for start, end, _ in found)
    return Between(found if has_break or any(tags for *_, tags in found) else ())


def _tags(token: re.Match[str]) -> Tags:
    return MARKS.get(token[0], NONE) if token["mark"] else NONE if token["break"] else number_tags(token[0])


def asks_behind(tags: Tags) -> bool:
    """Tell whether it matters which word is behind one with these tags: "April Jones", "2020 models"."""
    return not _ASKING.isdisjoint(tags)
