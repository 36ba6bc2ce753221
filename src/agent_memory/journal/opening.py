"""Open the file of a journal for writing: prepare the folder, lock, repair the end. Knows no entry and no kind."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent_memory.errors import BusyError, StorageError
from agent_memory.files.atomic import (
    blocks_of,
    is_in_place,
    make_private_folder,
    open_private,
    read_at,
    replace_file,
    signature_of,
    translated,
    write_all,
)
from agent_memory.files.filesystem import locks_keep_readers_out
from agent_memory.files.lock import file_lock, folder_lock, locks_work, make_lock, no_locks
from agent_memory.files.temporary import remove_leftovers
from agent_memory.journal.durability import SyncState
from agent_memory.journal.format import MalformedLineError
from agent_memory.journal.presence import check_present, gone
from agent_memory.journal.reader import Problem, decode_next
from agent_memory.journal.salvage import keep_rejected, rejected_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from agent_memory.files.lock import FolderLock
    from agent_memory.journal.reader import JournalReader, Update


@dataclass(frozen=True, slots=True)
class Held:
    """A journal that is locked.

    Attributes:
        path: The file.
        lock: The lock of its folder.
        descriptor: The open file, locked itself where that keeps no reader out.
    """

    path: Path
    lock: FolderLock
    descriptor: int

    def unchanged(self) -> Callable[[], None]:
        """Return a function that raises `BusyError` unless the file and its lock are in place still, as they are now.

        For replacing the file after it was read: what was appended meanwhile would be lost.
        """
        before = signature_of(os.fstat(self.descriptor))

        def check() -> None:
            same = signature_of(os.fstat(self.descriptor)) == before
            if not (same and is_in_place(self.path, self.descriptor) and self.lock.is_in_place()):
                raise changed_meanwhile(self.path)

        return check


def changed_meanwhile(path: Path) -> BusyError:
    """Return the error for a file that another program got in beside."""
    return BusyError(
        f"{path.name} or its lock was changed by another program while a new version of it was being written. "
        "The file is as that program left it; nothing was replaced."
    )


class JournalFile:
    """What a process knows of a journal's file and folder for writing.

    Args:
        reader: Follows the file.
        wait: Seconds to wait for the lock of the file.
        take: Takes what is read on the way.
        sync: Syncs an open file, instead of the system's call.

    Attributes:
        proof: What of the file is known to be on the disk.
    """

    def __init__(
        self,
        reader: JournalReader,
        wait: float,
        take: Callable[[Update], None],
        sync: Callable[[int], None] | None = None,
    ) -> None:
        self._sync = sync
        self.proof = SyncState(sync)
        self._path = reader.path
        self._reader = reader
        self._wait = wait
        self._take = take
        self._lock_works = self._swept = False
        self._locks_file = True

    def _prepare(self) -> None:
        """Make sure that there is a folder to write to and that its lock works.

        Raises:
            StorageError: There is none, its lock does not work, or the file is gone.
        """
        folder = self._path.parent
        with translated(self._path, "read"):
            if self._reader.offset and not self._path.exists():
                raise gone(self._reader.path)
        check_present(self._path)
        make_private_folder(folder)
        if not self._lock_works:
            make_lock(folder)
            reason = locks_work(folder)
            if reason is not None:
                raise no_locks(reason)
            self._lock_works = True
            self._locks_file = not locks_keep_readers_out(folder)

    def begin(self) -> None:
        """Create the file, empty, if there never was one; in any thread.

        Raises:
            StorageError: It cannot be created, or it was there and is gone.
        """
        if not self._path.exists():
            self._prepare()
            with translated(self._path, "write"):
                os.close(self._open())

    @contextlib.contextmanager
    def held(self, wait: float | None = None) -> Iterator[Held]:
        """Hold folder and file for the length of the block, in any thread.

        Args:
            wait: Seconds, instead of this object's own.

        Raises:
            BusyError: The lock was not to be had in time.
            StorageError: The file cannot be opened or written anew, or no lock works here.
        """
        self._prepare()
        seconds = self._wait if wait is None else wait
        with folder_lock(self._path.parent, seconds) as lock, translated(self._path, "write"):
            if self.proof.is_doubtful:
                with self._opened(seconds) as descriptor:
                    self.write_anew(Held(self._path, lock, descriptor))
            with self._opened(seconds) as descriptor:
                yield Held(self._path, lock, descriptor)

    def _opened(self, wait: float) -> AbstractContextManager[int]:
        """Open the file and lock it as well, since the folder's lock file may have been deleted."""
        return file_lock(self._path, self._open, wait, lock_it=self._locks_file)

    def write_anew(self, held: Held) -> None:
        """Put a copy in the place of a file whose sync failed: syncing that again would prove nothing."""
        size = os.fstat(held.descriptor).st_size
        content = blocks_of(held.descriptor, 0, size)
        replace_file(self._path, content, durable=True, check=held.unchanged())
        self.proof = SyncState(self._sync)

    def sweep(self, lock: FolderLock) -> None:
        """Remove what killed processes left, at the first write of this one; the lock is held."""
        if not self._swept:
            self._swept = True
            lock.keep_room()
            remove_leftovers(self._path.parent, self._path.name)

    def mend_tail(self, descriptor: int, at: str) -> None:
        """Make the file end with a newline: finish a whole last line, set a torn one aside.

        Torn is only what holds no newline, and was read with the locks held: anything else has not been read yet.
        Synced together with what is appended next, or at the end of the block.
        """
        tail = self._tail(descriptor)
        while b"\n" in tail:
            before = self._reader.offset
            self._take(self._reader.poll_open(descriptor))
            if self._reader.offset == before:
                raise StorageError(f"{self._path.name} cannot be read to its end. Nothing was written.")
            tail = self._tail(descriptor)
        if not tail:
            return
        offset = self._reader.offset
        try:
            decode_next(self._reader, tail)
        except MalformedLineError as error:
            keep_rejected(rejected_path(self._path), [Problem(0, f"torn: {error}", tail)], at)
            os.ftruncate(descriptor, offset)
            return
        write_all(descriptor, b"\n")
        self._take(self._reader.poll_open(descriptor))

    def _open(self) -> int:
        flags = os.O_RDWR | os.O_APPEND
        try:
            return open_private(self._path, flags)
        except FileNotFoundError:
            if self._reader.offset:
                raise gone(self._reader.path) from None
            if self._path.with_name(f".{self._path.name}.icloud").exists():
                raise StorageError(
                    f"{self._path.name} is in the cloud and not on this machine. Nothing was written.",
                    code="not_downloaded",
                    recovery="Have the folder downloaded and kept on this machine, or move it out of the cloud folder.",
                ) from None
            check_present(self._path)
            return open_private(self._path, flags | os.O_CREAT)

    def _tail(self, descriptor: int) -> bytes:
        """Return what stands behind the last line that was read.

        Raises:
            StorageError: It cannot be read to its end.
        """
        offset, size = self._reader.offset, os.fstat(descriptor).st_size
        tail = read_at(descriptor, offset, size)
        if len(tail) != size - offset:
            raise StorageError(f"{self._path.name} cannot be read to its end. Nothing was written.")
        return tail
