"""The one lock of an agent's folder: an advisory file lock, waited for a bounded time, never deleted.

Also owns the test whether such locks do anything where the folder lies: some network and shared folders accept every
lock and keep nobody out.
"""

from __future__ import annotations

import contextlib
import errno
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Final

from agent_memory.errors import BusyError, StorageError
from agent_memory.journal.files import PRIVATE_FILE, open_private, translated

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LOCK_NAME: Final = ".lock"
WAIT_SECONDS: Final = 5.0
# At 50 ms (filelock's default) a store among 8 writers waits p95 50 ms; at 2 ms it is the others' own work that counts.
_POLL_SECONDS: Final = 0.002
_HELD: Final = frozenset({errno.EACCES, errno.EAGAIN, errno.EWOULDBLOCK})
"""What a file system answers when somebody else has the lock; some say EACCES."""
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


@contextlib.contextmanager
def folder_lock(folder: Path, wait: float = WAIT_SECONDS) -> Iterator[None]:
    """Hold the folder's lock for the length of the block; threads and processes alike.

    A new `FileLock` each time: the descriptor lives only while the lock is held, so nothing survives a fork or an exec.

    Raises:
        BusyError: Someone else held it for `wait` seconds.
        StorageError: The lock file cannot be opened.
    """
    path = folder / LOCK_NAME
    with translated(path, "lock"):
        from filelock import FileLock, Timeout  # noqa: PLC0415 - 9 ms that only a writer needs

        lock = FileLock(path, timeout=wait, poll_interval=_POLL_SECONDS, mode=PRIVATE_FILE, thread_local=False)
        try:
            lock.acquire()
        except Timeout:
            raise BusyError(
                f"Another process has been writing to this memory for more than {wait:g} s. Nothing was written; "
                "searching still works."
            ) from None
        except OSError as error:
            if error.errno in _NO_LOCKS:
                raise no_locks(_offers_none(error)) from error
            raise
    try:
        yield
    finally:
        with translated(path, "unlock"):
            lock.release()


def no_locks(reason: str) -> StorageError:
    """Return the error for a folder in which processes cannot keep out of each other's way."""
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
    path = folder / LOCK_NAME
    with translated(path, "lock"):
        os.close(open_private(path, os.O_RDWR | os.O_CREAT))


def locks_work(folder: Path) -> str | None:
    """Try whether the folder's lock keeps a second one out; takes far less than a millisecond, and creates nothing.

    Returns:
        None if it does, if somebody holds it at the moment (so it does), or if there is no lock to try it on; otherwise
        a sentence why not.
    """
    try:
        import fcntl  # noqa: PLC0415 - exists on Unix alone; elsewhere locks are the system's own, and mandatory
    except ImportError:
        return None
    with contextlib.ExitStack() as opened:
        try:
            first, second = (_open(folder / LOCK_NAME, opened) for _ in range(2))
        except OSError:
            return None  # not there, or not to be opened: who wants to write is told so
        for descriptor in (first, second):
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                if error.errno in _HELD:
                    return None
                return _offers_none(error)
        # Where a process cannot lock itself out, what counts is that it locks out others.
        fcntl.flock(first, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return (
            None
            if _keeps_a_child_out(folder / LOCK_NAME)
            else "Locks do not work here: two processes held the same one."
        )


def seems_free(path: Path | None) -> bool:
    """Tell whether the lock in `path` could be had a moment ago; takes some 10 µs, creates nothing and keeps nothing.

    True also where it cannot be tried: whoever wants to write is told what is wrong.
    """
    try:
        import fcntl  # noqa: PLC0415 - exists on Unix alone
    except ImportError:
        return True
    with contextlib.ExitStack() as opened:
        try:
            descriptor = None if path is None else _open(path, opened)
        except OSError:
            return True
        try:
            if descriptor is not None:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            return error.errno not in _HELD
    return True


def _offers_none(error: OSError) -> str:
    return f"The file system of this memory offers no locks ({error.strerror or error})."


def _open(path: Path, opened: contextlib.ExitStack) -> int:
    try:
        descriptor = open_private(path, os.O_RDWR)
    except PermissionError:
        descriptor = open_private(path, os.O_RDONLY)
    opened.callback(unlock_and_close, descriptor)
    return descriptor


def unlock_and_close(descriptor: int) -> None:
    """Close a descriptor and, before that, unlock it: a child forked meanwhile has a copy and would keep the lock."""
    with contextlib.suppress(ImportError, OSError):
        import fcntl  # noqa: PLC0415 - exists on Unix alone

        fcntl.flock(descriptor, fcntl.LOCK_UN)
    os.close(descriptor)


def _keeps_a_child_out(path: Path) -> bool:
    """Tell whether another process fails to take the lock that this one holds."""
    try:
        child = subprocess.run(  # noqa: S603 - our own words, no shell
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
