"""What another process does in between: a store tells the truth all the same, and a fork has a service that works."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from agent_memory.errors import BusyError
from agent_memory.files.atomic import replace_file
from agent_memory.journal import Journal
from agent_memory.store import shards

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from agent_memory.memory import MemoryService
    from agent_memory.models import Memory
    from tests.unit.memory.conftest import Services


async def test_a_known_text_that_is_forgotten_in_between_is_stored_after_all(
    service: MemoryService, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = (await service.store({"content": "tea", "category": "note"})).memory
    get = service.storage.get

    async def get_too_late(memory_id: str) -> Memory | None:
        monkeypatch.setattr(service.storage, "get", get)
        await service.storage.delete(memory_id)
        return await get(memory_id)

    monkeypatch.setattr(service.storage, "get", get_too_late)
    again = await service.store({"content": "tea", "category": "note"})
    assert not again.duplicate
    assert again.memory.id != first.id
    assert [memory.id async for memory in service.storage.iter_all()] == [again.memory.id]


async def test_the_note_beside_the_journal_is_written_under_the_lock(
    service: MemoryService, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A migration writes the same file: it must not come in between the look and the writing."""
    free: list[bool] = []

    def write(path: Path, content: bytes, *, durable: bool) -> None:
        try:
            with Journal(folder / "memories.yaml", {"memory"}, wait=0).locked():
                free.append(True)
        except BusyError:
            free.append(False)
        replace_file(path, content, durable=durable)

    monkeypatch.setattr(shards, "replace_file", write)
    await service.store({"content": "tea", "category": "note"})
    assert free == [False]


async def test_a_forked_child_does_not_wait_for_what_its_parent_was_at(
    make_service: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = make_service()
    await service.store({"content": "tea", "category": "note"})
    await service.settle()
    assert service.pad.manager.lock._acquire()  # noqa: SLF001 - somebody in the parent renders the scratchpad
    child = os.getpid() + 1
    monkeypatch.setattr(os, "getpid", lambda: child)
    assert len(await service.scratchpad()) == 1
    await service.settle()
