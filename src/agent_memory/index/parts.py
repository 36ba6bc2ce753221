"""`PartList`: all rows of an agent's index, part after part, under one numbering.

The segments come first, oldest first, then the buffer: of equal rows the one with the higher number is the later.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, Any, Final

from agent_memory.index.buffer_part import BufferPart

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    import numpy as np
    from numpy.typing import NDArray

    from agent_memory.embeddings.protocol import Vector
    from agent_memory.index.results import IndexedDocument, Norm
    from agent_memory.index.sealed_corpus import SealedCorpus
    from agent_memory.index.segment_part import SegmentPart
    from agent_memory.models import SearchFilters

Masks = list["NDArray[np.bool_]"]
"""For each segment the rows that may be found, shape (rows,)."""
PartMasks = list[Any]
"""The same for each part; the mask of the buffer is a `bytearray`."""

_MOST_ENTRIES: Final = 10_000


class PartList:
    """Parts of one index.

    Args:
        sealed: Segments; None without any.
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
        """Whether any row was drawn from a document or a talk."""
        return self.buffer.has_items or (self.sealed is not None and self.sealed.has_items)

    @property
    def state(self) -> tuple[int, int]:
        """Differs if a row came or died."""
        return self.buffer.changes, 0 if self.sealed is None else len(self.sealed.chain)

    @property
    def is_embedded(self) -> bool:
        """Whether all segments have their vectors."""
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

    def id_of(self, number: int) -> str:
        """Return the ID of a row."""
        return self.entry(number).document.id

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

    def best(self, gains: Mapping[str, float], norm: Norm, count: int, masks: PartMasks) -> list[tuple[float, int]]:
        """Return the best masked rows by words: scores and numbers, best first, the later first among equals."""
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
        """Return the number of masked rows that hold any of `terms`, an estimate if many do."""
        return sum(part.words.how_many(terms, mask) for part, mask in zip(self.parts, masks, strict=True))

    def sample(self, terms: Collection[str], masks: PartMasks, step: int) -> list[int]:
        """Return the masked rows of every `step`-th occurrence of `terms`."""
        pairs = zip(self.parts, masks, strict=True)
        return [part.first + row for part, mask in pairs for row in part.words.sample(terms, mask, step)]

    def nearest(self, query: Vector, count: int, floor: float, masks: PartMasks) -> list[tuple[float, int]]:
        """Return the nearest masked rows of segments with vectors: cosines and numbers, best first."""
        near: list[tuple[float, int]] = []
        for part, mask in zip(self.segments, masks, strict=False):
            if part.vectors is not None:
                rows, cosines = part.vectors.nearest(query, count, floor, mask)
                near += zip(cosines.tolist(), (rows + part.first).tolist(), strict=True)
        return sorted(near, reverse=True)[:count]

    def how_many_near(self, query: Vector, floor: float, masks: PartMasks) -> int:
        """Return the number of masked rows in segments whose cosine reaches a floor, an estimate if many do."""
        pairs = zip(self.segments, masks, strict=False)
        return sum(part.vectors.how_many(query, floor, mask) for part, mask in pairs if part.vectors is not None)

    def cosines_of(self, query: Vector, numbers: Iterable[int]) -> dict[int, float]:
        """Return the cosines of those rows that have a vector in their segment."""
        cosines: dict[int, float] = {}
        for part, rows in self.by_part(numbers):
            if part is not self.buffer and part.vectors is not None:
                pairs = zip(rows, part.vectors.cosines_of(query, rows).tolist(), strict=True)
                cosines.update((part.first + row, cosine) for row, cosine in pairs if cosine > -math.inf)
        return cosines

    def pieces_of(self, query: Vector, number: int) -> list[float]:
        """Return the cosine of each piece of a row, in their order; empty without vectors in its segment."""
        part, row = self.place(number)
        if part is self.buffer or part.vectors is None:
            return []
        pieces: list[float] = part.vectors.pieces_of(query, row)
        return pieces
