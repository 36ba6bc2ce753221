"""The folder's lock: exclusive between objects, waited for a bounded time, gone with the block."""

from __future__ import annotations

import fcntl
import os
import signal
import threading
from typing import TYPE_CHECKING

import pytest

from agent_memory.errors import BusyError
from agent_memory.journal import Change, Journal
from agent_memory.journal.lock import LOCK_NAME, folder_lock, seems_free

if TYPE_CHECKING:
    from pathlib import Path


def test_who_waits_too_long_is_told_so_and_nothing_is_written(root: Path) -> None:
    path = root / "memories.yaml"
    journal = Journal(path, set(), wait=0.01)
    with journal.locked() as writer:
        writer.append([Change("put", "memory", "a")])
    before = path.read_bytes()
    with folder_lock(root), pytest.raises(BusyError) as busy, Journal(path, set(), wait=0.01).locked():
        pytest.fail("two held the lock")  # pragma: no cover
    assert busy.value.code == "busy"
    assert "another process" in busy.value.message.lower()
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


def test_reading_needs_no_lock(root: Path) -> None:
    path = root / "memories.yaml"
    with Journal(path, set()).locked() as writer:
        writer.append([Change("put", "memory", "a")])
    with folder_lock(root):
        assert len(Journal(path, set(), wait=0).poll().entries) == 1


def test_a_child_forked_while_the_lock_is_tried_does_not_keep_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / LOCK_NAME
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
        assert seems_free(path)
        assert seems_free(path), "the child has it"
    finally:
        os.kill(children[0], signal.SIGKILL)
        os.waitpid(children[0], 0)
