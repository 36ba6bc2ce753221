"""A read may return fewer bytes than were asked for: nothing is taken for torn, cut or copied because of that."""

from __future__ import annotations

import os
import random
from typing import TYPE_CHECKING

import pytest

from agent_memory.errors import StorageError
from agent_memory.files.atomic import read_at
from agent_memory.journal import Change, Journal
from agent_memory.journal.reader import LineProblem
from agent_memory.journal.salvage import get_rejected_path, keep_rejected
from tests.support import lines_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MANY = 60


@pytest.fixture
def path(root: Path) -> Path:
    return root / "bob" / "memories.yaml"


@pytest.fixture(params=["4096", "64", "random"])
def short_reads(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Return a function that limits what one read returns from then on."""
    real, choose = os.pread, random.Random(request.param)

    def pread(descriptor: int, length: int, at: int) -> bytes:
        most = choose.randint(1, 200) if request.param == "random" else int(request.param)
        return real(descriptor, min(length, most), at)

    return lambda: monkeypatch.setattr(os, "pread", pread)


def fill(path: Path, count: int = MANY) -> None:
    journal = Journal(path, {"memory"})
    with journal.locked() as writer:
        for number in range(count):
            writer.append(
                [Change("put", "memory", f"m{number}", {"content": f"memory number {number}, in some words"})]
            )


def put(journal: Journal, name: str) -> None:
    with journal.locked() as writer:
        writer.append([Change("put", "memory", name, {"content": name})])


def ids_in(path: Path) -> list[str]:
    journal = Journal(path, {"memory"})
    found = [change.id for entry in journal.poll().entries for change in entry.changes]
    assert journal.reader.problems == []
    return found


def test_a_write_after_short_reads_loses_nothing(path: Path, short_reads: Callable[[], None]) -> None:
    fill(path)
    short_reads()
    journal = Journal(path, {"memory"})
    put(journal, "one more")
    assert len(journal.poll().entries) == 0
    assert ids_in(path) == [*(f"m{number}" for number in range(MANY)), "one more"]
    assert not get_rejected_path(path).exists()


def test_a_session_that_saw_part_of_what_others_appended_sees_the_rest(
    path: Path, short_reads: Callable[[], None]
) -> None:
    fill(path, 2)
    journal = Journal(path, {"memory"})
    journal.poll()
    fill(path)
    short_reads()
    assert len(journal.poll().entries) == MANY
    assert journal.poll().entries == []


def test_compaction_keeps_everything_in_spite_of_short_reads(path: Path, short_reads: Callable[[], None]) -> None:
    fill(path)
    before = lines_of(path)
    short_reads()
    assert len(Journal(path, {"memory"}).compact().entries) == MANY
    assert lines_of(path) == before


def test_a_file_written_anew_after_a_failed_sync_is_whole(
    path: Path, short_reads: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(path)
    before, real, failed = path.read_bytes(), os.fsync, []

    def fails_once(descriptor: int) -> None:
        if not failed and os.fstat(descriptor).st_ino == path.stat().st_ino:
            failed.append(descriptor)
            raise OSError(5, "Input/output error")
        real(descriptor)

    journal = Journal(path, {"memory"})
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", fails_once)
        with pytest.raises(StorageError):
            put(journal, "refused")
    inode = path.stat().st_ino
    short_reads()
    put(journal, "accepted")
    assert path.stat().st_ino != inode
    assert path.read_bytes().startswith(before)
    assert ids_in(path)[-1] == "accepted"


def test_the_copy_of_a_rewritten_journal_is_whole(path: Path, short_reads: Callable[[], None]) -> None:
    fill(path)
    journal = Journal(path, {"memory"})
    journal.poll()
    changed = path.read_bytes().replace(b"number 3,", b"number three,")
    path.write_bytes(changed)
    short_reads()
    assert journal.poll().reset
    assert [copy.read_bytes() for copy in path.parent.glob("memories.rewritten-*")] == [changed]


def test_a_compaction_by_another_is_no_rewrite_in_spite_of_short_reads(
    path: Path, short_reads: Callable[[], None]
) -> None:
    fill(path)
    journal = Journal(path, {"memory"})
    journal.poll()
    other = Journal(path, {"memory"})
    other.compact()
    put(other, "after it")
    short_reads()
    assert [entry.seq for entry in journal.poll().entries] == [MANY + 1]
    assert journal.reader.rewritten == 0


def test_what_was_set_aside_before_is_found_again_and_not_written_twice(
    tmp_path: Path, short_reads: Callable[[], None]
) -> None:
    path = tmp_path / "memories.rejected.yaml"
    problems = [LineProblem(number, "torn", f"half a line {number}".encode()) for number in range(30)]
    keep_rejected(path, problems, "2026-03-01T12:00:00Z")
    before = path.read_bytes()
    short_reads()
    keep_rejected(path, problems, "2026-03-02T12:00:00Z")
    assert path.read_bytes() == before


def test_a_file_that_cannot_be_read_to_its_end_is_not_written(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(path)
    before, real = path.read_bytes(), os.pread
    half = len(before) // 2
    monkeypatch.setattr(os, "pread", lambda fd, length, at: real(fd, max(0, min(length, half - at)), at))
    with pytest.raises(StorageError, match="cannot be read to its end"):
        put(Journal(path, {"memory"}), "refused")
    with pytest.raises(StorageError, match="cannot be read to its end"):
        Journal(path, {"memory"}).compact()
    assert path.read_bytes() == before


def test_reading_stops_where_the_file_ends(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"0123456789")
    descriptor = os.open(path, os.O_RDONLY)
    try:
        assert read_at(descriptor, 2, 5) == b"234"
        assert read_at(descriptor, 7, 100) == b"789"
        assert read_at(descriptor, 20, 30) == b""
    finally:
        os.close(descriptor)


def test_who_has_read_a_part_of_a_compacted_journal_has_read_no_further_than_that(path: Path) -> None:
    journal = Journal(path, {"memory"})
    for number in range(MANY):
        with journal.locked() as writer:
            writer.append([Change("put", "memory", str(number))])
    journal.compact()

    reader = Journal(path, {"memory"})
    read = 0
    while some := reader.poll(most=1_000).entries:
        read += len(some)
        assert reader.watermark[1] == some[-1].seq == read
    assert read == MANY


def test_who_has_read_a_journal_in_portions_gets_nothing_twice_once_it_is_compacted(path: Path) -> None:
    journal, reader = Journal(path, {"memory"}), Journal(path, {"memory"})
    for number in range(MANY):
        with journal.locked() as writer:
            writer.append([Change("put", "memory", str(number))])
    while reader.poll(most=1_000).entries:
        pass
    journal.compact()

    assert not [entry for _ in range(MANY) for entry in reader.poll(most=1_000).entries]
    assert reader.reader.offset == path.stat().st_size
