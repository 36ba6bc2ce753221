"""What was said or noted around each document in its session, and what that tells about it.

The ranking asks for `evidence` and knows nothing else of sessions. A document stands in the session that made it,
between those made just before and after, whatever its text looks like; one in the form of a turn (see `spoken`) also
has a speaker, and stands in the talk of its day where no session is known.
"""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from agent_memory.index import fusion
from agent_memory.index.fusion import TalkEvidence
from agent_memory.language.speakers import addressed_in, asks, speaker_of, speakers_within

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import numpy as np
    from numpy.typing import NDArray

    from agent_memory.index.fusion import Evidence
    from agent_memory.index.postings import Postings
    from agent_memory.index.results import IndexedDocument, Question
    from agent_memory.models import Document

NO_SESSION: Final = 0
"""The number of no session."""

_LEAST: Final = 4
"""Documents from which a session tells something about each of them."""

_MOST: Final = 5_000
"""Documents of one session up to which it is taken for one: beyond, it is an import."""

_LEAST_SPEAKERS: Final = 2
_TURNS_EACH: Final = 2
"""Two people who speak twice each: less is more likely a list of `Label: text` notes."""

_LEAST_CALLS: Final = 3
_CALLED: Final = 0.15
"""Share of the documents with a name that call it: from here on it is the name of a listener, hardly ever of a matter.
In talks without speakers it is .23 to .95; of other words that questions hold, at most .1."""

_ASKING: Final = 0.05
"""Share of documents with a question from which a memory is one of talks: .07 to .9 in them, below .02 in notes."""

_MOST_KEPT: Final = 10_000


class Said(NamedTuple):
    """What a text says of talks: read once.

    Attributes:
        session: The number of the session that it stands in, `NO_SESSION` for none.
        speaker: Who says it, folded; empty where its form does not tell.
        speakers: Who speaks in a whole talk that it holds.
        called: Folded words that it calls, see `addressed_in`.
        asks: Whether it holds a question.
    """

    session: int
    speaker: str
    speakers: frozenset[str]
    called: frozenset[str]
    asks: bool


def said_by(document: Document) -> Said:
    """Read a document; one that holds a whole talk is no turn of another one."""
    people = speakers_within(document.text)
    speaker = "" if people else speaker_of(document.text) or ""
    place = document.session or (f"@{document.moment.date()}" if speaker else "")
    session = session_number(place) if place and not people else NO_SESSION
    return Said(session, speaker, people, addressed_in(document.text), asks(document.text))


