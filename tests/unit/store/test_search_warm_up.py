"""What a first search waits for, and what the end of a session embeds."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

import pytest
from typing_extensions import override

from agent_memory.embeddings import VectorCache, WorkerLimits, service, text_hash, worker
from agent_memory.embeddings.testing import HashEmbedder
from agent_memory.errors import EmbeddingError
from agent_memory.storage import FileStorage, folder_of
from tests.support import memory_of

if TYPE_CHECKING:
    from pathlib import Path

    from agent_memory.embeddings.protocol import Vector

SECONDS = 20.0
"""Until a test fails that waits for another thread."""


class SlowModel(HashEmbedder):
    """A model that loads until `loaded` is set."""

    def __init__(self) -> None:
        super().__init__(synonyms={"db": "database"})
        self.is_loading, self.loaded = threading.Event(), threading.Event()

    @override
    def embed_query(self, text: str) -> Vector:
        self.is_loading.set()
        assert self.loaded.wait(SECONDS)
        return super().embed_query(text)


@pytest.fixture
def slow() -> SlowModel:
    return SlowModel()


def _load_after(slices: int, embedder: SlowModel, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a model load until a search has waited for so many slices."""
    warm_up = worker.EmbeddingWorker.warm_up
    waits: list[float] = []

    def counted(working: worker.EmbeddingWorker, timeout: float) -> worker.WarmUpStage:
        waits.append(timeout)
        if len(waits) <= slices:
            return warm_up(working, 0.001)
        embedder.loaded.set()
        return warm_up(working, SECONDS)

    monkeypatch.setattr(worker.EmbeddingWorker, "warm_up", counted)


async def test_first_search_of_a_loading_model_waits_however_long(
    root: Path, slow: SlowModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = FileStorage("bob", root, embedder=slow)
    await storage.store(memory_of("the database is PostgreSQL"))
    _load_after(100, slow, monkeypatch)
    found = await storage.search("db")
    assert (found.mode, len(found), found.degraded) == ("hybrid", 1, None)
    await storage.close()


async def test_first_search_without_texts_does_not_wait(root: Path, slow: SlowModel) -> None:
    storage = FileStorage("bob", root, embedder=slow)
    assert await storage.search("db") == []
    slow.loaded.set()
    await storage.close()


async def test_first_search_of_a_failing_model_answers_by_words(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "LIMITS", WorkerLimits(failures=1))
    embedder = HashEmbedder()
    embedder.failure = EmbeddingError("the weights are damaged")
    storage = FileStorage("bob", root, embedder=embedder)
    await storage.store(memory_of("the database is PostgreSQL"))
    found = await storage.search("database")
    assert (found.mode, len(found)) == ("keyword", 1)
    assert "model not loaded (the weights are damaged)" in str(found.degraded)
    await storage.close()


async def test_search_of_many_texts_counts_without_waiting(root: Path) -> None:
    embedder = HashEmbedder()
    storage = FileStorage("bob", root, embedder=embedder)
    embedder.gate.clear()
    await storage.store_many([memory_of(f"the database number {number}") for number in range(100)])
    found = await storage.search("database")
    assert found.mode == "keyword"
    assert "100 texts are still to be read" in str(found.degraded)
    embedder.gate.set()
    await storage.close()


async def test_search_with_stalled_model_stops_waiting(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "_LEAST_CPU", 1e9)  # as if no slice used the processor
    monkeypatch.setattr(service, "_SLICE_SECONDS", 0.001)
    embedder = HashEmbedder()
    embedder.gate.clear()
    storage = FileStorage("bob", root, embedder=embedder)
    await storage.store(memory_of("the database is PostgreSQL"))
    found = await storage.search("database")
    assert "1 text is still to be read" in str(found.degraded)
    embedder.gate.set()
    await storage.close()


async def test_search_waits_for_all_cached_vectors(root: Path) -> None:
    texts = [f"the database number {number}" for number in range(100)]
    storage = FileStorage("bob", root, embedder=HashEmbedder())
    await storage.store_many([memory_of(text) for text in texts])
    await storage.prepare()
    await storage.close()
    fresh = HashEmbedder()
    fresh.gate.clear()  # nothing may have to be embedded
    storage = FileStorage("bob", root, embedder=fresh)
    assert (await storage.search("database number 7")).mode == "hybrid"
    fresh.gate.set()
    await storage.close()


@pytest.mark.parametrize(("stored", "least", "most"), [(3, 3, 3), (64, 64, 64), (200, 64, 200)])
async def test_close_embeds_the_first_texts_that_wait(root: Path, stored: int, least: int, most: int) -> None:
    embedder = HashEmbedder()
    storage = FileStorage("bob", root, embedder=embedder)
    texts = [f"the database number {number}" for number in range(stored)]
    await storage.store_many([memory_of(text) for text in texts])
    await storage.close()
    cache = VectorCache(folder_of("bob", root).vectors)
    known = cache.get_many(embedder.identity, list(map(text_hash, texts)))
    cache.close()
    assert least <= len(known) <= most


async def test_close_with_nothing_waiting_loads_no_model(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "LIMITS", WorkerLimits(head_start_seconds=SECONDS))
    storage = FileStorage("bob", root, embedder=HashEmbedder())
    await storage.store(memory_of("the database is PostgreSQL"))
    await storage.close()
    fresh = SlowModel()
    storage = FileStorage("bob", root, embedder=fresh)
    await storage.search("database", patience=0)  # asks for the vectors, which the cache has
    await storage.close()
    assert not fresh.is_loading.is_set()


async def test_close_of_a_failing_model_ends(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "LIMITS", WorkerLimits(failures=1))
    embedder = HashEmbedder()
    embedder.failure = EmbeddingError("no answer")
    storage = FileStorage("bob", root, embedder=embedder)
    await storage.store(memory_of("the database is PostgreSQL"))
    await asyncio.wait_for(storage.close(), SECONDS)


async def test_search_remote_embedder_is_slow_reads_do_not_wait(root: Path) -> None:
    begun, go_on = threading.Event(), threading.Event()

    class SlowApi(HashEmbedder):
        is_remote = True

        @override
        def embed_query(self, text: str) -> Vector:
            if text == "a hot drink":
                begun.set()
                go_on.wait(SECONDS)
            return super().embed_query(text)

    storage = FileStorage("bob", root, embedder=SlowApi())
    await storage.store(memory_of("tea is a hot drink"))
    assert await storage.prepare(None)
    search = asyncio.ensure_future(storage.search("a hot drink"))
    await asyncio.to_thread(begun.wait, SECONDS)
    assert await storage.count() == 1
    assert not search.done()
    go_on.set()
    assert [result.memory.content for result in await search] == ["tea is a hot drink"]
    await storage.close()
