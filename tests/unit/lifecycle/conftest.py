"""A service on real files, told the same moment always."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_memory.memories import FileStorage
from agent_memory.service import MemoryService
from agent_memory.settings import ServiceSettings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.support import FrozenClock


@pytest.fixture
async def service(root: Path, clock: FrozenClock) -> AsyncIterator[MemoryService]:
    settings = ServiceSettings(storage_root=str(root), embedder="none")
    opened = MemoryService(FileStorage("bob", settings=settings, clock=clock), settings, clock=clock)
    yield opened
    await opened.close()