@lru_cache(maxsize=1_024)
def session_number(session: str) -> int:
    """Return the number that stands for a session: 64 bits, never `NO_SESSION`."""
    return int.from_bytes(blake2b(session.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little") or 1


class Standing(NamedTuple):
    """Where a document stands in its session: orders documents by moment, then by arrival."""

    moment: float
    arrival: int
    number: int


class Place(NamedTuple):
    """A document's place in its session.

    Attributes:
        session: Its number.
        neighbours: Numbers of the documents just before and just after, as far as there are any.
    """

    session: int
    neighbours: tuple[int, ...]


class SealedTalks(Protocol):
    """What is known of documents that are sealed."""

    @property
    def asking(self) -> int:
        """How many of those that count hold a question."""

    def people(self) -> frozenset[str]:
        """Return who takes part in a talk of them."""

    def calls(self, word: str) -> int:
        """Return how many of those that count call a word."""

    def sessions_of(self, numbers: Iterable[int]) -> dict[int, int]:
        """Return the session of each of some documents, without those that stand in none."""

    def standing_in(self, sessions: Iterable[int], at_most: int) -> dict[int, list[Standing]]:
        """Return the documents of some sessions that count; of each one more than `at_most` where it has more."""

    def speaker_of(self, number: int) -> str:
        """Return who says a document, empty where its form does not tell."""


class Talks:
    """The sessions and talks of an agent's documents.

    Args:
        sealed: Documents that are not added here; None where nothing is sealed.
    """

    def __init__(self, sealed: SealedTalks | None = None) -> None:
        self._sealed = sealed
        self._said: dict[int, Said] = {}  # number -> what it says
        self._in: dict[int, dict[int, Standing]] = {}  # session -> number -> where it stands
        self._places: dict[int, dict[int, Place]] = {}  # of sessions asked for
        self._calls: Counter[str] = Counter()
        self._asking = 0
        self._talkers: dict[int, frozenset[str]] = {}  # session -> who takes part in its talk
        self._speakers: frozenset[str] | None = None

    def copy(self, sealed: SealedTalks | None) -> Talks:
        """Return others of the same documents, besides other sealed ones; adding to one changes not the other."""
        other = Talks(sealed)
        other._said, other._calls, other._asking = dict(self._said), Counter(self._calls), self._asking
        other._in = {session: dict(standing) for session, standing in self._in.items()}
        return other

    def add(self, document: Document, arrival: int, number: int, said: Said | None = None) -> Said:
        """Note a document and return what it says.

        Args:
            document: Not added before, or removed since.
            arrival: Orders documents of one moment.
            number: Stands for it from now on.
            said: What it says, where it was read already.
        """
        said = self._said[number] = said_by(document) if said is None else said
        if said.session != NO_SESSION:
            standing = Standing(document.moment.timestamp(), arrival, number)
            self._in.setdefault(said.session, {})[number] = standing
        if said.called:
            self._calls.update(said.called)
        self._asking += said.asks
        self._has_changed(said)
        return said

    def remove(self, number: int) -> None:
        """Take a document out; an unknown number changes nothing."""
        said = self._said.pop(number, None)
        if said is None:
            return
        if said.session != NO_SESSION:
            del self._in[said.session][number]
            if not self._in[said.session]:
                del self._in[said.session]
        self._calls.subtract(said.called)
        self._asking -= said.asks
        self._has_changed(said)

    def places(self, numbers: Iterable[int]) -> dict[int, Place]:
        """Return where documents stand, without those whose session tells nothing."""
        wanted = list(numbers)
        of = {
            number: said.session for number in wanted if (said := self._said.get(number)) is not None and said.session
        }
        if self._sealed is not None:
            of |= self._sealed.sessions_of(wanted)
        self._read({session for session in of.values() if session not in self._places})
        return {number: self._places[session][number] for number, session in of.items() if self._places[session]}

    def speaker(self, number: int) -> str:
        """Return who says a document, empty where its form does not tell."""
        said = self._said.get(number)
        if said is not None:
            return said.speaker
        return self._sealed.speaker_of(number) if self._sealed is not None else ""

    def speakers(self) -> frozenset[str]:
        """Return the folded names of all who speak in a talk, of turns or within one document."""
        if self._speakers is None:
            within = [said.speakers for said in self._said.values() if said.speakers]
            sealed = self._sealed.people() if self._sealed is not None else frozenset()
            self._speakers = sealed.union(*map(self._people, self._in), *within)
        return self._speakers

    def is_listener(self, word: str, holding: int) -> bool:
        """Tell whether a word is the name of somebody who is called, and hardly ever spoken of.

        Args:
            word: Folded.
            holding: How many documents hold it.
        """
        calls = self._calls[word] + (self._sealed.calls(word) if self._sealed is not None else 0)
        return calls >= max(_LEAST_CALLS, _CALLED * holding)

    def are_asking(self, documents: int) -> bool:
        """Tell whether among so many documents as many hold questions as where people talk."""
        asking = self._asking + (self._sealed.asking if self._sealed is not None else 0)
        return asking > 0 and asking >= _ASKING * documents

    def forget_sealed(self) -> None:
        """Look anew at sessions that are sealed: some of their documents count no more."""
        self._places.clear()
        self._talkers.clear()

    def _has_changed(self, said: Said) -> None:
        self._places.pop(said.session, None)
        if said.speaker or said.speakers:
            self._talkers.pop(said.session, None)
            self._speakers = None

    def _people(self, session: int) -> frozenset[str]:
        """Return who takes part in the talk of a session, nobody where there is no real exchange."""
        known = self._talkers.get(session)
        if known is None:
            sealed = self._sealed.standing_in([session], _MOST).get(session, ()) if self._sealed is not None else ()
            numbers = [*self._in[session], *(standing.number for standing in sealed)]
            said = [speaker for number in numbers if (speaker := self.speaker(number))]
            people = frozenset(said)
            is_talk = len(people) >= _LEAST_SPEAKERS and len(said) >= max(_LEAST, _TURNS_EACH * len(people))
            known = self._talkers[session] = people if is_talk else frozenset()
        return known

    def _read(self, sessions: set[int]) -> None:
        if len(self._places) + len(sessions) > _MOST_KEPT:
            self._places = {session: self._places[session] for session in list(self._places)[-_MOST_KEPT // 2 :]}
        sealed = self._sealed.standing_in(sessions, _MOST) if self._sealed is not None and sessions else {}
        for session in sessions:
            every = [*sealed.get(session, ()), *self._in.get(session, {}).values()]
            self._places[session] = _placed(session, every) if _LEAST <= len(every) <= _MOST else {}


def _placed(session: int, every: list[Standing]) -> dict[int, Place]:
    every.sort()
    order = [standing.number for standing in every]
    before, after = [(), *((number,) for number in order)], [*((number,) for number in order[1:]), ()]
    return {number: Place(session, (*before[at], *after[at])) for at, number in enumerate(order)}


def talking(sessions: NDArray[np.uint64], speakers: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return who takes part in a talk: the array form of what makes one, for many turns at once.

    Args:
        sessions: Whose turn each is, shape (turns,).
        speakers: Who says each.
    """
    import numpy as np  # nothing slow at import

    pairs = np.unique(np.stack([sessions.astype(np.uint64), speakers.astype(np.uint64)], axis=1), axis=0)
    session, people = np.unique(pairs[:, 0], return_counts=True)
    _, turns = np.unique(sessions, return_counts=True)
    is_talk = (people >= _LEAST_SPEAKERS) & (turns >= np.maximum(_LEAST, _TURNS_EACH * people))
    return np.unique(pairs[np.isin(pairs[:, 0], session[is_talk]), 1]).astype(np.uint32)


def evidence(
    pool: Mapping[str, Evidence],
    question: Question,
    talks: Talks,
    indexed: Mapping[str, IndexedDocument],
    postings: Postings,
) -> dict[str, TalkEvidence]:
    """Return what sessions tell about each candidate; nothing when none of them stands in one.

    Among documents of sessions one without counts as a session of its own, of full length. Otherwise one of the best
    session outranks a fact that answers better: with the facts of `benchmarks/data` added to a tuning conversation,
    frac@10 of questions about the facts is .848 without this and .946 with it, and .812 both times for questions about
    the talk.
    """
    numbers = {record_id: indexed[record_id].number for record_id in pool}
    places = talks.places(numbers.values())
    if not places:
        return {}
    windows = {number: (number, *place.neighbours) for number, place in places.items()}
    scores = postings.window_scores(question.weights, windows)  # of each read together with its neighbours
    enough = fusion.ENOUGH_WORDS * postings.full_score(question.weights)
    most = max(enough, *scores.values()) or 1.0
    bases: dict[int, list[float]] = {}
    for record_id, number in numbers.items():
        if number in places:
            bases.setdefault(places[number].session, []).append(fusion.base(pool[record_id]))
    relevances = {session: fusion.session_relevance(values) for session, values in bases.items()}
    greatest = max(relevances.values())
    found = {}
    for record_id, each in pool.items():
        number, entry = numbers[record_id], indexed[record_id]
        place = places.get(number)
        relevance = relevances[place.session] if place is not None else fusion.base(each)
        speaker = talks.speaker(number) if place is not None and question.speakers else ""
        found[record_id] = TalkEvidence(
            window=scores[number] / most if place is not None else each.share,
            session=min(1.0, relevance / greatest) if greatest > 0 else 0.0,
            length=entry.length_share if place is not None else 1.0,
            speaker=fusion.speaker_share(speaker or None, question.speakers),
            time=float(question.asks_time and entry.tells_time),
        )
    return found
