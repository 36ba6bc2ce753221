"""Vectors in a byte a number: their directions come back, and what came back stays as it is."""

from __future__ import annotations

import numpy as np
import pytest

from agent_memory.files.vectors import load_vectors, pack_vectors, unpack_vectors
from tests.rows import check_rows


def directions(count: int, dimension: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    made = np.random.default_rng(dimension).standard_normal((count, dimension)).astype(np.float32)
    return np.asarray(made / np.linalg.norm(made, axis=1, keepdims=True), np.float32)


def test_cosines_move_by_less_than_two_thousandths() -> None:
    exact = directions(300, 384)
    kept = pack_vectors(exact)
    assert kept.dtype == np.int8
    assert np.abs(unpack_vectors(kept) @ unpack_vectors(kept).T - exact @ exact.T).max() < 0.003
    assert np.abs(unpack_vectors(kept) @ exact.T - exact @ exact.T).max() < 0.002


def test_what_was_kept_once_is_kept_again_without_a_change() -> None:
    kept = pack_vectors(directions(50, 128))
    assert np.array_equal(pack_vectors(unpack_vectors(kept)), kept)
    assert np.array_equal(pack_vectors(3 * unpack_vectors(kept)), kept)


def test_short_vectors_are_halves_of_floats() -> None:
    exact = directions(5, 63)
    assert pack_vectors(exact).dtype == np.float16
    assert unpack_vectors(pack_vectors(exact)) == pytest.approx(exact, abs=0.0005)


@check_rows("dimension", [4, 384])
@check_rows("number", [0, np.nan, np.inf])
def test_what_has_no_direction_comes_back_as_zeros(number: float, dimension: int) -> None:
    vectors = np.vstack([np.full(dimension, number, np.float32), directions(1, dimension)[0]])
    found = unpack_vectors(pack_vectors(vectors))
    assert not found[0].any()
    assert np.linalg.norm(found[1]) == pytest.approx(1, abs=1e-5)


@check_rows("kind", [np.int8, np.float16])
def test_bytes_and_halves_are_told_apart_by_their_length(kind: type[np.int8 | np.float16]) -> None:
    rows = np.arange(12, dtype=kind).reshape(3, 4)
    assert np.array_equal(load_vectors(rows.tobytes(), 3, 4), rows)
    with pytest.raises(ValueError, match="multiple of element size"):
        load_vectors(rows.tobytes()[:-1], 3, 4)
