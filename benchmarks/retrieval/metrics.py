"""Metrics of a ranking, bootstrap intervals, and the BM25 reference."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from rank_bm25 import BM25Okapi

from agent_memory.language.words import STOP_WORDS, stem

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.retrieval.data import SetItem

DEPTH: Final = 100  # how far down a ranking is read: the product's own highest limit
_RESAMPLES: Final = 4_000
_WORD: Final = re.compile(r"\w+")


@dataclass(frozen=True)
class AnswerRanks:
    """Ranks of the answers to one question, from 0; None beyond 100."""

    category: str
    ranks: tuple[int | None, ...]


def outcome(ranking: Sequence[str], gold: Sequence[str], category: str) -> AnswerRanks:
    """Look up the answers in a ranking."""
    place = {key: rank for rank, key in reversed(list(enumerate(ranking[:DEPTH])))}
    return AnswerRanks(category, tuple(place.get(key) for key in gold))


def measure(one: AnswerRanks, ks: Sequence[int]) -> dict[str, float]:
    """Return the metrics of one question.

    - `any@k`: 1 if at least one answer is among the first k.
    - `frac@k`: share of the answers among the first k.
    - `all@k`: 1 if every answer is among the first k.
    - `MRR`: 1 / (place of the first answer), 0 behind place 100.
    """
    values: dict[str, float] = {}
    for k in ks:
        hits = sum(rank is not None and rank < k for rank in one.ranks)
        values |= {f"any@{k}": float(hits > 0), f"frac@{k}": hits / len(one.ranks)}
        values[f"all@{k}"] = float(hits == len(one.ranks))
    found = [rank for rank in one.ranks if rank is not None]
    values["MRR"] = 1 / (1 + min(found)) if found else 0.0
    return values


def table(outcomes: Sequence[AnswerRanks], ks: Sequence[int]) -> dict[str, list[float]]:
    """Return each metric's values, one a question, in order."""
    rows = [measure(one, ks) for one in outcomes]
    return {name: [row[name] for row in rows] for name in rows[0]} if rows else {}


def interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Return the mean and its 95 % bootstrap interval; of differences by question, that is the paired bootstrap."""
    data = np.asarray(values, dtype=np.float64)
    if not len(data):
        return 0.0, 0.0, 0.0
    draws = np.random.default_rng(1).integers(0, len(data), (_RESAMPLES, len(data)))
    means = data[draws].mean(axis=1)
    low, high = np.percentile(means, [2.5, 97.5])
    return float(data.mean()), float(low), float(high)


class Bm25Reference:
    """rank-bm25 over the memories' texts, with Snowball stems and the product's own stop words."""

    def __init__(self, items: Sequence[SetItem]) -> None:
        self._keys = [item.key for item in items]
        self._index = BM25Okapi([_terms(item.text) or [""] for item in items]) if items else None

    def search(self, query: str) -> list[str]:
        """Return the keys of memories with a score above 0, best first, at most 100."""
        if self._index is None:
            return []
        scores = self._index.get_scores(_terms(query))
        order = np.argsort(-scores, kind="stable")[:DEPTH]
        return [self._keys[at] for at in order if scores[at] > 0]


def _terms(text: str) -> list[str]:
    return [stem(word) for word in _WORD.findall(text.casefold()) if word not in STOP_WORDS]
