"""Putting a backup back: what comes, what goes, what sessions see, and what is left where it fails."""

from __future__ import annotations

import errno
import os
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from agent_memory.care.backups import restoration as restoring
from agent_memory.care.backups.admission import AdmissionFilter
from agent_memory.care.backups.backup_reader import list_backups, verify_backup
from agent_memory.care.backups.backup_writer import create_backup
from agent_memory.care.backups.restoration import preview_restore, restore_backup
from agent_memory.errors import BusyError, DiskFullError, StorageError, ValidationError
from agent_memory.files import exchange
from agent_memory.files.lock import archive_lock, folder_lock
from agent_memory.memories import FileStorage
from tests.support import memory_of, raises
from tests.unit.care.backups.conftest import OFF, nothing_of, rewritten, texts

if TYPE_CHECKING:
    from pathlib import Path

    from agent_memory.care.backups.backup_writer import Backup
    from tests.support import FrozenClock

FOUR = {f"Ledger {number} is owned by Kate." for number in range(4)}


class KilledError(BaseException):
    """Stands for the death of the process."""


async def test_what_was_known_then_is_known_again(made: Backup, bob: FileStorage, root: Path) -> None:
    await bob.forget_many(["mem-000000000001"])
    await bob.store(memory_of("Stored later."))
    preview = preview_restore(made.path, root)
    assert (preview.agent_id, preview.back, preview.gone, preview.is_new) == ("bob", 1, 1, False)
    done = restore_backup(made.path, root)
    assert await texts(bob) == FOUR
    assert done.before is not None
    assert done.before.manifest.reason == "before_restore"
    restore_backup(done.before.path, root)
    assert await texts(bob) == (FOUR - {"Ledger 1 is owned by Kate."}) | {"Stored later."}


async def test_a_session_under_way_reads_anew_and_takes_it_for_no_damage(
    made: Backup, bob: FileStorage, root: Path, clock: FrozenClock
) -> None:
    await bob.store(memory_of("Stored later."))
    restore_backup(made.path, root, clock=clock)
    assert await texts(bob) == FOUR
    assert (await bob.health())["status"] == "ok"
    await bob.store(memory_of("Stored after that."))
    other = FileStorage("bob", root, settings=OFF, clock=clock)
    assert await texts(other) == await texts(bob) == FOUR | {"Stored after that."}
    assert not [each.name for each in bob.folder.path.iterdir() if "lost" in each.name or "rewritten" in each.name]
    await other.close()


