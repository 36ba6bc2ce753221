"""Storages that hold an index, with an engine in this process, and memories to fill them."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from agent_memory.embeddings.testing import HashEmbedder
from agent_memory.memories import VectorStorage
from agent_memory.store.shards import Shards
from tests.engines import EngineHere, made_index, options
from tests.support import NOON, FrozenClock, memory_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

    from agent_memory.models import Memory, SearchResults
    from agent_memory.storage import FileStorage

    Open = Callable[..., Awaitable[VectorStorage]]

WORDS = ("ledger", "parser", "queue", "cache", "router", "session", "uses", "needs", "Redis", "Kafka", "YAML", "worker")


@pytest.fixture
def embedder() -> HashEmbedder:
    return HashEmbedder()


class Engines(list[EngineHere]):
    """The engines that were started, and how."""

    def start(self, folder: Path) -> EngineHere:
        self.append(EngineHere(folder))
        return self[-1]


@pytest.fixture
def engines() -> Engines:
    return Engines()


@pytest.fixture
async def opened(root: Path, clock: FrozenClock, embedder: HashEmbedder, engines: Engines) -> AsyncIterator[Open]:
    """Return what opens a storage that holds an index; `limits` are those of `EngineLimits`."""
    every: list[VectorStorage] = []

    async def open_storage(agent: str = "bob", **limits: Any) -> VectorStorage:
        chosen = options(start=engines.start, **limits)
        storage = VectorStorage(agent, root, clock=clock, embedder=embedder, options=chosen)
        every.append(storage)
        await storage.prepare(None)
        assert await storage.caught_up(30)
        return storage

    yield open_storage
    for storage in every:
        await storage.close()


@pytest.fixture
async def storage(root: Path, embedder: HashEmbedder, opened: Open) -> VectorStorage:
    """Return a storage that holds an index."""
    made_index(root, embedder.identity)
    return await opened()


def index_of(storage: FileStorage) -> str | None:
    """Return the name of the index in use."""
    return Shards(storage.folder).active()[1]


def facts(count: int, seed: int = 0) -> list[Memory]:
    choose = random.Random(seed)
    return [
        memory_of(
            " ".join(choose.choices(WORDS, k=6)) + f" number{n}. " * choose.choice([1, 1, 1, 60]),
            category=choose.choice(["note", "task"]),
            tags=choose.sample(["a", "b", "c"], choose.randrange(3)),
            timestamp=NOON - timedelta(days=choose.randrange(400)),
        )
        for n in range(count)
    ]


async def stored(storage: FileStorage, memories: list[Memory]) -> None:
    await storage.store_many(memories)
    await storage.prepare(None)


async def indexed(storage: VectorStorage, memories: list[Memory]) -> str | None:
    """Store memories and have them in the index; return its name."""
    await stored(storage, memories)
    await storage.migrate()
    assert await storage.caught_up(30)
    return index_of(storage)


def seen(results: SearchResults) -> list[tuple[str, float, str]]:
    return [(hit.memory.id, round(hit.relevance_score, 5), hit.match_type) for hit in results]
