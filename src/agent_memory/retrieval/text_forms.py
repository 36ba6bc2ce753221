"""The text forms of a memory: what is indexed by word, and what is embedded. Pure functions of one memory."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from agent_memory.retrieval.dates import day_terms
from agent_memory.retrieval.tokens import index_terms

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime

    from agent_memory.models import Memory

_LABELS: Final = frozenset(
    """
    note todo fixme warning tip hint fact rule important summary decision preference discovery pattern task bugfix
    question insight answer example reason update error fix problem solution context result http https file
    """.split(),  # noqa: SIM905  words read best as words
)
"""Words before a colon that name a kind of note, not a person."""

_SPEAKER: Final = re.compile(r"\s*([^\W\d_][\w.'\u2019-]*(?: \w[\w.'\u2019-]*){0,2}):\s")

_TIME_WORDS: Final = """
    yesterday today tonight tomorrow last next ago week weekend month year recently since morning night Monday Tuesday
    Wednesday Thursday Friday Saturday Sunday January February March April May June July August September October
    November December
"""

_PIECE_CHARS: Final = 300
"""A vector of more blurs: on whole sessions (3,000 characters) all@5 is .830 with pieces of 900 characters, which is
what a local model reads at most, and .845 with 300 or 500."""

_MAX_PIECES: Final = 34  # the 10,000 characters a memory may have
_LEAST_LINES: Final = 4
_SENTENCE_END: Final = re.compile(r"(?<=[.!?]\s)")


def moment_of(memory: Memory) -> datetime:
    """Return when the remembered thing was so: when it was observed, else when it was stored."""
    return memory.observed_at or memory.timestamp


def session_of(memory: Memory) -> str:
    """Return which talk a turn would belong to: the session that made it or, for an import without one, its day."""
    return memory.created_by_session or f"@{moment_of(memory).date()}"


def filed_terms(memory: Memory) -> list[str]:
    """Return the terms under which keyword search files a memory: content, category, tags and the day."""
    words = f"{memory.content}\n{memory.category} {' '.join(memory.tags)}"
    return [*index_terms(words), *day_terms(moment_of(memory).date())]


def embedded_texts(memory: Memory) -> list[str]:
    """Return the pieces whose vectors stand for a memory: its content, cut at line or sentence ends when it is long.

    Without the date: in front of the content it costs the dense ranking .066 frac@10 on the tuning conversations
    (.514 to .448), since it makes all turns of one day alike; keyword search carries it.
    """
    content = memory.content
    if len(content) <= _PIECE_CHARS:
        return [content]
    pieces = [""]
    for part in _parts(content):
        if pieces[-1] and len(pieces[-1]) + len(part) > _PIECE_CHARS:
            pieces.append("")
        pieces[-1] += part
    return [piece.strip() for piece in pieces if piece.strip()][:_MAX_PIECES]


def _parts(content: str) -> Iterator[str]:
    """Yield lines; of a line that is too long alone its sentences; of such a sentence its stretches."""
    for line in content.splitlines(keepends=True):
        sentences = [line] if len(line) <= _PIECE_CHARS else _SENTENCE_END.split(line)
        for sentence in sentences:
            for start in range(0, len(sentence), _PIECE_CHARS):
                yield sentence[start : start + _PIECE_CHARS]


def speakers_within(content: str) -> frozenset[str]:
    """Return who speaks when one memory holds a whole talk: several lines of turns by at least two people."""
    lines = content.split("\n")
    if len(lines) < _LEAST_LINES:
        return frozenset()
    spoken = [speaker for line in lines if (speaker := speaker_of(line)) is not None]
    people = frozenset(spoken)
    return people if len(people) > 1 and len(spoken) >= max(_LEAST_LINES, 2 * len(people)) else frozenset()


def tells_time(terms: Iterable[str]) -> bool:
    """Tell whether a text's terms hold a word of time, such as a question that begins with "when" looks for."""
    return not _time_terms().isdisjoint(terms)


@lru_cache(maxsize=1)
def _time_terms() -> frozenset[str]:
    return frozenset(index_terms(_TIME_WORDS)) | {str(year) for year in range(1900, 2100)}


def speaker_of(content: str) -> str | None:
    """Return who speaks when the content is one turn of a talk, `Name: words`; None for anything else."""
    match = _SPEAKER.match(content)
    if match is None or match.group(1).casefold() in _LABELS:
        return None
    return match.group(1).casefold()
