"""Vectors of a sealed segment give exact cosines, and the nearest by sign code hold the nearest of all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from agent_memory.errors import StorageError
from agent_memory.index.columns import finish_columns, write_columns
from agent_memory.index.segment import Segment, SegmentInfo
from agent_memory.index.segment_vectors import (
    JoinedVectors,
    PieceVectors,
    SealedVectors,
    add_vectors,
    compute_codes,
    folder_name,
    join_vectors,
)
from agent_memory.index.segment_writer import Row, seal

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

DIMENSION = 100


def some_vectors(count: int) -> NDArray[np.float32]:
    """Return vectors around a few directions, unit length."""
    random = np.random.default_rng(7)
    found = random.normal(size=(20, DIMENSION))[random.integers(0, 20, count)] + random.normal(size=(count, DIMENSION))
    return (found / np.linalg.norm(found, axis=1, keepdims=True)).astype(np.float32)


def sealed(folder: Path, vectors: NDArray[np.float32], pieces: list[int]) -> Segment:
    """Seal rows of so many pieces each."""
    folder.mkdir()
    rows = [
        Row(f"mem-{at}", at, b"{}", bytes(32), 0.0, 0.0, {}, 0, pieces=[bytes(32)] * each)
        for at, each in enumerate(pieces)
    ]
    seal(folder, rows, SegmentInfo("memory", 1, 2, 0, 0, 0))
    add_vectors(folder, "model", DIMENSION, np.array_split(vectors, 3))
    return Segment(folder)


def read(segment: Segment) -> PieceVectors:
    return PieceVectors(segment.folder / folder_name("model"))


def test_each_piece_of_a_row_has_its_cosine(tmp_path: Path) -> None:
    vectors = some_vectors(9)
    segment = sealed(tmp_path / "s", vectors, [1, 5, 3])
    search = SealedVectors(segment, read(segment))

    assert search.get_pieces(vectors[0], 1) == pytest.approx((vectors[1:6] @ vectors[0]).tolist(), abs=0.002)
    assert search.get_pieces(vectors[0], 0) == []


@pytest.mark.parametrize("exact_to", [20_000, 0])
def test_the_nearest_are_those_of_an_exact_search(tmp_path: Path, exact_to: int) -> None:
    vectors = some_vectors(3_000)
    segment = sealed(tmp_path / "s", vectors, [1] * 3_000)
    alive = np.ones(3_000, bool)
    alive[::7] = False
    search = SealedVectors(segment, read(segment), exact_to=exact_to)
    query = vectors[8]
    exact = np.where(alive, vectors @ query, -1)

    near = search.nearest(query, 10, 0.1, alive)

    assert set(near.rows.tolist()) == set(np.argsort(-exact)[:10].tolist())
    assert near.cosines == pytest.approx(np.sort(exact)[::-1][:10], abs=0.001)
    assert search.how_many(query, 0.2, alive) == pytest.approx(int((exact >= 0.2).sum()), rel=0.02 if exact_to else 0.2)


@pytest.mark.parametrize("step", [2, 30, 300])
def test_the_nearest_of_few_rows_are_found_however_many_others_are_nearer(tmp_path: Path, step: int) -> None:
    vectors = some_vectors(3_000)
    segment = sealed(tmp_path / "s", vectors, [1] * 3_000)
    may = np.zeros(3_000, bool)
    may[::step] = True
    query = vectors[1]
    near = SealedVectors(segment, read(segment), exact_to=0, candidates=4, least=40).nearest(query, 10, -1, may)
    exact = np.where(may, vectors @ query, -2)
    assert len(set(near.rows.tolist()) & set(np.argsort(-exact)[:10].tolist())) >= 9


def test_a_row_of_several_pieces_counts_by_its_best(tmp_path: Path) -> None:
    vectors = some_vectors(6)
    segment = sealed(tmp_path / "s", vectors, [2, 0, 3, 1])
    search = SealedVectors(segment, read(segment))
    exact = vectors @ vectors[3]
    best = [exact[0:2].max(), exact[2:5].max(), exact[5]]

    assert search.nearest(vectors[3], 4, -1, np.ones(4, bool)).rows.tolist()[0] == 2
    assert sorted(search.nearest(vectors[3], 4, -1, np.ones(4, bool)).cosines.tolist()) == pytest.approx(
        sorted(best), abs=0.002
    )
    cosines = search.compute_cosines(vectors[3], np.array([3, 1, 0]))
    assert cosines[[0, 2]] == pytest.approx([best[2], best[0]], abs=0.002)
    assert cosines[1] == -np.inf


def test_what_does_not_reach_the_floor_is_left_out(tmp_path: Path) -> None:
    vectors = some_vectors(50)
    segment = sealed(tmp_path / "s", vectors, [1] * 50)
    search = SealedVectors(segment, read(segment), exact_to=0)

    assert search.nearest(vectors[0], 50, 0.999, np.ones(50, bool)).rows.tolist() == [0]


def test_codes_hold_a_sign_a_bit_whatever_the_dimension() -> None:
    vectors = np.array([[1.0] * 70, [-1.0] * 70, [1.0] * 69 + [-1.0]], np.float32)

    codes = compute_codes(vectors)

    assert codes.shape == (2, 3)
    assert np.bitwise_count(codes[:, :1] ^ codes).sum(axis=0).tolist() == [0, 70, 1]


def test_codes_that_do_not_fit_their_vectors_are_an_error(tmp_path: Path) -> None:
    segment = sealed(tmp_path / "s", some_vectors(6), [1] * 6)
    other = sealed(tmp_path / "o", some_vectors(5), [1] * 5)
    place = segment.folder / folder_name("model")
    (place / "codes.npy").write_bytes((other.folder / folder_name("model") / "codes.npy").read_bytes())

    with pytest.raises(StorageError, match="vectors-"):
        read(segment)


def test_vectors_are_added_again_after_an_attempt_that_was_killed(tmp_path: Path) -> None:
    segment = sealed(tmp_path / "s", some_vectors(6), [1] * 6)
    left = segment.folder / f".{folder_name('other')}"
    left.mkdir()
    (left / "bytes.npy").write_bytes(b"half of it")

    add_vectors(segment.folder, "other", DIMENSION, [some_vectors(6)])

    assert len(PieceVectors(segment.folder / folder_name("other"))) == 6


def test_another_query_is_compared_anew(tmp_path: Path) -> None:
    vectors = some_vectors(50)
    search = SealedVectors(segment := sealed(tmp_path / "s", vectors, [1] * 50), read(segment))
    every = np.ones(50, bool)
    for at in (3, 3, 30):
        query = vectors[at].copy()
        assert search.nearest(query, 1, 0.1, every).rows.tolist() == [at]
        assert search.how_many(query, 0.3, every) == int((vectors @ query >= 0.3).sum())


def test_vectors_of_versions_before_are_read_and_merged_with_others(tmp_path: Path) -> None:
    vectors = some_vectors(8)
    old, new = sealed(tmp_path / "o", vectors[:3], [1] * 3), sealed(tmp_path / "n", vectors[3:], [1] * 5)
    place = old.folder / folder_name("model")
    (place / "bytes.npy").unlink()
    (place / "sums.json").unlink()
    write_columns(place, {"halves": vectors[:3].astype(np.float16)})
    finish_columns(place)

    assert read(old).of(slice(None)) == pytest.approx(vectors[:3], abs=0.001)
    join_vectors(tmp_path / "j", [(read(old), np.array([0, 2])), (read(new), np.array([1, 4]))])

    joined = PieceVectors(tmp_path / "j")
    assert joined.kept.dtype == np.int8
    assert joined.of(slice(None)) == pytest.approx(vectors[[0, 2, 4, 7]], abs=0.002)
    assert np.array_equal(joined.kept[2:], read(new).kept[[1, 4]])


@pytest.mark.parametrize("exact_to", [0, 5_000])
def test_joined_vectors_find_the_nearest_by_both_models(tmp_path: Path, exact_to: int) -> None:
    vectors, others = some_vectors(3_000), some_vectors(3_000)[::-1, :70]
    others = np.ascontiguousarray(others / np.linalg.norm(others, axis=1, keepdims=True))
    segment = sealed(tmp_path / "s", vectors, [1] * len(vectors))
    add_vectors(segment.folder, "other", 70, [others])
    joined = JoinedVectors([read(segment), PieceVectors(segment.folder / folder_name("other"))])
    search, among = SealedVectors(segment, joined, exact_to=exact_to), np.ones(len(vectors), bool)

    query = np.concatenate([0.6 * vectors[5], 0.8 * others[5]])
    near = search.nearest(query, 10, -1.0, among)
    cosines = (0.6 * vectors @ vectors[5] + 0.8 * others @ others[5]) / np.sqrt(2)
    best = np.argsort(-cosines)[:10]
    assert joined.dimension == DIMENSION + 70
    assert near.rows[0] == best[0] == 5
    assert len(set(near.rows.tolist()) & set(best.tolist())) >= 9
    assert near.cosines == pytest.approx(cosines[near.rows], abs=0.01)


def test_joined_vectors_of_different_pieces_are_refused(tmp_path: Path) -> None:
    one = sealed(tmp_path / "s", some_vectors(3), [1, 2])
    other = sealed(tmp_path / "t", some_vectors(2), [1, 1])
    with pytest.raises(StorageError):
        JoinedVectors([read(one), read(other)])
