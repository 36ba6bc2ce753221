"""Bob's memory on real files, for tests of trouble."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_memory.service import AuditLog, MemoryService
from tests.hostile.trouble import OFFLINE, open_storage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from agent_memory.storage import FileStorage
    from tests.support import FrozenClock


@pytest.fixture
async def storage(root: Path, clock: FrozenClock) -> AsyncIterator[FileStorage]:
    """Return bob's memory, searched by words alone."""
    storage = open_storage(root, clock)
    yield storage
    await storage.close()


@pytest.fixture
async def service(storage: FileStorage, clock: FrozenClock) -> AsyncIterator[MemoryService]:
    """Return what tools and commands talk to."""
    service = MemoryService(storage, OFFLINE, audit=AuditLog(storage.folder.audit), clock=clock)
    yield service
    await service.close()
