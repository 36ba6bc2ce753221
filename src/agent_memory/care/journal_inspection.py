"""Inspection of a journal file or a copy of one.

It takes no lock and repairs nothing. The file is read once, in blocks. Some 150 bytes per record stay in memory: the
places of its lines. The records are read again in batches of some thousand.
"""

from __future__ import annotations

import os
import weakref
from array import array
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from agent_memory.errors import StorageError
from agent_memory.files.atomic import open_private, read_at
from agent_memory.files.entries import describe_path_type, get_path_type
from agent_memory.journal.codec import Codec, decode_changes, encode_changes
from agent_memory.journal.compaction import FoldRules, find_young_position, fold_entries, stops_folding, to_microseconds
from agent_memory.journal.format import Entry, Header, MalformedLineError, add_checksum, decode_entry
from agent_memory.journal.reader import JournalReader, decode_next, read_header

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator
    from datetime import timedelta
    from pathlib import Path


_BYTES_AT_ONCE: Final = 1 << 20
_RECORDS_AT_ONCE: Final = 2_000


class InspectedLine(NamedTuple):
    """Line that concerns records of a batch.

    Attributes:
        place: Number of entries before it.
        entry: Whole entry of the line.
        part: Entry with only this batch's changes.
        is_first: True if no earlier batch has the line.
    """

    place: int
    entry: Entry
    part: Entry
    is_first: bool


@dataclass(slots=True, weakref_slot=True)
class JournalInspection:
    """Content of a journal file.

    Attributes:
        reader: Reader with header, damaged lines and watermark.
        trouble: Why nothing could be read, or None. A missing file is not a fault.
        size: Size in bytes; None without a file.
        tail: Bytes after the last line end.
        tail_is_whole: True if only the line end is missing.
        seqs: Number of each entry, in file order.
        linked: Hashes of IDs of replacing and replaced records.
        moments, starts, lengths: Time in microseconds since 1970, byte offset and byte length of each entry.
        where: Batch by hash of the record's ID.
        gone: Hashes of IDs of deleted or never stored records.
        places: Entry places by batch.
        kinds: Record kinds that a compaction folds.
        stop: Number of entries before the first one that stops folding; None if none does.
        unfolded: Bytes of lines that concern no record.
        descriptor: Open file, closed with this object; a compaction replaces the path, not this file.
    """

    reader: JournalReader
    trouble: str | None = None
    size: int | None = None
    tail: bytes = b""
    tail_is_whole: bool = False
    seqs: array[int] = field(default_factory=lambda: array("q"))
    linked: set[int] = field(default_factory=set)
    moments: array[int] = field(default_factory=lambda: array("q"))
    starts: array[int] = field(default_factory=lambda: array("q"))
    lengths: array[int] = field(default_factory=lambda: array("q"))
    places: list[array[int]] = field(default_factory=list)
    where: dict[int, int] = field(default_factory=dict)
    gone: set[int] = field(default_factory=set)
    kinds: frozenset[str] = frozenset()
    stop: int | None = None
    unfolded: int = 0
    descriptor: int = -1

    @property
    def readable(self) -> bool:
        """True if there is a file with content."""
        return self.trouble is None and bool(self.size)

    @property
    def last_seq(self) -> int:
        """Number of the last change, even without its line end."""
        tail = decode_next(self.reader, self.tail) if self.tail_is_whole else None
        return max(self.reader.last_seq, tail.seq if isinstance(tail, Entry) else 0)

    def wrote(self, record_id: str) -> bool:
        """Return True if the file has a line about a record."""
        return hash(record_id) in self.where

    def has(self, record_id: str) -> bool:
        """Return True if a record was stored and not deleted since."""
        key = hash(record_id)
        return key in self.where and key not in self.gone

    def lacks(self, copy: JournalInspection) -> int:
        """Count records of another file that are unknown here."""
        return sum(key not in self.where for key in copy.where if key not in copy.gone)

    def behind(self, seq: int) -> int:
        """Count changes after a number."""
        return sum(number > seq for number in self.seqs)

    def disorder(self) -> tuple[int, int]:
        """Count repeated numbers, and numbers lower than the one before."""
        if all(later > earlier for earlier, later in pairwise(self.seqs)):
            return 0, 0
        back = sum(later < earlier for earlier, later in pairwise(self.seqs))
        return len(self.seqs) - len(set(self.seqs)), back

    def find_young(self, now: datetime, grace: timedelta) -> int:
        """Return the index of the first entry that a compaction keeps."""
        young = find_young_position(reversed(self.moments), len(self.moments), now, grace)
        return young if self.stop is None else min(young, self.stop)

    @property
    def fixed_size(self) -> int:
        """Bytes of header and lines that a compaction never folds."""
        return len(Header.fresh(self.reader.last_seq).encode()) + self.unfolded

    def portions(self, record_ids: Iterable[str] | None = None) -> Iterator[list[InspectedLine]]:
        """Yield the lines of records in batches, in file order.

        Args:
            record_ids: Only batches with these records; all when omitted.
        """
        wanted = None if record_ids is None else {self.where.get(hash(record_id)) for record_id in record_ids}
        for number, places in enumerate(self.places):
            if wanted is None or number in wanted:
                yield [self._line(place, number) for place in places]

    def _line(self, place: int, portion: int) -> InspectedLine:
        start = self.starts[place]
        raw = read_at(self.descriptor, start, start + self.lengths[place])
        try:
            entry: Entry | None = decode_changes(self.reader.codec, decode_entry(raw))
            if entry is not None and (purges := self.reader.purge_filter) is not None:
                (entry,) = purges.clean([entry], self.reader.codec)
        except MalformedLineError as error:
            name = self.reader.path.name
            raise StorageError(f"{name} was changed in place while it was being read: {error}.") from error
        if entry is None:
            raise StorageError(f"{self.reader.path.name} was purged of a record while it was being read.")
        numbers = [self.where.get(hash(change.id)) for change in entry.changes]
        if all(number == portion for number in numbers):
            return InspectedLine(place, entry, entry, is_first=True)
        mine = tuple(change for change, number in zip(entry.changes, numbers, strict=True) if number in {None, portion})
        raw = encode_changes(self.reader.codec, entry.seq, entry.at, mine)
        part = replace(entry, changes=mine, raw=raw)
        first = min(number for number in numbers if number is not None)
        return InspectedLine(place, entry, part, is_first=portion == first)

    def take(self, entries: list[Entry], starts: list[tuple[int, int]]) -> None:
        """Add entries.

        Args:
            entries: Entries read next.
            starts: Offset and length of each entry's line.
        """
        for entry, (start, length) in zip(entries, starts, strict=True):
            place = len(self.seqs)
            self.seqs.append(entry.seq)
            self.moments.append(to_microseconds(datetime.fromisoformat(entry.at)))
            self.starts.append(start)
            self.lengths.append(length)
            if self.stop is None and stops_folding(entry, self.kinds):
                self.stop = place
            portions = {self._get_batch(change.id, change.op) for change in entry.changes if change.op != "mark"}
            for number in portions:
                self.places[number].append(place)
            if not portions:
                self.unfolded += len(add_checksum(entry.raw))
            for change in entry.changes:
                if (older := change.data.get("supersedes")) is not None:
                    self.linked |= {hash(change.id), hash(older) if isinstance(older, str) else 0}

    def _get_batch(self, record_id: str, op: str) -> int:
        key = hash(record_id)
        number = self.where.get(key)
        if number is None:
            number = self.where[key] = len(self.where) // _RECORDS_AT_ONCE
            if number == len(self.places):
                self.places.append(array("q"))
            if op != "put":
                self.gone.add(key)
        if op == "put":
            self.gone.discard(key)
        elif op == "delete":
            self.gone.add(key)
        return number


