"""`Part`: the rows of a chain without a facet, read as if there were no others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from agent_memory.index.segment import facet_key

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from agent_memory.index.chain import Chain


class Part:
    """Some rows of a chain; a row that is hidden there is hidden here.

    Args:
        chain: All rows.
        facet: Facet of the rows that are left out.

    Attributes:
        segments: Segments of the chain.
        kept: For each segment a mask of the rows of the part, dead or alive; None if all rows belong to it.
    """

    def __init__(self, chain: Chain, facet: tuple[str, str]) -> None:
        self._chain = chain
        self.segments = chain.segments
        self.kept: list[NDArray[np.bool_] | None] = []
        for segment in chain.segments:
            without = segment.lists("facets").of(facet_key(facet)).rows
            kept = np.ones(len(segment), bool)
            kept[without] = False
            self.kept.append(kept if len(without) else None)
        self._known = (-1, chain.alive, 0)

    @property
    def is_whole(self) -> bool:
        """Whether no row is left out."""
        return all(kept is None for kept in self.kept)

    def __len__(self) -> int:
        """Return the number of rows that are alive."""
        return self._count()[1]

    @property
    def alive(self) -> list[NDArray[np.bool_]]:
        """For each segment a mask of its rows that are alive; not to be changed."""
        return self._count()[0]

    def of(self, masks: list[NDArray[np.bool_]]) -> list[NDArray[np.bool_]]:
        """Return masks of the masked rows that belong to the part."""
        return [mask if kept is None else mask & kept for mask, kept in zip(masks, self.kept, strict=True)]

    def _count(self) -> tuple[list[NDArray[np.bool_]], int]:
        size, alive, count = self._known
        if size != len(self._chain):  # rows die and never come back
            alive = self.of(self._chain.alive)
            count = sum(int(np.count_nonzero(mask)) for mask in alive)
            self._known = (len(self._chain), alive, count)
        return alive, count
