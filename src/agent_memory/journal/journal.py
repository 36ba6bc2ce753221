"""`Journal`: the truth of one folder. Any number of processes append to and read the same file.

Owns the append protocol: lock, open by path, mend a torn tail, catch up, write, sync, unlock. Knows operations and
record kinds by name, not what a memory is.
"""

from __future__ import annotations

import contextlib
import os
import time
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from agent_memory.errors import ReadOnlyError, StorageError
from agent_memory.journal.compaction import compact_entries
from agent_memory.journal.files import (
    make_private_folder,
    open_private,
    replace_file,
    sync_file,
    sync_folder,
    translated,
    write_all,
)
from agent_memory.journal.format import (
    Change,
    Entry,
    Header,
    MalformedLineError,
    decode_entry,
    decode_header,
    encode_entry,
)
from agent_memory.journal.lock import WAIT_SECONDS, folder_lock
from agent_memory.journal.reader import JournalReader, Problem, Update
from agent_memory.journal.rejected import rejected_path, set_aside
from agent_memory.models import Clock, to_text, utc_now

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence
    from pathlib import Path

_LEFTOVER_SECONDS: Final = 3600.0
GRACE: Final = timedelta(days=30)
"""How long replaced and deleted versions stay: `why`, undo and restore live on them."""


