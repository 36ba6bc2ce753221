"""`JournalWriter`: appending to the journal while its locks are held."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from agent_memory.errors import unknown_outcome
from agent_memory.files.atomic import is_full, write_all
from agent_memory.journal.codec import check_writes, encoded_entry
from agent_memory.journal.format import FORMAT, Change, Entry, Header
from agent_memory.journal.reader import choose_codec
from agent_memory.models import Clock, to_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_memory.journal.durability import Receipt, SyncState
    from agent_memory.journal.opening import Held
    from agent_memory.journal.reader import JournalReader, Update


class JournalWriter:
    """The right to append, for as long as the lock is held.

    Attributes:
        held: The open file and its lock.
        update: What is new since the owner last polled; apply it before deciding what to write.
        is_settled: Nothing needs to be synced: the file was replaced by one that is.
        receipt: Makes durable what was written, and what was read; None where nothing is left to be made so.
    """

    def __init__(self, reader: JournalReader, held: Held, clock: Clock, update: Update, proof: SyncState) -> None:
        self._reader = reader
        self.held = held
        self._clock = clock
        self._proof = proof
        self.update = update
        self.receipt: Receipt | None = None
        self.is_settled = False

    @property
    def last_seq(self) -> int:
        """The highest sequence number given so far."""
        return self._reader.last_seq

    def append(self, changes: Sequence[Change]) -> Entry:
        """Write `changes` as one atomic line; they are durable once the receipt is settled.

        Raises:
            ValidationError: They cannot be written as JSON and YAML; nothing was written.
            DiskFullError: No room; the file is as it was.
            ReadOnlyError: The journal is encrypted, and there is no key.
            StorageError: The write failed; the file is as it was, unless the code is `unknown`.
        """
        if not changes:
            raise ValueError("an entry needs at least one change")
        reader = self._reader
        seq, at = reader.last_seq + 1, to_text(self._clock())
        if reader.offset == 0:
            choose_codec(reader, None)  # encryption may have begun since the empty file was looked at
        check_writes(reader.path, reader.codec, reader.header.key if reader.header else None)
        line = encoded_entry(reader.codec, seq, at, tuple(changes), reader.header.format if reader.header else FORMAT)
        header = Header.fresh(reader.last_seq, key=reader.codec.key) if reader.offset == 0 else None
        # The name first: where that fails nothing was written, and no process reads a file that may yet vanish.
        self._proof.secure_name(reader.path, self.held.descriptor)
        content = (header.encode() if header else b"") + line
        try:
            self._write(content)
        except OSError as error:
            # What frees room must work where there is none.
            deletes = any(change.op == "delete" for change in changes)
            if not (deletes and is_full(error) and self.held.lock.give_room()):
                raise
            self._write(content)
        if header:
            reader.adopt_header(header, header.encode())
        reader.advance(line, seq, self.held.descriptor)
        return Entry(seq, at, tuple(changes), line)

    def close(self) -> None:
        """Note what is to be synced: what was appended here, and what was read unless this process has synced it.

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
        """Cut off what was written; where that fails, a whole line stays, and a part of one counts for nothing."""
        descriptor, size_before = self.held.descriptor, self._reader.offset
        try:
            os.ftruncate(descriptor, size_before)
        except OSError:
            if os.fstat(descriptor).st_size < size_before + length - 1:  # the next writer adds a last newline
                return
            name, why = self._reader.path.name, getattr(error, "strerror", None) or type(error).__name__
            raise unknown_outcome(f"Could not write {name}: {why}; nor could the line be taken back.") from error
