"""What bob keeps, and what takes it in."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_memory.ingestion import MemoryIngestor
from agent_memory.knowledge.records import Knowledge
from agent_memory.memories import FileStorage
from agent_memory.memory import MemoryService
from agent_memory.settings import ServiceSettings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.support import FrozenClock


@pytest.fixture
async def knowledge(root: Path, clock: FrozenClock) -> AsyncIterator[Knowledge]:
    opened = Knowledge("bob", ServiceSettings(storage_root=str(root), embedder="none"), clock=clock)
    yield opened
    await opened.close()


@pytest.fixture
async def service(knowledge: Knowledge, root: Path, clock: FrozenClock) -> AsyncIterator[MemoryService]:
    storage = FileStorage("bob", root, settings=knowledge.settings, clock=clock)
    opened = MemoryService(storage, knowledge.settings, clock=clock)
    yield opened
    await opened.close()


@pytest.fixture
async def ingestor(knowledge: Knowledge, service: MemoryService) -> AsyncIterator[MemoryIngestor]:
    opened = MemoryIngestor(knowledge=knowledge, service=service)
    yield opened
    await opened.close()
