"""The append protocol as its owner sees it: numbering, catching up, refusals, and what a failed step leaves behind."""

from __future__ import annotations

import errno
import json
import os
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
import yaml

from agent_memory.errors import DiskFullError, ReadOnlyError, StorageError, ValidationError
from agent_memory.files import atomic as journal_files
from agent_memory.journal import Change, Journal, JournalUpdate
from agent_memory.journal import rewrite as rewriting
from agent_memory.journal.format import encode_line
from agent_memory.journal.salvage import get_rejected_path
from tests.support import FrozenClock, lines_of, raises, resealed

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def path(root: Path) -> Path:
    return root / "bob" / "memories.yaml"


@pytest.fixture
def journal(path: Path, clock: FrozenClock) -> Journal:
    return Journal(path, {"memory"}, clock=clock)


def put(journal: Journal, record_id: str, **data: object) -> int:
    with journal.locked() as writer:
        return writer.append([Change("put", "memory", record_id, dict(data))]).seq


def seqs(journal: Journal) -> list[int]:
    return [entry.seq for entry in journal.poll().entries]


def rewrite_header(path: Path, **changes: object) -> None:
    first, _, rest = path.read_bytes().partition(b"\n")
    path.write_bytes(resealed(encode_line({**json.loads(first[4:]), **changes})) + rest)


def test_a_missing_file_is_an_empty_journal_and_reading_creates_nothing(journal: Journal, root: Path) -> None:
    assert journal.poll().entries == []
    assert journal.watermark == ("", 0)
    assert not root.exists()


def test_the_file_is_a_yaml_stream_of_flow_documents(journal: Journal, path: Path) -> None:
    put(journal, "a", content="tea: hot, # not cold")
    documents = list(yaml.safe_load_all(path.read_text(encoding="utf-8")))
    assert documents[0]["journal"] == "agent-memory"
    assert documents[0]["format"] == documents[0]["min_reader"] == 2
    assert list(documents[0])[-1] == list(documents[1])[-1] == "crc"
    assert documents[1] == {
        "crc": documents[1]["crc"],
        "seq": 1,
        "at": "2026-03-01T12:00:00Z",
        "op": "put",
        "kind": "memory",
        "id": "a",
        "data": {"content": "tea: hot, # not cold"},
    }


def test_one_write_of_several_changes_is_one_line(journal: Journal, path: Path) -> None:
    with journal.locked() as writer:
        writer.append([Change("put", "memory", "a", {"x": 1}), Change("put", "topic", "t", {"y": 2})])
    assert len(lines_of(path)) == 1
    assert [change.id for change in journal.poll().entries[0:1] for change in change.changes] == []
    assert [change.id for entry in Journal(path, set()).poll().entries for change in entry.changes] == ["a", "t"]


def test_an_entry_without_a_change_or_that_cannot_be_encoded_leaves_the_file_alone(
    journal: Journal, path: Path
) -> None:
    put(journal, "a")
    before = path.read_bytes()
    with journal.locked() as writer, pytest.raises(ValueError, match="at least one change"):
        writer.append([])
    with journal.locked() as writer, pytest.raises(ValidationError):
        writer.append([Change("put", "memory", "b", {"x": float("nan")})])
    assert path.read_bytes() == before
    assert put(journal, "b") == 2


def test_a_writer_catches_up_before_it_numbers_and_is_not_told_of_its_own_writes(
    journal: Journal, path: Path, clock: FrozenClock
) -> None:
    other = Journal(path, {"memory"}, clock=clock)
    assert put(journal, "a") == 1
    assert journal.poll().entries == []
    assert put(other, "b") == 2
    with journal.locked() as writer:
        assert [entry.seq for entry in writer.update.entries] == [2]
        assert writer.append([Change("delete", "memory", "b")]).seq == 3


def test_seq_goes_on_after_everything_was_deleted_and_compacted_away(
    journal: Journal, path: Path, clock: FrozenClock
) -> None:
    put(journal, "a")
    with journal.locked() as writer:
        writer.append([Change("delete", "memory", "a")])
    clock.advance(seconds=1)
    journal.compact(grace=timedelta(0))
    assert lines_of(path) == []
    assert put(Journal(path, {"memory"}, clock=clock), "b") == 3


@pytest.mark.parametrize("newest", [2, 3])
def test_a_journal_of_a_newer_format_is_read_and_not_written(journal: Journal, path: Path, newest: int) -> None:
    put(journal, "a", content="tea")
    rewrite_header(path, format=3, min_reader=newest, generation="of a later version")
    later = Journal(path, {"memory"})
    assert seqs(later) == [1]
    before = path.read_bytes()
    with raises(ReadOnlyError, "newer_format"):
        put(later, "b")
    with pytest.raises(ReadOnlyError):
        later.compact()
    assert path.read_bytes() == before


def test_what_came_before_a_refused_write_is_still_delivered(journal: Journal, path: Path) -> None:
    put(journal, "a")
    reader = Journal(path, {"memory"})
    assert seqs(reader) == [1]
    put(journal, "b")
    rewrite_header(path, min_reader=3, generation="of a later version")
    with pytest.raises(ReadOnlyError):
        put(reader, "c")
    update = reader.poll()
    assert update.reset
    assert [entry.seq for entry in update.entries] == [1, 2]


