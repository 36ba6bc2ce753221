"""A service on real files, with or without an archive, told the same moment always."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from agent_memory.care.archive import Archive
from agent_memory.care.tidying.cleanup_rules import LifecycleSettings
from agent_memory.care.tidying.tidy_runs import Tidying
from agent_memory.memory import Caller, MemoryService
from agent_memory.models import Memory
from agent_memory.settings import ServiceSettings
from agent_memory.storage import FileStorage
from tests.support import NOON

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.support import FrozenClock


class House:
    """Bob's memory with all that keeps it small; `events` is what was told."""

    def __init__(self, root: Path, clock: FrozenClock) -> None:
        settings = ServiceSettings(embedder="none", storage_root=str(root))
        self.clock, self.folder = clock, root / "bob"
        self.storage = FileStorage("bob", settings=settings, clock=clock)
        self.service = MemoryService(self.storage, settings, clock=clock)
        self.archive = Archive(self.service, clock=clock)
        self.events: list[tuple[str, dict[str, Any]]] = []
        self.caller = Caller("session-1", self._hear)

    def tidying(self, **settings: Any) -> Tidying:
        return Tidying(self.archive, LifecycleSettings.model_validate(settings))

    async def keep(self, content: str, *, days: int = 0, **fields: Any) -> Memory:
        """Store a memory as it was so many days ago; one of a category that the formula holds for little."""
        given = {"category": "question", "timestamp": NOON - timedelta(days=days), **fields}
        memory = Memory(agent_id="bob", content=content, **given)
        await self.storage.store_many([memory])
        return memory

    async def live(self) -> dict[str, Memory]:
        return {memory.id: memory async for memory in self.storage.iter_all()}

    async def put_away(self) -> set[str]:
        return {each.id for each in await self.archive.everything()}

    async def close(self) -> None:
        await self.archive.close()
        await self.service.close()

    async def _hear(self, event: str, data: dict[str, Any]) -> None:
        self.events.append((event, data))


@pytest.fixture
async def house(root: Path, clock: FrozenClock) -> AsyncIterator[House]:
    opened = House(root, clock)
    yield opened
    await opened.close()


@pytest.fixture
async def service(root: Path, clock: FrozenClock) -> AsyncIterator[MemoryService]:
    settings = ServiceSettings(storage_root=str(root), embedder="none")
    opened = MemoryService(FileStorage("bob", settings=settings, clock=clock), settings, clock=clock)
    yield opened
    await opened.close()