def count_folded_bytes(lines: list[InspectedLine], young: int, kinds: Collection[str]) -> int:
    """Return the bytes of a batch after a compaction.

    Args:
        lines: Lines of the batch.
        young: Index of the first entry that stays unchanged.
        kinds: Record kinds that may be folded.

    Raises:
        AgentMemoryError: It cannot be computed.
    """
    entries = [line.part for line in lines]
    ids = {change.id for entry in entries for change in entry.changes}
    if len(ids) == len(entries) and all(entry.changes[0].op == "put" for entry in entries):
        return sum(len(add_checksum(entry.raw)) for entry in entries)
    folded = fold_entries(entries, sum(line.place < young for line in lines), FoldRules(kinds))
    return sum(map(len, folded.lines))


def inspect_journal(
    path: Path,
    progress: Callable[[int, int], None] | None = None,
    codec: Codec | None = None,
    kinds: Collection[str] = (),
) -> JournalInspection:
    """Inspect a journal, or a copy of one.

    Args:
        path: Path of the file.
        progress: Called with bytes read and total bytes.
        codec: Codec of the fields; found by header and loaded keys when omitted.
        kinds: Record kinds that a compaction folds.
    """
    reader, kind = JournalReader(path, codec=codec), get_path_type(path)
    if kind != "file":
        return JournalInspection(reader, None if kind == "missing" else f"it is {describe_path_type(kind)}")
    try:
        inspection = JournalInspection(reader, descriptor=open_private(path, os.O_RDONLY), kinds=frozenset(kinds))
        weakref.finalize(inspection, os.close, inspection.descriptor)
        read_header(reader, inspection.descriptor)
        inspection.size = os.fstat(inspection.descriptor).st_size
        before = -1
        while before < reader.offset:
            before = reader.offset
            reader.starts = []
            entries, _ = reader.read_lines(inspection.descriptor, inspection.size, _BYTES_AT_ONCE)
            inspection.take(entries, reader.starts)
            if progress is not None:
                progress(reader.offset, inspection.size)
        tail = read_at(inspection.descriptor, reader.offset, inspection.size)
    except (OSError, StorageError) as error:
        return JournalInspection(
            reader, error.message if isinstance(error, StorageError) else error.strerror or str(error)
        )
    inspection.tail = tail[tail.rfind(b"\n") + 1 :]
    inspection.tail_is_whole = _is_line(reader, inspection.tail)
    return inspection


def _is_line(reader: JournalReader, tail: bytes) -> bool:
    try:
        decode_next(reader, tail)
    except MalformedLineError:
        return False
    return True
