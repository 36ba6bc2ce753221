"""What this process knows to be on the disk, and how it gets to know it: the part of durability that has a memory.

A process that relies upon what another one wrote, by repeating it or by writing behind it, answers for it: the other
one may have died before its sync. Owns no file and writes no byte.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from agent_memory.files.atomic import sync_file, sync_folder, sync_way_to

if TYPE_CHECKING:
    from pathlib import Path


class SyncState:
    """What of one file is known to be on the disk, from this process's own syncs.

    Attributes:
        is_doubtful: Bytes that somebody may rely upon were in a sync that failed. The kernel takes such pages for
            written and does not try again, so that the next sync succeeds and proves nothing: only a new file helps.
    """

    def __init__(self) -> None:
        self.is_doubtful = False
        self._file: tuple[int, int] | None = None
        self._size = 0
        self._knows_way = False

    def forget(self) -> None:
        """Begin anew with a file that was replaced or rewritten; an old doubt stays."""
        self._file, self._size = None, 0

    def secure_name(self, path: Path, descriptor: int) -> None:
        """Make the name of the open file `path`, and those of the folders above it, durable.

        Once for each file, and once in the life of this process for the folders: whoever made, moved or copied them may
        not have synced them. Takes a few milliseconds.

        Raises:
            OSError: It may not be.
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
            OSError: They may not be.
        """
        self.secure_name(path, descriptor)
        if size > self._size:
            self.sync(descriptor, size, relied_upon=size)

    def sync(self, descriptor: int, size: int, *, relied_upon: int) -> None:
        """Sync the file, which has `size` bytes; somebody may rely upon the first `relied_upon` of them already.

        Raises:
            OSError: It failed.
        """
        try:
            sync_file(descriptor)
        except OSError:
            self.is_doubtful = self.is_doubtful or relied_upon > self._size
            raise
        self._size = size