def test_what_came_before_a_failed_compaction_is_still_delivered(
    journal: Journal, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(journal, "a")
    reader = Journal(path, {"memory"})
    assert seqs(reader) == [1]
    put(journal, "b")
    before = path.read_bytes()

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(rewriting, "write_all", full)
    with pytest.raises(DiskFullError):
        reader.compact()
    assert path.read_bytes() == before
    assert seqs(reader) == [2]


def test_a_damaged_line_in_the_middle_is_reported_with_its_place_and_stays(journal: Journal, path: Path) -> None:
    put(journal, "a")
    put(journal, "b")
    path.write_bytes(path.read_bytes()[:-1])
    assert seqs(Journal(path, {"memory"})) == [1, 2], "a last line without its end is delivered at once"
    path.write_bytes(path.read_bytes() + b"\n")
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + lines[1] + b"--- {oops\n" + lines[2])
    other = Journal(path, {"memory"})
    assert seqs(other) == [1, 2]
    assert [(problem.line, problem.raw) for problem in other.reader.problems] == [(3, b"--- {oops\n")]
    put(other, "c")
    assert b"--- {oops\n" in path.read_bytes()


def test_a_damaged_header_costs_no_entry_and_is_mended_by_a_compaction(journal: Journal, path: Path) -> None:
    put(journal, "a")
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"rubbish\n" + lines[1])
    other = Journal(path, {"memory"})
    assert seqs(other) == [1]
    assert [problem.line for problem in other.reader.problems] == [1]
    assert put(other, "b") == 2
    other.compact()
    assert other.reader.problems == []
    assert other.watermark[0]
    assert b"rubbish" in get_rejected_path(path).read_bytes()


def test_a_file_that_is_gone_is_an_error_until_it_is_back(journal: Journal, path: Path) -> None:
    put(journal, "a")
    path.rename(path.with_suffix(".away"))
    with raises(StorageError, "gone"):
        journal.poll()
    with pytest.raises(StorageError, match="moved, renamed or deleted"):
        put(journal, "b")
    assert not path.exists()
    path.with_suffix(".away").rename(path)
    assert journal.poll() == JournalUpdate()
    assert put(journal, "b") == 2


def test_an_older_file_in_its_place_is_taken_as_it_is_and_reported(journal: Journal, path: Path) -> None:
    put(journal, "a")
    backup = path.read_bytes()
    put(journal, "b")
    journal.compact()
    path.write_bytes(backup)
    assert [entry.seq for entry in journal.poll().entries] == [1]
    assert journal.reader.rewritten == 1
    assert put(journal, "c") == 3


def test_the_watermark_moves_with_each_write_and_its_generation_with_each_compaction(journal: Journal) -> None:
    put(journal, "a")
    generation, seq = journal.watermark
    put(journal, "b")
    assert journal.watermark == (generation, seq + 1)
    journal.compact()
    assert journal.watermark[1] == seq + 1
    assert journal.watermark[0] != generation


@pytest.mark.parametrize("same_inode", [True, False])
def test_an_editors_rewrite_is_noticed_copied_and_counted(journal: Journal, path: Path, same_inode: bool) -> None:
    put(journal, "a", content="tea")
    put(journal, "b", content="coffee")
    edited = resealed(path.read_bytes().replace(b"coffee", b"cocoa!"))
    if same_inode:
        with path.open("r+b") as file:
            file.write(edited)
            file.truncate()
    else:
        path.with_suffix(".tmp").write_bytes(edited)
        path.with_suffix(".tmp").replace(path)
    update = journal.poll()
    assert update.reset
    assert update.entries[-1].changes[0].data == {"content": "cocoa!"}
    assert journal.reader.rewritten == 1
    copies = list(path.parent.glob("memories.rewritten-*.yaml"))
    assert [copy.read_bytes() for copy in copies] == [edited]
    assert put(journal, "c") == 3


def test_the_same_bytes_put_back_are_no_rewrite(journal: Journal, path: Path) -> None:
    put(journal, "a")
    content = path.read_bytes()
    path.with_suffix(".tmp").write_bytes(content)
    path.with_suffix(".tmp").replace(path)
    update = journal.poll()
    assert (update.reset, update.entries, journal.reader.rewritten) == (False, [], 0)
    assert put(journal, "b") == 2


def test_another_writers_compaction_is_no_rewrite(journal: Journal, path: Path, clock: FrozenClock) -> None:
    put(journal, "a")
    Journal(path, {"memory"}, clock=clock).compact()
    assert journal.poll() == JournalUpdate()
    assert journal.reader.rewritten == 0


def test_after_a_compaction_by_another_only_what_is_new_is_read(
    journal: Journal, path: Path, clock: FrozenClock
) -> None:
    put(journal, "a")
    other = Journal(path, {"memory"}, clock=clock)
    other.compact()
    put(other, "b")
    update = journal.poll()
    assert not update.reset
    assert [entry.seq for entry in update.entries] == [2]
    assert journal.watermark == other.watermark
    assert put(journal, "c") == 3


