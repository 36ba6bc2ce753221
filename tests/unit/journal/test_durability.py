"""What a process syncs because it cannot know that others did, and what it does not sync twice."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path

import pytest

from agent_memory.errors import StorageError
from agent_memory.journal import Change, Journal, SyncReceipt


@pytest.fixture
def path(root: Path) -> Path:
    return root / "bob" / "memories.yaml"


def put(journal: Journal, name: str) -> None:
    with journal.locked() as writer:
        writer.append([Change("put", "memory", name, {"content": name})])


def read(journal: Journal) -> None:
    with journal.locked():
        pass


def append(journal: Journal, name: str) -> SyncReceipt:
    with journal.appending() as writer:
        writer.append([Change("put", "memory", name)])
    assert writer.receipt is not None
    return writer.receipt


def ids_in(path: Path) -> list[str]:
    return [entry.changes[0].id for entry in Journal(path, {"memory"}).poll().entries]


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


def test_a_file_with_the_inode_of_an_older_one_is_not_taken_for_that(path: Path, syncs: Syncs) -> None:
    first, second = Journal(path, {"memory"}), Journal(path, {"memory"})
    put(first, "a")
    for _ in range(8):
        with first.locked() as writer:
            writer.append([Change("touch", "memory", "a")])
    kept = path.with_name("kept")
    os.link(path, kept)  # a file system gives the inode of what was replaced to one of the next files
    first.compact()
    second.compact()
    first.poll()
    kept.write_bytes(path.read_bytes())
    kept.replace(path)

    syncs.inodes.clear()
    put(first, "b")
    assert syncs.heard(path) == 1


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
        put(journal, "unknown")
    put(journal, "b")
    assert path.stat().st_ino != before
    assert ids_in(path) == ["a", "unknown", "b"]
    assert journal.reader.rewritten == 0


def test_a_line_whose_sync_failed_stays_and_nobody_is_told_that_it_is_safe(path: Path, syncs: Syncs) -> None:
    journal = Journal(path, {"memory"})
    put(journal, "a")
    syncs.failing = {path.stat().st_ino}
    with pytest.raises(StorageError) as failed:
        put(journal, "b")
    assert failed.value.code == "unknown"
    assert "twice keeps it once" in failed.value.recovery
    assert ids_in(path) == ["a", "b"]


def test_who_only_reads_what_could_not_be_synced_makes_it_safe_by_a_new_file(path: Path, syncs: Syncs) -> None:
    journal = Journal(path, {"memory"})
    put(journal, "a")
    before = path.stat().st_ino
    syncs.failing = {before}
    with pytest.raises(StorageError):
        put(journal, "b")
    read(journal)
    assert path.stat().st_ino != before
    assert syncs.heard(path)


def test_eight_that_wait_share_one_sync(path: Path, syncs: Syncs) -> None:
    journal = Journal(path, {"memory"})
    put(journal, "before")
    syncs.inodes.clear()
    receipts = []
    for number in range(8):
        with journal.appending() as writer:
            writer.append([Change("put", "memory", f"m{number}")])
        receipts.append(writer.receipt)
    threads = [threading.Thread(target=receipt.settle) for receipt in receipts if receipt]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(threads) == 8
    assert syncs.heard(path) == 1


def test_what_is_written_while_a_sync_runs_waits_for_the_next_one(path: Path) -> None:
    journal = Journal(path, {"memory"})
    put(journal, "before")
    later: list[SyncReceipt] = []
    synced: list[int] = []

    def sync(descriptor: int) -> None:
        synced.append(os.fstat(descriptor).st_size)
        if len(synced) == 1:
            later.append(append(slow, "while it runs"))

    slow = Journal(path, {"memory"}, sync=sync)
    append(slow, "first").settle()
    assert len(synced) == 1
    later[0].settle()
    assert synced == sorted(set(synced))
    assert synced[-1] == path.stat().st_size


def test_all_that_share_a_sync_are_told_that_it_failed(path: Path) -> None:
    put(Journal(path, {"memory"}), "before")

    def fails(_descriptor: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    journal = Journal(path, {"memory"}, sync=fails)
    receipts = [append(journal, f"m{number}") for number in range(3)]
    for receipt in receipts:
        with pytest.raises(StorageError, match="It is not known whether"):
            receipt.settle()


def test_no_file_stays_open_once_what_was_written_is_safe(path: Path) -> None:
    journal = Journal(path, {"memory"})
    put(journal, "a")
    before = len(list(Path("/proc/self/fd").iterdir()))
    for number in range(5):
        put(journal, f"m{number}")
        journal.compact()
    assert len(list(Path("/proc/self/fd").iterdir())) == before


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


def test_append_to_a_file_with_other_names_leaves_those_as_they_are(path: Path) -> None:
    journal, other_journal = Journal(path, {"memory"}), Journal(path, {"memory"})
    put(journal, "one")
    other_journal.poll()
    snapshot = path.with_name("snapshot.yaml")
    snapshot.hardlink_to(path)
    content = snapshot.read_bytes()
    put(journal, "two")
    append(other_journal, "three")
    assert snapshot.read_bytes() == content
    assert ids_in(path) == ["one", "two", "three"]
    assert path.stat().st_nlink == 1
