"""Locks that do not work: tried once, warned of, refused only where they fail."""

from __future__ import annotations

import errno
import fcntl
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from agent_memory.files.entries import shared_file_system
from agent_memory.files.lock import folder_lock, locks_work, make_lock
from agent_memory.journal import writer
from tests.concurrency.processes import REPOSITORY, environment
from tests.hostile.trouble import inside
from tests.support import memory_of

if TYPE_CHECKING:
    from pathlib import Path

    from agent_memory.storage import FileStorage


@pytest.mark.parametrize(
    ("how", "why"), [("nothing", "two processes held the same one"), ("ENOLCK", "No locks available")]
)
def test_where_locks_do_not_work_nothing_is_written_and_everything_is_read(tmp_path: Path, how: str, why: str) -> None:
    found = inside("locks_that_fail", tmp_path / "memory", how)
    assert found["store"]["code"] == "no_locks"
    assert why in found["store"]["message"]
    assert "searching still works" in found["store"]["message"]
    assert "local disk" in found["store"]["recovery"]
    assert found["searched"] == ["peppermint tea"]
    assert found["after"] == "done", "tried again at the next write"
    assert found["reopened"] == ["peppermint tea", "milk"]


def test_locks_are_tried_without_creating_anything(root: Path) -> None:
    assert locks_work(root) is None
    root.mkdir()
    assert locks_work(root) is None
    assert list(root.iterdir()) == []


def test_working_locks_are_found_to_work_held_or_not(root: Path) -> None:
    root.mkdir()
    make_lock(root)
    assert locks_work(root) is None
    with folder_lock(root):
        assert locks_work(root) is None
    with folder_lock(root, wait=0):
        pass


def test_a_lock_that_does_not_keep_its_own_process_out_is_tried_on_another(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As locks of the process (POSIX) would behave: they keep out others alone."""
    root.mkdir()
    make_lock(root)
    real, held = fcntl.flock, []

    def once(descriptor: int, operation: int) -> None:
        if not held:
            real(descriptor, operation)
        if operation != fcntl.LOCK_UN:
            held.append(descriptor)

    monkeypatch.setattr(fcntl, "flock", once)
    assert locks_work(root) is None
    assert len(held) == 3


async def test_locks_are_tried_once_for_a_session(storage: FileStorage, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[Path] = []
    monkeypatch.setattr(writer, "locks_work", tried.append)
    for number in range(3):
        await storage.store(memory_of(f"fact {number}"))
    assert tried == [storage.folder.path]


def test_importing_tries_no_lock() -> None:
    code = "import sys, agent_memory.storage; sys.exit('fcntl' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, env=environment(), check=False).returncode == 0


async def test_a_lock_that_cannot_be_opened_is_named(storage: FileStorage) -> None:
    storage.folder.path.mkdir(parents=True)
    os.mkfifo(storage.folder.path / ".lock")
    with pytest.raises(Exception, match="lock") as refused:
        await storage.store(memory_of("tea"))
    assert getattr(refused.value, "code", "") == "not_a_file"


async def test_a_folder_on_a_network_disk_is_used_and_warned_of(
    storage: FileStorage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await storage.store(memory_of("peppermint tea"))
    device = storage.folder.path.stat().st_dev
    mounts = tmp_path / "mountinfo"
    mounts.write_text(
        "22 1 0:99999 / / rw - ext4 /dev/sda1 rw\n"
        f"36 22 {os.major(device)}:{os.minor(device)} / /mnt rw,relatime shared:1 - nfs4 server:/export rw\n"
    )
    assert "notes" not in await storage.health()
    monkeypatch.setattr(shared_file_system, "__defaults__", (mounts,))
    (note,) = (await storage.health())["notes"]
    assert "(nfs4)" in note
    assert "one at a time" in note
    await storage.store(memory_of("black coffee"))
    mounts.unlink()
    assert "notes" not in await storage.health()


@pytest.mark.parametrize("number", [errno.ENOTSUP, errno.ENOSYS, errno.EIO])
def test_whatever_a_file_system_says_about_locks_is_in_the_reason(
    root: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    root.mkdir()
    make_lock(root)

    def refused(_descriptor: int, _operation: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", refused)
    assert os.strerror(number) in (locks_work(root) or "")
