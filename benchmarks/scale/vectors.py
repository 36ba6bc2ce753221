"""Synthetic vectors of the scale benchmark. Loads numpy and nothing of ours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

AGENT: Final = "bench"
_DIMENSION: Final = 384
_FIELDS: Final = 40
_OF_A_CLUSTER: Final = 25
_SPREAD: Final = (0.75, 0.8)
"""Length of what a cluster adds to its field's direction and a memory to its cluster's, beside 1: memories of a cluster
have a cosine of about .6, of a field .4, others 0, so that two in a hundred lie above the floor, as with real texts."""


def vectors(size: int) -> NDArray[np.float32]:
    """Return unit vectors in clusters of clusters, shape (size, 384), the same for the same size."""
    return np.concatenate(list(portions(size, size)))


def portions(size: int, at_once: int) -> Iterator[NDArray[np.float32]]:
    """Yield the rows of `vectors(size)`, so many at once: a million of them take gigabytes to make."""
    clusters, rng = _clusters(size), np.random.default_rng(1)
    chosen = rng.integers(len(clusters), size=size)
    for begin in range(0, size, at_once):
        some = chosen[begin : begin + at_once]
        yield _scaled(clusters[some] + _SPREAD[1] * _unit(rng, len(some)))


def queries(size: int, count: int) -> list[NDArray[np.float32]]:
    """Return unit vectors from the clusters of `vectors(size)` that are none of them."""
    clusters, rng = _clusters(size), np.random.default_rng(2)
    return list(_scaled(clusters[rng.integers(len(clusters), size=count)] + _SPREAD[1] * _unit(rng, count)))


def _clusters(size: int) -> NDArray[np.float32]:
    rng = np.random.default_rng(size)
    clusters = _unit(rng, _FIELDS)[rng.integers(_FIELDS, size=max(1, size // _OF_A_CLUSTER))]
    return _scaled(clusters + _SPREAD[0] * _unit(rng, len(clusters)))


def _unit(rng: Any, count: int) -> NDArray[np.float32]:
    return _scaled(rng.normal(size=(count, _DIMENSION)).astype(np.float32))


def _scaled(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows
