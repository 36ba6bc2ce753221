"""`FileStorage` keeps the contract of `MemoryStorage`."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

import pytest
from typing_extensions import override

from agent_memory.settings import ServiceSettings
from agent_memory.storage import FileStorage, MemoryStorage
from tests.contract.memory_storage import MemoryStorageContract
from tests.rows import check_rows

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


@check_rows(
    ("method", "names"),
    [
        ("store", ["memory", "unique"]),
        ("store_many", ["memories"]),
        ("get", ["memory_id"]),
        ("update", ["memory_id", "changes", "expect_seq"]),
        ("delete", ["memory_id"]),
        ("touch", ["memory_ids"]),
        ("history", ["memory_id"]),
        ("forgotten_with", ["memory_id"]),
        ("older_versions", ["memory_id"]),
        ("was_forgotten", ["content"]),
        ("update_access_stats", ["memory_id"]),
        ("list_recent", ["limit"]),
    ],
)
def test_arguments_may_be_given_by_the_names_that_are_promised(method: str, names: list[str]) -> None:
    assert [name for name in inspect.signature(getattr(FileStorage, method)).parameters if name != "self"] == names
