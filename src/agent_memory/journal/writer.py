"""`JournalWriter`: appends to a journal while its locks are held.

Also opens a journal's file for writing (prepare the folder, lock, repair the end), and tracks which bytes this process
has synced: a process that returns what another process wrote must sync it first, since that one may have died.
"""

from __future__ import annotations

import contextlib
import os
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent_memory.errors import BusyError, StorageError, unknown_outcome
from agent_memory.files.atomic import (
    duplicate,
    get_signature,
    has_other_names,
    is_full,
    is_in_place,
    iter_blocks,
    make_private_folder,
    open_private,
    read_at,
    remove_leftovers,
    replace_file,
    sync_file,
    sync_folder,
    sync_parents,
    translated,
    unlock_and_close,
    write_all,
)
from agent_memory.files.entries import locks_keep_readers_out
from agent_memory.files.lock import FolderLock, build_no_locks_error, file_lock, folder_lock, locks_work, make_lock
from agent_memory.journal.agent_file import build_gone_error, check_present
from agent_memory.journal.codec import check_writable, encode_changes
from agent_memory.journal.format import FORMAT, Change, Entry, Header, MalformedLineError
from agent_memory.journal.reader import JournalReader, JournalUpdate, LineProblem, choose_codec, decode_next
from agent_memory.journal.salvage import get_rejected_path, keep_rejected
from agent_memory.models import Clock, to_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path


class JournalWriter:
    """Appends entries as long as the lock is held.

    Attributes:
        held: Locked journal.
        update: Changes since the owner's last poll, to apply before deciding what to write.
        is_settled: True if nothing has to be synced, since the file was replaced by a synced one.
        receipt: Makes durable what was written and read; None if everything is.
    """

    def __init__(
        self, reader: JournalReader, held: LockedJournal, clock: Clock, update: JournalUpdate, proof: SyncState
    ) -> None:
        self._reader = reader
        self.held = held
        self._clock = clock
        self._proof = proof
        self.update = update
        self.receipt: SyncReceipt | None = None
        self.is_settled = False

    @property
    def last_seq(self) -> int:
        """Highest number given so far."""
        return self._reader.last_seq

    def append(self, changes: Sequence[Change]) -> Entry:
        """Write `changes` as one atomic line, durable once the receipt is settled.

        Raises:
            ValidationError: They cannot be written as JSON and YAML; nothing was written.
            DiskFullError: No room; the file is as before.
            ReadOnlyError: The journal is encrypted, and the key is missing.
            StorageError: The write failed; the file is as before, unless the code is `unknown`.
        """
        if not changes:
            raise ValueError("an entry needs at least one change")
        reader = self._reader
        seq, moment = reader.last_seq + 1, to_text(self._clock())
        if reader.offset == 0:
            choose_codec(reader, None)  # encryption may have begun since the empty file was looked at
        check_writable(reader.path, reader.codec, reader.header.key if reader.header else None)
        line = encode_changes(
            reader.codec, seq, moment, tuple(changes), reader.header.format if reader.header else FORMAT
        )
        header = Header.fresh(reader.last_seq, key=reader.codec.key) if reader.offset == 0 else None
        # The name first: where that fails nothing was written, and no process reads a file that may yet vanish.
        self._proof.secure_name(reader.path, self.held.descriptor)
        content = (header.encode() if header else b"") + line
        try:
            self._write(content)
        except OSError as error:
            # A deletion frees room, so it must work on a full disk.
            deletes = any(change.op == "delete" for change in changes)
            if not (deletes and is_full(error) and self.held.lock.give_room()):
                raise
            self._write(content)
        if header:
            reader.adopt_header(header, header.encode())
        reader.advance(line, seq, self.held.descriptor)
        return Entry(seq, moment, tuple(changes), line)

    def close(self) -> None:
        """Record what has to be synced: appended and read lines.

        Raises:
            OSError: The name of the file may not be on the disk.
        """
        if self._reader.offset and not self.is_settled:
            self.receipt = self._proof.secure(self._reader.path, self.held.descriptor, self._reader.offset)

    def _write(self, content: bytes) -> None:
        try:
            write_all(self.held.descriptor, content)
        except BaseException as error:  # a part of it, perhaps: take it back, after a full disk as after Ctrl-C
            self._take_back(len(content), error)
            raise

    def _take_back(self, length: int, error: BaseException) -> None:
        """Cut off what was written, or raise `unknown`."""
        descriptor, size_before = self.held.descriptor, self._reader.offset
        try:
            os.ftruncate(descriptor, size_before)
        except OSError:
            if os.fstat(descriptor).st_size < size_before + length - 1:  # the next writer adds a last newline
                return
            name, why = self._reader.path.name, getattr(error, "strerror", None) or type(error).__name__
            raise unknown_outcome(f"Could not write {name}: {why}; nor could the line be taken back.") from error


