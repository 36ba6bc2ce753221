"""The one lock of an agent's folder: an advisory file lock, waited for a bounded time, never deleted."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final

from agent_memory.errors import BusyError
from agent_memory.journal.files import PRIVATE_FILE, translated

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LOCK_NAME: Final = ".lock"
WAIT_SECONDS: Final = 5.0
# At 50 ms (filelock's default) a store among 8 writers waits p95 50 ms; at 2 ms it is the others' own work that counts.
_POLL_SECONDS: Final = 0.002


@contextlib.contextmanager
def folder_lock(folder: Path, wait: float = WAIT_SECONDS) -> Iterator[None]:
    """Hold the folder's lock for the length of the block; threads and processes alike.

    A new `FileLock` each time: the descriptor lives only while the lock is held, so nothing survives a fork or an exec.

    Raises:
        BusyError: Someone else held it for `wait` seconds.
        StorageError: The lock file cannot be opened.
    """
    from filelock import FileLock, Timeout  # noqa: PLC0415 - 9 ms that only a writer needs

    path = folder / LOCK_NAME
    lock = FileLock(path, timeout=wait, poll_interval=_POLL_SECONDS, mode=PRIVATE_FILE, thread_local=False)
    with translated(path, "lock"):
        try:
            lock.acquire()
        except Timeout:
            raise BusyError(
                f"Another process has been writing to this memory for more than {wait:g} s. Nothing was written; "
                "searching still works."
            ) from None
    try:
        yield
    finally:
        lock.release()
