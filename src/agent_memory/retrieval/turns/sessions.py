"""Which documents are turns of one talk, and which turns are next to each other. Must not know scores.

A document is a turn when its text has the form `Name: words` and the session that made it holds a real exchange. Plain
facts made in one session are not turns: support from neighbours helps a turn and hurts a fact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

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


class _Talk(NamedTuple):
    """Who speaks in a session, and its turns by id; both are empty when it is no talk."""

    speakers: frozenset[str]
    turns: dict[str, Utterance]


class Talks:
    """The talks among an agent's documents."""

    def __init__(self) -> None:
        self._said: dict[str, dict[str, tuple[datetime, int, str]]] = {}  # session -> id -> moment, arrival, speaker
        self._session_of: dict[str, str] = {}
        self._talks: dict[str, _Talk] = {}  # session -> what it is, once asked for
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
        elif (speaker := speaker_of(document.text)) is not None:
            session = document.session or f"@{document.moment.date()}"  # an import without sessions: its day
            self._said.setdefault(session, {})[document.id] = (document.moment, arrival, speaker)
            self._session_of[document.id] = session
            self._has_changed(session)

    def remove(self, record_id: str) -> None:
        """Take a document out; an unknown id changes nothing."""
        if self._within.pop(record_id, None) is not None:
            self._speakers = None
        session = self._session_of.pop(record_id, None)
        if session is not None:
            del self._said[session][record_id]
            self._has_changed(session)

    def turn(self, record_id: str) -> Utterance | None:
        """Return a document's place in its talk, None when it is no turn of one."""
        session = self._session_of.get(record_id)
        return self._talk(session).turns.get(record_id) if session is not None else None

    def neighbours(self, record_id: str) -> tuple[str, ...]:
        """Return the turns just before and just after one; nothing for what is no turn."""
        turn = self.turn(record_id)
        return turn.neighbours if turn is not None else ()

    def speakers(self) -> frozenset[str]:
        """Return the folded names of all who speak in a talk, of turns or within one document."""
        if self._speakers is None:
            talks = [self._talk(session).speakers for session in self._said]
            self._speakers = frozenset().union(*talks, *self._within.values())
        return self._speakers

    def _has_changed(self, session: str) -> None:
        self._talks.pop(session, None)
        self._speakers = None
        if not self._said[session]:
            del self._said[session]

    def _talk(self, session: str) -> _Talk:
        talk = self._talks.get(session)
        if talk is None:
            talk = self._talks[session] = _talk_of(session, self._said[session])
        return talk


def _talk_of(session: str, said: dict[str, tuple[datetime, int, str]]) -> _Talk:
    people = frozenset([speaker for _, _, speaker in said.values()])
    if len(people) < _LEAST_SPEAKERS or len(said) < max(_LEAST_TURNS, _TURNS_EACH * len(people)):
        return _Talk(frozenset(), {})
    order = sorted(said, key=lambda one: said[one][:2])
    near = [(*order[max(0, at - 1) : at], *order[at + 1 : at + 2]) for at in range(len(order))]
    return _Talk(people, {one: Utterance(session, said[one][2], near[at]) for at, one in enumerate(order)})
