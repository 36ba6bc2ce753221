"""What is measured beside the product: rankings that anyone gets in a few lines, from the same texts and weights."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from rank_bm25 import BM25Okapi

from agent_memory.retrieval import embedded_texts
from agent_memory.retrieval.tokens import STOP_WORDS, stem
from benchmarks._retrieval_metrics import DEPTH

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_memory.embeddings import Embedder
    from benchmarks._retrieval_data import Item

BM25: Final = "BM25"
MINILM: Final = "MiniLM"
RRF: Final = "RRF"

_RRF_K: Final = 60
_WORD: Final = re.compile(r"\w+")


class Found(NamedTuple):
    """A ranking: keys, best first, at most 100, and the number of the first, 0 where nothing is found."""

    keys: list[str]
    top: float


class Rivals:
    """Three rankings of one group's texts.

    `BM25` is rank-bm25 with Snowball stems and the product's stop words. `MiniLM` is the cosine with the nearest of a
    text's pieces, which are the product's. `RRF` joins the two by reciprocal ranks with the usual 60, untuned.

    Args:
        items: The memories.
        embedder: Makes vectors; None leaves out what needs them.
    """

    def __init__(self, items: Sequence[Item], embedder: Embedder | None) -> None:
        self._words = Reference(items)
        self._keys = [item.key for item in items]
        self._embedder = embedder if items else None
        if self._embedder is not None:
            pieces = [embedded_texts(item.text) for item in items]
            self._begins = np.cumsum([0, *map(len, pieces[:-1])])
            self._vectors = self._embedder.embed_documents([text for texts in pieces for text in texts])

    def search(self, query: str) -> dict[str, Found]:
        """Return what each finds."""
        found = {BM25: self._words.search(query)}
        if self._embedder is not None:
            cosines = np.maximum.reduceat(self._vectors @ self._embedder.embed_query(query), self._begins)
            order = np.argsort(-cosines, kind="stable")[:DEPTH]
            found[MINILM] = Found([self._keys[at] for at in order], float(cosines[order[0]]))
            found[RRF] = _joined([found[BM25].keys, found[MINILM].keys])
        return found


class Reference:
    """rank-bm25 over the memories' texts, with Snowball stems and the product's own stop words."""

    def __init__(self, items: Sequence[Item]) -> None:
        self._keys = [item.key for item in items]
        self._index = BM25Okapi([_terms(item.text) or [""] for item in items]) if items else None

    def search(self, query: str) -> Found:
        """Return the memories with a score above 0."""
        if self._index is None:
            return Found([], 0.0)
        scores = self._index.get_scores(_terms(query))
        order = [at for at in np.argsort(-scores, kind="stable")[:DEPTH] if scores[at] > 0]
        return Found([self._keys[at] for at in order], float(scores[order[0]]) if order else 0.0)


def _joined(rankings: Sequence[Sequence[str]]) -> Found:
    scores: Counter[str] = Counter()
    for ranking in rankings:
        for rank, key in enumerate(ranking, 1):
            scores[key] += 1 / (_RRF_K + rank)  # type: ignore[assignment]  # a Counter may hold any number
    best = scores.most_common(DEPTH)
    return Found([key for key, _ in best], best[0][1] if best else 0.0)


def _terms(text: str) -> list[str]:
    return [stem(word) for word in _WORD.findall(text.casefold()) if word not in STOP_WORDS]
