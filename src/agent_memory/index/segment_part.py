"""Segments of an agent as parts of an index."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from agent_memory.index import fusion
from agent_memory.index.facets import meeting
from agent_memory.index.results import IndexedDocument, RowStatistics
from agent_memory.index.segment import NONE, Chain, ChainPart, arrivals
from agent_memory.index.segment_writer import ASKS, TELLS_TIME, TRUSTS
from agent_memory.index.terms import NO_SESSION, SessionRow, find_talkers
from agent_memory.index.word_lists import WordLists
from agent_memory.models import ITEM, Document, from_seconds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from agent_memory.index.segment_vectors import SealedVectors
    from agent_memory.models import SearchFilters

_LOW: Final = TRUSTS.index("low")
_READ: Final = ("timestamp", "moment", "access_count", "trust", "length", "flags")


class SegmentPart:
    """Rows of a segment.

    Rows that the chain hides later die here, too.

    Args:
        chain: All segments of the agent.
        place: Place of this segment among them.
        notes: Rows of the chain without items.
        vectors: Vectors of the segment, None without any.

    Attributes:
        first: Number of row 0.
        words: Rows by the words they hold.
        vectors: As given.
    """

    def __init__(self, chain: Chain, place: int, notes: ChainPart, vectors: SealedVectors | None) -> None:
        self.first = chain.firsts[place]
        self.vectors = vectors
        self._segment = chain.segments[place]
        self._chain, self._notes, self._place = chain, notes, place
        self._columns = tuple(self._segment.columns[name] for name in _READ)
        self.words = WordLists(self._segment.lists("terms").of, self._segment.columns["length"])
        self._statistics: dict[bool, tuple[int, RowStatistics]] = {}
        self._people: dict[bool, frozenset[str]] = {}

    # -- rows ---------------------------------------------------------------------------------------------------------

    def id(self, row: int) -> str:
        """Return the ID of a row."""
        return self._segment.id(row)

    def entry(self, row: int) -> IndexedDocument:
        """Return the document of a row, without its text and facets."""
        stored, moment, uses, trust, length, flags = (column[row].item() for column in self._columns)
        times = from_seconds(stored), from_seconds(moment)
        return IndexedDocument(
            Document(self.id(row), "", (), *times, access_count=uses, trust=TRUSTS[trust]),
            arrival=self.arrival(row),
            number=self.first + row,
            moment=moment,
            length_share=fusion.length_share(length),
            tells_time=bool(flags & TELLS_TIME),
            asks=bool(flags & ASKS),
            length=length,
        )

    def arrival(self, row: int) -> int:
        """Return the place of a row in the order of storing."""
        return int(self._segment.arrivals[row])

    def lengths(self, rows: Sequence[int]) -> list[int]:
        """Return the number of terms of each row."""
        lengths: list[int] = self._segment.columns["length"][list(rows)].tolist()
        return lengths

    def alive(self, *, items: bool) -> NDArray[np.bool_]:
        """Return a mask of the rows that are alive, items or not."""
        return (self._chain if items else self._notes).alive[self._place]

    def mask(self, filters: SearchFilters, mask: NDArray[np.bool_], *, items: bool) -> NDArray[np.bool_]:
        """Return the masked rows that pass filters, with or without items."""
        no_items = None if items else self._notes.kept[self._place]
        mask = mask if no_items is None else mask & no_items
        return mask if filters.admits_all else mask & meeting(self._segment, filters)

    def above_low_trust(self, mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return the masked rows that are not of low trust."""
        above: NDArray[np.bool_] = mask & (self._segment.columns["trust"] != _LOW)
        return above

    def without(self, mask: NDArray[np.bool_], left_out: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return the rows of one mask that are not in another."""
        return mask & ~left_out

    def count(self, mask: NDArray[np.bool_]) -> int:
        """Return the number of masked rows."""
        return int(np.count_nonzero(mask))

    def latest(self, count: int, mask: NDArray[np.bool_]) -> list[int]:
        """Return the masked rows that were stored last."""
        rows, stored = np.flatnonzero(mask), self._segment.columns["timestamp"]
        if count < len(rows):
            times = stored[rows]
            rows = rows[times >= np.partition(times, len(rows) - count)[len(rows) - count]]
            order = np.lexsort((self._segment.arrivals[rows], stored[rows]))
            rows = rows[order[len(rows) - count :]]
        return rows.tolist()

    # -- sums ---------------------------------------------------------------------------------------------------------

    def statistics(self, *, items: bool) -> RowStatistics:
        """Return the sums over all alive rows, or over those without items."""
        size, statistics = self._statistics.get(items, (-1, RowStatistics(0, 0, 0)))
        if size != len(self._chain):  # rows die and never come back
            alive, columns = self.alive(items=items), self._segment.columns
            length = self._segment.about.terms - int(columns["length"][~alive].sum())
            asking = int(np.count_nonzero(columns["flags"][alive] & ASKS))
            statistics = RowStatistics(int(np.count_nonzero(alive)), length, asking)
            self._statistics[items] = len(self._chain), statistics
        return statistics

    def frequency(self, term: str, *, items: bool) -> int:
        """Return the number of alive rows with a term, estimated if many."""
        # Among the notes of a segment a word may be rare that is frequent in its items.
        exactly = not items and self._notes.kept[self._place] is not None
        return self.words.frequency(term, self.alive(items=items), exactly=exactly)

    # -- talks --------------------------------------------------------------------------------------------------------

    def people(self, *, items: bool) -> frozenset[str]:
        """Return the folded names of speakers in talks, dead rows included."""
        if items not in self._people:
            segment, talkers = self._segment, self._segment.lists("talkers")
            no_items = None if items else self._notes.kept[self._place]
            if no_items is None:
                names = {*talkers.keys.every(), *segment.strings("people").every()}
            else:
                numbered = enumerate(talkers.keys.every())
                names = {name for number, name in numbered if no_items[talkers.at(number).rows].any()}
                session, speaker = segment.columns["session"], segment.columns["speaker"]
                turns = np.flatnonzero(no_items & (session != NO_SESSION) & (speaker != NONE))
                speakers = segment.strings("speakers")
                names.update(speakers[place] for place in find_talkers(session[turns], speaker[turns]).tolist())
            self._people[items] = frozenset(map(bytes.decode, names))
        return self._people[items]

    def calls(self, word: str, *, items: bool) -> int:
        """Return the number of rows that are alive and call a word."""
        return int(np.count_nonzero(self.alive(items=items)[self._segment.lists("called").of(word).rows]))

    def get_sessions(self, rows: Sequence[int]) -> list[int]:
        """Return the session of each row."""
        sessions: list[int] = self._segment.columns["session"][list(rows)].tolist()
        return sessions

    def list_session_rows(self, sessions: Sequence[int], at_most: int, *, items: bool) -> dict[int, list[SessionRow]]:
        """Return alive rows of sessions, `at_most` + 1 of each."""
        wanted, columns, alive = np.array(sessions, np.uint64), self._segment.columns, self.alive(items=items)
        bounds = (np.searchsorted(columns["session.hash"], wanted, side=side).tolist() for side in ("left", "right"))
        standing = {}
        for session, begin, end in zip(sessions, *bounds, strict=True):
            rows = columns["session.row"][begin:end]
            rows = rows[alive[rows]][: at_most + 1]
            numbers = (rows.astype(np.int64) + self.first).tolist()
            moments, arrivals = columns["moment"][rows].tolist(), self._segment.arrivals[rows].tolist()
            standing[session] = list(map(SessionRow, moments, arrivals, numbers))
        return standing

    def speaker(self, row: int) -> str:
        """Return the folded name of a row's speaker, or an empty string."""
        place = int(self._segment.columns["speaker"][row])
        return "" if place == NONE else self._segment.strings("speakers")[place].decode()


class SealedCorpus:
    """Sealed parts of an index.

    Args:
        chain: Segments, whose rows may die while this is used.
        vectors: Vectors of each segment, None for a segment without.

    Attributes:
        chain, vectors: The arguments of that name.
        parts: A part of each segment, oldest first.
    """

    def __init__(self, chain: Chain, vectors: Sequence[SealedVectors | None]) -> None:
        self.chain = chain
        self.vectors = vectors
        self._notes = ChainPart(chain, ITEM)
        self.parts = [
            SegmentPart(chain, place, self._notes, segment_vectors) for place, segment_vectors in enumerate(vectors)
        ]

    @property
    def has_items(self) -> bool:
        """True if any row was extracted from a document or a talk."""
        return not self._notes.is_whole

    def find(self, record_id: str) -> int | None:
        """Return the number of a document's alive row, or None."""
        return self.chain.find(record_id)

    def has_vectors(self, record_id: str) -> bool:
        """Return True if a document's segment has its vectors."""
        number = self.chain.find(record_id)
        return number is not None and self.vectors[self.chain.locate(number)[0]] is not None

    def arrivals(self, record_ids: Sequence[str]) -> dict[str, int]:
        """Return places in the order of storing, of documents with a row."""
        places = arrivals(self.chain, [record_id.encode() for record_id in record_ids]).tolist()
        return {record_id: place for record_id, place in zip(record_ids, places, strict=True) if place >= 0}
