"""What a ranking is worth: metrics and bootstrap intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

DEPTH: Final = 100  # how far down a ranking is read: the product's own highest limit
_RESAMPLES: Final = 4_000


@dataclass(frozen=True)
class Outcome:
    """Where the answers to one question stood: `ranks` count from 0, None is not among the first 100."""

    category: str
    ranks: tuple[int | None, ...]


def outcome(ranking: Sequence[str], gold: Sequence[str], category: str) -> Outcome:
    """Look up the answers in a ranking."""
    place = {key: rank for rank, key in reversed(list(enumerate(ranking[:DEPTH])))}
    return Outcome(category, tuple(place.get(key) for key in gold))


def measure(one: Outcome, ks: Sequence[int]) -> dict[str, float]:
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


def table(outcomes: Sequence[Outcome], ks: Sequence[int]) -> dict[str, list[float]]:
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


def auc(answerable: Sequence[float], unanswerable: Sequence[float]) -> float:
    """Return how often an answerable question has the higher number of two, one of each kind; 0.5 is chance."""
    ours, theirs = np.asarray(answerable)[:, None], np.asarray(unanswerable)[None, :]
    return float(((ours > theirs) + (ours == theirs) / 2).mean())


def rejected(answerable: Sequence[float], unanswerable: Sequence[float], kept: float = 0.9) -> float:
    """Return which share of the unanswerable lies below the number that a share `kept` of the answerable reaches."""
    cut = np.quantile(np.asarray(answerable), 1 - kept, method="lower")
    return float((np.asarray(unanswerable) < cut).mean())