@dataclass(frozen=True, slots=True)
class LockedJournal:
    """Journal with its locks held.

    Attributes:
        path: Path of the journal.
        lock: Lock of the folder.
        descriptor: Open file, itself locked unless that keeps readers out.
    """

    path: Path
    lock: FolderLock
    descriptor: int

    def make_check(self) -> Callable[[], None]:
        """Return a check that raises `BusyError` if file or lock changed.

        For replacing the file after it was read: lines appended since would be lost.
        """
        before = get_signature(os.fstat(self.descriptor))

        def check() -> None:
            same = get_signature(os.fstat(self.descriptor)) == before
            if not (same and is_in_place(self.path, self.descriptor) and self.lock.is_in_place()):
                raise build_changed_error(self.path)

        return check


def build_changed_error(path: Path) -> BusyError:
    """Build the error for a file that another program changed."""
    return BusyError(
        f"{path.name} or its lock was changed by another program while a new version of it was being written. "
        "Nothing was replaced."
    )


class JournalFile:
    """Journal file and folder, prepared for writing.

    Args:
        reader: Reader of the file.
        wait: Seconds to wait for the lock of the file.
        take: Receives entries read on the way.
        sync: Syncs an open file, instead of the system's call.

    Attributes:
        proof: State of what is on disk.
    """

    def __init__(
        self,
        reader: JournalReader,
        wait: float,
        take: Callable[[JournalUpdate], None],
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
        """Check that the folder exists and its lock works.

        Raises:
            StorageError: The folder or the file is gone, or the lock does not work.
        """
        folder = self._path.parent
        with translated(self._path, "read"):
            if self._reader.offset and not self._path.exists():
                raise build_gone_error(self._reader.path)
        check_present(self._path)
        make_private_folder(folder)
        if not self._lock_works:
            make_lock(folder)
            reason = locks_work(folder)
            if reason is not None:
                raise build_no_locks_error(reason)
            self._lock_works = True
            self._locks_file = not locks_keep_readers_out(folder)

    def begin(self) -> None:
        """Create a missing file, or replace a hard-linked one by a copy.

        Raises:
            StorageError: It cannot be created, or it was there and is gone.
        """
        if self._path.exists():
            if self._path.stat().st_nlink > 1:
                with self.held():  # replaces it by a copy
                    pass
        else:
            self._prepare()
            with translated(self._path, "write"):
                os.close(self._open_file())

    @contextlib.contextmanager
    def held(self, wait: float | None = None) -> Iterator[LockedJournal]:
        """Hold folder and file for the block, in any thread.

        Args:
            wait: Seconds to wait; this object's own when omitted.

        Raises:
            BusyError: The lock was not free in time.
            StorageError: The file cannot be opened or rewritten, or locks do not work here.
        """
        self._prepare()
        seconds = self._wait if wait is None else wait
        with folder_lock(self._path.parent, seconds) as lock, translated(self._path, "write"):
            with self._lock_file(seconds) as descriptor:
                journal = LockedJournal(self._path, lock, descriptor)
                if not self.proof.is_doubtful and not has_other_names(descriptor):
                    yield journal
                    return
                self.write_anew(journal)
            with self._lock_file(seconds) as descriptor:
                yield LockedJournal(self._path, lock, descriptor)

    def _lock_file(self, wait: float) -> AbstractContextManager[int]:
        """Open and lock the file, since the lock file may be deleted."""
        return file_lock(self._path, self._open_file, wait, lock_it=self._locks_file)

    def write_anew(self, held: LockedJournal) -> None:
        """Replace a file by a copy.

        If a sync failed, syncing it again would prove nothing. If it has other names (hard links, as those of a
        backup by `cp -al`), an appended line would be in them, too.
        """
        size = os.fstat(held.descriptor).st_size
        content = iter_blocks(held.descriptor, 0, size)
        replace_file(self._path, content, durable=True, check=held.make_check())
        self.proof = SyncState(self._sync)

    def sweep(self, lock: FolderLock) -> None:
        """Remove leftovers of killed processes, once per process."""
        if not self._swept:
            self._swept = True
            lock.keep_room()
            remove_leftovers(self._path.parent, self._path.name)

    def mend_tail(self, descriptor: int, at: str) -> None:
        """Make the file end with a newline.

        A whole last line gets one; a torn line moves to the rejected file. It is synced with the next append.
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
            keep_rejected(get_rejected_path(self._path), [LineProblem(0, f"torn: {error}", tail)], at)
            os.ftruncate(descriptor, offset)
            return
        write_all(descriptor, b"\n")
        self._take(self._reader.poll_open(descriptor))

    def _open_file(self) -> int:
        flags = os.O_RDWR | os.O_APPEND
        try:
            return open_private(self._path, flags)
        except FileNotFoundError:
            if self._reader.offset:
                raise build_gone_error(self._reader.path) from None
            if self._path.with_name(f".{self._path.name}.icloud").exists():
                raise StorageError(
                    f"{self._path.name} is in the cloud and not on this machine. Nothing was written.",
                    code="not_downloaded",
                    recovery="Let the cloud program keep the folder on this machine, or move it out of the "
                    "cloud folder.",
                ) from None
            check_present(self._path)
            return open_private(self._path, flags | os.O_CREAT)

    def _tail(self, descriptor: int) -> bytes:
        """Return the bytes after the last line read.

        Raises:
            StorageError: They cannot be read to the end.
        """
        offset, size = self._reader.offset, os.fstat(descriptor).st_size
        tail = read_at(descriptor, offset, size)
        if len(tail) != size - offset:
            raise StorageError(f"{self._path.name} cannot be read to its end. Nothing was written.")
        return tail


class SyncState:
    """Synced part of one file, as this process knows it.

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
        self._next: SyncReceipt | None = None
        self._mutex = threading.Lock()
        self._turn = threading.Lock()

    def forget(self) -> None:
        """Start again with a file that was replaced or rewritten; `is_doubtful` stays."""
        self._file, self._size = None, 0

    def secure_name(self, path: Path, descriptor: int) -> None:
        """Make the names of the open file and its folders durable.

        Once for each file, and once in each process for the folders: the program that created, moved or copied them may
        not have synced them. Takes a few milliseconds.

        Raises:
            OSError: A sync failed.
        """
        identity = _get_file_identity(descriptor)
        if self._file == identity:
            return
        if not self._knows_way:
            sync_parents(path.parent)
            self._knows_way = True
        sync_folder(path.parent)
        self._file, self._size = identity, 0

    def secure(self, path: Path, descriptor: int, size: int) -> SyncReceipt | None:
        """Make the name durable; return a receipt for the first `size` bytes.

        Returns None if they are durable. Call it with the lock held: others may write before the sync, and share it.

        Raises:
            OSError: A sync failed.
        """
        self.secure_name(path, descriptor)
        if size <= self._size:
            return None
        with self._mutex:
            if self._next is None or self._next.file != self._file:
                self._next = SyncReceipt(self, path.name, duplicate(descriptor), _get_file_identity(descriptor))
            self._next.size = size
            return self._next

    def settle(self, receipt: SyncReceipt) -> None:
        """Sync for all holders of a receipt, unless one has done so.

        Raises:
            StorageError: The sync failed (`unknown`).
        """
        with self._turn:
            if not receipt.is_over:
                self._settle(receipt)
        if receipt.error is not None:
            why = receipt.error.strerror or type(receipt.error).__name__
            raise unknown_outcome(f"{receipt.name} was written and could not be synced: {why}.") from receipt.error

    def _settle(self, receipt: SyncReceipt) -> None:
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


class SyncReceipt:
    """Receipt for written bytes that wait for a sync.

    The file stays open from the first write on: a disk error is reported to its open descriptors.

    Attributes:
        name, descriptor, file, size: File, and number of bytes to sync.
        is_over: True after the sync, or its failure with `error`.
    """

    def __init__(self, proof: SyncState, name: str, descriptor: int, file: tuple[int, int]) -> None:
        self._proof = proof
        self.name, self.descriptor, self.file = name, descriptor, file
        self.size = 0
        self.is_over = False
        self.error: OSError | None = None

    def settle(self) -> None:
        """Wait until the bytes are on disk; see `SyncState.settle`."""
        self._proof.settle(self)


def _get_file_identity(descriptor: int) -> tuple[int, int]:
    status = os.fstat(descriptor)
    return status.st_dev, status.st_ino
