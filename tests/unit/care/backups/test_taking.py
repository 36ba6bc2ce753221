"""Making a backup: what is in it, of which moment, and what is left where that fails."""

from __future__ import annotations

import errno
import os
import stat
import zipfile
from typing import TYPE_CHECKING

import pytest

from agent_memory.care.backups import backup_writer
from agent_memory.care.backups.backup_reader import verify_backup
from agent_memory.care.backups.backup_writer import create_backup
from agent_memory.errors import DiskFullError, StorageError, ValidationError
from agent_memory.files.layout import folder_of
from tests.support import memory_of, raises

if TYPE_CHECKING:
    from pathlib import Path

    from agent_memory.care.backups.backup_writer import Backup
    from agent_memory.memories import FileStorage
    from tests.support import FrozenClock


def test_a_backup_has_the_journal_byte_for_byte_and_says_what_that_is(made: Backup, bob: FileStorage) -> None:
    with zipfile.ZipFile(made.path) as archive:
        assert archive.read("memories.yaml") == bob.folder.journal.read_bytes()
    (journal,) = made.manifest.journals
    assert (journal.name, journal.last_seq, journal.lines, journal.records) == ("memories.yaml", 4, 5, {"memory": 4})
    assert made.path.name == "bob-20260301T120000Z.zip"
    assert verify_backup(made.path).problems == ()


def test_only_its_owner_can_read_it(made: Backup, open_umask: None) -> None:
    assert stat.S_IMODE(made.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(made.path.parent.stat().st_mode) == 0o700


def test_two_of_the_same_second_have_names_of_their_own(bob: FileStorage, clock: FrozenClock) -> None:
    first, second = (create_backup(bob.folder, clock=clock).path for _ in range(2))
    assert (first.name, second.name) == ("bob-20260301T120000Z.zip", "bob-20260301T120000Z-2.zip")


def test_long_texts_and_pages_are_in_it_and_what_is_derived_is_not(bob: FileStorage, clock: FrozenClock) -> None:
    name = "ab" * 32
    for folder, file in (("blobs", name), ("topics", "ledger.md"), ("derived", "x.seg")):
        (bob.folder.path / folder).mkdir(exist_ok=True)
        (bob.folder.path / folder / file).write_text("text")
    (bob.folder.path / "embeddings.sqlite3").write_bytes(b"x")
    made = create_backup(bob.folder, clock=clock)
    assert [each.name for each in made.manifest.files] == [f"blobs/{name}", "topics/ledger.md"]


async def test_a_compaction_that_comes_in_between_does_no_harm(
    bob: FileStorage, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = bob.folder.journal.read_bytes()
    real = backup_writer.write_backup

    def late(*arguments: object) -> object:
        bob.folder.journal.rename(bob.folder.path / "elsewhere")
        bob.folder.journal.write_bytes(b"another file\n")
        return real(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(backup_writer, "write_backup", late)
    made = create_backup(bob.folder, clock=clock)
    with zipfile.ZipFile(made.path) as archive:
        assert archive.read("memories.yaml") == before


def test_an_unfinished_line_is_not_there_yet(bob: FileStorage, clock: FrozenClock) -> None:
    with bob.folder.journal.open("ab") as journal:
        journal.write(b'--- {"seq": 5, "at"')
    made = create_backup(bob.folder, clock=clock)
    assert (made.manifest.journals[0].lines, made.manifest.journals[0].damaged) == (5, 0)


def test_what_was_damaged_before_is_in_it_as_it_is_and_counted(bob: FileStorage, clock: FrozenClock) -> None:
    content = bob.folder.journal.read_bytes().replace(b"Ledger 2", b"Ledger 9")
    bob.folder.journal.write_bytes(content)
    made = create_backup(bob.folder, clock=clock)
    assert (made.manifest.journals[0].damaged, made.manifest.memories) == (1, 3)
    assert verify_backup(made.path).problems == ()


def test_who_has_stored_nothing_has_no_backup(root: Path) -> None:
    (root / "eve").mkdir(parents=True)
    with raises(ValidationError, "nothing_to_back_up"):
        create_backup(folder_of("eve", root))


def test_a_full_disk_leaves_no_file(bob: FileStorage, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(backup_writer.atomic, "sync_file", full)
    with raises(DiskFullError, "disk_full"):
        create_backup(bob.folder, clock=clock)
    assert list((bob.folder.path.parent / "_backups").iterdir()) == []


def test_what_is_not_what_was_written_gets_no_name(
    bob: FileStorage, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def spoil(descriptor: int) -> None:
        os.pwrite(descriptor, b"\0\0\0\0", 900)

    monkeypatch.setattr(backup_writer.atomic, "sync_file", spoil)
    with pytest.raises((StorageError, ValidationError)):
        create_backup(bob.folder, clock=clock)
    assert list((bob.folder.path.parent / "_backups").iterdir()) == []


async def test_what_is_stored_later_is_not_in_it(made: Backup, bob: FileStorage) -> None:
    await bob.store(memory_of("Stored later."))
    assert verify_backup(made.path).manifest.memories == 4
