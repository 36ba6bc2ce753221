"""Track which bytes of the journal this process has synced.

A process that returns or follows what another process wrote must sync that first: the other one may have died before
its own sync. Opens no file and writes no byte.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from agent_memory.files.atomic import sync_file, sync_folder, sync_way_to

if TYPE_CHECKING:
    from pathlib import Path


class SyncState:
    """How much of one file this process has synced.

    Attributes:
        is_doubtful: A sync failed for bytes that another process may have read. The kernel marks such pages as clean
            and does not write them again, so that the next sync succeeds without effect: only a new file helps.
    """

    def __init__(self) -> None:
        self.is_doubtful = False
        self._file: tuple[int, int] | None = None
        self._size = 0
        self._knows_way = False

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
        status = os.fstat(descriptor)
        if self._file == (status.st_dev, status.st_ino):
            return
        if not self._knows_way:
            sync_way_to(path.parent)
            self._knows_way = True
        sync_folder(path.parent)
        self._file, self._size = (status.st_dev, status.st_ino), 0

    def secure(self, path: Path, descriptor: int, size: int) -> None:
        """Make name and first `size` bytes durable, as far as they are not known to be.

        Raises:
            OSError: A sync failed.
        """
        self.secure_name(path, descriptor)
        if size > self._size:
            self.sync(descriptor, size, relied_upon=size)

    def sync(self, descriptor: int, size: int, *, relied_upon: int) -> None:
        """Sync the file, which has `size` bytes; other processes may have read the first `relied_upon` of them.

        Raises:
            OSError: It failed.
        """
        try:
            sync_file(descriptor)
        except OSError:
            self.is_doubtful = self.is_doubtful or relied_upon > self._size
            raise
        self._size = size
