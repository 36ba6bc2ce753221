"""`SealedCorpus`: the segments of an agent as parts of an index."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_memory.index.chain import arrivals
from agent_memory.index.part import Part
from agent_memory.index.segment_part import SegmentPart
from agent_memory.models import ITEM

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_memory.index.chain import Chain
    from agent_memory.index.sealed_vectors import SealedVectors


class SealedCorpus:
    """Parts of an index that are sealed.

    Args:
        chain: Segments, whose rows may die while this is used.
        vectors: Vectors of each segment, None for a segment without.

    Attributes:
        chain, vectors: As given.
        parts: A part of each segment, oldest first.
    """

    def __init__(self, chain: Chain, vectors: Sequence[SealedVectors | None]) -> None:
        self.chain = chain
        self.vectors = vectors
        self._notes = Part(chain, ITEM)
        self.parts = [SegmentPart(chain, place, self._notes, known) for place, known in enumerate(vectors)]

    @property
    def has_items(self) -> bool:
        """Whether any row was drawn from a document or a talk."""
        return not self._notes.is_whole

    def find(self, record_id: str) -> int | None:
        """Return the number of the row of a document that is alive, or None."""
        return self.chain.find(record_id)

    def has_vectors(self, record_id: str) -> bool:
        """Return True if a document is in a segment that has its vectors."""
        number = self.chain.find(record_id)
        return number is not None and self.vectors[self.chain.place_of(number)[0]] is not None

    def arrivals(self, record_ids: Sequence[str]) -> dict[str, int]:
        """Return the places in the order of storing of those documents that have a row, dead or alive."""
        places = arrivals(self.chain, [record_id.encode() for record_id in record_ids]).tolist()
        return {record_id: place for record_id, place in zip(record_ids, places, strict=True) if place >= 0}
