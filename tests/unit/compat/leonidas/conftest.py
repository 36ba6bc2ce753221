"""A store of bob's, at noon of a day that does not end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_memory.lifecycle import MemoryStore
from agent_memory.memories import FileStorage
from agent_memory.memory import MemoryService
from agent_memory.settings import ServiceSettings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.support import FrozenClock


@pytest.fixture
async def store(root: Path, clock: FrozenClock) -> AsyncIterator[MemoryStore]:
    settings = ServiceSettings(storage_root=str(root), embedder="none")
    service = MemoryService(FileStorage("bob", settings=settings, clock=clock), settings, clock=clock)
    async with MemoryStore(service=service, clock=clock) as opened:
        yield opened
    await service.close()
