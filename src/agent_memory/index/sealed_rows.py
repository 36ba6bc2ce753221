"""`SealedRows`: the documents of a chain of segments, by number and by id, and what they weigh and say. Maps only."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from agent_memory.index import fusion
from agent_memory.index.chain import arrivals
from agent_memory.index.results import SEALED_FROM, IndexedDocument
from agent_memory.index.row import ASKS, TELLS_TIME, TRUSTS
from agent_memory.index.sealed_words import SealedWords
from agent_memory.index.segment import NONE
from agent_memory.index.talks import NO_SESSION, Standing, talking
from agent_memory.models import Document, from_seconds

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from agent_memory.index.chain import Chain
    from agent_memory.index.part import Part
    from agent_memory.index.results import Norm

Masks = list["NDArray[np.bool_]"]
"""For each segment which of its rows may be found, shape (rows,)."""

_MOST_ENTRIES: Final = 10_000
_READ: Final = ("timestamp", "moment", "access_count", "trust", "length", "flags")


class Scored(NamedTuple):
    """A document that was found, and its BM25 or cosine."""

    score: float
    id: str


class SealedRows:
    """Rows as a ranking asks for them; their numbers begin at `SEALED_FROM`.

    Args:
        chain: Segments, whose rows may come to count no more while this is used.
    """

    def __init__(self, chain: Chain) -> None:
        self._chain = chain
        self._entries: dict[str, IndexedDocument] = {}
        self._columns = [tuple(segment.columns[name] for name in _READ) for segment in chain.segments]

    def get(self, record_id: str) -> IndexedDocument | None:
        """Return what a ranking asks of a document, without its text and facets; None if no row of it counts."""
        known = self._entries.get(record_id)
        if known is None:
            number = self._chain.find(record_id)
            known = self._entry(number, record_id) if number is not None else None
        return known

    def admits(self, entry: IndexedDocument, masks: Masks) -> bool:
        """Tell whether a document may be found."""
        at, row = self.place(entry.number)
        return bool(masks[at][row])

    def arrivals(self, record_ids: Sequence[str]) -> dict[str, int]:
        """Return the places in the order of storing of those of some documents that have a row, counting or not."""
        places = arrivals(self._chain, [one.encode() for one in record_ids]).tolist()
        return {one: place for one, place in zip(record_ids, places, strict=True) if place >= 0}

    def drop(self, record_ids: Iterable[str]) -> None:
        """Forget what is kept of documents whose rows count no more."""
        for record_id in record_ids:
            self._entries.pop(record_id, None)

    def place(self, number: int) -> tuple[int, int]:
        """Return the segment of a number, and the row in there."""
        return self._chain.place_of(number - SEALED_FROM)

    def id_of(self, number: int) -> str:
        """Return the id of a number; keeps its entry."""
        at, row = self.place(number)
        record_id = self._chain.segments[at].id(row)
        self._entry(number - SEALED_FROM, record_id)
        return record_id

    def by_segment(self, numbers: Iterable[int]) -> Iterator[tuple[int, NDArray[np.int64]]]:
        """Yield sealed numbers, ascending, by the segment they are in; others are left out."""
        every = np.array(sorted(number for number in numbers if number >= SEALED_FROM), np.int64)
        if len(every):
            cuts = np.searchsorted(every, np.array(self._chain.firsts) + SEALED_FROM)
            for at, (begin, end) in enumerate(pairwise(cuts.tolist())):
                if begin < end:
                    yield at, every[begin:end]

    def named(self, found: list[tuple[float, int]], count: int) -> list[Scored]:
        """Return the best of what was found, with ids, best first, the later first among equals; keeps entries."""
        found.sort(reverse=True)
        named = []
        for score, number in found[:count]:
            at, row = self._chain.place_of(number)
            record_id = self._chain.segments[at].id(row)
            self._entry(number, record_id)
            named.append(Scored(score, record_id))
        return named

    def _entry(self, number: int, record_id: str) -> IndexedDocument:
        known = self._entries.get(record_id)
        if known is not None:
            return known
        at, row = self._chain.place_of(number)
        stored, moment, uses, trust, length, flags = (column[row].item() for column in self._columns[at])
        document = Document(
            record_id, "", (), from_seconds(stored), from_seconds(moment), access_count=uses, trust=TRUSTS[trust]
        )
        if len(self._entries) >= _MOST_ENTRIES:
            self._entries.clear()
        entry = self._entries[record_id] = IndexedDocument(
            document,
            arrival=int(self._chain.segments[at].arrivals[row]),
            number=SEALED_FROM + number,
            moment=moment,
            length_share=fusion.length_share(length),
            tells_time=bool(flags & TELLS_TIME),
            asks=bool(flags & ASKS),
            length=length,
        )
        return entry


class SealedWeights:
    """How words of sealed documents weigh: the background of those that are not sealed.

    Args:
        rows: By number.
        chain: Their segments.
    """

    def __init__(self, rows: SealedRows, chain: Chain | Part) -> None:
        self._rows = rows
        self._chain = chain
        self.words = [SealedWords(segment) for segment in chain.segments]
        """Of each segment."""
        self._length = (-1, 0)
        self._frequencies: dict[str, int] = {}
        self._counted = -1

    @property
    def documents(self) -> int:
        """How many rows count."""
        return len(self._chain)

    @property
    def length(self) -> int:
        """How many terms the rows that count have together."""
        documents, length = self._length
        if documents != len(self._chain):
            pairs = zip(self._chain.segments, self._chain.alive, strict=True)
            length = sum(segment.about.terms - int(segment.columns["length"][~alive].sum()) for segment, alive in pairs)
            self._length = (len(self._chain), length)
        return length

    def frequency(self, term: str) -> int:
        """Return how many rows that count hold a term; of a frequent one, about how many."""
        if (
            len(self._chain) != self._counted or len(self._frequencies) >= _MOST_ENTRIES
        ):  # rows only come to count no more
            self._frequencies.clear()
            self._counted = len(self._chain)
        known = self._frequencies.get(term)
        if known is None:
            parts = zip(self.words, self._chain.alive, self._chain.kept, strict=True)
            # In a part of a segment a word may be rare that is frequent in the rest.
            known = sum(words.frequency(term, alive, exactly=kept is not None) for words, alive, kept in parts)
            self._frequencies[term] = known
        return known

    def lengths_of(self, numbers: Iterable[int]) -> dict[int, int]:
        """Return how many terms each of some rows has."""
        found: dict[int, int] = {}
        for at, some in self._rows.by_segment(numbers):
            lengths = self._chain.segments[at].columns["length"][some - (SEALED_FROM + self._chain.firsts[at])]
            found.update(zip(some.tolist(), lengths.tolist(), strict=True))
        return found

    def counts(self, terms: Iterable[str], numbers: Iterable[int]) -> dict[str, list[tuple[int, int]]]:
        """Return for each term those of some rows that hold it, with its frequency there."""
        found: dict[str, list[tuple[int, int]]] = {term: [] for term in terms}
        for at, some in self._rows.by_segment(numbers):
            rows = some - (SEALED_FROM + self._chain.firsts[at])
            for term, held in found.items():
                counts = self.words[at].counts_of(term, rows)
                holding = np.flatnonzero(counts)
                held.extend(zip(some[holding].tolist(), counts[holding].tolist(), strict=True))
        return found

    def scores_of(self, gains: Mapping[str, float], norm: Norm, numbers: Iterable[int]) -> dict[int, float]:
        """Return the BM25 score of each of some rows."""
        found: dict[int, float] = {}
        for at, some in self._rows.by_segment(numbers):
            scores = self.words[at].scores_of(gains, norm, some - (SEALED_FROM + self._chain.firsts[at]))
            found.update(zip(some.tolist(), scores.tolist(), strict=True))
        return found


class SealedTalks:
    """What sealed documents say of talks.

    Args:
        rows: By number.
        chain: Their segments.
    """

    def __init__(self, rows: SealedRows, chain: Chain | Part) -> None:
        self._rows = rows
        self._chain = chain
        self._asking = (-1, 0)
        self._people: frozenset[str] | None = None

    @property
    def asking(self) -> int:
        """How many of those that count hold a question."""
        documents, asking = self._asking
        if documents != len(self._chain):
            pairs = zip(self._chain.segments, self._chain.alive, strict=True)
            asking = sum(int(np.count_nonzero(segment.columns["flags"][alive] & ASKS)) for segment, alive in pairs)
            self._asking = (len(self._chain), asking)
        return asking

    def people(self) -> frozenset[str]:
        """Return the folded names of all who speak in a talk of one segment, of turns or within one document."""
        if self._people is None:
            found: set[bytes] = set()
            for segment, kept in zip(self._chain.segments, self._chain.kept, strict=True):
                talkers = segment.lists("talkers")
                if kept is None:
                    found.update(talkers.keys.every(), segment.strings("people").every())
                    continue
                every = enumerate(talkers.keys.every())
                found.update(key for number, key in every if kept[talkers.at(number).rows].any())
                session, speaker = segment.columns["session"], segment.columns["speaker"]
                turns = np.flatnonzero(kept & (session != NO_SESSION) & (speaker != NONE))
                names = segment.strings("speakers")
                found.update(names[place] for place in talking(session[turns], speaker[turns]).tolist())
            self._people = frozenset(map(bytes.decode, found))
        return self._people

    def calls(self, word: str) -> int:
        """Return how many of those that count call a word."""
        pairs = zip(self._chain.segments, self._chain.alive, strict=True)
        return sum(int(np.count_nonzero(alive[segment.lists("called").of(word).rows])) for segment, alive in pairs)

    def sessions_of(self, numbers: Iterable[int]) -> dict[int, int]:
        """Return the session of each of some documents, without those that stand in none."""
        found: dict[int, int] = {}
        for at, some in self._rows.by_segment(numbers):
            rows = some - (SEALED_FROM + self._chain.firsts[at])
            sessions = self._chain.segments[at].columns["session"][rows].tolist()
            pairs = zip(some.tolist(), sessions, strict=True)
            found.update((number, session) for number, session in pairs if session != NO_SESSION)
        return found

    def standing_in(self, sessions: Iterable[int], at_most: int) -> dict[int, list[Standing]]:
        """Return the documents of some sessions that count; of each one more than `at_most` where it has more."""
        wanted = np.array(list(sessions), np.uint64)
        found: dict[int, list[Standing]] = {session: [] for session in wanted.tolist()}
        for first, segment, alive in zip(self._chain.firsts, self._chain.segments, self._chain.alive, strict=False):
            known, places = segment.columns["session.hash"], segment.columns["session.row"]
            moments, arrived = segment.columns["moment"], segment.arrivals
            begins, ends = (np.searchsorted(known, wanted, side=side).tolist() for side in ("left", "right"))
            for standing, begin, end in zip(found.values(), begins, ends, strict=True):
                if begin < end:
                    rows = places[begin:end]
                    rows = rows[alive[rows]][: at_most + 1 - len(standing)]
                    numbers = (rows.astype(np.int64) + (SEALED_FROM + first)).tolist()
                    standing.extend(map(Standing, moments[rows].tolist(), arrived[rows].tolist(), numbers))
        return found

    def speaker_of(self, number: int) -> str:
        """Return who says a document, empty where its form does not tell."""
        at, row = self._rows.place(number)
        segment = self._chain.segments[at]
        place = int(segment.columns["speaker"][row])
        return "" if place == NONE else segment.strings("speakers")[place].decode()
