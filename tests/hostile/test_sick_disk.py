"""A disk that fails to sync, to write or to read: no acknowledgement, and no half state."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Any

import pytest

from agent_memory.errors import StorageError
from agent_memory.memory import Caller
from agent_memory.scratchpad import ScratchpadManager
from tests.hostile.trouble import fail_at, refusal, reopened
from tests.support import memory_of

if TYPE_CHECKING:
    from pathlib import Path

    from agent_memory.memory import MemoryService
    from agent_memory.models import Scratchpad
    from agent_memory.storage import FileStorage
    from tests.support import FrozenClock


@pytest.mark.parametrize("existing", [True, False])
async def test_what_could_not_be_synced_is_not_acknowledged_and_a_retry_repeats_nothing(
    storage: FileStorage, root: Path, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch, existing: bool
) -> None:
    """Where the line was written, it stays; in a new home its name fails to be synced before that."""
    expected, unknown = [], memory_of("never durable")
    if existing:
        await storage.store(memory_of("before"))
        expected = ["before", unknown.content]
    folder = storage.folder.path
    folder.mkdir(parents=True, exist_ok=True)

    def is_journal(descriptor: int) -> bool:
        return os.fstat(descriptor).st_ino != folder.stat().st_ino

    fail_at(monkeypatch, "fsync", errno.EIO, is_journal)
    with pytest.raises(StorageError) as refused:
        await storage.store(unknown)
    assert refused.value.code == ("unknown" if existing else "storage")
    monkeypatch.undo()
    assert [m.content async for m in storage.iter_all()] == expected
    assert await reopened(root, clock) == expected
    if existing:
        assert await storage.store(memory_of("never  durable"), unique=True) == unknown.id
    await storage.store(memory_of("after"))
    assert await reopened(root, clock) == [*expected, "after"]


async def test_a_store_is_written_then_synced_once_then_acknowledged(
    storage: FileStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    await storage.store(memory_of("the first also makes the files"))
    steps: list[str] = []
    journal = storage.folder.journal.stat().st_ino
    real_write, real_sync = os.write, os.fsync

    def writing(descriptor: int, content: bytes) -> int:
        steps.append("write" if os.fstat(descriptor).st_ino == journal else "write elsewhere")
        return real_write(descriptor, content)

    def syncing(descriptor: int) -> None:
        steps.append("sync" if os.fstat(descriptor).st_ino == journal else "sync elsewhere")
        real_sync(descriptor)

    monkeypatch.setattr(os, "write", writing)
    monkeypatch.setattr(os, "fsync", syncing)
    await storage.store(memory_of("tea"))
    steps.append("acknowledged")
    assert [step for step in steps if step != "write elsewhere"] == ["write", "sync", "acknowledged"]


@pytest.mark.parametrize("number", [errno.EIO, errno.ESTALE])
async def test_an_unreadable_journal_is_a_storage_error_and_readable_again_later(
    storage: FileStorage, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    memory_id = await storage.store(memory_of("tea"))
    clean = await storage.get(memory_id)
    storage.folder.journal.touch()
    fail_at(monkeypatch, "pread", number)
    with pytest.raises(StorageError):
        await storage.get(memory_id)
    monkeypatch.undo()
    assert await storage.get(memory_id) == clean


async def test_a_name_that_cannot_be_synced_is_taken_back_with_its_first_line(
    storage: FileStorage, root: Path, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = storage.folder.path
    folder.mkdir(parents=True)
    inode = folder.stat().st_ino
    fail_at(monkeypatch, "fsync", errno.EIO, lambda descriptor: os.fstat(descriptor).st_ino == inode)
    refused = await refusal(storage.store(memory_of("never durable")))
    assert "Input/output error" in refused["message"]
    assert "disk may be failing" in refused["recovery"]
    monkeypatch.undo()
    assert await reopened(root, clock) == []
    await storage.store(memory_of("after"))
    assert await reopened(root, clock) == ["after"]


async def test_a_line_that_can_be_neither_synced_nor_taken_back_is_not_acknowledged_and_breaks_nothing(
    storage: FileStorage, root: Path, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await storage.store(memory_of("before"))
    for function in ("fsync", "ftruncate"):
        fail_at(monkeypatch, function, errno.EIO)
    refused = await refusal(storage.store(memory_of("perhaps")))
    assert "Input/output error" in refused["message"]
    assert "not known whether" in refused["message"]
    assert refused["code"] == "unknown"
    assert "Search before" in refused["recovery"]
    monkeypatch.undo()
    inode = storage.folder.journal.stat().st_ino
    await storage.store(memory_of("perhaps"), unique=True)
    assert storage.folder.journal.stat().st_ino != inode, "a line whose sync failed is written anew"
    await storage.store(memory_of("after"))
    assert await reopened(root, clock) == ["before", "perhaps", "after"]
    assert (await storage.health())["status"] == "ok"


async def test_part_of_a_line_that_cannot_be_taken_back_is_no_doubt(
    storage: FileStorage, root: Path, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await storage.store(memory_of("before"))
    journal, real = storage.folder.journal.stat().st_ino, os.write

    def half(descriptor: int, content: bytes) -> int:
        if os.fstat(descriptor).st_ino != journal:
            return real(descriptor, content)
        if len(content) < 100:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(descriptor, content[: len(content) // 2])

    monkeypatch.setattr(os, "write", half)
    fail_at(monkeypatch, "ftruncate", errno.EIO)
    assert (await refusal(storage.store(memory_of("never whole " * 10))))["code"] == "disk_full"
    monkeypatch.undo()
    await storage.store(memory_of("after"))
    assert await reopened(root, clock) == ["before", "after"]


@pytest.mark.parametrize("function", ["write", "fsync", "open"])
async def test_a_compaction_on_a_sick_disk_leaves_the_old_file(
    storage: FileStorage, root: Path, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch, function: str
) -> None:
    memory_id = await storage.store(memory_of("before"))
    await storage.touch([memory_id])
    before = storage.folder.journal.read_bytes()
    fail_at(monkeypatch, function, errno.EIO, lambda what, *_: function != "open" or ".tmp" in str(what))
    assert (await refusal(storage.compact()))["code"] == "storage"
    monkeypatch.undo()
    assert storage.folder.journal.read_bytes() == before
    assert await reopened(root, clock) == ["before"]
    await storage.compact()
    assert await reopened(root, clock) == ["before"]


async def test_a_sick_disk_is_told_by_search_and_status_and_gets_well_without_a_restart(
    service: MemoryService, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = (await service.store({"content": "peppermint tea"})).memory
    await service.settle()
    service.storage.folder.journal.touch()  # type: ignore[attr-defined]
    fail_at(monkeypatch, "pread", errno.EIO)
    found = await service.search("peppermint")
    assert [hit.memory.id for hit in found.results] == [memory.id]
    assert "Input/output error" in (found.degraded or "")
    health = (await service.status()).health
    assert health["status"] == "unreadable"
    assert "another one" in health["recovery"]
    monkeypatch.undo()
    assert (await service.search("peppermint")).degraded is None
    await service.store({"content": "black coffee"})
    assert len(await service.list_recent()) == 2


async def test_a_read_that_fails_after_the_commit_is_no_failure_of_the_store(
    service: MemoryService, monkeypatch: pytest.MonkeyPatch
) -> None:
    await service.store({"content": "black coffee"})
    await service.settle()
    told: list[str] = []

    async def hear(event: str, data: dict[str, Any]) -> None:
        told.append(f"{event} {data.get('code', '')}".strip())

    def is_read(path: object, flags: int = 0, *_: object) -> bool:
        return str(path).endswith("memories.yaml") and not flags & os.O_RDWR

    fail_at(monkeypatch, "open", errno.EIO, is_read)
    stored = await service.store({"content": "peppermint tea"}, Caller("session-1", hear))
    assert "The change is on disk" in (stored.degraded or "")
    assert not stored.in_scratchpad
    assert told == ["memory:degraded storage", "memory:stored"]
    monkeypatch.undo()
    assert (await service.get(stored.memory.id)).content == "peppermint tea"
    assert (await service.store({"content": "green tea"})).degraded is None


async def test_a_read_that_fails_after_a_promotion_is_no_failure_of_it(
    service: MemoryService, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory_id = (await service.store({"content": "peppermint tea"})).memory.id
    await service.settle()
    await service.evict(memory_id)
    await service.settle()
    load, loads = ScratchpadManager.load, []

    async def fails_later(manager: ScratchpadManager, *arguments: Any) -> Scratchpad:
        loads.append(len(loads))
        if len(loads) > 1:
            raise StorageError("Could not read memories.yaml: Input/output error.")
        return await load(manager, *arguments)

    monkeypatch.setattr(ScratchpadManager, "load", fails_later)
    promoted = await service.promote(memory_id)
    assert promoted.promoted
    assert "Input/output error" in (promoted.degraded or "")
    monkeypatch.undo()
    assert memory_id in await service.scratchpad()
