"""A text that is gone for good is in no file of the agent's folder."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from agent_memory.embeddings.testing import HashEmbedder
from agent_memory.memory import AuditLog, MemoryService
from agent_memory.settings import ServiceSettings
from agent_memory.storage import FileStorage
from agent_memory.store.store import Store
from tests.support import read_files

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support import FrozenClock

WORD = "zanzibarwards"
DAYS = 40
"""Longer than what is forgotten or has expired can be brought back."""


@pytest.fixture
def opened(root: Path, clock: FrozenClock) -> Callable[[], MemoryService]:
    settings = ServiceSettings(storage_root=str(root), promotion_access_threshold=1)

    def make() -> MemoryService:
        storage = FileStorage("bob", settings=settings, clock=clock, embedder=HashEmbedder())
        return MemoryService(storage, settings, audit=AuditLog(storage.folder.audit), clock=clock)

    return make


def holding(folder: Path) -> list[str]:
    return sorted(path.name for path, content in read_files(folder) if WORD.encode() in content.lower())


async def begun(opened: Callable[[], MemoryService], clock: FrozenClock, folder: Path) -> str:
    """Store two memories, one that expires, and end the session; return the id of that one."""
    service = opened()
    await service.store({"content": "Prefers tea"})
    expires = clock.now + timedelta(days=1)
    memory = (await service.store({"content": f"Sails {WORD}", "expires_at": expires})).memory
    await service.search(WORD)
    await service.scratchpad()
    await service.close()
    assert holding(folder) == ["memories.yaml", "scratchpad.yaml", "shortlist.json"]
    return memory.id


@pytest.mark.parametrize("how", ["forgotten", "expired"])
async def test_what_is_forgotten_or_has_expired_once_it_is_compacted(
    opened: Callable[[], MemoryService], clock: FrozenClock, folder: Path, how: str
) -> None:
    memory_id = await begun(opened, clock, folder)
    service = opened()
    if how == "forgotten":
        await service.forget(memory_id)
    else:
        clock.advance(days=2)
    await service.writer.compact(timedelta(0))
    assert holding(folder) == []
    await service.close()
    assert holding(folder) == []


async def test_compaction_that_dies_behind_the_journal_leaves_no_text_in_the_shortlist(
    opened: Callable[[], MemoryService], clock: FrozenClock, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await begun(opened, clock, folder)
    service = opened()
    clock.advance(days=2)

    def die(store: object) -> None:
        raise OSError("the process ends here")

    monkeypatch.setattr(Store, "after_compaction", die)
    with pytest.raises(OSError, match="ends here"):
        await service.writer.compact(timedelta(0))
    assert holding(folder) == ["scratchpad.yaml"]
    await service.close()


@pytest.mark.parametrize("how", ["store", "open"])
async def test_what_has_expired_long_ago_after_the_next_write(
    opened: Callable[[], MemoryService], clock: FrozenClock, folder: Path, how: str
) -> None:
    await begun(opened, clock, folder)
    clock.advance(days=DAYS)
    service = opened()
    if how == "store":
        await service.store({"content": "Works in Oslo"})
    else:
        (tea,) = await service.list_recent()
        await service.open(tea.id)
    await service.settle()
    assert holding(folder) == []
    await service.close()
    assert holding(folder) == []
