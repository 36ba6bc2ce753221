"""`VectorStorage` keeps the contract of `MemoryStorage`, with the engine answering as well as without it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from typing_extensions import override

from agent_memory.embeddings.testing import HashEmbedder
from agent_memory.memories import VectorStorage
from agent_memory.storage.vector.maintenance import IndexOptions
from tests.contract.memory_storage import MemoryStorageContract
from tests.engines import EngineHere, made_index, options

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from agent_memory.storage import MemoryStorage
    from agent_memory.storage.vector.migration import Built
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
