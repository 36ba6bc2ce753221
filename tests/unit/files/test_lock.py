"""The folder's lock: exclusive between objects, waited for a bounded time, gone with the block."""

from __future__ import annotations

import fcntl
import logging
import os
import signal
import threading
from typing import TYPE_CHECKING

import pytest

from agent_memory.errors import BusyError
from agent_memory.files import lock
from agent_memory.files.entries import LockState
from agent_memory.files.lock import build_busy_error, file_lock, folder_lock
from agent_memory.files.names import LOCK
from agent_memory.journal import Change, Journal
from agent_memory.journal import writer as journal_writer
from agent_memory.journal.format import encode_entry

if TYPE_CHECKING:
    from pathlib import Path


def store(journal: Journal, name: str) -> None:
    with journal.locked() as writer:
        writer.append([Change("put", "memory", name)])


def ids_in(path: Path) -> list[str]:
    return [change.id for entry in Journal(path, set()).poll().entries for change in entry.changes]


def test_who_waits_too_long_is_told_so_and_nothing_is_written(root: Path) -> None:
    path = root / "memories.yaml"
    journal = Journal(path, set(), wait=0.01)
    with journal.locked() as writer:
        writer.append([Change("put", "memory", "a")])
    before = path.read_bytes()
    with folder_lock(root), pytest.raises(BusyError) as busy, Journal(path, set(), wait=0.01).locked():
        pytest.fail("two held the lock")  # pragma: no cover
    assert busy.value.code == "busy"
    assert busy.value.message.startswith("Another session of this process")
    assert path.read_bytes() == before


def test_the_lock_excludes_threads_of_one_process_too(root: Path) -> None:
    root.mkdir()
    inside: list[str] = []

    def contender() -> None:
        with folder_lock(root):
            inside.append("second")

    thread = threading.Thread(target=contender)
    with folder_lock(root):
        thread.start()
        thread.join(timeout=0.05)
        assert inside == []
    thread.join()
    assert inside == ["second"]


def test_an_error_inside_lets_go_of_the_lock(root: Path) -> None:
    root.mkdir()
    with pytest.raises(KeyError), folder_lock(root):
        raise KeyError
    with folder_lock(root, wait=0):
        pass


def test_who_gave_up_does_not_hold_the_lock_later(root: Path) -> None:
    root.mkdir()
    with folder_lock(root):
        for _ in range(3):
            with pytest.raises(BusyError), folder_lock(root, wait=0.01):
                pytest.fail("two held the lock")  # pragma: no cover
        waiting = [each for each in threading.enumerate() if each.name == "agent-memory-lock"]
        assert len(waiting) == 3, "nobody can call them back"
    for each in waiting:
        each.join(30)
    assert not any(each.is_alive() for each in waiting)
    with folder_lock(root, wait=0):
        pass


def test_who_waits_gets_the_lock_as_soon_as_it_is_free_and_needs_no_thread_where_it_is(root: Path) -> None:
    root.mkdir()
    before = threading.active_count()
    with folder_lock(root):
        assert threading.active_count() == before
        later = threading.Timer(0.01, lambda: None)
        got = threading.Event()

        def wait() -> None:
            with folder_lock(root, wait=30):
                got.set()

        waiting = threading.Thread(target=wait)
        waiting.start()
        later.start()
        later.join()
        assert not got.is_set()
    waiting.join(30)
    assert got.is_set()


