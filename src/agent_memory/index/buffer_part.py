"""`BufferPart`: the documents that changed since the last segment, as one more part of an index.

It is a segment under construction: rows are appended and marked dead, never renumbered. Plain Python, so that a search
by words works without numpy; with numpy, long word lists and filters are read as arrays.
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
from agent_memory.index.document_terms import document_terms
from agent_memory.index.facets import meeting
from agent_memory.index.postings import Postings
from agent_memory.index.results import UNREAD, SearchLimits, Statistics
from agent_memory.index.scores import numpy_if_there
from agent_memory.index.turns import NO_SESSION, Said, Standing, said_by
from agent_memory.language.text_forms import tells_time
from agent_memory.models import ITEM

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy as np
    from numpy.typing import NDArray

    from agent_memory.index.results import IndexedDocument
    from agent_memory.models import Document, Facet, SearchFilters

_MAX_COUNT: Final = 2**32 - 1  # what an array of type I holds


@dataclass(slots=True)
class RowSums:
    """Sums over some rows of a buffer, kept while rows come and go.

    Attributes:
        documents, length, asking: As in `Statistics`.
        called: Number of rows that call a word.
    """

    documents: int = 0
    length: int = 0
    asking: int = 0
    called: Counter[str] = field(default_factory=Counter)

    def add(self, length: int, said: Said, by: int) -> None:
        """Add a row (`by` 1) or subtract it (-1)."""
        self.documents += by
        self.length += by * length
        self.asking += by * said.asks
        for word in said.called:
            self.called[word] += by


class BufferPart:
    """Documents in memory, a row for each version that was read.

    Args:
        first: Number of row 0.
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
        self.words = Postings(arrays_from)
        self._alive = bytearray()
        self._low = bytearray()
        self._facets: dict[Facet, array[int]] = {}
        self._said: dict[int, Said] = {}
        self._items: set[int] = set()
        self._item_terms: Counter[str] = Counter()
        self._sessions: dict[int, dict[int, Standing]] = {}
        self._sums = {True: RowSums(), False: RowSums()}

    def __len__(self) -> int:
        """Return the number of rows, alive or not."""
        return len(self._alive)

    # -- changes ------------------------------------------------------------------------------------------------------

    def add(self, entry: IndexedDocument) -> Said:
        """Read a document into a new row and return what its text says."""
        document = entry.document
        terms, said, is_item = document_terms(document), said_by(document), ITEM in document.facets
        counts = Counter(terms)
        row = self.words.add(counts)
        entry.number, entry.length, entry.moment = self.first + row, len(terms), document.moment.timestamp()
        entry.length_share, entry.tells_time, entry.asks = fusion.length_share(len(terms)), tells_time(terms), said.asks
        self.ids[row], self._said[row] = document.id, said
        self._alive.append(True)
        self._low.append(False)
        self.columns["timestamp"].append(document.timestamp.timestamp())
        self.columns["moment"].append(entry.moment)
        self.columns["access_count"].append(0)
        for facet in document.facets:
            self._facets.setdefault(facet, array("I")).append(row)
        if said.session != NO_SESSION:
            self._sessions.setdefault(said.session, {})[row] = Standing(entry.moment, entry.arrival, entry.number)
        if is_item:
            self._items.add(row)
            self._item_terms.update(counts.keys())
        self._sums[is_item].add(len(terms), said, 1)
        self.changes += 1
        self.replace(entry, document)
        return said

    def replace(self, entry: IndexedDocument, document: Document) -> None:
        """Keep the new version of a document whose words are the same."""
        entry.document = document
        if entry.number != UNREAD:
            row = entry.number - self.first
            self._low[row] = document.trust == "low"
            self.columns["access_count"][row] = min(document.access_count, _MAX_COUNT)

    def drop(self, entry: IndexedDocument) -> Said:
        """Mark the row of a document dead and return what its text says."""
        document, row = entry.document, entry.number - self.first
        counts, said = Counter(document_terms(document)), self._said.pop(row)
        self.words.drop(row, counts)
        for facet in document.facets:
            rows = self._facets[facet]
            del rows[bisect_left(rows, row)]
        if said.session != NO_SESSION:
            del self._sessions[said.session][row]
            if not self._sessions[said.session]:
                del self._sessions[said.session]
        self._sums[row in self._items].add(counts.total(), said, -1)
        if row in self._items:
            self._items.remove(row)
            self._item_terms.subtract(counts.keys())
        self._alive[row] = False
        del self.ids[row]
        self.changes += 1
        entry.number = UNREAD
        return said

    # -- rows ---------------------------------------------------------------------------------------------------------

    @property
    def has_items(self) -> bool:
        """Whether any row was drawn from a document or a talk."""
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
        """Return a mask of the rows that meet filters and are not hidden by their ID."""
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
        """Return a mask of the masked rows that are not of low trust."""
        return self.without(mask, self._low)

    def without(self, mask: bytearray, left_out: bytearray) -> bytearray:
        """Return a mask of the rows of one mask that are not in another."""
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

    def statistics(self, *, items: bool) -> Statistics:
        """Return the sums over all rows, or over those that are no items."""
        notes, others = self._sums[False], self._sums[True] if items else RowSums()
        return Statistics(
            notes.documents + others.documents, notes.length + others.length, notes.asking + others.asking
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
        """Return the folded names of those who speak in a talk within one row."""
        rows = ((row, said.speakers) for row, said in self._said.items() if said.speakers)
        return frozenset[str]().union(*(speakers for row, speakers in rows if items or row not in self._items))

    def calls(self, word: str, *, items: bool) -> int:
        """Return the number of rows that call a word."""
        return self._sums[False].called[word] + (self._sums[True].called[word] if items else 0)

    def sessions_of(self, rows: Iterable[int]) -> list[int]:
        """Return the session of each row."""
        return [self._said[row].session for row in rows]

    def standing_in(self, sessions: Iterable[int], at_most: int, *, items: bool) -> dict[int, list[Standing]]:
        """Return the rows of some sessions, one more than `at_most` of each session at most."""
        hidden: set[int] = set() if items else self._items
        standing = ((session, self._sessions.get(session, {})) for session in sessions)
        return {
            session: list(islice((rows[row] for row in rows if row not in hidden), at_most + 1))
            for session, rows in standing
        }

    def speaker(self, row: int) -> str:
        """Return the folded name of who says a row, or an empty string."""
        return self._said[row].speaker
