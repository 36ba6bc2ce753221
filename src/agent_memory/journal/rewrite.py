"""`JournalRewrite`: new version of a journal, put in place under the lock.

A journal only grows, so what was read without the lock stays; lines appended since are copied under it. The new
file is locked while it is written, so only one process writes it, and the next one overwrites what a killed process
left.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from agent_memory.errors import BusyError, DiskFullError, StorageError
from agent_memory.files.atomic import (
    is_full,
    is_in_place,
    open_private,
    opened,
    read_at,
    sync_file,
    sync_folder,
    translated,
    try_lock,
    unlock_and_close,
    write_all,
)
from agent_memory.files.lock import WAIT_SECONDS, folder_lock
from agent_memory.journal.agent_file import note_journal
from agent_memory.journal.codec import AS_IT_STANDS, Codec, check_known, decode_changes, encode_changes
from agent_memory.journal.compaction import CompactionResult, split_refused
from agent_memory.journal.format import Header, MalformedLineError, add_checksum, decode_entry, find_ids, read_seq
from agent_memory.journal.purge_filter import is_returned
from agent_memory.journal.purge_list import PurgeList
from agent_memory.journal.reader import JournalReader, LineProblem
from agent_memory.journal.salvage import drop_forgotten, get_rejected_path, keep_rejected
from agent_memory.journal.writer import LockedJournal, build_changed_error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from agent_memory.journal.format import Change, Entry

_MARK: Final = "00000000"
"""Same suffix for all processes, so that two cannot write at once; other temporary files have random ones."""


_SYNCED_AT_ONCE: Final = 4 << 20
"""Bytes per sync: another sync on the same file system may have to wait for so many."""


@dataclass(frozen=True, slots=True)
class RewritePlan:
    """Plan of a rewrite.

    Attributes:
        fold: Returns the new lines.
        keep: Returns why a `put` is unreadable, or None, as in `Journal.prepare_compaction`.
        by_number: Sort the entries by number first.
        codec: Codec of the old lines; found by the reader when None.
        into: Codec of the new lines, also of those appended since; unchanged when None.
        with_purged: Read purged records too.
    """

    fold: Callable[[Sequence[Entry], Codec], CompactionResult]
    keep: Callable[[Change], str | None] | None
    by_number: bool
    codec: Codec | None = None
    into: Codec | None = None
    with_purged: bool = False

    def of(self, reader: JournalReader, entries: list[Entry]) -> tuple[Header, CompactionResult, list[LineProblem]]:
        """Return the new header, lines, and unreadable lines."""
        if self.by_number:
            entries.sort(key=lambda entry: entry.seq)
        bad = list(reader.problems)
        if self.keep is not None:
            entries, not_kept = split_refused(entries, self.keep)
            bad += [LineProblem(entry.seq, reason, entry.raw) for entry, reason in not_kept]
        folded, before = self.fold(entries, reader.codec), reader.header
        purged_before = (before.purged_seq if before else None) or 0
        # Expired records and malformed lines go without a deletion that a reader could read.
        is_cut = folded.over or bad or reader.reversed or reader.withheld
        purged = reader.last_seq if is_cut else max(purged_before, folded.purged_seq)
        if before is None and reader.codec is AS_IT_STANDS:
            raise StorageError(
                f"{reader.path.name} has no readable header, and none can be made without a key. Nothing was changed."
            )
        parent, key = (before.generation, before.key) if before else (None, reader.codec.key)
        key = key if self.into is None else self.into.key
        return Header.fresh(reader.last_seq, parent, purged or None, key=key), folded, bad


class JournalRewrite:
    """New version of a journal, not yet in place.

    Args:
        path: Path of the journal.
        descriptor: Descriptor of the new file.
        temporary: Path of the new file.
        plan: How the journal is rewritten.
    """

    def __init__(self, path: Path, descriptor: int, temporary: Path, plan: RewritePlan) -> None:
        self._path, self._new, self._temporary = path, descriptor, temporary
        self._folding = plan
        self._whole = JournalReader(path, codec=plan.codec, with_purged=plan.with_purged)
        self._into = plan.into
        self._header: Header | None = None
        self._count = 0
        self._file: tuple[int, int] = (0, 0)
        self._folded = CompactionResult([], set(), set(), 0)
        self._bad: list[LineProblem] = []
        self.is_in_place = False

    @property
    def generation(self) -> str:
        """Generation of the journal that was read."""
        return self._whole.watermark[0]

    def fill(self, make_room: Callable[[], bool]) -> None:
        """Read the journal; write and sync the new version.

        Raises:
            DiskFullError: No room; the message says how much it takes.
            OSError, StorageError: It cannot be read or written.
        """
        with opened(self._path, os.O_RDONLY) as source:
            status = os.fstat(source)
            self._file = (status.st_dev, status.st_ino)
            entries = self._whole.poll_open(source).entries
        self._count = count_records(entries)
        header, self._folded, self._bad = self._folding.of(self._whole, entries)
        self._header = header
        content = header.encode() + b"".join(self._folded.lines)
        try:
            self._write(content)
        except OSError as error:
            if not is_full(error):
                raise
            if len(content) >= status.st_size or not make_room():
                raise DiskFullError(
                    f"Could not compact {self._path.name}: {error.strerror}. What was stored before is safe.",
                    recovery=f"Make room for {len(content) / 1000:,.0f} kB, which the new {self._path.name} takes "
                    "next to the old one. Forgetting still works; the text is deleted by the next compaction.",
                ) from error
            self._write(content)  # second try; no more room can be freed

    def _write(self, content: bytes) -> None:
        os.ftruncate(self._new, 0)
        os.lseek(self._new, 0, os.SEEK_SET)
        for offset in range(0, len(content), _SYNCED_AT_ONCE):
            write_all(self._new, content[offset : offset + _SYNCED_AT_ONCE])
            sync_file(self._new)

    def put_in_place(self, held: LockedJournal, moment: str) -> None:
        """Copy lines appended since, and rename the new file.

        Args:
            held: Locked journal, which ends with a whole line.
            moment: Present time as text.

        Raises:
            BusyError: The journal is not the one that was read.
            OSError: The old file is in place.
        """
        check, status = held.make_check(), os.fstat(held.descriptor)
        if (status.st_dev, status.st_ino) != self._file or not self._whole.read.seems_kept(held.descriptor):
            raise build_changed_error(self._path)
        if not self._whole.offset and status.st_size:
            # It was begun since: as a tail its header would be a line of a journal that has none of its parents.
            raise build_changed_error(self._path)
        tail = read_at(held.descriptor, self._whole.offset, status.st_size)
        if len(tail) != status.st_size - self._whole.offset:
            raise StorageError(f"{self._path.name} cannot be read to its end, so it was not compacted.")
        written = {record_id.decode() for record_id in find_ids(tail)} if tail else set[str]()
        if not written.isdisjoint(self._folded.over):
            raise build_changed_error(self._path)
        if self._bad:
            keep_rejected(get_rejected_path(self._path), self._bad, moment)
        purged = PurgeList(self._path.parent).read().ids if self._whole.withheld else {}
        drop_forgotten(self._path, self._folded.forgotten.union(purged) - written)
        is_clean = self._is_clean()
        if tail:
            write_all(self._new, b"".join(map(self._convert_line, tail.splitlines(keepends=True))))
            sync_file(self._new)
        check()
        self._temporary.replace(self._path)
        self.is_in_place = True
        sync_folder(self._path.parent)
        if is_clean and self._header is not None:
            last = max([self._whole.last_seq, *(read_seq(line) or 0 for line in tail.splitlines(keepends=True))])
            note_journal(self._path, self._header, last, self._count)

    def _is_clean(self) -> bool:
        """Return True if the new version has no purged text."""
        if self._folding.with_purged:
            return not is_returned(self._path)
        has_key = self._whole.header is None or self._whole.header.key in {None, self._whole.codec.key}
        return has_key or not is_returned(self._path)

    def _convert_line(self, line: bytes) -> bytes:
        """Return an appended line as the new version needs it."""
        if self._into is None:
            return _upgrade_line(line)
        try:
            entry = decode_changes(self._whole.codec, decode_entry(line))
        except MalformedLineError:
            raise build_changed_error(self._path) from None  # of the next try it is not the tail
        return b"".join(encode_entries([entry], self._into).lines)


@contextlib.contextmanager
def open_rewrite(path: Path, plan: RewritePlan, wait: float) -> Iterator[JournalRewrite]:
    """Write a new version of a journal for the block.

    Without `put_in_place` nothing is changed.

    Raises:
        BusyError: Another process writes one.
        StorageError: The journal cannot be read, or the new version not be written.
    """

    def make_room() -> bool:
        with folder_lock(path.parent, wait) as lock:
            return lock.give_room()

    temporary = path.with_name(f".{path.name}.{_MARK}.tmp")
    with translated(path, "compact"):
        descriptor = open_private(temporary, os.O_RDWR | os.O_CREAT)
        new = JournalRewrite(path, descriptor, temporary, plan)
        is_ours = False
        try:
            is_ours = _is_claimed(temporary, descriptor)
            if not is_ours:
                raise BusyError(f"Another process is compacting {path.name}.")
            new.fill(make_room)
            yield new
        finally:
            if is_ours and not new.is_in_place:
                temporary.unlink(missing_ok=True)
            unlock_and_close(descriptor)


def open_recoding(
    path: Path, codec: Codec, wait: float = WAIT_SECONDS
) -> contextlib.AbstractContextManager[JournalRewrite]:
    """Write a new version of a journal with another codec.

    Nothing is folded; malformed lines move to the rejected file. Readers read the new file from its begin.

    Args:
        path: Path of the journal.
        codec: Codec of the new lines.
        wait: Seconds to wait for the lock if room has to be made.

    Raises:
        BusyError, StorageError: As `open_rewrite` raises.
        UnsupportedError: A newer version wrote a line that this one does not understand.
    """
    plan = RewritePlan(lambda entries, _: encode_entries(entries, codec), None, by_number=False, into=codec)
    return open_rewrite(path, plan, wait)


def encode_entries(entries: Sequence[Entry], codec: Codec) -> CompactionResult:
    """Return the same entries, encoded by another codec.

    Raises:
        UnsupportedError: A newer version wrote a line that this one does not understand.
    """
    check_known(entries)
    lines = [encode_changes(codec, entry.seq, entry.at, entry.changes) for entry in entries]
    return CompactionResult(lines, set(), set(), max((entry.seq for entry in entries), default=0))


def count_records(entries: Iterable[Entry]) -> int:
    """Count the records that exist after all changes."""
    present: set[tuple[str, str]] = set()
    for change in (change for entry in entries for change in entry.changes):
        if change.op == "put":
            present.add((change.kind, change.id))
        elif change.op == "delete":
            present.discard((change.kind, change.id))
    return len(present)


def _is_claimed(temporary: Path, descriptor: int) -> bool:
    """Lock the new file; return True if it is this process's."""
    try:
        try_lock(descriptor)
    except BlockingIOError:
        return False
    return is_in_place(temporary, descriptor)  # another process may have finished between the opening and the lock


def _upgrade_line(line: bytes) -> bytes:
    """Return a line in the present format; a damaged one unchanged."""
    try:
        decode_entry(line)
    except MalformedLineError:
        return line
    return add_checksum(line)
