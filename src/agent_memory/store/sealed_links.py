"""`SealedLinks`: which sealed records are linked to a record."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from agent_memory.index.segment import hash_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_memory.index.chain import Chain


class SealedLinks:
    """What sealed records are linked to.

    Args:
        chain: Their segments.
    """

    def __init__(self, chain: Chain) -> None:
        self._chain = chain
        hashes = ((at, np.asarray(segment.columns["linked.hash"])) for at, segment in enumerate(chain.segments))
        self._targets = [(at, each) for at, each in hashes if len(each)]  # most often nothing is linked

    def leading_to(self, record_id: str) -> Iterator[str]:
        """Yield the ids of those that are probably linked to a record, those that were sealed last first."""
        if not self._targets:
            return
        wanted = np.uint64(hash_of(record_id.encode()))
        for at, hashes in reversed(self._targets):
            begin = int(hashes.searchsorted(wanted))
            if begin == len(hashes) or hashes[begin] != wanted:
                continue
            segment, alive = self._chain.segments[at], self._chain.alive[at]
            rows = segment.columns["linked.row"][begin : int(hashes.searchsorted(wanted, side="right"))]
            yield from (segment.id(row) for row in reversed(rows[alive[rows]].tolist()))
