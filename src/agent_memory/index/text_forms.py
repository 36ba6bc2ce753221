"""The text forms of a document: the terms it is indexed under, and the texts that are embedded. Pure functions."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from agent_memory.index.day_terms import day_terms
from agent_memory.language.speakers import plainly
from agent_memory.language.words import index_terms
from agent_memory.models import GROUP

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from agent_memory.models import Document

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


def document_terms(document: Document) -> list[str]:
    """Return the terms a document is indexed under: its text, the values of its facets but the group, and the day."""
    labels = " ".join([value for name, value in document.facets if name != GROUP])
    return [*index_terms(f"{document.text}\n{labels}"), *day_terms(document.moment.date())]


def embedded_texts(text: str) -> list[str]:
    """Return the pieces whose vectors stand for a text.

    Without the date: in front of the text it costs the dense ranking .066 frac@10 on the tuning conversations
    (.514 to .448), since it makes all turns of one day alike; keyword search carries it. A turn of a talk stands for
    itself as `Name: words`, in whatever form it is written: marks around a name count as much as words to a model. The
    title of a long text comes last.
    """
    plain = plainly(text)
    pieces, title = pieces_of(plain), title_of(plain)
    return [*pieces, title] if len(pieces) > 1 and title and title not in pieces else pieces


def title_of(text: str) -> str:
    """Return the first line of a text if it is a title: much shorter than the mean of the others; else nothing.

    It says in a few words what the rest is about, and a vector of its own is found by questions in other words: in a
    world of notes with titles (docs/truth.md) any@5 of these is .34 without it and .37 with it, .19 and .21 where no
    word is shared.
    """
    first, *others = [line for line in text.splitlines() if line.strip()] or [""]
    most = min(_MOST_OF_TITLE, _TITLE_SHARE * sum(map(len, others)) / len(others)) if others else 0
    return first.strip() if len(first) <= most else ""


def pieces_of(text: str) -> list[str]:
    """Return a text, cut at line or sentence ends when it is long."""
    if len(text) <= _PIECE_CHARS:
        return [text]
    pieces = [""]
    for part in _parts(text):
        if pieces[-1] and len(pieces[-1]) + len(part) > _PIECE_CHARS:
            pieces.append("")
        pieces[-1] += part
    return [piece.strip() for piece in pieces if piece.strip()][:_MAX_PIECES]


def _parts(text: str) -> Iterator[str]:
    """Yield lines; of a line that is too long alone its sentences; of such a sentence its stretches."""
    for line in text.splitlines(keepends=True):
        sentences = [line] if len(line) <= _PIECE_CHARS else _SENTENCE_END.split(line)
        for sentence in sentences:
            for start in range(0, len(sentence), _PIECE_CHARS):
                yield sentence[start : start + _PIECE_CHARS]


def tells_time(terms: Iterable[str]) -> bool:
    """Tell whether a text's terms hold a word of time, such as a question that begins with "when" looks for."""
    return not _time_terms().isdisjoint(terms)


@lru_cache(maxsize=1)
def _time_terms() -> frozenset[str]:
    return frozenset(index_terms(_TIME_WORDS)) | {str(year) for year in range(1900, 2100)}
