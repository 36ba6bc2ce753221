"""Which documents are turns of one talk, and which turns are next to each other. Must not know scores.

A document is a turn when its text has the form `Name: words` and the session that made it holds a real exchange. Plain
facts made in one session are not turns: support from neighbours helps a turn and hurts a fact.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from agent_memory.retrieval.turns.speakers import speaker_of, speakers_within

if TYPE_CHECKING:
    from datetime import datetime

    from agent_memory.models import Document

_LEAST_SPEAKERS: Final = 2
_LEAST_TURNS: Final = 4
_TURNS_EACH: Final = 2
"""Two people who speak twice each: less is more likely a list of `Label: text` notes."""


@dataclass(frozen=True, slots=True)
class Utterance:
    """One turn of a talk.

    Attributes:
        talk: The session whose talk it is part of.
        speaker: Folded name.
        neighbours: Ids of the turns just before and just after, as far as there are any.
    """

    talk: str
    speaker: str
    neighbours: tuple[str, ...]


@dataclass(slots=True)
class _Session:
    turns: dict[str, tuple[datetime, int, str]] = field(default_factory=dict)  # id -> moment, arrival, speaker
    speakers: Counter[str] = field(default_factory=Counter)
    placed: bool = False  # whether its turns are known to `Talks._turns`

    def is_talk(self) -> bool:
        people = len(self.speakers)
        return people >= _LEAST_SPEAKERS and len(self.turns) >= max(_LEAST_TURNS, _TURNS_EACH * people)


class Talks:
    """The talks among an agent's documents."""

    def __init__(self) -> None:
        self._sessions: dict[str, _Session] = {}
        self._session_of: dict[str, str] = {}
        self._turns: dict[str, Utterance | None] = {}
        self._within: dict[str, frozenset[str]] = {}
        self._speakers: frozenset[str] | None = None

    def add(self, document: Document, arrival: int) -> None:
        """Note a document that has the form of a turn, or that holds a whole talk and is no turn of another one.

        Args:
            document: Not added before, or removed since.
            arrival: Orders turns of one moment.
        """
        if people := speakers_within(document.text):
            self._within[document.id] = people
            self._speakers = None
            return
        if (speaker := speaker_of(document.text)) is None:
            return
        session = document.session or f"@{document.moment.date()}"  # an import without sessions: its day
        known = self._sessions.setdefault(session, _Session())
        known.turns[document.id] = (document.moment, arrival, speaker)
        known.speakers[speaker] += 1
        known.placed = False
        self._session_of[document.id] = session
        self._speakers = None

    def remove(self, record_id: str) -> None:
        """Take a document out; an unknown id changes nothing."""
        if self._within.pop(record_id, None) is not None:
            self._speakers = None
        name = self._session_of.pop(record_id, None)
        if name is None:
            return
        session = self._sessions[name]
        _, _, speaker = session.turns.pop(record_id)
        session.placed = False
        session.speakers[speaker] -= 1
        if not session.speakers[speaker]:
            del session.speakers[speaker]
        if not session.turns:
            del self._sessions[name]
        self._turns.pop(record_id, None)
        self._speakers = None

    def turn(self, record_id: str) -> Utterance | None:
        """Return a document's place in its talk, None when it is no turn of one."""
        name = self._session_of.get(record_id)
        if name is None:
            return None
        session = self._sessions[name]
        if not session.placed:
            self._place(name, session)
        return self._turns[record_id]

    def neighbours(self, record_id: str) -> tuple[str, ...]:
        """Return the turns just before and just after one; nothing for what is no turn."""
        turn = self.turn(record_id)
        return turn.neighbours if turn is not None else ()

    def speakers(self) -> frozenset[str]:
        """Return the folded names of everybody who speaks in a talk, of turns or within one document."""
        if self._speakers is None:
            talks = (session for session in self._sessions.values() if session.is_talk())
            self._speakers = frozenset(name for session in talks for name in session.speakers).union(
                *self._within.values()
            )
        return self._speakers

    def _place(self, name: str, session: _Session) -> None:
        order = sorted(session.turns, key=lambda one: session.turns[one][:2])
        is_talk = session.is_talk()
        for at, record_id in enumerate(order):
            near = (*order[max(0, at - 1) : at], *order[at + 1 : at + 2])
            self._turns[record_id] = Utterance(name, session.turns[record_id][2], near) if is_talk else None
        session.placed = True
