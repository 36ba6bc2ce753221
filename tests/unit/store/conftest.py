"""Bob's storage in files, closed at the end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_memory.settings import ServiceSettings
from agent_memory.storage import FileStorage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.support import FrozenClock


@pytest.fixture
async def storage(root: Path, clock: FrozenClock) -> AsyncIterator[FileStorage]:
    storage = FileStorage("bob", root, settings=ServiceSettings(embedder="none"), clock=clock)
    yield storage
    await storage.close()
