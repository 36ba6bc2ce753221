"""Which memories are turns of one talk, and who stands beside whom. Knows order and speakers; must not know scores.

A memory is a turn when its text has the form `Name: words` and the session that made it holds a real exchange. Plain
facts made in one session are not turns: support from neighbours helps a turn and hurts a fact.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

_LEAST_SPEAKERS: Final = 2
_LEAST_TURNS: Final = 4
_TURNS_EACH: Final = 2
"""Two people who speak twice each: less is more likely a list of `Label: text` notes."""


@dataclass(frozen=True, slots=True)
class Turn:
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
    turns: dict[str, tuple[float, int, str]] = field(default_factory=dict)  # id -> moment, arrival, speaker
    speakers: Counter[str] = field(default_factory=Counter)
    placed: bool = False  # whether its turns are known to `Conversations._turns`

    def is_talk(self) -> bool:
        people = len(self.speakers)
        return people >= _LEAST_SPEAKERS and len(self.turns) >= max(_LEAST_TURNS, _TURNS_EACH * people)


class Conversations:
    """The talks among an agent's memories."""

    def __init__(self) -> None:
        self._sessions: dict[str, _Session] = {}
        self._session_of: dict[str, str] = {}
        self._turns: dict[str, Turn | None] = {}
        self._within: dict[str, frozenset[str]] = {}
        self._speakers: frozenset[str] | None = None

    def add_whole(self, memory_id: str, speakers: frozenset[str]) -> None:
        """Note a memory that holds a whole talk of these people (folded names); it is no turn of another one."""
        self._within[memory_id] = speakers
        self._speakers = None

    def add(self, memory_id: str, *, session: str, speaker: str, moment: float, arrival: int) -> None:
        """Note a memory that has the form of a turn.

        Args:
            memory_id: Not added before, or removed since.
            session: The session that made it, or what stands for one.
            speaker: Folded name.
            moment: Seconds; orders the turns.
            arrival: Orders turns of one moment.
        """
        known = self._sessions.setdefault(session, _Session())
        known.turns[memory_id] = (moment, arrival, speaker)
        known.speakers[speaker] += 1
        known.placed = False
        self._session_of[memory_id] = session
        self._speakers = None

    def remove(self, memory_id: str) -> None:
        """Take a memory out; an unknown id changes nothing."""
        if self._within.pop(memory_id, None) is not None:
            self._speakers = None
        name = self._session_of.pop(memory_id, None)
        if name is None:
            return
        session = self._sessions[name]
        _, _, speaker = session.turns.pop(memory_id)
        session.placed = False
        session.speakers[speaker] -= 1
        if not session.speakers[speaker]:
            del session.speakers[speaker]
        if not session.turns:
            del self._sessions[name]
        self._turns.pop(memory_id, None)
        self._speakers = None

    def turn(self, memory_id: str) -> Turn | None:
        """Return a memory's place in its talk, None when it is no turn of one."""
        name = self._session_of.get(memory_id)
        if name is None:
            return None
        session = self._sessions[name]
        if not session.placed:
            self._place(name, session)
        return self._turns[memory_id]

    def speakers(self) -> frozenset[str]:
        """Return the folded names of everybody who speaks in a talk, of turns or within one memory."""
        if self._speakers is None:
            talks = (session for session in self._sessions.values() if session.is_talk())
            self._speakers = frozenset(name for session in talks for name in session.speakers).union(
                *self._within.values()
            )
        return self._speakers

    def _place(self, name: str, session: _Session) -> None:
        order = sorted(session.turns, key=lambda one: session.turns[one][:2])
        is_talk = session.is_talk()
        for at, memory_id in enumerate(order):
            near = (*order[max(0, at - 1) : at], *order[at + 1 : at + 2])
            self._turns[memory_id] = Turn(name, session.turns[memory_id][2], near) if is_talk else None
        session.placed = True
