"""The one lock of an agent's folder: an advisory file lock.

It is waited for a bounded time and never deleted. Also tests whether such locks work in the folder: some network and
shared folders accept every lock and exclude no process.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Final

from agent_memory.errors import BusyError, StorageError
from agent_memory.files.atomic import is_in_place, open_private, translated, try_lock, unlock_and_close, wait_for_lock
from agent_memory.files.entries import LockState, find_holder
from agent_memory.files.exchange import finish_settled_files, is_settled
from agent_memory.files.names import ARCHIVE_LOCK, LOCK
from agent_memory.logs import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

log = get_logger(__name__)

WAIT_SECONDS: Final = 30.0
PATIENT_SECONDS: Final = 1.0
"""Seconds of waiting after which the log names the holder."""
_ROOM: Final = 16_384
"""Bytes in the lock file: room on a full disk to forget a hundred memories, or to fold a small journal."""
_HELD: Final = frozenset({errno.EACCES, errno.EAGAIN, errno.EWOULDBLOCK})
"""Errors for a lock that another process holds; some file systems use EACCES."""
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
        """Return True if the path still names the locked file.

        Raises:
            OSError: The folder cannot be looked at.
        """
        return is_in_place(self._path, self._descriptor)

    def keep_room(self) -> None:
        """Fill the lock file, so `give_room` can free its blocks."""
        if os.fstat(self._descriptor).st_size < _ROOM:
            with contextlib.suppress(OSError):
                os.pwrite(self._descriptor, os.urandom(_ROOM), 0)  # what cannot be compressed takes its room

    def give_room(self) -> bool:
        """Empty the lock file; return True if that freed room.

        Raises:
            OSError: The file cannot be truncated.
        """
        had_some = os.fstat(self._descriptor).st_size > 0
        os.ftruncate(self._descriptor, 0)
        return had_some


@contextlib.contextmanager
def folder_lock(folder: Path, wait: float = WAIT_SECONDS) -> Iterator[FolderLock]:
    """Hold the folder's lock for the block, against threads and processes.

    Files that a killed process had settled are put in place first (see `exchange`). If the lock file is deleted,
    another process can lock the new one; the lock of the journal itself (`file_lock`) keeps it out.

    Raises:
        BusyError: Another process or thread held it for `wait` seconds.
        StorageError: The lock file cannot be opened.
    """
    path = folder / LOCK
    with contextlib.ExitStack() as held:
        with translated(path, "lock"):
            descriptor = held.enter_context(file_lock(path, lambda: _open_or_make(path), wait))
        if is_settled(folder):
            finish_settled_files(folder)
        yield FolderLock(path, descriptor)


@contextlib.contextmanager
def archive_lock(folder: Path, wait: float = WAIT_SECONDS) -> Iterator[None]:
    """Hold the lock for moving memories between journals, or replacing them.

    A move is several changes, with the memory in both journals between them; a second mover could delete it from both.
    Take it before the folder's lock, never after it. A missing folder is not locked.

    Raises:
        BusyError: Another process or thread held it for `wait` seconds.
        StorageError: The lock file cannot be opened.
    """
    path = folder / ARCHIVE_LOCK
    if not folder.is_dir():
        yield
        return
    with translated(path, "lock"), file_lock(path, lambda: _open_or_make(path), wait):
        yield


@contextlib.contextmanager
def index_lock(path: Path, doing: str, wait: float = 0) -> Iterator[None]:
    """Hold the lock of an index or shard for the block.

    Args:
        path: File to lock, created if missing.
        doing: Verb for the error, such as `build`.
        wait: Seconds to wait for the lock.

    Raises:
        BusyError: Another process has it.
        StorageError: It cannot be locked.
    """
    with contextlib.ExitStack() as held:
        with translated(path, "lock"):
            try:
                held.enter_context(file_lock(path, lambda: _open_or_make(path), wait))
            except BusyError:
                message = f"Another process is using {path.parent.name}; it cannot {doing} now."
                raise BusyError(message) from None
        yield


def finish_settled(folder: Path, wait: float = 0.0) -> None:
    """Finish a change that a killed process had settled.

    Raises:
        BusyError: Another process holds the lock; it finishes that itself.
        StorageError: It cannot be finished.
    """
    with folder_lock(folder, wait):
        pass


@contextlib.contextmanager
def file_lock(path: Path, open_it: Callable[[], int], wait: float, *, lock_it: bool = True) -> Iterator[int]:
    """Open and lock a file for the block, and yield its descriptor.

    For a journal: excludes a process that locked a new lock file after the first one was deleted. Take it after the
    folder's lock, never before it. When the block begins, `path` names the locked file.

    Args:
        path: Path of the file.
        open_it: Opens the file for writing.
        wait: Seconds to wait for the lock.
        lock_it: False where a lock would keep readers out: then the folder's lock has to do.

    Raises:
        BusyError: Another process held it, or kept replacing the file, for `wait` seconds.
        OSError: It cannot be opened or locked.
    """
    deadline = time.monotonic() + wait
    while True:
        descriptor = open_it()
        if lock_it:
            _lock(descriptor, max(0.0, deadline - time.monotonic()))
        try:
            if is_in_place(path, descriptor):
                break
        except BaseException:
            unlock_and_close(descriptor)
            raise
        unlock_and_close(descriptor)
        if time.monotonic() >= deadline:
            raise build_busy_error(wait)
    process = os.getpid()
    try:
        yield descriptor
    finally:
        if process == os.getpid():  # a child that was forked in the block has neither the file nor the lock
            unlock_and_close(descriptor)


def _lock(descriptor: int, seconds: float) -> None:
    """Lock an open file; where that fails, it is closed."""
    waiting = None
    try:
        if _try_lock(descriptor):
            return
        if seconds:
            waiting = LockWaiter(descriptor)
            is_ours = waiting.is_over(min(seconds, PATIENT_SECONDS))
            if not is_ours and seconds > PATIENT_SECONDS:
                log.warning("lock_waited_for", holder=str(find_holder(os.fstat(descriptor))))
                is_ours = waiting.is_over(seconds - PATIENT_SECONDS)
            if is_ours:
                return
        refusal = build_busy_error(seconds, find_holder(os.fstat(descriptor)))
    except BaseException:
        _release(descriptor, waiting)
        raise
    _release(descriptor, waiting)
    raise refusal


def _release(descriptor: int, waiting: LockWaiter | None) -> None:
    if waiting is None:
        unlock_and_close(descriptor)
    else:
        waiting.give_up()


class LockWaiter:
    """Thread that waits for a lock in the kernel, FIFO.

    It cannot be cancelled. If its caller has given up when it gets the lock, it unlocks at once.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._over = threading.Event()
        self._mutex = threading.Lock()
        self._given_up = False
        self._error: OSError | None = None
        threading.Thread(target=self._wait, name="agent-memory-lock", daemon=True).start()

    def is_over(self, seconds: float) -> bool:
        """Wait for the lock; return True if it is held.

        Raises:
            OSError: The file cannot be locked.
        """
        if not self._over.wait(seconds):
            return False
        if self._error is not None:
            raise self._error
        return True

    def give_up(self) -> None:
        """Release the lock and close the file once locked."""
        with self._mutex:
            self._given_up = True
            if self._over.is_set():
                unlock_and_close(self._descriptor)

    def _wait(self) -> None:
        try:
            wait_for_lock(self._descriptor)
        except OSError as error:
            self._error = error
        with self._mutex:
            if self._given_up:
                unlock_and_close(self._descriptor)
            self._over.set()


