"""A `FileStorage` whose files are encrypted keeps the contract of `MemoryStorage`; no text of it stands in plain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest
from typing_extensions import override

from agent_memory.encryption import KeyFile, PersonKey
from agent_memory.settings import ServiceSettings
from agent_memory.storage import FileStorage, MemoryStorage
from tests.contract.memory_storage import MemoryStorageContract

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator
    from pathlib import Path

    from tests.support import FrozenClock

KEY: Final = "5e" * 32


class TestEncryptedStorage(MemoryStorageContract):
    """Encrypted from the first line on."""

    @override
    @pytest.fixture
    def open_storage(
        self, root: Path, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch
    ) -> Iterator[Callable[[], Awaitable[MemoryStorage]]]:
        monkeypatch.setenv("AGENT_MEMORY_KEY", KEY)
        (root / "bob").mkdir(parents=True, mode=0o700)
        KeyFile.fresh("bob", PersonKey(KEY, "a test"), "encrypted")[0].write(root / "bob")

        async def opened() -> MemoryStorage:
            return FileStorage("bob", root, settings=ServiceSettings(embedder="none"), clock=clock)

        yield opened
        for path in (root / "bob").rglob("*"):
            assert not path.is_file() or b'"content"' not in path.read_bytes(), path
