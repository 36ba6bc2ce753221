"""Parts of a text that are embedded, and its title. Pure."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from agent_memory.language.speakers import plainly
from agent_memory.language.words import index_terms

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_TIME_WORDS: Final = """
    yesterday today tonight tomorrow last next ago week weekend month year recently since morning night Monday Tuesday
    Wednesday Thursday Friday Saturday Sunday January February March April May June July August September October
    November December
"""

_PIECE_CHARS: Final = 300
"""A vector of more blurs: on whole sessions (3,000 characters) all@5 is .830 with pieces of 900 characters, which is
what a local model reads at most, and .845 with 300 or 500."""

_MOST_OF_TITLE: Final = 240
_TITLE_SHARE: Final = 0.6
_MAX_PIECES: Final = 34  # the 10,000 characters a record may have
_SENTENCE_END: Final = re.compile(r"(?<=[.!?]\s)")


def embedded_texts(text: str) -> list[str]:
    """Return the texts whose vectors a text has.

    The day is not in them: before the text it costs the dense ranking .066 frac@10 on the tuning conversations (.514
    to .448), because all turns of one day become alike; words find it. A turn of a conversation becomes `Name: words`:
    marks around a name count as much as words to a model. The title of a long text comes last.
    """
    plain = plainly(text)
    pieces, title = cut_pieces(plain), find_title(plain)
    return [*pieces, title] if len(pieces) > 1 and title and title not in pieces else pieces


def find_title(text: str) -> str:
    """Return the first line if it is a title, or an empty string.

    A title is much shorter than the mean of the other lines. Its own vector is found by questions in other words: among
    notes with titles (docs/truth.md) any@5 of these is .34 without it and .37 with it, .19 and .21 without a common
    word.
    """
    first, *others = [line for line in text.splitlines() if line.strip()] or [""]
    most = min(_MOST_OF_TITLE, _TITLE_SHARE * sum(map(len, others)) / len(others)) if others else 0
    return first.strip() if len(first) <= most else ""


def cut_pieces(text: str) -> list[str]:
    """Return a text cut at the ends of lines and sentences.

    Segments and the vector cache are keyed by these pieces: another cut embeds every long text again, and moves ranks.
    So this one does not follow `sentences`.
    """
    if len(text) <= _PIECE_CHARS:
        return [text]
    pieces = [""]
    for part in _iter_parts(text):
        if pieces[-1] and len(pieces[-1]) + len(part) > _PIECE_CHARS:
            pieces.append("")
        pieces[-1] += part
    return [piece.strip() for piece in pieces if piece.strip()][:_MAX_PIECES]


def _iter_parts(text: str) -> Iterator[str]:
    """Yield lines, of a long line its sentences, of a long sentence its parts."""
    for line in text.splitlines(keepends=True):
        sentences = [line] if len(line) <= _PIECE_CHARS else _SENTENCE_END.split(line)
        for sentence in sentences:
            for start in range(0, len(sentence), _PIECE_CHARS):
                yield sentence[start : start + _PIECE_CHARS]


def tells_time(terms: Iterable[str]) -> bool:
    """Return True if one of the terms of a text names a time."""
    return not _time_terms().isdisjoint(terms)


@lru_cache(maxsize=1)
def _time_terms() -> frozenset[str]:
    return frozenset(index_terms(_TIME_WORDS)) | {str(year) for year in range(1900, 2100)}
