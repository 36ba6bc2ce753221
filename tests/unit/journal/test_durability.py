"""What a process syncs because it cannot know that others did, and what it does not sync twice."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest

from agent_memory.errors import StorageError
from agent_memory.journal import Change, Journal

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def path(root: Path) -> Path:
    return root / "bob" / "memories.yaml"


def put(journal: Journal, name: str) -> None:
    with journal.locked() as writer:
        writer.append([Change("put", "memory", name, {"content": name})])


def read(journal: Journal) -> None:
    with journal.locked():
        pass


class Syncs:
    """Counts syncs by inode; lets them fail while `failing` is set."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.inodes: list[int] = []
        self.failing: set[int] = set()
        monkeypatch.setattr(os, "fsync", self._sync)

    def _sync(self, descriptor: int) -> None:
        inode = os.fstat(descriptor).st_ino
        if inode in self.failing:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        self.inodes.append(inode)

    def heard(self, path: Path) -> int:
        """Return how often `path` was synced since the last time somebody asked."""
        inode = path.stat().st_ino
        count = self.inodes.count(inode)
        self.inodes = [each for each in self.inodes if each != inode]
        return count


@pytest.fixture
def syncs(monkeypatch: pytest.MonkeyPatch) -> Syncs:
    return Syncs(monkeypatch)


def test_a_process_syncs_the_folder_with_its_first_write_and_not_again(path: Path, syncs: Syncs) -> None:
    put(Journal(path, {"memory"}), "a")
    second = Journal(path, {"memory"})
    syncs.inodes.clear()
    put(second, "b")
    assert syncs.heard(path.parent) == 1
    put(second, "c")
    assert syncs.heard(path.parent) == 0
    assert syncs.heard(path) == 2


def test_a_file_that_another_process_put_there_has_its_name_synced(path: Path, syncs: Syncs) -> None:
    first, second = Journal(path, {"memory"}), Journal(path, {"memory"})
    put(first, "a")
    second.compact()
    syncs.inodes.clear()
    put(first, "b")
    assert syncs.heard(path.parent) == 1


def test_who_relies_upon_the_lines_of_another_syncs_them_once(path: Path, syncs: Syncs) -> None:
    first, second = Journal(path, {"memory"}), Journal(path, {"memory"})
    put(first, "a")
    syncs.inodes.clear()
    read(second)
    assert syncs.heard(path) == 1
    read(second)
    assert syncs.heard(path) == 0
    put(first, "b")
    syncs.inodes.clear()
    read(second)
    assert syncs.heard(path) == 1


def test_who_looks_at_an_empty_folder_syncs_nothing(path: Path, syncs: Syncs) -> None:
    journal = Journal(path, {"memory"})
    read(journal)
    assert syncs.heard(path) == 0


def test_a_file_whose_sync_failed_is_replaced_by_a_copy_before_the_next_write(path: Path, syncs: Syncs) -> None:
    put(Journal(path, {"memory"}), "a")
    journal = Journal(path, {"memory"})
    before = path.stat().st_ino
    syncs.failing = {before}
    with pytest.raises(StorageError):
        put(journal, "refused")
    put(journal, "b")
    assert path.stat().st_ino != before
    assert [entry.changes[0].id for entry in Journal(path, {"memory"}).poll().entries] == ["a", "b"]
    assert journal.reader.rewritten == 0


def test_a_file_of_which_everything_was_proven_is_not_replaced(path: Path, syncs: Syncs) -> None:
    journal = Journal(path, {"memory"})
    put(journal, "a")
    before = path.stat().st_ino
    syncs.failing = {before}
    with pytest.raises(StorageError):
        put(journal, "refused")
    syncs.failing = set()
    put(journal, "b")
    assert path.stat().st_ino == before


@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOTSUP])
def test_a_file_system_that_cannot_sync_folders_is_used_all_the_same(
    path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    path.parent.mkdir(parents=True)
    folders, real = {parent.stat().st_ino for parent in path.parents}, os.fsync

    def sync(descriptor: int) -> None:
        if os.fstat(descriptor).st_ino in folders:
            raise OSError(number, os.strerror(number))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", sync)
    put(Journal(path, {"memory"}), "a")
    assert len(Journal(path, {"memory"}).poll().entries) == 1