def _try_lock(descriptor: int) -> bool:
    """Try to lock an open file; return True if it is locked."""
    try:
        try_lock(descriptor)
    except OSError as error:
        if error.errno in _NO_LOCKS:
            raise build_no_locks_error(_describe_missing_locks(error)) from error
        if error.errno not in _HELD:
            raise
        return False
    return True


def build_busy_error(seconds: float, holder: LockState | None = None) -> BusyError:
    """Build the error for a lock that stayed taken."""
    pid = holder.pid if holder is not None else None
    who = str(holder) if pid else "another process"
    if pid == os.getpid():
        who = "another session of this process"
    since = f"has been writing to this memory for more than {seconds:g} s" if seconds else "is writing to this memory"
    advice = "Try again in a moment. If this goes on, end that process"
    if holder is not None and holder.is_stopped:
        since = "holds the lock of this memory and is stopped (Ctrl-Z or SIGSTOP)"
        advice = f"Let it go on (fg, or kill -CONT {pid}) or end it"
    return BusyError(
        f"{who[0].upper()}{who[1:]} {since}. Nothing was written; searching still works.",
        recovery=f"{advice}; do not delete the lock file.",
    )


def build_no_locks_error(reason: str) -> StorageError:
    """Build the error for a folder whose locks do not work."""
    return StorageError(
        f"{reason} Without locks two sessions would overwrite each other's memories, so nothing was written; "
        "searching still works.",
        code="no_locks",
        recovery="Set storage_root to a folder on a local disk, and move the memories there.",
    )


def make_lock(folder: Path) -> None:
    """Create the folder's lock file if missing.

    Raises:
        StorageError: It cannot be created.
    """
    path = folder / LOCK
    with translated(path, "lock"):
        os.close(_open_or_make(path))


def locks_work(folder: Path) -> str | None:
    """Check that the folder's lock excludes a second holder.

    Takes far less than a millisecond, and creates nothing.

    Returns:
        None if it works, if another process holds it, or without a lock file; otherwise the reason in a sentence.
    """
    with contextlib.ExitStack() as opened:
        try:
            first, second = (_open_existing(folder / LOCK, opened) for _ in range(2))
        except OSError:
            return None  # missing, or not to be opened: an attempt to write reports that
        try:
            for descriptor in (first, second):
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            return None if error.errno in _HELD else _describe_missing_locks(error)
        # Where a process cannot lock itself out, what counts is that it locks out others.
        fcntl.flock(first, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return None if _excludes_child(folder / LOCK) else "Locks do not work here: two processes held the same one."


def _describe_missing_locks(error: OSError) -> str:
    return f"The file system of this memory offers no locks ({error.strerror or error})."


def _open_or_make(path: Path) -> int:
    return open_private(path, os.O_RDWR | os.O_CREAT)


def _open_existing(path: Path, opened: contextlib.ExitStack) -> int:
    try:
        descriptor = open_private(path, os.O_RDWR)
    except PermissionError:
        descriptor = open_private(path, os.O_RDONLY)
    opened.callback(unlock_and_close, descriptor)
    return descriptor


def _excludes_child(path: Path) -> bool:
    """Return True if a child process cannot take this process's lock."""
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


@contextlib.contextmanager
def only_one(lock: Path) -> Iterator[bool]:
    """Try to hold a lock file for the block; yield success.

    Nothing is excluded if the file system has no locks, or the folder is missing.

    Raises:
        StorageError: The file cannot be opened.
    """
    if not lock.parent.is_dir():
        yield True
        return
    with translated(lock, "open"):
        descriptor = open_private(lock, os.O_RDWR | os.O_CREAT)
    try:
        is_ours = True
        try:
            try_lock(descriptor)
        except BlockingIOError:
            is_ours = False
        except OSError:
            is_ours = True  # no locks here
        yield is_ours
    finally:
        unlock_and_close(descriptor)
