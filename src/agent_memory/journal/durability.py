"""Track which bytes of the journal this process has synced, and sync once for all that wait.

A process that returns or follows what another process wrote must sync that first: the other one may have died before
its own sync. Writes no byte.
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

from agent_memory.errors import unknown_outcome
from agent_memory.files.atomic import sync_file, sync_folder, sync_way_to
from agent_memory.files.held import duplicate, unlock_and_close

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


class SyncState:
    """How much of one file this process has synced.

    Args:
        sync: Syncs an open file.

    Attributes:
        is_doubtful: A sync failed. The kernel marks such pages as clean and does not write them again, so that the next
            sync succeeds without effect: only a new file helps.
    """

    def __init__(self, sync: Callable[[int], None] | None = None) -> None:
        self.is_doubtful = False
        self._sync = sync
        self._file: tuple[int, int] | None = None
        self._size = 0
        self._knows_way = False
        self._next: Receipt | None = None
        self._mutex = threading.Lock()
        self._turn = threading.Lock()

    def forget(self) -> None:
        """Start again with a file that was replaced or rewritten; `is_doubtful` stays."""
        self._file, self._size = None, 0

    def secure_name(self, path: Path, descriptor: int) -> None:
        """Make the name of the open file `path`, and those of the folders above it, durable.

        Once for each file, and once in each process for the folders: the program that created, moved or copied them may
        not have synced them. Takes a few milliseconds.

        Raises:
            OSError: A sync failed.
        """
        identity = _identity(descriptor)
        if self._file == identity:
            return
        if not self._knows_way:
            sync_way_to(path.parent)
            self._knows_way = True
        sync_folder(path.parent)
        self._file, self._size = identity, 0

    def secure(self, path: Path, descriptor: int, size: int) -> Receipt | None:
        """Make the name durable; return what makes the first `size` bytes so, None if they are known to be.

        To be called with the lock held: others may write before that sync, and share it.

        Raises:
            OSError: A sync failed.
        """
        self.secure_name(path, descriptor)
        if size <= self._size:
            return None
        with self._mutex:
            if self._next is None or self._next.file != self._file:
                self._next = Receipt(self, path.name, duplicate(descriptor), _identity(descriptor))
            self._next.size = size
            return self._next

    def settle(self, receipt: Receipt) -> None:
        """Sync for all that hold this receipt, unless one of them has done so; one sync runs at a time.

        Raises:
            StorageError: It failed (`unknown`).
        """
        with self._turn:
            if not receipt.is_over:
                self._settle(receipt)
        if receipt.error is not None:
            why = receipt.error.strerror or type(receipt.error).__name__
            raise unknown_outcome(f"{receipt.name} was written and could not be synced: {why}.") from receipt.error

    def _settle(self, receipt: Receipt) -> None:
        with self._mutex:  # what is written from now on waits for the next sync
            if self._next is receipt:
                self._next = None
        try:
            (self._sync or sync_file)(receipt.descriptor)
        except OSError as error:
            self.is_doubtful = True
            receipt.error = error
        else:
            if self._file == receipt.file:
                self._size = max(self._size, receipt.size)
        receipt.is_over = True
        unlock_and_close(receipt.descriptor)


class Receipt:
    """For bytes that were written and wait for a sync.

    The file stays open from the first of these writes on: a failure of the disk is told to who had it open.

    Attributes:
        name, descriptor, file, size: Of the file, and how much of it is to be synced.
        is_over: Whether that was done, or failed with `error`.
    """

    def __init__(self, proof: SyncState, name: str, descriptor: int, file: tuple[int, int]) -> None:
        self._proof = proof
        self.name, self.descriptor, self.file = name, descriptor, file
        self.size = 0
        self.is_over = False
        self.error: OSError | None = None

    def settle(self) -> None:
        """Return once it is on the disk; see `SyncState.settle`."""
        self._proof.settle(self)


def _identity(descriptor: int) -> tuple[int, int]:
    status = os.fstat(descriptor)
    return status.st_dev, status.st_ino