def test_an_interrupted_wait_gives_the_lock_back(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root.mkdir()

    def interrupted(_self: object, _seconds: float) -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr(lock.LockWaiter, "is_over", interrupted)
    with folder_lock(root), pytest.raises(KeyboardInterrupt), folder_lock(root, wait=30):
        pytest.fail("two held the lock")  # pragma: no cover
    monkeypatch.undo()
    with folder_lock(root, wait=30):
        pass


def test_a_long_wait_is_logged_with_the_holder(
    root: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    root.mkdir()
    monkeypatch.setattr(lock, "PATIENT_SECONDS", 0.01)
    with folder_lock(root), caplog.at_level(logging.WARNING), pytest.raises(BusyError), folder_lock(root, wait=0.02):
        pytest.fail("two held the lock")  # pragma: no cover
    assert "lock_waited_for" in caplog.text
    assert "process" in caplog.text


def test_a_stopped_holder_is_told_from_a_slow_one() -> None:
    stopped = LockState("held", pid=4711, name="python")
    error = build_busy_error(30, stopped)
    assert error.message.startswith("Process 4711 (python) has been writing to this memory for more than 30 s.")
    assert "end that process" in error.recovery
    assert build_busy_error(30).message.startswith("Another process has been writing")


def test_reading_needs_no_lock(root: Path) -> None:
    path = root / "memories.yaml"
    with Journal(path, set()).locked() as writer:
        writer.append([Change("put", "memory", "a")])
    with folder_lock(root):
        assert len(Journal(path, set(), wait=0).poll().entries) == 1


def test_a_child_forked_while_the_lock_is_tried_does_not_keep_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / LOCK
    path.touch()
    real, children = fcntl.flock, []

    def flock(descriptor: int, operation: int) -> None:
        real(descriptor, operation)
        if operation != fcntl.LOCK_UN and not children:
            children.append(os.fork())
            if children[0] == 0:
                signal.pause()

    monkeypatch.setattr(fcntl, "flock", flock)
    try:
        for _ in range(2):
            with folder_lock(tmp_path, wait=0):
                pass
    finally:
        os.kill(children[0], signal.SIGKILL)
        os.waitpid(children[0], 0)


def test_a_lock_that_was_deleted_and_made_anew_is_taken_instead_of_the_old_one(root: Path) -> None:
    root.mkdir()
    with folder_lock(root) as first:
        assert first.is_in_place()
        (root / LOCK).unlink()
        assert not first.is_in_place()
        with folder_lock(root, wait=0) as second:
            assert second.is_in_place()
            assert not first.is_in_place()


def test_without_its_lock_file_a_journal_is_still_written_by_one_at_a_time(root: Path) -> None:
    path = root / "memories.yaml"
    with Journal(path, {"memory"}).locked() as writer:
        writer.append([Change("put", "memory", "a")])
        (root / LOCK).unlink()
        with pytest.raises(BusyError), Journal(path, {"memory"}, wait=0.01).locked():
            pytest.fail("two wrote")  # pragma: no cover


def test_a_writer_that_waited_for_a_file_that_was_replaced_writes_to_the_new_one(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = root / "memories.yaml"
    journal = Journal(path, {"memory"})
    with journal.locked() as writer:
        writer.append([Change("put", "memory", "a")])
    other, real, replaced = Journal(path, {"memory"}), fcntl.flock, []

    def flock(descriptor: int, operation: int) -> None:
        if not replaced and os.path.samestat(os.fstat(descriptor), path.stat()):
            replaced.append(path.stat().st_ino)
            (root / LOCK).unlink()  # or the compaction would wait for the writer
            other.compact()
        real(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", flock)
    with journal.locked() as writer:
        writer.append([Change("put", "memory", "b")])
    assert replaced != [path.stat().st_ino]
    assert [change.id for entry in Journal(path, set()).poll().entries for change in entry.changes] == ["a", "b"]


@pytest.mark.parametrize("what", ["append", "replace", "lock"])
def test_a_compaction_that_others_got_in_beside_changes_nothing(
    root: Path, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = root / "memories.yaml"
    journal = Journal(path, {"memory"})
    store(journal, "a")
    real = os.fsync

    def meanwhile(descriptor: int) -> None:
        real(descriptor)
        if what == "lock":
            (root / LOCK).unlink(missing_ok=True)
        elif b'"c"' not in (content := path.read_bytes()):
            line = encode_entry(3, "2026-03-01T12:00:00Z", (Change("put", "memory", "c"),))
            if what == "append":
                with path.open("ab") as file:
                    file.write(line)
            else:
                (root / "new").write_bytes(content + line)
                (root / "new").replace(path)

    with journal.prepare_compaction() as new:
        store(Journal(path, {"memory"}), "b")
        monkeypatch.setattr(os, "fsync", meanwhile)
        with pytest.raises(BusyError, match="Nothing was replaced"):
            journal.put_in_place(new)
    monkeypatch.setattr(os, "fsync", real)
    assert ids_in(path) == (["a", "b"] if what == "lock" else ["a", "b", "c"])
    assert list(root.glob(".*.tmp")) == []


def test_where_locks_keep_readers_out_the_journal_itself_is_not_locked(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_writer, "locks_keep_readers_out", lambda _: True)
    path = root / "memories.yaml"
    with Journal(path, {"memory"}).locked() as writer:
        writer.append([Change("put", "memory", "a")])
        with file_lock(path, lambda: os.open(path, os.O_RDWR), wait=0):
            pass
    with folder_lock(root), pytest.raises(BusyError), Journal(path, {"memory"}, wait=0).locked():
        pytest.fail("two held the lock")  # pragma: no cover
