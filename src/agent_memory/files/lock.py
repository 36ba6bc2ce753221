"""The one lock of an agent's folder: an advisory file lock, waited for a bounded time, never deleted.

Also tests whether such locks work in the folder: some network and shared folders accept every lock and exclude no
process.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Final

from agent_memory.errors import BusyError, StorageError
from agent_memory.files.atomic import is_in_place, open_private, translated
from agent_memory.files.held import lock_at_once, unlock_and_close
from agent_memory.files.names import LOCK

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

WAIT_SECONDS: Final = 5.0
# At 50 ms a store among 8 writers waits p95 50 ms; at 2 ms the work of the other writers is what takes the time.
_POLL_SECONDS: Final = 0.002
_ROOM: Final = 16_384
"""Bytes in the lock file: room on a full disk to forget a hundred memories, or to fold a small journal."""
_HELD: Final = frozenset({errno.EACCES, errno.EAGAIN, errno.EWOULDBLOCK})
"""Error numbers for a lock that another process holds; some file systems use EACCES."""
_NO_LOCKS: Final = frozenset({errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP})
_CHILD_SECONDS: Final = 10.0
_CHILD_TRIES: Final = (
    "import fcntl, os, sys\n"
    "try:\n"
    "    fcntl.flock(os.open(sys.argv[1], os.O_RDWR), fcntl.LOCK_EX | fcntl.LOCK_NB)\n"
    "except OSError:\n"
    "    sys.exit(7)\n"
)
_KEPT_OUT: Final = 7


class FolderLock:
    """The lock of a folder, held."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor

    def is_in_place(self) -> bool:
        """Return whether the locked file is still the one that its path names.

        Raises:
            OSError: The folder cannot be looked at.
        """
        return is_in_place(self._path, self._descriptor)

    def keep_room(self) -> None:
        """Fill the lock file, so that `give_room` can free its blocks on a full disk; does nothing without room."""
        if os.fstat(self._descriptor).st_size < _ROOM:
            with contextlib.suppress(OSError):
                os.pwrite(self._descriptor, os.urandom(_ROOM), 0)  # what cannot be compressed takes its room

    def give_room(self) -> bool:
        """Empty the lock file, for a write that frees room itself; return whether there was anything in it.

        Raises:
            OSError: The file cannot be truncated.
        """
        had_some = os.fstat(self._descriptor).st_size > 0
        os.ftruncate(self._descriptor, 0)
        return had_some


@contextlib.contextmanager
def folder_lock(folder: Path, wait: float = WAIT_SECONDS) -> Iterator[FolderLock]:
    """Hold the folder's lock for the length of the block; threads and processes alike.

    If the lock file is deleted meanwhile, another process can lock the new one; the lock of the journal itself
    (`file_lock`) keeps it out.

    Raises:
        BusyError: Another process or thread held it for `wait` seconds.
        StorageError: The lock file cannot be opened.
    """
    path = folder / LOCK
    with contextlib.ExitStack() as held:
        with translated(path, "lock"):
            descriptor = held.enter_context(file_lock(path, lambda: _open_or_make(path), wait))
        yield FolderLock(path, descriptor)


@contextlib.contextmanager
def file_lock(path: Path, open_it: Callable[[], int], wait: float, *, lock_it: bool = True) -> Iterator[int]:
    """Open a file, lock it for the length of the block, and yield its descriptor.

    For a journal: excludes a process that locked a new lock file after the first one was deleted. Taken after the
    folder's lock, never before it. When the block begins, the file is the one that `path` names.

    Args:
        path: The file.
        open_it: Opens it for writing.
        wait: Seconds.
        lock_it: False where a lock would keep readers out as well: then the folder's lock has to do.

    Raises:
        BusyError: Another process held it, or kept replacing the file, for `wait` seconds.
        OSError: It cannot be opened or locked.
    """
    deadline = time.monotonic() + wait
    while True:
        with contextlib.ExitStack() as tried:
            descriptor = open_it()
            tried.callback(unlock_and_close, descriptor)
            while lock_it and not _is_ours(descriptor):
                if time.monotonic() >= deadline:
                    raise held_by_another(wait)
                time.sleep(_POLL_SECONDS)
            if is_in_place(path, descriptor):
                tried.pop_all()
                break
        if time.monotonic() >= deadline:
            raise held_by_another(wait)
    process = os.getpid()
    try:
        yield descriptor
    finally:
        if process == os.getpid():  # a child that was forked in the block has neither the file nor the lock
            unlock_and_close(descriptor)


