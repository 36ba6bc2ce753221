"""`FileStorage` keeps the contract of `MemoryStorage`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from typing_extensions import override

from agent_memory.settings import ServiceSettings
from agent_memory.storage import FileStorage, MemoryStorage
from tests.contract.memory_storage import MemoryStorageContract

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from tests.support import FrozenClock


class TestFileStorage(MemoryStorageContract):
    """Opened on a folder, as the host does."""

    @override
    @pytest.fixture
    def open_storage(self, root: Path, clock: FrozenClock) -> Callable[[], Awaitable[MemoryStorage]]:
        async def opened() -> MemoryStorage:
            return FileStorage("bob", root, settings=ServiceSettings(embedder="none"), clock=clock)

        return opened
