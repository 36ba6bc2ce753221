"""Rival rankings of the same texts: BM25, MiniLM, and both joined."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

import numpy as np

from agent_memory.language.text_forms import cut_pieces
from benchmarks.retrieval.metrics import DEPTH, Bm25Reference

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_memory.embeddings import Embedder
    from benchmarks.retrieval.data import SetItem

BM25: Final = "BM25"
MINILM: Final = "MiniLM"
RRF: Final = "RRF"

_RRF_K: Final = 60


class RivalRankings:
    """Three rankings of one group's texts.

    `BM25` is rank-bm25 with Snowball stems and the product's stop words. `MiniLM` is the cosine with the nearest of a
    text's pieces, as it is written. `RRF` joins the two by reciprocal ranks with the usual 60, untuned.

    Args:
        items: The memories.
        embedder: Makes vectors; None leaves out what needs them.
    """

    def __init__(self, items: Sequence[SetItem], embedder: Embedder | None) -> None:
        self._words = Bm25Reference(items)
        self._keys = [item.key for item in items]
        self._embedder = embedder if items else None
        if self._embedder is not None:
            pieces = [cut_pieces(item.text) for item in items]
            self._begins = np.cumsum([0, *map(len, pieces[:-1])])
            self._vectors = self._embedder.embed_documents([text for texts in pieces for text in texts])

    def search(self, query: str) -> dict[str, list[str]]:
        """Return the keys of each rival, best first, at most 100."""
        found = {BM25: self._words.search(query)}
        if self._embedder is not None:
            cosines = np.maximum.reduceat(self._vectors @ self._embedder.embed_query(query), self._begins)
            order = np.argsort(-cosines, kind="stable")[:DEPTH]
            found[MINILM] = [self._keys[at] for at in order]
            found[RRF] = _joined([found[BM25], found[MINILM]])
        return found


def _joined(rankings: Sequence[Sequence[str]]) -> list[str]:
    scores: Counter[str] = Counter()
    for ranking in rankings:
        for rank, key in enumerate(ranking, 1):
            scores[key] += 1 / (_RRF_K + rank)  # type: ignore[assignment]  # a Counter may hold any number
    return [key for key, _ in scores.most_common(DEPTH)]
