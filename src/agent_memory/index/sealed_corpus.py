"""`SealedCorpus`: searches in the documents of a chain of segments.

Rows that count and may be shown are given as masks, so filters cost a pass over a column instead of a look at each
candidate. Must not know what replaces or hides a record: storage says which rows may be found.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from agent_memory.index.part import Part
from agent_memory.index.results import SEALED_FROM
from agent_memory.index.row import TRUSTS
from agent_memory.index.sealed_rows import Scored, SealedRows, SealedTalks, SealedWeights
from agent_memory.index.segment import facet_key
from agent_memory.models import GROUP, GROUPED, ITEM

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from agent_memory.embeddings.protocol import Vector
    from agent_memory.index.chain import Chain
    from agent_memory.index.results import Norm
    from agent_memory.index.sealed_rows import Masks
    from agent_memory.index.sealed_vectors import SealedVectors
    from agent_memory.index.segment import Segment
    from agent_memory.models import Facet, SearchFilters

_NO_VECTOR: Final = -math.inf
_LOW: Final = TRUSTS.index("low")


class SealedCorpus:
    """What is sealed of one agent's documents.

    Args:
        chain: Its segments; whose rows count changes while this is used.
        vectors: For each segment its vectors; None for one that has none yet.

    Attributes:
        rows, weights, talks: What is known of documents without a search.
        notes: Those that are no items.
    """

    def __init__(self, chain: Chain, vectors: Sequence[SealedVectors | None]) -> None:
        self.chain = chain
        self.vectors = vectors
        self.rows = SealedRows(chain)
        self.weights = SealedWeights(self.rows, chain)
        self.talks = SealedTalks(self.rows, chain)
        self.notes = Part(chain, ITEM)

    def weights_of_notes(self) -> SealedWeights:
        """Return how words weigh in those that are no items."""
        return SealedWeights(self.rows, self.notes)

    def talks_of_notes(self) -> SealedTalks:
        """Return what those say of talks that are no items."""
        return SealedTalks(self.rows, self.notes)

    def has_vectors(self, record_id: str) -> bool:
        """Tell whether a document is in a segment that has its vectors."""
        entry = self.rows.get(record_id)
        return entry is not None and self.vectors[self.rows.place(entry.number)[0]] is not None

    def within(self, filters: SearchFilters, among: Masks | None) -> Masks:
        """Return which rows meet filters exactly.

        Args:
            filters: Conditions that all must meet.
            among: Which may be found at all; None for all that count.
        """
        found = self.chain.alive if among is None else among
        if filters.admits_all:
            return found
        if not filters.include_items:
            found, filters = self.notes.of(found), filters.with_items
            if filters.admits_all:
                return found
        return [mask & meeting(segment, filters) for segment, mask in zip(self.chain.segments, found, strict=True)]

    def above_low_trust(self, masks: Masks) -> Masks:
        """Return which of some rows are above low trust."""
        pairs = zip(self.chain.segments, masks, strict=True)
        return [mask & (segment.columns["trust"] != _LOW) for segment, mask in pairs]

    def by_words(self, gains: Mapping[str, float], norm: Norm, count: int, masks: Masks) -> list[Scored]:
        """Return the best documents by words, best first."""
        found: list[tuple[float, int]] = []
        for first, words, mask in zip(self.chain.firsts, self.weights.words, masks, strict=False):
            best = words.best(gains, norm, count, mask)
            found += zip(best.scores.tolist(), (best.rows + first).tolist(), strict=True)
        return self.rows.named(found, count)

    def by_embedding(self, query: Vector, count: int, floor: float, masks: Masks) -> list[Scored]:
        """Return the nearest documents, best first, of the segments that have their vectors."""
        found: list[tuple[float, int]] = []
        for first, vectors, mask in zip(self.chain.firsts, self.vectors, masks, strict=False):
            if vectors is not None:
                near = vectors.nearest(query, count, floor, mask)
                found += zip(near.cosines.tolist(), (near.rows + first).tolist(), strict=True)
        return self.rows.named(found, count)

    def how_many_hold(self, terms: Iterable[str], masks: Masks) -> int:
        """Return how many rows hold a term; where there are many, about how many."""
        every = list(terms)
        return sum(words.how_many(every, mask) for words, mask in zip(self.weights.words, masks, strict=True))

    def how_many_near(self, query: Vector, floor: float, masks: Masks) -> int:
        """Return how many rows reach a floor; where there are many, about how many."""
        pairs = zip(self.vectors, masks, strict=True)
        return sum(vectors.how_many(query, floor, mask) for vectors, mask in pairs if vectors is not None)

    def latest(self, count: int, masks: Masks) -> list[Scored]:
        """Return at least those documents that were stored last, with their moments.

        Of the same moment those that came later: as many of each segment, of which a caller takes the latest.
        """
        found: list[tuple[float, int]] = []
        for first, segment, mask in zip(self.chain.firsts, self.chain.segments, masks, strict=False):
            rows = np.flatnonzero(mask)
            times = segment.columns["timestamp"][rows]
            if count < len(rows):
                rows = rows[times >= np.partition(times, len(rows) - count)[len(rows) - count]]
                order = np.lexsort((segment.arrivals[rows], segment.columns["timestamp"][rows]))
                rows = rows[order[len(rows) - count :]]
                times = segment.columns["timestamp"][rows]
            found += zip(times.tolist(), (rows + first).tolist(), strict=True)
        return self.rows.named(found, len(found))

    def cosines_of(self, query: Vector, numbers: Iterable[int]) -> dict[int, float]:
        """Return the cosine of each of some rows, without those that have no vector."""
        found: dict[int, float] = {}
        for at, some in self.rows.by_segment(numbers):
            vectors = self.vectors[at]
            if vectors is not None:
                cosines = vectors.cosines_of(query, some - (SEALED_FROM + self.chain.firsts[at]))
                pairs = zip(some.tolist(), cosines.tolist(), strict=True)
                found.update((number, cosine) for number, cosine in pairs if cosine > _NO_VECTOR)
        return found

    def pieces_of(self, query: Vector, number: int) -> list[float]:
        """Return the cosine of each piece of a row, in their order; nothing where there are no vectors of it."""
        for at, rows in self.rows.by_segment([number]):
            vectors = self.vectors[at]
            if vectors is not None:
                return vectors.pieces_of(query, int(rows[0]) - (SEALED_FROM + self.chain.firsts[at]))
        return []


def meeting(segment: Segment, filters: SearchFilters) -> NDArray[np.bool_]:
    """Return which rows of a segment meet filters."""
    found = np.ones(len(segment), bool)
    if not filters.include_items:
        found &= ~_having(segment, [ITEM])
    if filters.group is not None:
        found &= ~_having(segment, [GROUPED]) | _having(segment, [(GROUP, filters.group)])
    for facet in filters.facets:
        found &= _having(segment, [facet])
    if filters.any_facets:
        found &= _having(segment, filters.any_facets)
    if filters.date_range is not None:
        times, bounds = segment.columns["moment"], filters.date_range
        if bounds.start is not None:
            found &= times >= bounds.start.timestamp()
        if bounds.end is not None:
            found &= times <= bounds.end.timestamp()
    if filters.min_access_count is not None:
        found &= segment.columns["access_count"] >= filters.min_access_count
    return found


def _having(segment: Segment, facets: Iterable[Facet]) -> NDArray[np.bool_]:
    found = np.zeros(len(segment), bool)
    for facet in facets:
        found[segment.lists("facets").of(facet_key(facet)).rows] = True
    return found
