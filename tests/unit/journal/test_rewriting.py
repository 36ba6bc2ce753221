"""Compaction beside the journal: nobody waits for it, nothing that comes meanwhile is lost, one at a time."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from agent_memory.errors import BusyError, StorageError
from agent_memory.files.lock import folder_lock
from agent_memory.journal import Change, Journal
from tests.concurrency.processes import running
from tests.support import FrozenClock, header_of

if TYPE_CHECKING:
    from pathlib import Path

KINDS = {"memory"}


@pytest.fixture
def path(root: Path) -> Path:
    return root / "bob" / "memories.yaml"


@pytest.fixture
def journal(path: Path, clock: FrozenClock) -> Journal:
    journal = Journal(path, KINDS, clock=clock)
    for number in range(3):
        put(journal, f"m{number}")
    return journal


def put(journal: Journal, name: str, **data: object) -> None:
    change(journal, Change("put", "memory", name, {"content": name, **data}))


def change(journal: Journal, *changes: Change) -> None:
    with journal.locked() as writer:
        writer.append(changes)


def records_of(path: Path) -> dict[str, dict[str, object]]:
    from agent_memory.journal import Records, apply_change

    records: Records = {}
    for entry in Journal(path, KINDS).poll().entries:
        for each in entry.changes:
            apply_change(records, each, entry.at)
    return records


def test_nobody_waits_for_the_lock_while_a_journal_is_folded(journal: Journal, path: Path) -> None:
    with journal.prepare_compaction() as new:
        with folder_lock(path.parent, wait=0):
            pass
        put(Journal(path, KINDS, wait=0), "meanwhile")
        assert "meanwhile" in records_of(path)
        journal.put_in_place(new)
    assert list(records_of(path)) == ["m0", "m1", "m2", "meanwhile"]


def test_what_others_did_to_a_record_that_was_folded_is_kept(journal: Journal, path: Path, clock: FrozenClock) -> None:
    clock.advance(days=60)
    with journal.prepare_compaction() as new:
        other = Journal(path, KINDS, clock=clock)
        change(other, Change("patch", "memory", "m0", {"content": "changed"}), Change("touch", "memory", "m1"))
        change(other, Change("delete", "memory", "m2"))
        journal.put_in_place(new)
    assert [entry.seq for entry in journal.poll().entries] == [4, 5]
    records = records_of(path)
    assert records["m0"]["content"] == "changed"
    assert records["m1"]["access_count"] == 1
    assert "m2" not in records


def test_a_second_compaction_does_not_wait_and_changes_nothing(journal: Journal, path: Path) -> None:
    before = header_of(path)
    with journal.prepare_compaction():
        with pytest.raises(BusyError, match="Another process is compacting"):
            Journal(path, KINDS, wait=30).compact()
        assert header_of(path) == before
    Journal(path, KINDS).compact()
    assert header_of(path) != before


def test_a_compaction_that_is_not_put_in_place_leaves_nothing(journal: Journal, path: Path) -> None:
    before = path.read_bytes()
    with journal.prepare_compaction():
        assert list(path.parent.glob(".*.tmp"))
    assert path.read_bytes() == before
    assert list(path.parent.glob(".*.tmp")) == []


def test_a_first_write_beside_a_compaction_sweeps_nothing_that_it_is_writing(journal: Journal, path: Path) -> None:
    with journal.prepare_compaction() as new:
        put(Journal(path, KINDS), "first write of another session")
        journal.put_in_place(new)
    assert len(records_of(path)) == 4


def test_a_journal_that_was_begun_beside_a_compaction_of_nothing_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "memories.yaml"
    path.touch()
    compacting, reader = Journal(path, KINDS), Journal(path, KINDS)
    with compacting.prepare_compaction() as new:
        put(Journal(path, KINDS), "first")
        reader.poll()
        with pytest.raises(BusyError):
            compacting.put_in_place(new)
    put(Journal(path, KINDS), "second")
    assert not reader.poll().reset
    assert reader.reader.rewritten == 0
    assert list(records_of(path)) == ["first", "second"]


def test_what_was_over_and_is_wanted_again_meanwhile_stays(journal: Journal, path: Path, clock: FrozenClock) -> None:
    change(journal, Change("put", "memory", "mem-00000000000a", {"content": "over"}))
    clock.advance(days=60)
    before = header_of(path)
    with journal.prepare_compaction(ended=lambda put: put.id == "mem-00000000000a") as new:
        change(Journal(path, KINDS), Change("patch", "memory", "mem-00000000000a", {"pinned": True}))
        with pytest.raises(BusyError):
            journal.put_in_place(new)
    assert header_of(path) == before
    assert records_of(path)["mem-00000000000a"] == {"content": "over", "pinned": True}


def test_text_beside_the_journal_stays_if_its_record_came_back_meanwhile(
    journal: Journal, path: Path, clock: FrozenClock
) -> None:
    name = "mem-00000000000a"
    change(journal, Change("put", "memory", name, {"content": "brought back"}))
    kept = path.with_name("memories.lost-0123abcd.yaml")
    kept.write_bytes(b'--- {"id": "mem-00000000000a", "content": "brought back"}\n')
    change(journal, Change("delete", "memory", name))
    clock.advance(days=60)
    with journal.prepare_compaction() as new:
        change(Journal(path, KINDS), Change("put", "memory", name, {"content": "brought back"}))
        journal.put_in_place(new)
    assert name in records_of(path)
    assert kept.exists()


def test_a_line_that_waits_for_its_sync_is_synced_with_the_new_file_before_its_name(
    path: Path, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    real_sync, real_replace = os.fsync, os.replace
    with journal.prepare_compaction() as new:
        other = Journal(path, KINDS)
        with other.appending() as writer:
            writer.append([Change("put", "memory", "unsynced")])
        monkeypatch.setattr(os, "fsync", lambda fd: (steps.append("sync"), real_sync(fd)))
        monkeypatch.setattr(os, "replace", lambda *a, **k: (steps.append("rename"), real_replace(*a, **k)))
        journal.put_in_place(new)
    assert steps[:1] == ["sync"]
    assert "unsynced" in records_of(path)
    assert writer.receipt is not None
    writer.receipt.settle()


def test_a_file_that_is_not_the_one_that_was_folded_is_left_alone(journal: Journal, path: Path) -> None:
    content = path.read_bytes()
    with journal.prepare_compaction() as new:
        path.with_name("saved").write_bytes(content)
        path.with_name("saved").replace(path)
        with pytest.raises(BusyError, match="Nothing was replaced"):
            journal.put_in_place(new)
    assert path.read_bytes() == content


def test_a_disk_that_fails_in_the_middle_leaves_the_old_file(
    journal: Journal, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = path.read_bytes()

    def fails(_descriptor: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises(StorageError):
        journal.compact()
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert list(path.parent.glob(".*.tmp")) == []


def test_what_a_process_left_that_was_killed_in_the_middle_is_overwritten_by_the_next(root: Path, path: Path) -> None:
    with running("fold_until_killed", root) as folding:
        assert folding.hear() == {"folded": True}
        assert list(path.parent.glob(".*.tmp"))
        with pytest.raises(BusyError):
            Journal(path, KINDS).compact()
        folding.kill()
    Journal(path, KINDS).compact(grace=timedelta(0))
    assert list(path.parent.glob(".*.tmp")) == []
    assert len(records_of(path)) == 3


def test_a_large_new_file_is_synced_some_megabytes_at_a_time(
    journal: Journal, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever syncs another file of the same file system may wait for all that was written and not synced."""
    for number in range(9):
        put(journal, f"large{number}", text="x" * 1_000_000)
    synced: list[int] = []
    real = os.fsync

    def sync(descriptor: int) -> None:
        synced.append(os.fstat(descriptor).st_size)
        real(descriptor)

    before = records_of(path)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", sync)
        journal.compact()
    steps = [size for size in synced if size > 1_000_000]
    assert max(after - size for size, after in zip([0, *steps], steps, strict=False)) <= 5_000_000
    assert records_of(path) == before
