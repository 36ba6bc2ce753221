"""A disk, a quota or a limit that is full: nothing acknowledged is lost, and room makes it work again."""

from __future__ import annotations

import errno
import json
import os
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from agent_memory.errors import DiskFullError
from tests.concurrency.processes import running
from tests.hostile.trouble import fail_at, inside, open_storage, refusal, reopened
from tests.support import memory_of, raises

if TYPE_CHECKING:
    from pathlib import Path

    from agent_memory.memory import MemoryService
    from agent_memory.storage import FileStorage
    from tests.support import FrozenClock


@pytest.mark.parametrize("room", [0, 1, 40, 160])
async def test_a_disk_that_fills_up_within_a_line_leaves_the_file_as_it_was(
    storage: FileStorage, root: Path, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    await storage.store(memory_of("before"))
    journal = storage.folder.journal
    before, real, left = journal.read_bytes(), os.write, room

    def filling(descriptor: int, content: bytes) -> int:
        nonlocal left
        if os.fstat(descriptor).st_ino != journal.stat().st_ino:
            return real(descriptor, content)
        if left <= 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written = real(descriptor, bytes(content)[:left])
        left -= written
        return written

    monkeypatch.setattr(os, "write", filling)
    with raises(DiskFullError, "disk_full"):
        await storage.store(memory_of("does not fit " * 20))
    assert journal.read_bytes() == before
    monkeypatch.undo()
    await storage.store(memory_of("fits again"))
    assert await reopened(root, clock) == ["before", "fits again"]


async def test_a_real_limit_on_the_size_of_files_is_survived(
    storage: FileStorage, root: Path, clock: FrozenClock
) -> None:
    await storage.store(memory_of("before"))
    with running("store_under_file_size_limit", root, 50) as limited:
        refused, stored = limited.finish()
    assert refused["code"] == "disk_full"
    assert refused["untouched"]
    assert "safe" in refused["message"]
    assert await reopened(root, clock) == ["before", "fits"]
    assert stored["id"]


async def test_a_compaction_that_finds_no_room_changes_nothing(
    storage: FileStorage, root: Path, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await storage.store(memory_of("before"))
    before = storage.folder.journal.read_bytes()
    fail_at(monkeypatch, "write", errno.ENOSPC)
    with pytest.raises(DiskFullError):
        await storage.compact()
    monkeypatch.undo()
    assert storage.folder.journal.read_bytes() == before
    assert list(storage.folder.path.glob(".*.tmp")) == []
    await storage.compact()
    assert await reopened(root, clock) == ["before"]


def test_a_full_disk_costs_the_write_at_hand_and_nothing_else(tmp_path: Path) -> None:
    """Journal, compaction, scratchpad, audit and rejected file; then room again, in the same session."""
    found = inside("full_disk", tmp_path / "memory", mounts=True)
    for attempt in ("store", "update", "compact", "torn"):
        assert found[attempt]["code"] == "disk_full", attempt
        assert "What was stored before is safe." in found[attempt]["message"]
    assert "memories.rejected.yaml" in found["torn"]["message"]
    assert found["searched"] == ["peppermint tea"]
    assert found["health"] == {"status": "ok"}
    assert found["untouched"]
    assert found["leftovers"] == []
    assert found["after"] == "done"
    assert found["pad"]
    assert found["reopened"] == ["peppermint tea", "fits again"]


def test_a_full_disk_stops_a_migration_and_no_search(tmp_path: Path) -> None:
    found = inside("full_disk_and_vectors", tmp_path / "memory", mounts=True)
    assert found["migrate"]["code"] == "migration"
    assert "disk is full" in found["migrate"]["message"]
    assert (found["backend"], found["mode"]) == ("file", "hybrid")
    assert found["embedding"]["status"] == "failing"
    assert (found["again"], found["later"]["status"]) == (5, "ready")
    assert found["index"]["code"] == "migration"
    assert found["leftovers"] == [], "what a killed build left does not keep the disk full"
    assert found["backend_then"] == found["backend_again"] == "vector"
    assert found["best"] == "fact number 3"
    assert found["stored"].startswith("mem-")


def test_an_import_that_does_not_fit_keeps_what_it_counted_and_can_be_repeated(tmp_path: Path) -> None:
    export = tmp_path / "export.jsonl"
    texts = [json.dumps({"id": f"mem-{number:012x}", "content": f"{number} " + "x" * 9000}) for number in range(24)]
    export.write_text("\n".join(texts))
    found = inside("full_disk_and_import", tmp_path / "memory", export, mounts=True)
    assert found["code"] == 1
    assert "No space left" in found["error"]
    assert 0 < found["kept"] < 24
    assert f"Imported {found['kept']} memories" in found["said"]
    assert found["again"] == 0
    assert f"Imported {24 - found['kept']} memories" in found["said_again"]
    assert found["all"] == 24


@pytest.mark.parametrize("name", ["metadata.json", "scratchpad.yaml", "events.jsonl"])
async def test_a_derived_file_that_cannot_be_written_costs_no_memory(
    service: MemoryService, root: Path, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    await service.store({"content": "before"})
    await service.settle()
    folder = root / "bob"
    (folder / name).unlink()
    fail_at(monkeypatch, "open", errno.ENOSPC, lambda path, *_: name in str(path))
    await service.store({"content": "after"})
    await service.settle()
    monkeypatch.undo()
    assert await reopened(root, clock) == ["before", "after"]
    await service.store({"content": "room again"})
    await service.settle()
    assert (folder / name).is_file()


@pytest.mark.parametrize("action", ["forget", "compact"])
async def test_what_frees_room_works_on_a_full_disk(
    storage: FileStorage, root: Path, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch, action: str
) -> None:
    await storage.store(memory_of("stays"))
    memory_id = await storage.store(memory_of("purple elephant " * 20))
    if action == "compact":
        await storage.delete(memory_id)
    lock, real, refused = storage.folder.path / ".lock", os.write, []
    inode = lock.stat().st_ino

    def full(descriptor: int, content: bytes) -> int:
        if lock.stat().st_size:
            refused.append(descriptor)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(descriptor, content)

    assert lock.stat().st_size > 10_000
    monkeypatch.setattr(os, "write", full)
    with pytest.raises(DiskFullError):
        await storage.store(memory_of("does not fit"))
    assert len(refused) == 1
    await (storage.delete(memory_id) if action == "forget" else storage.compact(timedelta(0)))
    assert len(refused) == 2
    monkeypatch.undo()
    assert lock.stat().st_ino == inode
    assert await reopened(root, clock) == ["stays"]
    assert (b"purple" in storage.folder.journal.read_bytes()) is (action == "forget")
    again = open_storage(root, clock)
    await again.store(memory_of("room again"))
    await again.close()
    assert lock.stat().st_size > 10_000


async def test_a_compaction_that_frees_too_little_says_how_much_room_it_takes(
    storage: FileStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    await storage.store(memory_of("tea " * 2000))
    fail_at(monkeypatch, "write", errno.ENOSPC)
    told = await refusal(storage.compact())
    assert told["code"] == "disk_full"
    assert "Make room for 8 kB" in told["recovery"]
    assert "Forgetting still works" in told["recovery"]
