"""`FileStorage` keeps its contract while every change is sealed at once, and taken into use."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from typing_extensions import override

from agent_memory.models import MEMORY
from agent_memory.settings import ServiceSettings
from agent_memory.storage import FileStorage, MemoryStorage
from agent_memory.store.segment_builder import seal_up
from tests.contract.memory_storage import MemoryStorageContract
from tests.support import memory_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from tests.support import FrozenClock


class AlwaysSealed(FileStorage):
    """Seals after each write, as a child does after thousands."""

    @override
    async def _write(self, *arguments: Any, **options: Any) -> Any:
        done = await super()._write(*arguments, **options)
        await asyncio.to_thread(seal_up, self.folder, MEMORY, None, 1)
        await self._run(self.opened.upkeep.opening().adopt)  # type: ignore[attr-defined]
        return done


class TestSealedStorage(MemoryStorageContract):
    """Opened on a folder; what one object writes is sealed before another looks."""

    @override
    @pytest.fixture
    def open_storage(self, root: Path, clock: FrozenClock) -> Callable[[], Awaitable[MemoryStorage]]:
        async def opened() -> MemoryStorage:
            return AlwaysSealed("bob", root, settings=ServiceSettings(embedder="none"), clock=clock)

        return opened

    async def test_what_is_sealed_is_not_kept_in_memory(self, storage: AlwaysSealed) -> None:
        memory = memory_of("Uses tabs.")
        await storage.store(memory)

        assert storage.opened.state.table.records == {}
        assert await storage.get(memory.id) == memory
