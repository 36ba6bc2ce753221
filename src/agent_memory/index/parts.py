"""All rows of an agent's index under one numbering.

The segments come first, oldest first, then the buffer: of equal rows the one with the higher number is the later.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, Any, Final

from agent_memory.index.buffer_part import BufferPart
from agent_memory.index.results import IndexedDocument, LengthNorm, RankingSettings

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    import numpy as np
    from numpy.typing import NDArray

    from agent_memory.embeddings.protocol import Vector
    from agent_memory.index.segment_part import SealedCorpus, SegmentPart
    from agent_memory.models import SearchFilters

Masks = list["NDArray[np.bool_]"]
"""For each segment the rows that may be found, shape (rows,)."""
PartMasks = list[Any]
"""The same for each part; the mask of the buffer is a `bytearray`."""
_MOST_ENTRIES: Final = 10_000
_MOST_TERMS: Final = 10_000


class PartList:
    """Parts of one index.

    Args:
        sealed: Segments as parts; None without any.
        arrays_from: As in `SearchLimits`.

    Attributes:
        sealed: As given.
        buffer: Documents that changed since the last segment.
        segments: Part of each segment.
        parts: Segments and buffer.
    """

    def __init__(self, sealed: SealedCorpus | None, arrays_from: int) -> None:
        self.sealed = sealed
        self.buffer = BufferPart(0 if sealed is None else sealed.chain.firsts[-1], arrays_from)
        self.segments: list[SegmentPart] = [] if sealed is None else sealed.parts
        self.parts: list[Any] = [*self.segments, self.buffer]
        self._firsts = [part.first for part in self.parts]
        self._entries: dict[str, IndexedDocument] = {}  # of segments

    @property
    def has_items(self) -> bool:
        """True if any row was extracted from a document or a talk."""
        return self.buffer.has_items or (self.sealed is not None and self.sealed.has_items)

    @property
    def state(self) -> tuple[int, int]:
        """Differs if a row came or died."""
        return self.buffer.changes, 0 if self.sealed is None else len(self.sealed.chain)

    @property
    def is_embedded(self) -> bool:
        """True if all segments have their vectors."""
        return all(part.vectors is not None for part in self.segments)

    def __getitem__(self, record_id: str) -> IndexedDocument:
        """Return a document by its ID.

        Raises:
            KeyError: No row of it is alive.
        """
        entry = self.buffer.entries.get(record_id) or self._entries.get(record_id)
        if entry is None:
            number = None if self.sealed is None else self.sealed.find(record_id)
            if number is None:
                raise KeyError(record_id)
            entry = self.entry(number)
        return entry

    def entry(self, number: int) -> IndexedDocument:
        """Return the document of a row."""
        part, row = self.place(number)
        entry: IndexedDocument = part.entry(row)
        if part is not self.buffer:
            if len(self._entries) >= _MOST_ENTRIES:
                self._entries.clear()
            entry = self._entries.setdefault(entry.document.id, entry)
        return entry

    def get_id(self, number: int) -> str:
        """Return the ID of a row."""
        part, row = self.place(number)
        record_id: str = part.ids[row] if part is self.buffer else part.id(row)
        return record_id

    def arrival(self, number: int) -> int:
        """Return the place of a row in the order of storing."""
        part, row = self.place(number)
        arrival: int = part.arrival(row)
        return arrival

    def drop(self, record_ids: Iterable[str]) -> None:
        """Forget documents whose rows in segments died."""
        for record_id in record_ids:
            self._entries.pop(record_id, None)

    def place(self, number: int) -> tuple[Any, int]:
        """Return the part of a number, and the row in there."""
        place = bisect_right(self._firsts, number) - 1
        return self.parts[place], number - self._firsts[place]

    def by_part(self, numbers: Iterable[int]) -> Iterator[tuple[Any, list[int]]]:
        """Yield rows, ascending, by their part."""
        ordered, begin = sorted(numbers), 0
        for part, following in zip(self.parts, [*self._firsts[1:], math.inf], strict=True):
            end = bisect_left(ordered, following, begin)
            if begin < end:
                yield part, [number - part.first for number in ordered[begin:end]]
            begin = end

    # -- masks --------------------------------------------------------------------------------------------------------

    def masks(self, filters: SearchFilters, among: Masks | None = None, hidden: Iterable[str] = ()) -> PartMasks:
        """Return masks of the rows that meet filters.

        Args:
            filters: Conditions that all rows meet.
            among: Rows of segments that may be found at all, None for all that are alive.
            hidden: IDs of documents in the buffer that must not be found.
        """
        filters = filters if self.has_items else filters.with_items
        wanted = filters.with_items
        masks = self.sealed.chain.alive if among is None and self.sealed is not None else among or ()
        pairs = zip(self.segments, masks, strict=True)
        segments = [part.mask(wanted, mask, items=filters.include_items) for part, mask in pairs]
        return [*segments, self.buffer.mask(filters, hidden)]

    def admits(self, number: int, masks: PartMasks) -> bool:
        """Return True if a row is in masks."""
        place = bisect_right(self._firsts, number) - 1
        return bool(masks[place][number - self._firsts[place]])

    def above_low_trust(self, masks: PartMasks) -> PartMasks:
        """Return masks of the masked rows that are not of low trust."""
        return [part.above_low_trust(mask) for part, mask in zip(self.parts, masks, strict=True)]

    def without(self, masks: PartMasks, left_out: PartMasks) -> PartMasks:
        """Return masks of the rows of `masks` that are not in `left_out`."""
        return [part.without(*pair) for part, *pair in zip(self.parts, masks, left_out, strict=True)]

    def count(self, masks: PartMasks) -> int:
        """Return the number of masked rows."""
        return sum(part.count(mask) for part, mask in zip(self.parts, masks, strict=True))

    def latest(self, count: int, masks: PartMasks) -> list[IndexedDocument]:
        """Return at least the `count` masked documents that were stored last."""
        pairs = zip(self.parts, masks, strict=True)
        return [self.entry(part.first + row) for part, mask in pairs for row in part.latest(count, mask)]

    # -- words and vectors --------------------------------------------------------------------------------------------

    def best(
        self, gains: Mapping[str, float], norm: LengthNorm, count: int, masks: PartMasks
    ) -> list[tuple[float, int]]:
        """Return the best masked rows by words: scores and numbers.

        Best first, the later first among equals.
        """
        best: list[tuple[float, int]] = []
        for part, mask in zip(self.parts, masks, strict=True):
            best += [(score, part.first + row) for score, row in part.words.best(gains, norm, count, mask)]
        best.sort(reverse=True)
        least = best[count - 1][0] if len(best) > count else 0.0
        best = [pair for pair in best if pair[0] >= least]
        if len({score for score, _ in best}) < len(best):
            best.sort(key=lambda pair: (pair[0], self.arrival(pair[1])), reverse=True)
        return best[:count]

    def how_many(self, terms: Collection[str], masks: PartMasks) -> int:
        """Return the number of masked rows with a term, estimated if many."""
        return sum(part.words.how_many(terms, mask) for part, mask in zip(self.parts, masks, strict=True))

    def sample(self, terms: Collection[str], masks: PartMasks, step: int) -> list[int]:
        """Return the masked rows of every `step`-th occurrence of `terms`."""
        pairs = zip(self.parts, masks, strict=True)
        return [part.first + row for part, mask in pairs for row in part.words.sample(terms, mask, step)]

    def nearest(self, query: Vector, count: int, floor: float, masks: PartMasks) -> list[tuple[float, int]]:
        """Return the nearest masked rows of segments: cosines and numbers."""
        near: list[tuple[float, int]] = []
        for part, mask in zip(self.segments, masks, strict=False):
            if part.vectors is not None:
                rows, cosines = part.vectors.nearest(query, count, floor, mask)
                near += zip(cosines.tolist(), (rows + part.first).tolist(), strict=True)
        return sorted(near, reverse=True)[:count]

    def how_many_near(self, query: Vector, floor: float, masks: PartMasks) -> int:
        """Return the number of masked rows in segments that reach a floor.

        Estimated if many do.
        """
        pairs = zip(self.segments, masks, strict=False)
        return sum(part.vectors.how_many(query, floor, mask) for part, mask in pairs if part.vectors is not None)

    def compute_cosines(self, query: Vector, numbers: Iterable[int]) -> dict[int, float]:
        """Return the cosines of rows with a vector in their segment."""
        cosines: dict[int, float] = {}
        for part, rows in self.by_part(numbers):
            if part is not self.buffer and part.vectors is not None:
                pairs = zip(rows, part.vectors.compute_cosines(query, rows).tolist(), strict=True)
                cosines.update((part.first + row, cosine) for row, cosine in pairs if cosine > -math.inf)
        return cosines

    def get_pieces(self, query: Vector, number: int) -> list[float]:
        """Return the cosine of each piece of a row in a segment."""
        part, row = self.place(number)
        if part is self.buffer or part.vectors is None:
            return []
        pieces: list[float] = part.vectors.get_pieces(query, row)
        return pieces


class WordScorer:
    """Weights of words, from sums over all parts.

    The weights are those of all rows or, without items, of the rest: documents and talks yield a hundred times more
    rows than an agent notes. Scores are those of an index built again from the rows that are alive.

    Args:
        parts: Rows of the index by number.
        settings: `k1` and `b`.
        items: True if items count for the weights.

    Attributes:
        parts: As given.
    """

    def __init__(self, parts: PartList, settings: RankingSettings, *, items: bool) -> None:
        self.parts = parts
        self._k1, self._b = settings.k1, settings.b
        self._items = items
        self._state = (-1, 0)
        self._sums = (0, 0)
        self._frequencies: dict[str, int] = {}
        self._idfs: dict[str, float] = {}

    @property
    def documents(self) -> int:
        """Number of rows that count."""
        return self._count()[0]

    @property
    def norm(self) -> LengthNorm:
        """Weights of a row's length."""
        documents, length = self._count()
        return LengthNorm(self._k1 * (1 - self._b), self._k1 * self._b * documents / max(1, length))

    def frequency(self, term: str) -> int:
        """Return the number of rows with a term, estimated if many."""
        self._count()
        frequency = self._frequencies.get(term)
        if frequency is None:
            frequency = sum(part.frequency(term, items=self._items) for part in self.parts.parts)
            self._frequencies[term] = frequency
        return frequency

    def _count(self) -> tuple[int, int]:
        """Return the number of rows and terms, counted again after changes."""
        if self._state != self.parts.state or len(self._frequencies) >= _MOST_TERMS:
            self._state = self.parts.state
            self._frequencies.clear()
            self._idfs.clear()
            statistics = [part.statistics(items=self._items) for part in self.parts.parts]
            self._sums = sum(part.documents for part in statistics), sum(part.length for part in statistics)
        return self._sums

    def idf(self, term: str) -> float:
        """Return the inverse document frequency of a term, 0 if unknown."""
        self._count()
        idf = self._idfs.get(term)
        if idf is None:
            frequency = self.frequency(term)
            idf = self._idfs[term] = self.compute_idf(frequency) if frequency else 0.0
        return idf

    def compute_idf(self, frequency: int) -> float:
        """Return the inverse document frequency of a term that `frequency` rows hold."""
        return math.log(1 + (max(0, self.documents - frequency) + 0.5) / (frequency + 0.5))

    def gains(self, weights: Mapping[str, float]) -> dict[str, float]:
        """Return the most that each known term adds to a score.

        The largest first.

        Args:
            weights: Weight of each query term, above 0; its number of occurrences, as a rule.
        """
        gains = [(weight * self.idf(term) * (self._k1 + 1), term) for term, weight in weights.items()]
        # All parts add in this order, so that equal rows have equal scores.
        return {term: gain for gain, term in sorted(gains, key=lambda pair: -pair[0]) if gain > 0}

    def compute_scores(self, weights: Mapping[str, float], numbers: Iterable[int]) -> dict[int, float]:
        """Return the BM25 score of each row, 0 without a term."""
        gains, norm = self.gains(weights), self.norm
        scores: dict[int, float] = {}
        for part, rows in self.parts.by_part(numbers):
            pairs = zip(rows, part.words.compute_scores(gains, norm, rows), strict=True)
            scores.update((part.first + row, score) for row, score in pairs)
        return scores

    def full_score(self, weights: Mapping[str, float]) -> float:
        """Return the score of an average row with every term once.

        Unknown terms count as those of no row.
        """
        unknown = self.compute_idf(0)
        return sum(weight * (self.idf(term) or unknown) for term, weight in weights.items())

    def window_scores(self, weights: Mapping[str, float], windows: Mapping[int, tuple[int, ...]]) -> dict[int, float]:
        """Return BM25 scores of windows, each read as one row.

        The length of a window is the mean of its rows, so that a row at the edge of a talk is not favoured.

        Args:
            weights: As in `gains`.
            windows: For a row, all rows of its window, itself among them.
        """
        scores = dict.fromkeys(windows, 0.0)
        windows_with: dict[int, list[int]] = {}
        for number, window in windows.items():
            for member in window:
                windows_with.setdefault(member, []).append(number)
        flat, slope = self.norm
        lengths: dict[int, int] = {}
        for part, rows in self.parts.by_part(windows_with):
            lengths.update(zip((part.first + row for row in rows), part.lengths(rows), strict=True))
        heaviness = {
            number: flat + slope * sum([lengths[member] for member in window]) / len(window)
            for number, window in windows.items()
        }
        held = self.held(weights, windows_with)
        for term, weight in weights.items():
            together: dict[int, int] = {}
            for member, frequency in held[term]:
                for number in windows_with[member]:
                    together[number] = together.get(number, 0) + frequency
            gain = weight * self.idf(term) * (self._k1 + 1)
            for number, frequency in together.items():
                scores[number] += gain * frequency / (frequency + heaviness[number])
        return scores

    def held(self, terms: Iterable[str], numbers: Iterable[int]) -> dict[str, list[tuple[int, int]]]:
        """Return the rows that hold each term, with its frequency."""
        held: dict[str, list[tuple[int, int]]] = {term: [] for term in terms}
        for part, rows in self.parts.by_part(numbers):
            for term, pairs in held.items():
                pairs += [(part.first + row, frequency) for row, frequency in part.words.find_counts(term, rows)]
        return held
