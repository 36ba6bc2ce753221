"""`DenseIndex`: which vectors stand for which memory."""

from collections.abc import Iterator

import numpy as np
import pytest

from agent_memory.embeddings import EmbeddingWorker
from agent_memory.embeddings.testing import HashEmbedder
from agent_memory.index import DenseIndex, ExactCosines


@pytest.fixture
def embedder() -> HashEmbedder:
    return HashEmbedder(dimension=32)


@pytest.fixture
def worker(embedder: HashEmbedder) -> Iterator[EmbeddingWorker]:
    working = EmbeddingWorker(embedder)
    yield working
    working.close()


@pytest.fixture
def dense(worker: EmbeddingWorker) -> DenseIndex:
    return DenseIndex(worker)


def _cosine(dense: DenseIndex, embedder: HashEmbedder, query: str, memory_id: str) -> float | None:
    return dense.cosines(embedder.embed_query(query)).of([memory_id]).get(memory_id)


def test_the_same_words_have_a_cosine_of_one(
    dense: DenseIndex, worker: EmbeddingWorker, embedder: HashEmbedder
) -> None:
    dense.put("a", ["use postgresql"])
    assert worker.drain(10)
    assert _cosine(dense, embedder, "use postgresql", "a") == pytest.approx(1, abs=1e-3)


def test_a_memory_counts_by_its_best_piece(dense: DenseIndex, worker: EmbeddingWorker, embedder: HashEmbedder) -> None:
    dense.put("a", ["red green", "use postgresql"])
    assert worker.drain(10)
    assert _cosine(dense, embedder, "use postgresql", "a") == pytest.approx(1, abs=1e-3)


def test_each_piece_of_a_memory_has_its_cosine(
    dense: DenseIndex, worker: EmbeddingWorker, embedder: HashEmbedder
) -> None:
    dense.put("a", ["red green", "use postgresql"])
    dense.put("b", ["use postgresql"])
    assert worker.drain(10)
    cosines = dense.cosines(embedder.embed_query("use postgresql"))
    assert isinstance(cosines, ExactCosines)
    assert cosines.get_pieces("a") == pytest.approx([cosines.get_pieces("a")[0], 1], abs=1e-3)
    assert cosines.get_pieces("a")[0] < 0.9
    assert cosines.get_pieces("b") == cosines.get_pieces("unknown") == []


def test_one_text_is_embedded_once_for_two_memories(
    dense: DenseIndex, worker: EmbeddingWorker, embedder: HashEmbedder
) -> None:
    dense.put("a", ["same"])
    dense.put("b", ["same"])
    assert worker.drain(10)
    dense.remove("a")
    assert embedder.embedded == ["same"]
    assert _cosine(dense, embedder, "same", "a") is None
    assert _cosine(dense, embedder, "same", "b") == pytest.approx(1, abs=1e-3)


def test_hundreds_of_memories_keep_their_own_vectors(
    dense: DenseIndex, worker: EmbeddingWorker, embedder: HashEmbedder
) -> None:
    """Crosses the growth of the matrix and the reuse of freed rows."""
    texts = {f"m{number}": f"word{number} other{number * 7}" for number in range(700)}
    for memory_id, text in texts.items():
        dense.put(memory_id, [text])
    assert worker.drain(10)
    assert dense.ready
    for number in range(0, 700, 3):
        dense.remove(f"m{number}")
    for number in range(0, 700, 3):
        texts[f"m{number}"] = f"new{number}"
        dense.put(f"m{number}", [f"new{number}"])
    assert worker.drain(10)
    for memory_id, text in texts.items():
        assert _cosine(dense, embedder, text, memory_id) == pytest.approx(1, abs=1e-3)


def test_at_least_and_below_split_at_the_floor_best_first(
    dense: DenseIndex, worker: EmbeddingWorker, embedder: HashEmbedder
) -> None:
    for memory_id, text in {"a": "alpha beta", "b": "alpha", "c": "gamma"}.items():
        dense.put(memory_id, [text])
    assert worker.drain(10)
    found = dense.cosines(embedder.embed_query("alpha"))
    assert [memory_id for memory_id, _ in found.at_least(0.5)] == ["b", "a"]
    assert [memory_id for memory_id, _ in found.at_least(0.5, 1)] == ["b"]
    assert found.how_many(0.5) == 2
    assert [memory_id for memory_id, _ in found.below(0.5, 5)] == ["c"]


def test_a_memory_of_several_pieces_and_pieces_of_several_memories_are_counted_once(
    dense: DenseIndex, worker: EmbeddingWorker, embedder: HashEmbedder
) -> None:
    dense.put("long", ["alpha", "alpha beta", "gamma"])
    dense.put("twin", ["alpha"])
    dense.put("gone", ["alpha delta"])
    dense.put("other", ["gamma"])
    assert worker.drain(10)
    dense.cosines(embedder.embed_query("alpha"))
    dense.remove("gone")
    found = dense.cosines(embedder.embed_query("alpha"))
    assert found.how_many(0.5) == 2
    assert [one for one, _ in found.at_least(0.5)] == [one for one, _ in found.at_least(0.5, 2)] == ["long", "twin"]
    assert len(found.at_least(0.5, 1)) == 1
    assert [one for one, _ in found.below(0.5, 5)] == ["other"]
    assert found.of(["long", "twin", "gone", "unknown"]) == pytest.approx({"long": 1, "twin": 1}, abs=1e-3)
    assert found.how_many(-2.0) == 3


def test_it_is_ready_only_with_a_model_and_nearly_all_vectors(
    dense: DenseIndex, worker: EmbeddingWorker, embedder: HashEmbedder
) -> None:
    embedder.gate.clear()
    dense.put("a", ["alpha"])
    assert not dense.ready
    embedder.gate.set()
    assert worker.drain(10)
    assert dense.ready


def test_ready_with_one_text_pending_is_true(
    dense: DenseIndex, worker: EmbeddingWorker, embedder: HashEmbedder
) -> None:
    dense.put("a", ["alpha"])
    assert worker.drain(10)
    assert dense.ready
    embedder.gate.clear()
    dense.put("b", ["beta"])
    is_ready = dense.ready
    dense.put("c", ["gamma"])
    is_ready_with_two = dense.ready
    embedder.gate.set()
    assert (is_ready, is_ready_with_two) == (True, False)


def test_a_query_of_another_dimension_matches_nothing(dense: DenseIndex, worker: EmbeddingWorker) -> None:
    dense.put("a", ["alpha"])
    assert worker.drain(10)
    assert dense.cosines(np.ones(7, dtype=np.float32)).at_least(-1) == []


def test_hashes_are_those_of_living_memories(dense: DenseIndex) -> None:
    dense.put("a", ["alpha"])
    dense.put("a", ["beta"])
    dense.put("b", ["gamma"])
    dense.remove("b")
    assert len(dense.hashes()) == 1
