"""`JournalWriter`: appending to the journal while its locks are held."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

from agent_memory.errors import BusyError, DiskFullError, unknown_outcome
from agent_memory.files.atomic import is_full, is_in_place, replace_file, signature_of, sync_file, write_all
from agent_memory.journal.format import Change, Entry, Header, encode_entry
from agent_memory.models import Clock, to_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from agent_memory.files.lock import FolderLock
    from agent_memory.journal.durability import SyncState
    from agent_memory.journal.reader import JournalReader, Update


def unchanged(path: Path, descriptor: int, lock: FolderLock) -> Callable[[], None]:
    """Return a function that raises `BusyError` unless `path` is the open file still, as it is now, and locked still.

    For replacing the file after it was read: what was appended meanwhile would be lost.
    """
    before = signature_of(os.fstat(descriptor))

    def check() -> None:
        same = signature_of(os.fstat(descriptor)) == before
        if not (same and is_in_place(path, descriptor) and lock.is_in_place()):
            raise BusyError(
                f"{path.name} or its lock was changed by another program while a new version of it was being written. "
                "The file is as that program left it; nothing was replaced."
            )

    return check


class JournalWriter:
    """The right to append, for as long as the lock is held.

    Attributes:
        descriptor: The open file.
        update: What is new since the owner last polled; apply it before deciding what to write.
        is_settled: Nothing is left to be made durable when the lock is given back.
    """

    def __init__(
        self, reader: JournalReader, descriptor: int, clock: Clock, update: Update, proof: SyncState, lock: FolderLock
    ) -> None:
        self._reader = reader
        self.descriptor = descriptor
        self._lock = lock
        self._clock = clock
        self._proof = proof
        self.update = update
        self.is_settled = False

    @property
    def last_seq(self) -> int:
        """The highest sequence number given so far."""
        return self._reader.last_seq

    def append(self, changes: Sequence[Change]) -> Entry:
        """Write `changes` as one atomic line and sync it; when this returns, they are durable.

        Raises:
            ValidationError: They cannot be written as JSON and YAML; nothing was written.
            DiskFullError: No room; the file is as it was.
            StorageError: The write failed; the file is as it was, unless the code is `unknown`.
        """
        if not changes:
            raise ValueError("an entry needs at least one change")
        seq, at = self._reader.last_seq + 1, to_text(self._clock())
        line = encode_entry(seq, at, tuple(changes))
        header = Header.fresh(self._reader.last_seq) if self._reader.offset == 0 else None
        # The name first: where that fails nothing was written, and no process reads a file that may yet vanish.
        self._proof.secure_name(self._reader.path, self.descriptor)
        content = (header.encode() if header else b"") + line
        try:
            self._write(self._reader.offset, content)
        except OSError as error:
            # What frees room must work where there is none.
            deletes = any(change.op == "delete" for change in changes)
            if not (deletes and is_full(error) and self._lock.give_room()):
                raise
            self._write(self._reader.offset, content)
        if header:
            self._reader.adopt_header(header, header.encode())
        self._reader.advance(line, seq, self.descriptor)
        self.is_settled = True
        return Entry(seq, at, tuple(changes), line)

    def confirm(self) -> None:
        """Make durable what was read, unless an append has done so or this process knows that it is.

        Raises:
            OSError: It may not be on the disk.
        """
        if self._reader.offset and not self.is_settled:
            self._proof.secure(self._reader.path, self.descriptor, self._reader.offset)

    def replacing(self) -> Callable[[], None]:
        """Return what is to be called right before the file is replaced; see `unchanged`."""
        return unchanged(self._reader.path, self.descriptor, self._lock)

    def replace(self, content: bytes, check: Callable[[], None]) -> None:
        """Put a new file in the place of this one, durably; `check` came from `replacing`, before this one was read.

        Raises:
            DiskFullError: No room; the message says how much it takes.
            BusyError, OSError: The old one is in place.
        """
        path = self._reader.path
        try:
            replace_file(path, content, durable=True, check=check)
        except OSError as error:
            if not is_full(error):
                raise
            if len(content) >= os.fstat(self.descriptor).st_size or not self._lock.give_room():
                raise DiskFullError(
                    f"Could not compact {path.name}: {error.strerror}. What was stored before is safe.",
                    recovery=f"Make room for {len(content) / 1000:,.0f} kB, which the new {path.name} takes beside the "
                    "old one. Forgetting works without, and its text goes with the next compaction.",
                ) from error
            self.replace(content, check)  # a second time; there is no more room to give up after that
        self.is_settled = True

    def _write(self, size_before: int, content: bytes) -> None:
        try:
            write_all(self.descriptor, content)
            self._proof.sync(self.descriptor, size_before + len(content), relied_upon=size_before)
        except BaseException as error:
            # Not acknowledged: take it back, after a full disk as after Ctrl-C.
            self._take_back(size_before, len(content), error)
            with contextlib.suppress(OSError):  # the disk that refused may refuse this, too
                sync_file(self.descriptor)
            raise

    def _take_back(self, size_before: int, length: int, error: BaseException) -> None:
        """Cut off what was written; where that fails, a whole line stays, and a part of one counts for nothing."""
        try:
            os.ftruncate(self.descriptor, size_before)
        except OSError:
            self._proof.is_doubtful = True  # another process may have read a line whose sync failed
            if os.fstat(self.descriptor).st_size < size_before + length - 1:  # the next writer adds a last newline
                return
            name, why = self._reader.path.name, getattr(error, "strerror", None) or type(error).__name__
            raise unknown_outcome(f"Could not write {name}: {why}; nor could the line be taken back.") from error
