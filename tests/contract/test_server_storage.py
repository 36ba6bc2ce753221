"""`QdrantServerStorage` keeps the contract of `MemoryStorage`, by words and by meaning, and agrees with `FileStorage`.

Against the local mode of Qdrant's client, and against Qdrant's own engine as it is embedded elsewhere: both have the
server's conditions and filters, and neither its network.
"""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING, Any

import pytest
from typing_extensions import override

from agent_memory.embeddings import PROVIDERS, LocalEmbedder, Provider
from agent_memory.embeddings.testing import HashEmbedder
from agent_memory.memories import QdrantServerStorage
from agent_memory.settings import ServiceSettings
from agent_memory.storage import FileStorage, MemoryStorage
from tests.contract.memory_storage import MemoryStorageContract
from tests.qdrant_server import QUIET, QdrantServer
from tests.support import memory_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

    from agent_memory.models import SearchResults
    from tests.support import FrozenClock

pytestmark = QUIET
WORDS = (
    "tea", "coffee", "train", "Oslo", "Lyon", "office", "green", "morning", "deploy", "key", "rotate", "db",
    "database",
)  # fmt: skip


@pytest.fixture
async def server() -> AsyncIterator[QdrantServer]:
    server = QdrantServer()
    yield server
    await server.close_opened()


class TestServerStorage(MemoryStorageContract):
    """Searched by words."""

    @override
    @pytest.fixture
    def open_storage(self, server: QdrantServer, clock: FrozenClock) -> Callable[[], Awaitable[MemoryStorage]]:
        async def opened() -> MemoryStorage:
            return server.open(clock=clock)

        return opened


class TestServerStorageWithVectors(MemoryStorageContract):
    """Searched by words and by meaning, every vector in place before each search."""

    @override
    @pytest.fixture
    def open_storage(self, server: QdrantServer, clock: FrozenClock) -> Callable[[], Awaitable[MemoryStorage]]:
        class Prepared(QdrantServerStorage):
            @override
            async def search(self, *args: Any, **kwargs: Any) -> SearchResults:
                await self.prepare()
                return await super().search(*args, **kwargs)

        async def opened() -> MemoryStorage:
            return server.open(clock=clock, embedder=HashEmbedder(512), kind=Prepared)

        return opened


class TestServerStorageOnTheEngine(TestServerStorageWithVectors):
    """As before, and what judges the conditions of each write is Qdrant's own engine."""

    @pytest.fixture
    async def server(self, tmp_path: Path) -> AsyncIterator[QdrantServer]:
        server = QdrantServer(tmp_path / "shard")
        yield server
        await server.close_opened()
        server.close()


class TestAgreement:
    """The same memories and the same question give the same answer, whatever the backend."""

    @pytest.fixture
    async def both(
        self, server: QdrantServer, root: Path, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch
    ) -> AsyncIterator[tuple[MemoryStorage, MemoryStorage]]:
        embedder = HashEmbedder(64, {"db": "database"})
        monkeypatch.setitem(PROVIDERS, "local", Provider(make=lambda _: embedder))
        file = FileStorage("bob", root, settings=ServiceSettings(), clock=clock)
        there = server.open(clock=clock, embedder=HashEmbedder(64, {"db": "database"}))
        yield file, there
        await file.close()

    async def test_files_and_server_rank_alike(
        self, both: tuple[MemoryStorage, MemoryStorage], clock: FrozenClock
    ) -> None:
        await _same_history(both, clock)
        for storage in both:
            assert await storage.prepare()
        for query in ("green tea", "which database", "db", "train to Oslo", "", "rotate the key", "zzz"):
            for options in ({}, {"filters": {"category": "decision"}}, {"include_superseded": True, "explain": True}):
                expected, got = [await storage.search(query, 10, **options) for storage in both]
                assert [r.memory for r in got] == [r.memory for r in expected]
                assert (got.mode, got.total_found) == (expected.mode, expected.total_found)
                assert [r.match_type for r in got] == [r.match_type for r in expected]
                for mine, theirs in zip(got, expected, strict=True):
                    # The file's cache keeps float16 and the server float32.
                    assert mine.relevance_score == pytest.approx(theirs.relevance_score, abs=1e-3)
                assert _named(got) == _named(expected)

    async def test_everything_else_agrees_too(
        self, both: tuple[MemoryStorage, MemoryStorage], clock: FrozenClock
    ) -> None:
        await _same_history(both, clock)
        file, there = both
        assert [m async for m in there.iter_all()] == [m async for m in file.iter_all()]
        assert await there.superseded() == await file.superseded()
        assert await there.list_recent(100) == await file.list_recent(100)
        assert await there.valid() == await file.valid()
        for text in ("forgotten green", "tea", "never"):
            assert await there.was_forgotten(text) == await file.was_forgotten(text)


def _named(found: SearchResults) -> list[tuple[str, str]]:
    """Return what was left out and why; of those below the floor the best fifty are shown, equals in any order."""
    return sorted((item["id"], item["reason"]) for item in found.rejected if item["reason"] != "below_floor")


async def _same_history(both: tuple[MemoryStorage, MemoryStorage], clock: FrozenClock) -> None:
    chance = random.Random(5)
    known: list[str] = []
    for number in range(60):
        text = f"{number} " + " ".join(chance.choices(WORDS, k=chance.randint(2, 8)))
        fields = {"category": chance.choice(["note", "decision"]), "timestamp": clock.advance(hours=7)}
        memory = memory_of(text, supersedes=chance.choice([None, None, *known[-3:]]), **fields)
        known.append(memory.id)
        touched = chance.sample(known, k=min(2, len(known)))
        for storage in both:
            await storage.store(memory)
            await storage.touch(touched)
    gone = memory_of("forgotten green", supersedes=None)
    for storage in both:
        await storage.store(gone)
        await storage.delete(gone.id)
        await storage.update(known[7], {"content": "a new text about the db", "pinned": True})


@pytest.mark.model
async def test_the_real_model_finds_by_meaning(server: QdrantServer, clock: FrozenClock) -> None:
    storage = server.open(clock=clock, embedder=LocalEmbedder())
    for text in ("We chose PostgreSQL for the orders", "Lunch is at noon", "The long story. " * 60):
        await storage.store(memory_of(text))
    assert await storage.prepare()
    found = await storage.search("which database did we pick", 1)
    assert (found.mode, found[0].memory.content) == ("hybrid", "We chose PostgreSQL for the orders")


async def test_nothing_blocks_the_event_loop(server: QdrantServer, clock: FrozenClock) -> None:
    """While the server thinks, other tasks run."""
    storage = server.open(clock=clock)
    await storage.count()
    server.hold.clear()
    waiting = asyncio.create_task(storage.store(memory_of("tea")))
    for _ in range(50):
        await asyncio.sleep(0)
    assert not waiting.done()
    server.hold.set()
    await waiting
