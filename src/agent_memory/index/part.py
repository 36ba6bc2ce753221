"""`Part`: the rows of a chain that lack a facet, read as if there were no others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from agent_memory.index.segment import facet_key

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from agent_memory.index.chain import Chain


class Part:
    """Some rows of a chain, under their numbers there; what is hidden there is hidden here.

    Args:
        chain: All of them.
        facet: What those that are left out have.

    Attributes:
        segments, firsts: Those of the chain.
        kept: For each segment which of its rows belong to the part, whether they count or not; None where all do.
    """

    def __init__(self, chain: Chain, facet: tuple[str, str]) -> None:
        self._chain = chain
        self.segments, self.firsts = chain.segments, chain.firsts
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
        """Return how many rows count."""
        return self._look()[1]

    @property
    def alive(self) -> list[NDArray[np.bool_]]:
        """For each segment which of its rows count; not to be changed."""
        return self._look()[0]

    def of(self, masks: list[NDArray[np.bool_]]) -> list[NDArray[np.bool_]]:
        """Return of some rows of the chain those that belong to the part."""
        return [mask if kept is None else mask & kept for mask, kept in zip(masks, self.kept, strict=True)]

    def _look(self) -> tuple[list[NDArray[np.bool_]], int]:
        size, alive, count = self._known
        if size != len(self._chain):  # rows come to count no more, never the other way round
            alive = self.of(self._chain.alive)
            count = sum(int(np.count_nonzero(each)) for each in alive)
            self._known = (len(self._chain), alive, count)
        return alive, count
