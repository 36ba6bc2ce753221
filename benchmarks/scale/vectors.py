"""Synthetic vectors of the scale benchmark. Loads numpy and nothing of ours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

AGENT: Final = "bench"
DIMENSION: Final = 384
"""Of vectors by default: that of MiniLM."""
_FIELDS: Final = 40
_OF_A_CLUSTER: Final = 25
_SPREAD: Final = (0.75, 0.8)
"""Length of what a cluster adds to its field's direction and a memory to its cluster's, beside 1: memories of a cluster
have a cosine of about .6, of a field .4, others 0, so that two in a hundred lie above the floor, as with real texts."""


def vectors(size: int) -> NDArray[np.float32]:
    """Return unit vectors in clusters of clusters, shape (size, 384), the same for the same size."""
    return np.concatenate(list(portions(size, size)))


def portions(size: int, at_once: int, dimension: int = DIMENSION) -> Iterator[NDArray[np.float32]]:
    """Yield the rows of `vectors(size)`, so many at once: a million of them take gigabytes to make."""
    clusters, rng = _clusters(size, dimension), np.random.default_rng(1)
    chosen = rng.integers(len(clusters), size=size)
    for begin in range(0, size, at_once):
        some = chosen[begin : begin + at_once]
        yield _scaled(clusters[some] + _SPREAD[1] * _unit(rng, len(some), dimension))


def queries(size: int, count: int, dimensions: Sequence[int] = (DIMENSION,)) -> list[NDArray[np.float32]]:
    """Return unit vectors from the clusters of `vectors(size)` that are none of them.

    With several dimensions they are joined, as of a pair of embedders.
    """
    return list(_scaled(np.concatenate([_queries(size, count, dimension) for dimension in dimensions], axis=1)))


def _queries(size: int, count: int, dimension: int) -> NDArray[np.float32]:
    clusters, rng = _clusters(size, dimension), np.random.default_rng(2)
    return _scaled(clusters[rng.integers(len(clusters), size=count)] + _SPREAD[1] * _unit(rng, count, dimension))


def _clusters(size: int, dimension: int) -> NDArray[np.float32]:
    rng = np.random.default_rng(size)
    clusters = _unit(rng, _FIELDS, dimension)[rng.integers(_FIELDS, size=max(1, size // _OF_A_CLUSTER))]
    return _scaled(clusters + _SPREAD[0] * _unit(rng, len(clusters), dimension))


def _unit(rng: Any, count: int, dimension: int) -> NDArray[np.float32]:
    return _scaled(rng.normal(size=(count, dimension)).astype(np.float32))


def _scaled(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows
