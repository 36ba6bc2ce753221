"""Turns of talks and documents of sessions: what one text says about the talk it is in.

A document is in the session that made it, between those made just before and after, in whatever form its text is
written. A text in the form of a turn (see `spoken`) also has a speaker, and is in the talk of its day if no session is
known.
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING, Final, NamedTuple

from agent_memory.language.speakers import find_addressed, find_speakers, get_speaker, has_question

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from agent_memory.models import Document

NO_SESSION: Final = 0
"""Number of a document without a session."""

LEAST_ROWS: Final = 4
"""Documents from which a session says something about each of them."""

LEAST_SPEAKERS: Final = 2
TURNS_EACH: Final = 2
"""Two people who speak twice each: less is more likely a list of `Label: text` notes."""


class Said(NamedTuple):
    """What a text says about talks.

    Attributes:
        session: Number of its session, or `NO_SESSION`.
        speaker: Folded name of who says it; empty if its form does not show that.
        speakers: Who speaks in a whole talk that it holds.
        called: Folded words that it calls, see `find_addressed`.
        asks: Whether it holds a question.
    """

    session: int
    speaker: str
    speakers: frozenset[str]
    called: frozenset[str]
    asks: bool


def said_by(document: Document) -> Said:
    """Read a document; a text that holds a whole talk is not a turn of another."""
    people = find_speakers(document.text)
    speaker = "" if people else get_speaker(document.text) or ""
    place = document.session or (f"@{document.moment.date()}" if speaker else "")
    session = session_number(place) if place and not people else NO_SESSION
    return Said(session, speaker, people, find_addressed(document.text), has_question(document.text))


@lru_cache(maxsize=1_024)
def session_number(session: str) -> int:
    """Return the 64-bit number of a session, never `NO_SESSION`."""
    return int.from_bytes(blake2b(session.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little") or 1


class Standing(NamedTuple):
    """Place of a row in its session: orders rows by moment, then by arrival."""

    moment: float
    arrival: int
    number: int


def talking(sessions: NDArray[np.uint64], speakers: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return who takes part in a talk: `Talks` for many turns at once, in arrays.

    Args:
        sessions: Session of each turn, shape (turns,).
        speakers: Speaker of each turn.
    """
    import numpy as np  # nothing slow at import

    pairs = np.unique(np.stack([sessions.astype(np.uint64), speakers.astype(np.uint64)], axis=1), axis=0)
    session, people = np.unique(pairs[:, 0], return_counts=True)
    _, turns = np.unique(sessions, return_counts=True)
    is_talk = (people >= LEAST_SPEAKERS) & (turns >= np.maximum(LEAST_ROWS, TURNS_EACH * people))
    return np.unique(pairs[np.isin(pairs[:, 0], session[is_talk]), 1]).astype(np.uint32)
