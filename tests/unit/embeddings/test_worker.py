"""The embedding thread: cache first, nothing twice, no failure gets out, nothing waits."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from agent_memory.embeddings import EmbeddingWorker, VectorCache, WorkerLimits, text_hash
from agent_memory.embeddings.testing import HashEmbedder
from agent_memory.errors import EmbeddingError


def _texts(*texts: str) -> dict[bytes, str]:
    return {text_hash(text): text for text in texts}


@pytest.fixture
def embedder() -> HashEmbedder:
    return HashEmbedder()


@pytest.fixture
def worker(embedder: HashEmbedder, tmp_path: Path) -> Iterator[EmbeddingWorker]:
    working = EmbeddingWorker(embedder, VectorCache(tmp_path / "v.sqlite3"))
    yield working
    embedder.gate.set()
    working.close()


def test_nothing_runs_before_it_is_needed(worker: EmbeddingWorker) -> None:
    before = threading.active_count()
    assert not worker.ready
    assert worker.collect() == []
    assert threading.active_count() == before


def test_submitted_texts_come_back_as_vectors(worker: EmbeddingWorker) -> None:
    worker.submit(_texts("alpha", "beta"))
    assert worker.drain(10)
    assert dict(worker.collect()).keys() == {text_hash("alpha"), text_hash("beta")}
    assert worker.collect() == []


def test_a_second_process_finds_the_vectors_in_the_cache(worker: EmbeddingWorker, tmp_path: Path) -> None:
    worker.submit(_texts("alpha"))
    assert worker.drain(10)
    fresh = HashEmbedder()
    second = EmbeddingWorker(fresh, VectorCache(tmp_path / "v.sqlite3"))
    second.submit(_texts("alpha", "beta"))
    assert second.drain(10)
    assert fresh.embedded == ["beta"]
    assert (dict(second.collect())[text_hash("alpha")] == dict(worker.collect())[text_hash("alpha")]).all()
    second.close()


def test_another_model_embeds_anew(worker: EmbeddingWorker, tmp_path: Path) -> None:
    worker.submit(_texts("alpha"))
    assert worker.drain(10)
    other = HashEmbedder(model="other")
    second = EmbeddingWorker(other, VectorCache(tmp_path / "v.sqlite3"))
    second.submit(_texts("alpha"))
    assert second.drain(10)
    assert other.embedded == ["alpha"]
    second.close()


def test_queries_wait_for_no_model(worker: EmbeddingWorker, embedder: HashEmbedder) -> None:
    assert worker.embed_query("alpha") is None
    assert worker.drain(10)
    assert worker.embed_query("alpha") is not None


def test_queries_are_not_cached_on_disk(worker: EmbeddingWorker, tmp_path: Path) -> None:
    worker.start()
    assert worker.drain(10)
    worker.embed_query("a secret question")
    cache = VectorCache(tmp_path / "v.sqlite3")
    assert cache.get_many(HashEmbedder().identity, [text_hash("a secret question")]) == {}
    cache.close()


def test_a_failure_is_reported_and_the_texts_are_tried_again(worker: EmbeddingWorker, embedder: HashEmbedder) -> None:
    embedder.failure = EmbeddingError("no answer", code="embedder_unreachable")
    worker.submit(_texts("alpha"))
    assert not worker.drain(10)
    status = worker.status
    assert (status.problem, status.code, status.pending) == ("no answer", "embedder_unreachable", 1)


def test_after_a_passing_failure_everything_is_embedded(worker: EmbeddingWorker, embedder: HashEmbedder) -> None:
    failed = threading.Event()
    original = embedder.embed_documents

    def once(texts: list[str]):  # type: ignore[no-untyped-def]  # noqa: ANN202
        if not failed.is_set():
            failed.set()
            raise EmbeddingError("hiccup")
        return original(texts)

    embedder.embed_documents = once  # type: ignore[method-assign]
    worker.submit(_texts("alpha"))
    assert worker.drain(10)
    assert worker.status.problem is None
    assert embedder.embedded == ["alpha"]


def test_one_text_that_the_model_refuses_does_not_hold_up_the_others(
    worker: EmbeddingWorker, embedder: HashEmbedder
) -> None:
    original = embedder.embed_documents

    def choosy(texts: list[str]):  # type: ignore[no-untyped-def]  # noqa: ANN202
        if "poison" in texts:
            raise EmbeddingError("refused", code="http_400")
        return original(texts)

    embedder.embed_documents = choosy  # type: ignore[method-assign]
    texts = [f"text {number}" for number in range(50)]
    worker.submit(_texts(*texts[:10], "poison", *texts[10:]))
    assert worker.drain(10)
    assert sorted(embedder.embedded) == sorted(texts)
    assert worker.status.pending == 0


def test_withdrawn_texts_are_not_embedded(worker: EmbeddingWorker, embedder: HashEmbedder) -> None:
    embedder.gate.clear()
    worker.submit(_texts("first"))
    worker.submit(_texts(*[f"text {number}" for number in range(100)], "gone"))
    worker.withdraw(text_hash("gone"))
    embedder.gate.set()
    assert worker.drain(10)
    assert "gone" not in embedder.embedded


def test_closing_does_not_wait_for_the_queue(worker: EmbeddingWorker, embedder: HashEmbedder) -> None:
    embedder.gate.clear()
    worker.submit(_texts(*[f"text {number}" for number in range(500)]))
    threading.Timer(0.05, embedder.gate.set).start()
    worker.close()
    assert len(embedder.embedded) < 500


def test_an_unusable_cache_costs_time_only(embedder: HashEmbedder, tmp_path: Path) -> None:
    worker = EmbeddingWorker(embedder, VectorCache(tmp_path / "no" / "v.sqlite3"))
    worker.submit(_texts("alpha"))
    assert worker.drain(10)
    assert len(worker.collect()) == 1
    assert worker.status.code == "vector_cache"
    worker.close()


def test_known_vectors_come_without_the_model(worker: EmbeddingWorker, tmp_path: Path) -> None:
    """What is cached is counted and found before a model of half a second is loaded, unless somebody waits for it."""
    worker.submit(_texts("alpha"))
    assert worker.drain(10)
    fresh = HashEmbedder()
    fresh.failure = EmbeddingError("no model")
    second = EmbeddingWorker(fresh, VectorCache(tmp_path / "v.sqlite3"))
    assert not second.status.begun
    second.submit(_texts("alpha"))
    while not (known := second.collect()):
        time.sleep(0.01)
    assert [key for key, _ in known] == [text_hash("alpha")]
    second.close()


def test_closing_waits_for_one_piece_of_long_texts(worker: EmbeddingWorker, embedder: HashEmbedder) -> None:
    embedder.gate.clear()
    worker.submit(_texts(*[f"{number} " + "long " * 300 for number in range(20)]))
    worker.start()
    threading.Timer(0.05, embedder.gate.set).start()
    worker.close()
    assert len(embedder.embedded) <= 2


def test_an_interrupted_close_has_waited_all_the_same(
    worker: EmbeddingWorker, embedder: HashEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedder.gate.clear()
    worker.submit(_texts("alpha"))
    worker.start()
    waits = []
    wait_for = threading.Condition.wait_for

    def impatient(change: threading.Condition, predicate: Callable[[], bool], timeout: float | None = None) -> bool:
        if threading.current_thread() is not threading.main_thread():
            return wait_for(change, predicate, timeout)
        waits.append(timeout)
        if len(waits) == 1:
            raise KeyboardInterrupt
        embedder.gate.set()
        return wait_for(change, predicate, timeout)

    monkeypatch.setattr(threading.Condition, "wait_for", impatient)
    with pytest.raises(KeyboardInterrupt):
        worker.close()
    assert waits == [None, None]


def test_an_api_is_not_waited_for(embedder: HashEmbedder) -> None:
    embedder.is_remote = True  # type: ignore[attr-defined]
    asked, answer = threading.Event(), threading.Event()

    def slowly(texts: list[str]):  # type: ignore[no-untyped-def]  # noqa: ANN202
        asked.set()
        answer.wait()
        return HashEmbedder().embed_documents(texts)

    embedder.embed_documents = slowly  # type: ignore[method-assign]
    worker = EmbeddingWorker(embedder, limits=WorkerLimits(remote_seconds=0.01))
    worker.submit(_texts("alpha"))
    worker.start()
    assert asked.wait(10)
    worker.close()
    answer.set()


def test_cached_texts_load_no_model(tmp_path: Path, embedder: HashEmbedder, monkeypatch: pytest.MonkeyPatch) -> None:
    cache, queries = tmp_path / "v.sqlite3", list[str]()
    with closing(EmbeddingWorker(embedder, VectorCache(cache))) as worker:
        worker.submit(_texts("alpha"))
        assert worker.drain(10)
    embed_query = HashEmbedder.embed_query
    monkeypatch.setattr(HashEmbedder, "embed_query", lambda self, text: queries.append(text) or embed_query(self, text))
    with closing(EmbeddingWorker(HashEmbedder(), VectorCache(cache))) as worker:
        worker.submit(_texts("alpha"))
        assert worker.finish(10, 10)
        assert [key for key, _ in worker.collect()] == [text_hash("alpha")]
        assert not queries
        assert not worker.status.begun
    with closing(EmbeddingWorker(HashEmbedder(), VectorCache(cache))) as worker:
        worker.submit(_texts("alpha"))
        assert worker.drain(10)
        assert queries == ["ready"]