async def test_it_waits_for_what_moves_memories_into_the_archive(
    made: Backup, bob: FileStorage, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await bob.store(memory_of("Stored later."))
    monkeypatch.setattr(restoring, "PERSON_SECONDS", 0.0)
    with archive_lock(root / "bob"), pytest.raises(BusyError):
        restore_backup(made.path, root)
    assert await texts(bob) == FOUR | {"Stored later."}
    restore_backup(made.path, root)
    assert await texts(bob) == FOUR


async def test_numbers_go_on_behind_the_last_one(made: Backup, bob: FileStorage, root: Path) -> None:
    for number in range(3):
        await bob.store(memory_of(f"Stored later {number}."))
    restore_backup(made.path, root)
    await bob.store(memory_of("Stored after that."))
    assert bob.folder.journal.read_bytes().splitlines()[-1].startswith(b'--- {"seq": 9,')


async def test_a_session_that_slept_through_a_compaction_reads_anew_too(
    made: Backup, bob: FileStorage, root: Path, clock: FrozenClock
) -> None:
    awake = FileStorage("bob", root, settings=OFF, clock=clock)
    await awake.forget_many(["mem-000000000001"])
    await awake.compact(timedelta(0))
    restore_backup(made.path, root, clock=clock)
    assert await texts(awake) == await texts(bob) == FOUR
    assert (await bob.health())["status"] == (await awake.health())["status"] == "ok"
    await awake.close()


async def test_restored_and_compacted_it_is_the_same(made: Backup, bob: FileStorage, root: Path) -> None:
    restore_backup(made.path, root)
    await bob.compact(timedelta(0))
    assert await texts(bob) == FOUR


async def test_another_agent_begins_with_it(made: Backup, bob: FileStorage, root: Path) -> None:
    done = restore_backup(made.path, root, new="eve")
    eve = FileStorage("eve", root, settings=OFF)
    assert await texts(eve) == FOUR
    assert done.before is None
    with raises(ValidationError, "agent_exists"):
        restore_backup(made.path, root, new="eve")
    await eve.close()


async def test_an_agent_that_is_gone_comes_back(made: Backup, bob: FileStorage, root: Path) -> None:
    await bob.close()
    bob.folder.path.rename(root.parent / "away")
    assert preview_restore(made.path, root).is_new
    assert restore_backup(made.path, root).before is None
    again = FileStorage("bob", root, settings=OFF)
    assert await texts(again) == FOUR
    await again.close()


async def test_a_journal_that_the_backup_has_none_of_is_empty_after_it(
    made: Backup, bob: FileStorage, root: Path
) -> None:
    other = bob.folder.path / "knowledge.yaml"
    other.write_bytes(bob.folder.journal.read_bytes())
    restore_backup(made.path, root)
    assert other.read_bytes().count(b"\n") == 1
    assert other.read_bytes().startswith(b'--- {"journal":')


async def test_long_texts_and_pages_come_back(bob: FileStorage, root: Path, clock: FrozenClock) -> None:
    name = "9834876dcfb05cb167a5c24953eba58c4ac89b1adf57f28f2f9d09af107ee8f0"  # of "aaa"
    for folder in (bob.folder.blobs, bob.folder.topics):
        folder.mkdir()
    (bob.folder.blobs / name).write_text("aaa")
    (bob.folder.topics / "ledger.md").write_text("then")
    made = create_backup(bob.folder, clock=clock)
    (bob.folder.blobs / name).unlink()
    (bob.folder.topics / "ledger.md").write_text("now")
    (bob.folder.topics / "new.md").write_text("now")
    restore_backup(made.path, root)
    assert (bob.folder.blobs / name).read_text() == "aaa"
    assert [each.read_text() for each in bob.folder.topics.iterdir()] == ["then"]


def test_a_line_that_must_not_come_back_does_not(made: Backup, bob: FileStorage, root: Path) -> None:
    admission = AdmissionFilter(lambda line: b"" if b"Ledger 2" in line else line, None, ())
    restore_backup(made.path, root, admission=admission)
    assert b"Ledger 2" not in bob.folder.journal.read_bytes()
    assert b"Ledger 3" in bob.folder.journal.read_bytes()


async def test_a_damaged_one_changes_nothing(made: Backup, bob: FileStorage, root: Path) -> None:
    def change(members: dict[str, bytes]) -> None:
        members["memories.yaml"] = members["memories.yaml"].replace(b"Ledger 2", b"Ledger 7")

    spoilt = rewritten(made.path, change)
    before = bob.folder.journal.read_bytes()
    for restore in (preview_restore, restore_backup):
        with raises(StorageError, "backup_damaged", match="line 4 is damaged|checksum"):
            restore(spoilt, root)
    assert bob.folder.journal.read_bytes() == before
    assert len(list_backups(root)) == 1


def test_what_the_disk_has_no_room_for_is_refused(made: Backup, root: Path) -> None:
    def say(manifest: dict[str, list[dict[str, int]]]) -> None:
        manifest["journals"][0]["size"] = 2**52

    large = rewritten(made.path, nothing_of, say)
    with raises(StorageError, "backup_damaged"):
        restore_backup(large, root)


def test_a_full_disk_leaves_what_was_there(
    made: Backup, bob: FileStorage, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    before = bob.folder.journal.read_bytes()
    monkeypatch.setattr(restoring.atomic, "write_all", full)
    with raises(DiskFullError, "disk_full"):
        restore_backup(made.path, root)
    assert bob.folder.journal.read_bytes() == before
    assert not list(bob.folder.path.glob(".restoring*"))


def test_a_writer_that_does_not_let_go_is_waited_for_a_while(
    made: Backup, bob: FileStorage, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(restoring, "PERSON_SECONDS", 0.0)
    with folder_lock(bob.folder.path), raises(BusyError, "busy"):
        restore_backup(made.path, root)
    assert not list(bob.folder.path.glob(".restoring*"))


async def test_who_is_killed_before_it_is_settled_has_changed_nothing(
    made: Backup, bob: FileStorage, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await bob.store(memory_of("Stored later."))

    def die(*_: object) -> None:
        raise KilledError

    with monkeypatch.context() as dying:
        dying.setattr(restoring, "settle_files", die)
        with pytest.raises(KilledError):
            restore_backup(made.path, root)
    assert await texts(bob) == FOUR | {"Stored later."}
    restore_backup(made.path, root)
    assert await texts(bob) == FOUR


@pytest.mark.parametrize("writes", [True, False])
async def test_the_next_to_read_or_write_finishes_what_was_settled(
    made: Backup, bob: FileStorage, root: Path, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch, *, writes: bool
) -> None:
    await bob.store(memory_of("Stored later."))

    def die(*_: object) -> None:
        raise KilledError

    with monkeypatch.context() as dying:
        dying.setattr(exchange, "finish_settled_files", die)
        with pytest.raises(KilledError):
            restore_backup(made.path, root)
    other = FileStorage("bob", root, settings=OFF, clock=clock)
    if writes:
        await other.store(memory_of("Stored after that."))
    assert await texts(other) == await texts(bob) == FOUR | ({"Stored after that."} if writes else set())
    assert not list(bob.folder.path.glob(".restoring*"))
    await other.close()


def test_the_backup_of_now_is_whole(made: Backup, root: Path) -> None:
    done = restore_backup(made.path, root)
    assert done.before is not None
    assert verify_backup(done.before.path).problems == ()
