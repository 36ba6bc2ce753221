"""Sessions and talks of an agent's rows, over all parts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from agent_memory.index.terms import LEAST_ROWS, LEAST_SPEAKERS, NO_SESSION, TURNS_EACH, DocumentTurn, SessionRow

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_memory.index.parts import PartList

_MOST: Final = 5_000
"""Rows up to which a session is one; a larger one is an import."""

_LEAST_CALLS: Final = 3
_CALLED: Final = 0.15
"""Share of the rows with a name that address its bearer, from which the name is that of a listener. In talks without
speakers it is .23 to .95; of other words of questions, at most .1."""

_ASKING: Final = 0.05
"""Share of rows with a question from which a memory is one of talks: .07 to .9 in them, below .02 in notes."""

_MOST_KEPT: Final = 10_000


class SessionPlace(NamedTuple):
    """Place of a row in its session.

    Attributes:
        session: Number of the session.
        neighbours: Numbers of the rows just before and just after, if there are any.
    """

    session: int
    neighbours: tuple[int, ...]


class TalkIndex:
    """The sessions and talks of an agent's rows.

    Args:
        parts: Rows by number.
        items: True if items take part.
    """

    def __init__(self, parts: PartList, *, items: bool) -> None:
        self._parts = parts
        self._items = items
        self._places: dict[int, dict[int, SessionPlace]] = {}  # of sessions asked for
        self._talkers: dict[int, frozenset[str]] = {}  # session -> who takes part in its talk
        self._speakers: frozenset[str] | None = None

    def places(self, numbers: Iterable[int]) -> dict[int, SessionPlace]:
        """Return the places of rows, without those whose session tells nothing."""
        sessions: dict[int, int] = {}
        for part, rows in self._parts.by_part(numbers):
            pairs = zip(rows, part.get_sessions(rows), strict=True)
            sessions.update((part.first + row, session) for row, session in pairs if session != NO_SESSION)
        self._read(set(sessions.values()))
        places = ((number, self._places[session].get(number)) for number, session in sessions.items())
        return {number: place for number, place in places if place is not None}

    def speaker(self, number: int) -> str:
        """Return the folded name of a row's speaker, or an empty string."""
        part, row = self._parts.place(number)
        name: str = part.speaker(row)
        return name

    def speakers(self) -> frozenset[str]:
        """Return the folded names of all who speak in a talk."""
        if self._speakers is None:
            people = [part.people(items=self._items) for part in self._parts.parts]
            self._speakers = frozenset[str]().union(*people, *map(self._people, self._parts.buffer.sessions))
        return self._speakers

    def is_listener(self, word: str, holding: int) -> bool:
        """Return True if a word names a person who is often called.

        Such a name is hardly ever mentioned otherwise.

        Args:
            word: Folded word to check.
            holding: Number of rows that hold it.
        """
        calls: int = sum(part.calls(word, items=self._items) for part in self._parts.parts)
        return calls >= max(_LEAST_CALLS, _CALLED * holding)

    def are_asking(self, documents: int) -> bool:
        """Return True if questions are as frequent as in talks."""
        asking: int = sum(part.statistics(items=self._items).asking for part in self._parts.parts)
        return asking > 0 and asking >= _ASKING * documents

    def note(self, turn: DocumentTurn) -> None:
        """Read the session of an added or deleted row again."""
        self._places.pop(turn.session, None)
        if turn.speaker or turn.speakers:
            self._talkers.pop(turn.session, None)
            self._speakers = None

    def read_again(self) -> None:
        """Read all sessions again: rows of segments were deleted."""
        self._places.clear()
        self._talkers.clear()

    def _people(self, session: int) -> frozenset[str]:
        """Return the people in the talk of a session.

        Empty if it is not a talk.
        """
        people = self._talkers.get(session)
        if people is None:
            names = [name for row in self._list_rows([session])[session] if (name := self.speaker(row.number))]
            people = frozenset(names)
            is_talk = len(people) >= LEAST_SPEAKERS and len(names) >= max(LEAST_ROWS, TURNS_EACH * len(people))
            people = self._talkers[session] = people if is_talk else frozenset()
        return people

    def _read(self, sessions: set[int]) -> None:
        """Read the places of some sessions.

        The oldest of the others are forgotten if they are too many.
        """
        unread = sessions - self._places.keys()
        if len(self._places) + len(unread) > _MOST_KEPT:
            needed = dict.fromkeys([*list(self._places)[-_MOST_KEPT // 2 :], *(sessions - unread)])
            self._places = {session: self._places[session] for session in needed}
        for session, rows in self._list_rows(list(unread)).items():
            self._places[session] = _order_places(session, rows) if LEAST_ROWS <= len(rows) <= _MOST else {}

    def _list_rows(self, sessions: list[int]) -> dict[int, list[SessionRow]]:
        """Return the rows of each session.

        More than `_MOST` if it has more.
        """
        rows_by_session: dict[int, list[SessionRow]] = {session: [] for session in sessions}
        for part in self._parts.parts if sessions else ():
            for session, rows in part.list_session_rows(sessions, _MOST, items=self._items).items():
                rows_by_session[session] += rows
        return rows_by_session


def _order_places(session: int, rows: list[SessionRow]) -> dict[int, SessionPlace]:
    rows.sort()
    order = [row.number for row in rows]
    before, after = [(), *((number,) for number in order)], [*((number,) for number in order[1:]), ()]
    return {number: SessionPlace(session, (*before[place], *after[place])) for place, number in enumerate(order)}