def _is_ours(descriptor: int) -> bool:
    """Try to lock an open file; return whether this process holds the lock now."""
    try:
        lock_at_once(descriptor)
    except OSError as error:
        if error.errno in _NO_LOCKS:
            raise no_locks(_offers_none(error)) from error
        if error.errno not in _HELD:
            raise
        return False
    return True


def held_by_another(seconds: float) -> BusyError:
    """Return the error for a lock that stayed taken for `seconds`."""
    return BusyError(
        f"Another process has been writing to this memory for more than {seconds:g} s. Nothing was written; "
        "searching still works.",
        recovery="Try again in a moment. If this goes on, a process that was stopped may hold the lock: let it go on "
        "(fg, or kill -CONT) or end it; do not delete the lock file.",
    )


def no_locks(reason: str) -> StorageError:
    """Return the error for a folder whose locks do not work."""
    return StorageError(
        f"{reason} Without locks two sessions would overwrite each other's memories, so nothing was written; "
        "searching still works.",
        code="no_locks",
        recovery="Set storage_root to a folder on a local disk, and move the memories there.",
    )


def make_lock(folder: Path) -> None:
    """Create the folder's lock file if there is none.

    Raises:
        StorageError: It cannot be created.
    """
    path = folder / LOCK
    with translated(path, "lock"):
        os.close(_open_or_make(path))


def locks_work(folder: Path) -> str | None:
    """Test whether the folder's lock excludes a second one; takes far less than a millisecond, and creates nothing.

    Returns:
        None if it does, if another process holds it at the moment (so it does), or if there is no lock file; otherwise
        a sentence that says why not.
    """
    with contextlib.ExitStack() as opened:
        try:
            first, second = (_open(folder / LOCK, opened) for _ in range(2))
        except OSError:
            return None  # missing, or not to be opened: an attempt to write reports that
        try:
            for descriptor in (first, second):
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            return None if error.errno in _HELD else _offers_none(error)
        # Where a process cannot lock itself out, what counts is that it locks out others.
        fcntl.flock(first, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return None if _keeps_a_child_out(folder / LOCK) else "Locks do not work here: two processes held the same one."


def seems_free(path: Path | None) -> bool:
    """Return whether the lock in `path` was free a moment ago; takes some 10 µs, creates nothing and keeps nothing.

    True also where it cannot be tried: an attempt to write reports the reason.
    """
    with contextlib.ExitStack() as opened, contextlib.suppress(OSError, StorageError):
        return path is None or _is_ours(_open(path, opened))
    return True


def _offers_none(error: OSError) -> str:
    return f"The file system of this memory offers no locks ({error.strerror or error})."


def _open_or_make(path: Path) -> int:
    return open_private(path, os.O_RDWR | os.O_CREAT)


def _open(path: Path, opened: contextlib.ExitStack) -> int:
    try:
        descriptor = open_private(path, os.O_RDWR)
    except PermissionError:
        descriptor = open_private(path, os.O_RDONLY)
    opened.callback(unlock_and_close, descriptor)
    return descriptor


def _keeps_a_child_out(path: Path) -> bool:
    """Return whether another process fails to take the lock that this one holds."""
    try:
        child = subprocess.run(  # noqa: S603 - a constant program, no shell
            [sys.executable, "-I", "-S", "-c", _CHILD_TRIES, str(path)],
            check=False,
            timeout=_CHILD_SECONDS,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    except (OSError, subprocess.SubprocessError):
        return False
    return child.returncode == _KEPT_OUT