def test_who_had_not_read_all_that_was_compacted_begins_anew(journal: Journal, path: Path, clock: FrozenClock) -> None:
    put(journal, "a")
    other = Journal(path, {"memory"}, clock=clock)
    put(other, "b")
    other.compact()
    update = journal.poll()
    assert update.reset
    assert [entry.seq for entry in update.entries] == [1, 2]


def test_who_had_not_been_told_that_a_record_was_over_begins_anew(
    journal: Journal, path: Path, clock: FrozenClock
) -> None:
    put(journal, "a")
    put(journal, "b")
    Journal(path, {"memory"}, clock=clock).compact(grace=timedelta(0), ended=lambda record: record.id == "a")
    update = journal.poll()
    assert update.reset
    assert [change.id for entry in update.entries for change in entry.changes] == ["b"]


def test_a_symlinked_journal_is_not_followed(journal: Journal, path: Path, tmp_path: Path) -> None:
    target = tmp_path / "elsewhere.yaml"
    target.write_bytes(b"precious\n")
    path.parent.mkdir(parents=True)
    path.symlink_to(target)
    for attempt in (journal.poll, lambda: put(journal, "a")):
        with raises(StorageError, "symlink"):
            attempt()
    assert target.read_bytes() == b"precious\n"


def test_files_are_private_and_so_are_folders(journal: Journal, path: Path, root: Path, open_umask: None) -> None:
    put(journal, "a")
    path.write_bytes(path.read_bytes() + b"torn")
    put(journal, "b")
    journal.compact()
    modes = {entry.name: entry.stat().st_mode & 0o777 for entry in path.parent.iterdir()}
    names = {"memories.yaml", ".lock", "memories.rejected.yaml", "agent.yaml"}
    assert modes == dict.fromkeys(names, 0o600)
    assert {folder.stat().st_mode & 0o777 for folder in (root, path.parent)} == {0o700}


def test_a_compaction_leaves_the_lock_file_and_sweeps_what_a_killed_one_left(journal: Journal, path: Path) -> None:
    put(journal, "a")
    inode = (path.parent / ".lock").stat().st_ino
    put(journal, "b")
    leftover = path.with_name(f".{path.name}.0badc0de.tmp")
    leftover.write_bytes(b"half")
    journal.compact()
    assert not leftover.exists()
    assert (path.parent / ".lock").stat().st_ino == inode


def test_a_store_syncs_the_file_exactly_once(journal: Journal, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(journal, "the first also syncs the folder of the new file")
    synced: list[int] = []
    real = os.fsync

    def counting(descriptor: int) -> None:
        synced.append(os.fstat(descriptor).st_ino)
        real(descriptor)

    monkeypatch.setattr(os, "fsync", counting)
    put(journal, "a")
    assert synced == [path.stat().st_ino]


def test_a_new_journal_has_its_name_synced_too(journal: Journal, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.parent.mkdir(parents=True)
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(os.fstat(descriptor).st_ino))
    put(journal, "a")
    device = path.stat().st_dev
    way = [folder.stat().st_ino for folder in path.parent.parents if folder.stat().st_dev == device]
    assert synced == [*way, path.parent.stat().st_ino, path.stat().st_ino]


def test_write_all_finishes_what_the_system_writes_in_pieces(
    journal: Journal, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, content: real(descriptor, bytes(content)[:7]))
    put(journal, "a", content="longer than seven bytes")
    monkeypatch.undo()
    assert seqs(Journal(path, {"memory"})) == [1]


def test_a_replaced_file_is_whole_or_untouched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "view.yaml"
    journal_files.replace_file(target, b"old", durable=False)

    def fails(_descriptor: int, _content: bytes) -> int:
        raise OSError(errno.EIO, "I/O error")

    monkeypatch.setattr(os, "write", fails)
    with pytest.raises(OSError, match="I/O error"):
        journal_files.replace_file(target, b"new", durable=True)
    assert target.read_bytes() == b"old"
    assert list(tmp_path.glob(".*tmp")) == []


@pytest.mark.parametrize(
    ("number", "kind", "code"),
    [
        (errno.ENOSPC, DiskFullError, "disk_full"),
        (errno.EDQUOT, DiskFullError, "disk_full"),
        (errno.EFBIG, DiskFullError, "disk_full"),
        (errno.EACCES, ReadOnlyError, "read_only"),
        (errno.EROFS, ReadOnlyError, "read_only"),
        (errno.ELOOP, StorageError, "symlink"),
        (errno.EIO, StorageError, "storage"),
    ],
)
def test_what_the_system_refuses_becomes_an_error_that_helps(
    number: int, kind: type[StorageError], code: str, tmp_path: Path
) -> None:
    with pytest.raises(StorageError) as translated, journal_files.translated(tmp_path / "memories.yaml", "write"):
        raise OSError(number, os.strerror(number))
    assert type(translated.value) is kind
    assert translated.value.code == code
    assert "memories.yaml" in translated.value.message
    assert str(tmp_path) not in translated.value.message
    assert translated.value.recovery