class Journal:
    """An append-only file of changes to records.

    Not thread-safe: its owner serialises calls. Processes need no agreement beyond the folder's lock.

    Args:
        path: The file, e.g. `…/bob/memories.yaml`; created, with its folder, by the first append.
        kinds: The record kinds the owner replays. Compaction folds these and leaves every other line alone.
        clock: Source of `at`.
        wait: Seconds to wait for the lock before `BusyError`.
    """

    def __init__(
        self, path: Path, kinds: Collection[str], *, clock: Clock = utc_now, wait: float = WAIT_SECONDS
    ) -> None:
        self.path = path
        self.kinds = frozenset(kinds)
        self._clock = clock
        self._wait = wait
        self._reader = JournalReader(path)
        self._checked_tail = False
        self._undelivered = Update()

    @property
    def watermark(self) -> tuple[str, int]:
        """(generation, seq) up to which this object has read."""
        return self._reader.watermark

    @property
    def problems(self) -> list[Problem]:
        """Damaged lines found in the file as it is now."""
        return list(self._reader.problems)

    @property
    def rewritten(self) -> int:
        """How often another program was found to have rewritten the file (a copy was kept each time)."""
        return self._reader.rewritten

    def poll(self) -> Update:
        """Return what is new since the last call, without the lock.

        Raises:
            StorageError: The file is there but cannot be read.
        """
        self._take(self._reader.poll())
        if not self._checked_tail:
            self._checked_tail = True
            self._recover_tail()
        return self._deliver()

    @contextlib.contextmanager
    def locked(self) -> Iterator[JournalWriter]:
        """Hold the lock and the open file for the block; begins by catching up (`writer.update`).

        Raises:
            BusyError: The lock was not to be had in time.
            ReadOnlyError: The folder forbids writing, or the journal is of a newer format.
            StorageError: The file cannot be opened or mended.
        """
        make_private_folder(self.path.parent)
        with folder_lock(self.path.parent, self._wait), translated(self.path, "write"):
            descriptor = open_private(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
            try:
                self._take(self._reader.poll_open(descriptor))
                if self._reader.too_new:
                    raise ReadOnlyError(
                        f"{self.path.name} was written by a newer version of agent-memory; it is only read here.",
                        code="newer_format",
                        recovery="Upgrade amplifier-bundle-agent-memory.",
                    )
                self._mend_tail(descriptor)
                yield JournalWriter(self._reader, descriptor, self._clock, self._deliver())
            finally:
                os.close(descriptor)

    def compact(self, *, grace: timedelta = GRACE, keep: Callable[[Change], str | None] | None = None) -> Update:
        """Rewrite the file without what is older than `grace` and superseded; live records are untouched.

        Args:
            grace: Deleted and replaced versions younger than this stay.
            keep: Judges each `put`; a reason instead of None moves the line to the rejected file.

        Returns:
            The update for the owner: always a reset with every entry of the new file.

        Raises:
            BusyError: The lock was not to be had in time; nothing was changed.
            StorageError: The new file could not be written; the old one is in place.
        """
        with self.locked() as writer, translated(self.path, "compact"):
            self._undelivered = writer.update  # the owner gets it from the poll below, or from a later one on failure
            self._sweep_temporaries()
            whole = JournalReader(self.path)
            entries = whole.poll().entries
            bad = list(whole.problems)
            if keep is not None:
                kept = []
                for entry in entries:
                    reason = _refusal(entry, keep)
                    if reason:
                        bad.append(Problem(entry.seq, reason, entry.raw))
                    else:
                        kept.append(entry)
                entries = kept
            if bad:
                set_aside(rejected_path(self.path), bad, to_text(self._clock()))
            header = Header.fresh(max(writer.last_seq, whole.last_seq))
            cutoff = to_text(self._clock() - grace)
            lines = compact_entries(entries, self.kinds, cutoff, keep)
            replace_file(self.path, header.encode() + b"".join(lines), durable=True)
        return self.poll()

    def _take(self, update: Update) -> None:
        """Hold what was read until the owner gets it: the reader has moved on, and an error may come in between."""
        self._undelivered = self._undelivered.then(update)

    def _deliver(self) -> Update:
        update, self._undelivered = self._undelivered, Update()
        return update

    def _recover_tail(self) -> None:
        """Let a whole last line that lacks only its newline be seen before the next writer comes by."""
        try:
            if not self.path.exists() or self.path.stat().st_size <= self._reader.offset:
                return
            with self.locked() as writer:
                self._take(writer.update)
        except StorageError:
            return  # a writer is at it, or nobody can write: what is whole has been read already

    def _mend_tail(self, descriptor: int) -> None:
        """Make the file end with a newline: finish a whole last line, set a torn one aside."""
        size = os.fstat(descriptor).st_size
        offset = self._reader.offset
        if size == offset:
            return
        tail = os.pread(descriptor, size - offset, offset)
        try:
            (decode_entry if offset else decode_header)(tail)
        except MalformedLineError as error:
            set_aside(rejected_path(self.path), [Problem(0, f"torn: {error}", tail)], to_text(self._clock()))
            os.ftruncate(descriptor, offset)
            sync_file(descriptor)
            return
        write_all(descriptor, b"\n")
        sync_file(descriptor)
        self._take(self._reader.poll_open(descriptor))

    def _sweep_temporaries(self) -> None:
        """Remove what killed processes left: of the journal at once, of other files once nobody can be at it."""
        for leftover in self.path.parent.glob(".*.tmp"):
            ours = leftover.name.startswith(f".{self.path.name}.")
            with contextlib.suppress(FileNotFoundError):
                if ours or time.time() - leftover.stat().st_mtime > _LEFTOVER_SECONDS:
                    leftover.unlink()


class JournalWriter:
    """The right to append, for as long as the lock is held.

    Attributes:
        update: What had come since the owner last looked; apply it before deciding what to write.
    """

    def __init__(self, reader: JournalReader, descriptor: int, clock: Clock, update: Update) -> None:
        self._reader = reader
        self._descriptor = descriptor
        self._clock = clock
        self.update = update

    @property
    def last_seq(self) -> int:
        """The highest sequence number given so far."""
        return self._reader.last_seq

    def append(self, changes: Sequence[Change]) -> Entry:
        """Write `changes` as one atomic line and sync it; when this returns, they are durable.

        Raises:
            ValidationError: They cannot be written as JSON and YAML; nothing was written.
            DiskFullError: No room; the file is as it was.
            StorageError: The write failed; the file is as it was.
        """
        if not changes:
            raise ValueError("an entry needs at least one change")
        seq, at = self._reader.last_seq + 1, to_text(self._clock())
        line = encode_entry(seq, at, tuple(changes))
        created = self._reader.offset == 0
        header = Header.fresh(self._reader.last_seq) if created else None
        self._write(self._reader.offset, (header.encode() if header else b"") + line)
        if header:
            sync_folder(self._reader.path.parent)
            self._reader.adopt_header(header, header.encode())
        self._reader.advance(line, seq, self._descriptor)
        return Entry(seq, at, tuple(changes), line)

    def _write(self, size_before: int, content: bytes) -> None:
        try:
            write_all(self._descriptor, content)
            sync_file(self._descriptor)
        except BaseException:
            # Not acknowledged: take it back, whether the disk was full or somebody pressed Ctrl-C.
            os.ftruncate(self._descriptor, size_before)
            with contextlib.suppress(OSError):  # the disk that refused may refuse this, too
                sync_file(self._descriptor)
            raise


def _refusal(entry: Entry, keep: Callable[[Change], str | None]) -> str | None:
    if entry.opaque:
        return None
    reasons = [keep(change) if change.op == "put" else None for change in entry.changes]
    return reasons[0] if all(reasons) else None  # one good change in a batch keeps the line where it is
