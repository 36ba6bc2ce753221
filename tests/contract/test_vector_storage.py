"""`VectorStorage` keeps the contract of `MemoryStorage`, with the engine answering as well as without it."""

from __future__ import annotations

import asyncio
import random
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from typing_extensions import override

from agent_memory.embeddings.testing import HashEmbedder
from agent_memory.engines.index_maintenance import IndexOptions
from agent_memory.memories import FileStorage, VectorStorage
from agent_memory.models import MemorySearchResult, SearchResults
from tests.contract.memory_storage import MemoryStorageContract
from tests.engines import EngineHere, made_index, options
from tests.support import memory_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from agent_memory.storage import MemoryStorage
    from agent_memory.store.protocols import Built
    from tests.support import FrozenClock


class TestVectorStorage(MemoryStorageContract):
    """One object holds the index and is up to date with it; the other one of a test finds it taken."""

    @override
    @pytest.fixture
    def open_storage(self, root: Path, clock: FrozenClock) -> Callable[[], Awaitable[MemoryStorage]]:
        embedder = HashEmbedder()
        made_index(root, embedder.identity)

        async def opened() -> MemoryStorage:
            storage = VectorStorage("bob", root, clock=clock, embedder=embedder, options=options())
            held = bool(EngineHere.held)
            await storage.prepare(None)
            if not held:
                assert await storage.caught_up(30)
            return storage

        return opened


class TestVectorStorageWithoutIndex(MemoryStorageContract):
    """As long as there is none, as in the first seconds after a migration was asked for, or while it is rebuilt."""

    @override
    @pytest.fixture
    def open_storage(self, root: Path, clock: FrozenClock) -> Callable[[], Awaitable[MemoryStorage]]:
        async def never(*_args: object, **_options: object) -> Built:
            await asyncio.Event().wait()
            raise AssertionError

        embedder = HashEmbedder()

        async def opened() -> MemoryStorage:
            return VectorStorage("bob", root, clock=clock, embedder=embedder, options=IndexOptions(build=never))

        return opened


async def test_it_answers_in_the_same_order_and_as_surely_as_a_file_does(tmp_path: Path, clock: FrozenClock) -> None:
    choose, embedder = random.Random(3), HashEmbedder(dimension=512)
    words = [f"word{number}" for number in range(40)]
    memories = [
        memory_of(
            f"{' '.join(choose.sample(words, choose.randrange(2, 9)))}{choose.choice(['', '', '?'])}",
            timestamp=clock() - timedelta(hours=number),
            trust=choose.choice(["low", "medium", "high"]),
        )
        for number in range(300)
    ]
    made_index(tmp_path / "vector", embedder.identity)
    told = []
    for storage in (
        FileStorage("bob", tmp_path / "file", clock=clock, embedder=embedder),
        VectorStorage("bob", tmp_path / "vector", clock=clock, embedder=embedder, options=options()),
    ):
        await storage.store_many(memories)
        await storage.prepare(None)
        if isinstance(storage, VectorStorage):
            assert await storage.caught_up(30)
        found = [await storage.search(f"{one} {two} {three}") for one, two, three in batched_words(words)]
        told.append([each for results in found for each in (*results, results)])
        await storage.close()

    by_file, by_engine = told
    assert [_id(one) for one in by_engine] == [_id(one) for one in by_file]
    assert [one.answer_confidence for one in by_engine] == [
        pytest.approx(one.answer_confidence, abs=1e-6) for one in by_file
    ]


def batched_words(words: list[str]) -> list[tuple[str, str, str]]:
    return list(zip(words[::3], words[1::3], words[2::3], strict=False))


def _id(found: MemorySearchResult | SearchResults) -> str:
    return found.memory.id if isinstance(found, MemorySearchResult) else str(found.match)
