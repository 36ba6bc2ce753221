"""Documents that changed since the last segment, as one part.

Rows are appended and marked dead, never renumbered. Plain Python, so that a search by words works without numpy; with
numpy, long word lists and filters are read as arrays.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field
from heapq import nlargest
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from agent_memory.index import fusion
from agent_memory.index.facets import meeting, numpy_if_there
from agent_memory.index.results import UNREAD, IndexedDocument, LengthNorm, RowStatistics, SearchLimits
from agent_memory.index.terms import NO_SESSION, DocumentTurn, SessionRow, document_terms, read_turn
from agent_memory.language.text_forms import tells_time
from agent_memory.models import ITEM

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from agent_memory.index.word_lists import WordLists
    from agent_memory.models import Document, Facet, SearchFilters

_MAX_COUNT: Final = 2**32 - 1  # what an array of type I holds
_MAX_FREQUENCY: Final = 65_535  # what an array of type H holds
_SCARCE: Final = 16
"""Postings for one wanted row from which each row is looked up instead of reading all postings."""


class PostingLists:
    """Rows by their words: `WordLists` that grow and shrink.

    Args:
        arrays_from: As in `SearchLimits`.

    Attributes:
        lengths: Terms of each row, repeats included.
    """

    def __init__(self, arrays_from: int = SearchLimits().arrays_from) -> None:
        self.lengths = array("I")
        self._arrays_from = arrays_from
        self._terms: dict[str, tuple[array[int], array[int]]] = {}
        self._changes = 0
        self._scored: tuple[object, dict[int, float]] = ((), {})

    def add(self, counts: Mapping[str, int]) -> int:
        """Add a row by the frequencies of its terms; return its number.

        Numbers rise and are never reused.
        """
        row = len(self.lengths)
        for term, count in counts.items():
            lists = self._terms.get(term)
            if lists is None:
                lists = self._terms[term] = (array("I"), array("H"))
            lists[0].append(row)
            lists[1].append(min(count, _MAX_FREQUENCY))
        self.lengths.append(sum(counts.values()))
        self._changes += 1
        return row

    def drop(self, row: int, terms: Iterable[str]) -> None:
        """Remove a row from the lists of all its distinct terms."""
        for term in terms:
            rows, frequencies = self._terms[term]
            place = bisect_left(rows, row)
            del rows[place], frequencies[place]
            if not rows:
                del self._terms[term]
        self._changes += 1

    def frequency(self, term: str) -> int:
        """Return the number of rows that hold a term."""
        return len(self._terms[term][0]) if term in self._terms else 0

    def best(
        self, gains: Mapping[str, float], norm: LengthNorm, count: int, among: bytearray
    ) -> list[tuple[float, int]]:
        """Return the best rows: see `WordLists.best`."""
        np = self._numpy_for(gains)
        if np is not None:
            return self._as_arrays().best(gains, norm, count, np.frombuffer(among, bool))
        return nlargest(count, [(score, row) for row, score in self._score(gains, norm).items() if among[row]])

    def compute_scores(self, gains: Mapping[str, float], norm: LengthNorm, rows: Sequence[int]) -> list[float]:
        """Return the score of each of `rows`, 0 without a term."""
        np = self._numpy_for(gains)
        if np is not None:
            return self._as_arrays().compute_scores(gains, norm, rows)
        scores = self._score(gains, norm)
        return [scores.get(row, 0.0) for row in rows]

    def how_many(self, terms: Collection[str], among: bytearray) -> int:
        """Return the number of rows with any term, estimated if many."""
        np = self._numpy_for(terms)
        if np is not None:
            return self._as_arrays().how_many(terms, np.frombuffer(among, bool))
        holding = set[int]().union(*(self._terms[term][0] for term in terms if term in self._terms))
        return sum(map(among.__getitem__, holding))

    def sample(self, terms: Collection[str], among: bytearray, step: int) -> list[int]:
        """Return the rows of every `step`-th occurrence of `terms`, ascending."""
        rows = (self._terms[term][0][::step] for term in terms if term in self._terms)
        return sorted(row for row in set[int]().union(*rows) if among[row])

    def find_counts(self, term: str, rows: Collection[int]) -> Iterator[tuple[int, int]]:
        """Yield the rows that hold a term, with its frequency."""
        holding, frequencies = self._terms.get(term, ((), ()))
        if len(holding) < _SCARCE * len(rows):
            wanted = set(rows)
            yield from (pair for pair in zip(holding, frequencies, strict=True) if pair[0] in wanted)
            return
        for row in rows:
            place = bisect_left(holding, row)
            if place < len(holding) and holding[place] == row:
                yield row, frequencies[place]

    def _numpy_for(self, terms: Iterable[str]) -> Any:
        """Return numpy if the lists are long enough for arrays."""
        return numpy_if_there() if sum(map(self.frequency, terms)) >= self._arrays_from else None

    def _as_arrays(self) -> WordLists:
        """Return the lists as arrays; nothing can be added while they exist."""
        from agent_memory.index.word_lists import read_arrays

        return read_arrays(self._terms, self.lengths)

    def _score(self, gains: Mapping[str, float], norm: LengthNorm) -> dict[int, float]:
        """Return the score of each row that holds a term.

        Adds in the order of `WordLists`, so that equal rows have equal scores.
        """
        asked = (tuple(gains.items()), norm, self._changes)
        if self._scored[0] != asked:
            scores: dict[int, float] = {}
            (flat, steepness), lengths = norm, self.lengths
            for term, gain in gains.items():
                for row, count in zip(*self._terms.get(term, ((), ())), strict=True):
                    share = gain * (count / (count + (flat + steepness * lengths[row])))
                    scores[row] = scores.get(row, 0.0) + share
            self._scored = asked, scores
        return self._scored[1]


@dataclass(slots=True)
class RowSums:
    """Sums over rows of a buffer, updated as rows come and go.

    Attributes:
        documents, length, asking: As in `RowStatistics`.
        called: Number of rows that call a word.
    """

    documents: int = 0
    length: int = 0
    asking: int = 0
    called: Counter[str] = field(default_factory=Counter)

    def add(self, length: int, turn: DocumentTurn, by: int) -> None:
        """Add a row (`by` 1) or subtract it (-1)."""
        self.documents += by
        self.length += by * length
        self.asking += by * turn.asks
        for word in turn.called:
            self.called[word] += by


class BufferPart:
    """Documents in memory, a row for each version that was read.

    Args:
        first: Number of row 0 in the index.
        arrays_from: As in `SearchLimits`.

    Attributes:
        first: As given.
        entries: Documents by ID, including those not read yet.
        ids: ID of each row that is alive.
        words: Rows by the words they hold.
        columns: Arrays with one item a row: `timestamp`, `moment` and `access_count`.
        changes: Number of rows that came or went.
    """

    def __init__(self, first: int = 0, arrays_from: int = SearchLimits().arrays_from) -> None:
        self.first = first
        self.entries: dict[str, IndexedDocument] = {}
        self.ids: dict[int, str] = {}
        self.columns: dict[str, array[Any]] = {
            "timestamp": array("d"),
            "moment": array("d"),
            "access_count": array("I"),
        }
        self.changes = 0
        self.words = PostingLists(arrays_from)
        self._alive = bytearray()
        self._low = bytearray()
        self._facets: dict[Facet, array[int]] = {}
        self._said: dict[int, DocumentTurn] = {}
        self._items: set[int] = set()
        self._item_terms: Counter[str] = Counter()
        self._sessions: dict[int, dict[int, SessionRow]] = {}
        self._sums = {True: RowSums(), False: RowSums()}

    def __len__(self) -> int:
        """Return the number of rows, alive or not."""
        return len(self._alive)

    # -- changes ------------------------------------------------------------------------------------------------------

    def add(self, entry: IndexedDocument) -> DocumentTurn:
        """Add a document as a new row; return its turn."""
        document = entry.document
        terms, turn, is_item = document_terms(document), read_turn(document), ITEM in document.facets
        counts = Counter(terms)
        row = self.words.add(counts)
        entry.number, entry.length, entry.moment = self.first + row, len(terms), document.moment.timestamp()
        entry.length_share, entry.tells_time, entry.asks = fusion.length_share(len(terms)), tells_time(terms), turn.asks
        self.ids[row], self._said[row] = document.id, turn
        self._alive.append(True)
        self._low.append(False)
        self.columns["timestamp"].append(document.timestamp.timestamp())
        self.columns["moment"].append(entry.moment)
        self.columns["access_count"].append(0)
        for facet in document.facets:
            self._facets.setdefault(facet, array("I")).append(row)
        if turn.session != NO_SESSION:
            self._sessions.setdefault(turn.session, {})[row] = SessionRow(entry.moment, entry.arrival, entry.number)
        if is_item:
            self._items.add(row)
            self._item_terms.update(counts.keys())
        self._sums[is_item].add(len(terms), turn, 1)
        self.changes += 1
        self.replace(entry, document)
        return turn

    def replace(self, entry: IndexedDocument, document: Document) -> None:
        """Replace a document by a version with the same words."""
        entry.document = document
        if entry.number != UNREAD:
            row = entry.number - self.first
            self._low[row] = document.trust == "low"
            self.columns["access_count"][row] = min(document.access_count, _MAX_COUNT)

    def drop(self, entry: IndexedDocument) -> DocumentTurn:
        """Mark the row of a document dead; return its turn."""
        document, row = entry.document, entry.number - self.first
        counts, turn = Counter(document_terms(document)), self._said.pop(row)
        self.words.drop(row, counts)
        for facet in document.facets:
            rows = self._facets[facet]
            del rows[bisect_left(rows, row)]
        if turn.session != NO_SESSION:
            del self._sessions[turn.session][row]
            if not self._sessions[turn.session]:
                del self._sessions[turn.session]
        self._sums[row in self._items].add(counts.total(), turn, -1)
        if row in self._items:
            self._items.remove(row)
            self._item_terms.subtract(counts.keys())
        self._alive[row] = False
        del self.ids[row]
        self.changes += 1
        entry.number = UNREAD
        return turn

    # -- rows ---------------------------------------------------------------------------------------------------------

    @property
    def has_items(self) -> bool:
        """True if any row was extracted from a document or a talk."""
        return bool(self._items)

    def entry(self, row: int) -> IndexedDocument:
        """Return the document of a row."""
        return self.entries[self.ids[row]]

    def arrival(self, row: int) -> int:
        """Return the place of a row in the order of storing."""
        return self.entry(row).arrival

    def lengths(self, rows: Iterable[int]) -> list[int]:
        """Return the number of terms of each row."""
        return [self.words.lengths[row] for row in rows]

    def mask(self, filters: SearchFilters, hidden: Iterable[str] = ()) -> bytearray:
        """Return the rows that pass filters and are not hidden."""
        mask = bytearray(self._alive)
        np = numpy_if_there()
        if filters.admits_all:
            pass
        elif np is None:
            for row in self.ids:
                mask[row] = filters.admits(self.entry(row).document)
        else:
            np.logical_and(np.frombuffer(mask, bool), meeting(self, filters), out=np.frombuffer(mask, bool))
        for entry in filter(None, map(self.entries.get, hidden)):
            mask[entry.number - self.first] = False
        return mask

    def above_low_trust(self, mask: bytearray) -> bytearray:
        """Return the masked rows that are not of low trust."""
        return self.without(mask, self._low)

    def without(self, mask: bytearray, left_out: bytearray) -> bytearray:
        """Return the rows of one mask that are not in another."""
        return bytearray(is_in > is_out for is_in, is_out in zip(mask, left_out, strict=True))

    def count(self, mask: bytearray) -> int:
        """Return the number of masked rows."""
        return mask.count(True)

    def latest(self, count: int, mask: bytearray) -> list[int]:
        """Return the masked rows that were stored last."""
        stored = self.columns["timestamp"]
        keys = ((stored[row], self.entry(row).arrival, row) for row in self.ids if mask[row])
        return [row for *_, row in nlargest(count, keys)]

    def rows_with(self, facet: Facet) -> NDArray[np.uint32]:
        """Return the rows that have a facet, ascending."""
        import numpy as np  # nothing slow at import

        return np.frombuffer(self._facets.get(facet, array("I")), np.uintc)

    # -- sums ---------------------------------------------------------------------------------------------------------

    def statistics(self, *, items: bool) -> RowStatistics:
        """Return the sums over all rows, or over those without items."""
        notes, items_sums = self._sums[False], self._sums[True] if items else RowSums()
        return RowStatistics(
            notes.documents + items_sums.documents, notes.length + items_sums.length, notes.asking + items_sums.asking
        )

    def frequency(self, term: str, *, items: bool) -> int:
        """Return the number of rows that hold a term."""
        return self.words.frequency(term) - (0 if items else self._item_terms[term])

    # -- talks --------------------------------------------------------------------------------------------------------

    @property
    def sessions(self) -> Iterable[int]:
        """Sessions with a row here."""
        return self._sessions.keys()

    def people(self, *, items: bool) -> frozenset[str]:
        """Return the folded names of speakers in talks within one row."""
        rows = ((row, turn.speakers) for row, turn in self._said.items() if turn.speakers)
        return frozenset[str]().union(*(speakers for row, speakers in rows if items or row not in self._items))

    def calls(self, word: str, *, items: bool) -> int:
        """Return the number of rows that call a word."""
        return self._sums[False].called[word] + (self._sums[True].called[word] if items else 0)

    def get_sessions(self, rows: Iterable[int]) -> list[int]:
        """Return the session of each row."""
        return [self._said[row].session for row in rows]

    def list_session_rows(self, sessions: Iterable[int], at_most: int, *, items: bool) -> dict[int, list[SessionRow]]:
        """Return the rows of sessions, at most `at_most` + 1 of each."""
        hidden: set[int] = set() if items else self._items
        standing = ((session, self._sessions.get(session, {})) for session in sessions)
        return {
            session: list(islice((rows[row] for row in rows if row not in hidden), at_most + 1))
            for session, rows in standing
        }

    def speaker(self, row: int) -> str:
        """Return the folded name of a row's speaker, or an empty string."""
        return self._said[row].speaker
