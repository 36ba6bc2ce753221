"""`JournalReader`: follows a journal without its lock.

It returns new entries, and detects that the file was replaced or rewritten. Owns the position in the file. Writes
nothing except the quarantined copy of a rewritten journal.
"""

from __future__ import annotations

import contextlib
import gc
import os
import zlib
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from agent_memory.encryption import data_key, key_for
from agent_memory.files.atomic import get_signature, iter_blocks, open_private, opened, read_at, translated
from agent_memory.files.exchange import set_aside
from agent_memory.files.names import get_aside_path
from agent_memory.journal.agent_file import build_gone_error, check_present
from agent_memory.journal.codec import AS_IT_STANDS, IDENTITY, IN_LINE, Codec, check_key, decode_changes, find_codec
from agent_memory.journal.format import (
    Entry,
    Header,
    MalformedLineError,
    compile_mentions,
    decode_entry,
    decode_header,
    read_seq,
)
from agent_memory.journal.place import LAST_LINES, ChangeSign, ReadPosition, continues_from, find_position
from agent_memory.journal.purge_filter import PurgeFilter, filter_for
from agent_memory.journal.purge_list import PurgeList

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator
    from pathlib import Path


BLOCKS: Final = 1 << 20
"""Bytes per read."""
BLOCK: Final = 1 << 14
"""Bytes per checksum."""


@dataclass(frozen=True, slots=True)
class LineProblem:
    """Problem with the file or one of its lines.

    Attributes:
        line: Number of the line in the file.
        reason: Reason in words.
        raw: Bytes of the line; empty if it is not about a line.
    """

    line: int
    reason: str
    raw: bytes = b""


@dataclass(slots=True)
class JournalUpdate:
    """Result of a poll.

    Attributes:
        entries: New entries in file order.
        reset: Discard all earlier entries first.
        is_newer: True if a newer version wrote the journal.
    """

    entries: list[Entry] = field(default_factory=list)
    reset: bool = False
    is_newer: bool = False

    def followed_by(self, later: JournalUpdate) -> JournalUpdate:
        """Return this update and a later one as one."""
        entries = [*self.entries, *later.entries]
        return later if later.reset else JournalUpdate(entries, self.reset, self.is_newer or later.is_newer)


class JournalReader:
    """Position in one journal file.

    Attributes:
        header: Header last read; None before the file exists, or if its first line is damaged.
        last_seq: Highest number in the header or a line, of this or an earlier generation.
        read_seq: Number up to which everything was read; lower until a compacted file was read to its end.
        problems: Damaged lines and rewrites since the last reset.
        reversed: Line numbers of entries with a lower `seq` than the one before: another program moved them.
        offset, lines: Bytes and whole lines read.
        read: Checksums of these bytes.
        rewritten: How often another program was found to have changed the file.
        finds_codec: True if the codec is found by header and loaded keys.
        starts: Offset and length of each entry's line; recorded if set to an empty list.
        purge_filter: Filter of what is read; None if nothing was purged or read.
        withheld: Number of lines with something purged.
        is_filter_due: True if the purge list has to be read before the next line.
        before: Number of the entry read last.

    Args:
        path: Path of the journal.
        naming: Decode only lines with one of these; all lines when empty.
        codec: Codec of the fields; found by header and loaded keys when omitted.
        with_purged: Read purged records too, for the purge itself.
    """

    def __init__(
        self, path: Path, naming: Collection[bytes] = (), codec: Codec | None = None, *, with_purged: bool = False
    ) -> None:
        self.path = path
        self._with_purged = with_purged
        self.purge_filter: PurgeFilter | None = None
        self.is_filter_due = not with_purged
        self.withheld = 0
        self.codec: Codec = IDENTITY if codec is None else codec
        self.finds_codec = codec is None
        self._names_wanted = compile_mentions(tuple(naming)) if naming else None
        self.header: Header | None = None
        self.last_seq = self.read_seq = 0
        self.problems: list[LineProblem] = []
        self.reversed: list[int] = []
        self.before = self._known = 0
        self.rewritten = 0
        self.offset = 0
        self.lines = 0
        self.read = ReadChecksums()
        self.starts: list[tuple[int, int]] | None = None
        self._signature: tuple[int, int, int] | None = None
        self._last: deque[bytes] = deque(maxlen=LAST_LINES)  # lines, without their newlines
        self._signs: frozenset[ChangeSign] = frozenset()  # of those before the place where reading began

    @property
    def watermark(self) -> tuple[str, int]:
        """Return generation and number of the last change read."""
        return (self.header.generation if self.header else "", self.read_seq)

    @property
    def too_new(self) -> bool:
        """True if only a newer version may write the journal."""
        return self.header is not None and self.header.too_new

    def poll(self, *, thorough: bool = False, most: int | None = None) -> JournalUpdate:
        """Read the lines appended since the last call.

        A file that never existed is an empty journal. An unfinished last line counts as not yet written.

        Args:
            thorough: Compare all that was read before, though size and date of the file are the same.
            most: Stop after the line that reaches so many bytes; the next call continues there.

        Raises:
            StorageError: It cannot be read or is missing (`gone`, `journal_missing`), or the codec does not fit.
        """
        with translated(self.path, "read"):
            try:
                descriptor = open_private(self.path, os.O_RDONLY)
            except FileNotFoundError:
                if self.offset:
                    raise build_gone_error(self.path) from None
                check_present(self.path)
                return JournalUpdate()
            try:
                if thorough and not self.read.is_kept(descriptor):
                    self._signature = None
                return self.poll_open(descriptor, most)
            finally:
                os.close(descriptor)

    def poll_open(self, descriptor: int, most: int | None = None) -> JournalUpdate:
        """Poll an open file; `offset` then ends the last whole line."""
        stat = os.fstat(descriptor)
        if get_signature(stat) == self._signature:
            return JournalUpdate()
        if not stat.st_size and not self.offset:
            check_present(self.path)
        header = read_header(self, descriptor)
        is_another = self.offset > 0 and not self._still_ours(descriptor, header, stat.st_ino, stat.st_size)
        if is_another:
            began_at_place = self.read.begin > 0
            self._restart()
            if not self._known:
                self._signs = frozenset()
                self._last.clear()
            elif began_at_place:  # it never compared what is before that place; others do
                self.begin_at(find_position(descriptor, stat.st_size, self._known))
        # Known lines are skipped in one read: in a later read they would count as new.
        entries, read_to = self.read_lines(descriptor, stat.st_size, None if self._known else most)
        self._signature = (stat.st_ino, read_to, stat.st_mtime_ns)  # of what was read; the next look finds the rest
        known_bytes, self._known = self._known, 0
        return JournalUpdate(entries, reset=is_another and not known_bytes, is_newer=self.too_new)

    def begin_at(self, place: ReadPosition) -> None:
        """Continue from a position, before the first poll."""
        self.header, self.offset, self.lines = place.header, place.offset, place.lines
        self.last_seq, self.read = max(place.seq, place.header.last_seq), ReadChecksums(place.offset)
        self.read_seq = self.before = place.seq
        self._signs |= place.signs

    def advance(self, line: bytes, seq: int, descriptor: int) -> None:
        """Record a line that the lock's holder appended at `offset`."""
        self._consume(line)
        self._last.append(line[:-1])
        self.before = seq
        self.last_seq = self.read_seq = max(self.last_seq, seq)
        self._signature = get_signature(os.fstat(descriptor))

    def adopt_header(self, header: Header, line: bytes) -> None:
        """Record a header that the lock's holder wrote."""
        self.header = header
        self._consume(line)

    def _restart(self) -> None:
        self.header = None
        self.offset = self.lines = self.read_seq = 0
        self.read = ReadChecksums()
        self.problems, self.reversed, self.before = [], [], 0
        self.withheld = 0

    def _still_ours(self, descriptor: int, header: Header | None, inode: int, size: int) -> bool:
        """Return True if the file only grew.

        Quarantines a copy if another program rewrote it.
        """
        if self.header is not None and header is not None and header.generation != self.header.generation:
            if header.continues(self.header, self.read_seq) and self.read_seq >= header.last_seq:
                if continues_from(descriptor, size, self.read_seq, self._signs, self._last):
                    self._known = self.read_seq  # only what came after that is new; else a copy that went on elsewhere
            elif header.parent != self.header.generation and header.last_seq < self.last_seq:
                # A backup, or another folder's: one of ours knows what we know.
                self._set_aside(descriptor, size)
            return False  # compacted by one of us: a new generation, nothing suspicious
        grown = size > self.offset and self._signature is not None and inode == self._signature[0]
        # An append changes size and date as well, so that only the bytes show a change in place.
        if self.read.seems_kept(descriptor) if grown else self.read.is_kept(descriptor):
            return True  # grown, or copied back, touched, restored: the same bytes
        self._set_aside(descriptor, size)
        return False

    def _set_aside(self, descriptor: int, size: int) -> None:
        checksum = 0
        for block in iter_blocks(descriptor, 0, size):
            checksum = zlib.crc32(block, checksum)
        copy = get_aside_path(self.path, "rewritten", f"{checksum:08x}")
        self.rewritten += 1
        # The file itself has the content of the copy: without room for a copy, reading continues.
        with contextlib.suppress(OSError):
            if not copy.exists():
                set_aside(self.path, copy, _iter_readable_blocks(self, descriptor, size), durable=False)

    def read_lines(self, descriptor: int, size: int, most: int | None) -> tuple[list[Entry], int]:
        """Read whole lines up to `size`, or about `most` bytes.

        Checks neither the name of the file nor earlier bytes.

        Returns:
            Entries of the lines, and the offset up to which was read.
        """
        entries: list[Entry] = []
        if not self._with_purged:
            PurgeList(self.path.parent).check_key()
            self.is_filter_due = True
        begun: list[bytes] = []  # of a line whose end is in a later block
        read_to = start = self.offset
        for block in iter_blocks(descriptor, start, size, most or BLOCKS):
            if most is not None and self.offset > start and read_to - start >= most:
                break
            read_to += len(block)
            if end := block.rfind(b"\n") + 1:
                with pause_collection():
                    self._take_lines(b"".join((*begun, block[:end])), entries)
                begun = []
            begun.append(block[end:])
        if read_to >= size:
            self.read_seq = self.last_seq
        return entries, read_to

    def _take_lines(self, block: bytes, entries: list[Entry]) -> None:
        """Read whole lines that begin at `offset`; append their entries."""
        number, first, start = self.lines, self.offset == 0, self.offset
        self._last.extend(block[:-1].rsplit(b"\n", LAST_LINES)[-LAST_LINES:])
        if _can_skip(block, self._names_wanted, self._known):
            if first:
                self._take_header(block[: block.index(b"\n")])
            self._consume(block, block.count(b"\n"))
            return
        lines = block[:-1].split(b"\n")
        self._consume(block, len(lines))
        begin, taken = start, list[tuple[Entry, int, int]]()
        for line in lines:
            number += 1
            start, begin = begin, begin + len(line) + 1
            is_header = first and number == 1 and self._take_header(line)
            if is_header or not line.strip() or (self._names_wanted and not self._names_wanted(line)):
                continue
            raw = line + b"\n"
            if self._known and (read_seq(raw) or self._known + 1) <= self._known:
                continue
            if (entry := _read_entry(self, raw, number)) is not None:
                taken.append((entry, start, len(raw)))
        purges, block_entries = self.purge_filter, [entry for entry, _, _ in taken]
        cleaned = purges.clean(block_entries, self.codec) if purges else block_entries
        for new, (entry, place, length) in zip(cleaned, taken, strict=True):
            self.withheld += new is not entry
            if new is not None:
                entries.append(new)
                if self.starts is not None:
                    self.starts.append((place, length))

    def _take_header(self, line: bytes) -> bool:
        try:
            self.header = decode_header(line)
        except MalformedLineError:
            return False
        self.last_seq = max(self.last_seq, self.header.last_seq)
        return True

    def _consume(self, content: bytes, lines: int = 1) -> None:
        self.offset += len(content)
        self.lines += lines
        self.read.add(content)


def is_put_back(reader: JournalReader) -> bool:
    """Return True if the journal was put back after a purge."""
    return reader.purge_filter is not None and reader.purge_filter.is_returned


def choose_codec(reader: JournalReader, header: Header | None, begin: bytes = b"") -> None:
    """Set the codec for a header, or for a file without one.

    A given codec is only checked.

    Raises:
        StorageError: No key, or the given codec does not fit.
        ConfigurationError: A package that is needed for it is missing.
    """
    if not reader.finds_codec:
        if header is not None:
            check_key(reader.path, reader.codec, header.key)
        elif reader.codec is IDENTITY and IN_LINE.search(begin):
            check_key(reader.path, reader.codec, "of a damaged header")
    elif header is not None:
        if reader.codec.key is None or header.key != reader.codec.key:
            reader.codec = find_codec(reader.path, header.key)
    elif IN_LINE.search(begin):
        reader.codec = data_key(reader.path.parent)
    else:
        reader.codec = find_codec(reader.path, None) if begin.strip() else key_for(reader.path.parent) or IDENTITY


def read_header(reader: JournalReader, descriptor: int) -> Header | None:
    """Return an open file's header, None if unreadable.

    Raises:
        StorageError: What it says of a key is not what the reader's codec has; nothing was read.
    """
    begin = read_at(descriptor, 0, 4096)
    try:
        header = decode_header(begin.split(b"\n", 1)[0])
    except MalformedLineError:
        choose_codec(reader, None, begin)
        return None
    choose_codec(reader, header)
    return header


def _iter_readable_blocks(reader: JournalReader, descriptor: int, size: int) -> Iterator[bytes]:
    """Yield the content of an open journal without purged text."""
    if not PurgeList(reader.path.parent).read().ids:
        yield from iter_blocks(descriptor, 0, size)
        return
    full_reader = JournalReader(reader.path, codec=reader.codec)
    entries, _ = full_reader.read_lines(descriptor, size, None)
    yield full_reader.header.encode() if full_reader.header is not None else b""
    yield from (problem.raw for problem in full_reader.problems)
    yield from (entry.raw for entry in entries)


def _read_entry(reader: JournalReader, raw: bytes, number: int) -> Entry | None:
    """Return the entry in a line, or None.

    Updates the reader's sequence numbers, or adds to its problems.
    """
    if reader.is_filter_due:
        reader.is_filter_due = False
        reader.purge_filter = filter_for(reader.path, reader.header)
    purges = reader.purge_filter
    try:
        entry = decode_changes(reader.codec, decode_entry(raw, _get_format(reader.header)))
    except MalformedLineError as error:
        reader.problems.append(LineProblem(number, str(error), purges.clean_damaged(raw) if purges else raw))
        return None
    if entry.seq < reader.before:
        reader.reversed.append(number)
    reader.before = entry.seq
    reader.read_seq, reader.last_seq = max(reader.read_seq, entry.seq), max(reader.last_seq, entry.seq)
    return entry


def _can_skip(lines: bytes, names_wanted: Callable[[bytes], bool] | None, known_seq: int) -> bool:
    """Return True if all lines are known or irrelevant."""
    if names_wanted:
        return not names_wanted(lines)
    last = read_seq(lines[lines.rfind(b"\n", 0, -1) + 1 :]) if known_seq else None
    return last is not None and last <= known_seq


def decode_next(reader: JournalReader, tail: bytes) -> Entry | Header:
    """Decode the line after those that were read.

    Raises:
        MalformedLineError: It is neither an entry nor, at the begin, a header.
    """
    return decode_entry(tail, _get_format(reader.header)) if reader.offset else decode_header(tail)


def _get_format(header: Header | None) -> int:
    """Return the line format; 1 without a header, which allows checksums."""
    return header.format if header else 1


class ReadChecksums:
    """Checksums of what was read of a file, to detect changes.

    Each block has a checksum. Comparing all costs as much as reading the file; comparing a few costs some 20 µs.

    Args:
        begin: Offset where reading began.

    Attributes:
        begin: Offset where reading began.
        size: Offset up to which was read.
    """

    def __init__(self, begin: int = 0) -> None:
        self.begin = self.size = begin
        self._sums: list[int] = []
        self._turn = 0

    def add(self, content: bytes) -> None:
        """Add bytes read after the others."""
        position = 0
        while position < len(content):
            room = BLOCK - (self.size - self.begin) % BLOCK
            piece = content[position : position + room]
            if room == BLOCK:
                self._sums.append(zlib.crc32(piece))
            else:
                self._sums[-1] = zlib.crc32(piece, self._sums[-1])
            position += len(piece)
            self.size += len(piece)

    def is_kept(self, descriptor: int) -> bool:
        """Return True if the file still has everything that was read."""
        return self._are_kept(descriptor, range(len(self._sums)))

    def seems_kept(self, descriptor: int) -> bool:
        """Return True if the first, last and one other block are unchanged.

        The other block rotates, so a change in a file of N blocks is detected after N calls.
        """
        count = len(self._sums)
        if not count:
            return True
        self._turn = (self._turn + 1) % count
        return self._are_kept(descriptor, sorted({0, self._turn, count - 1}, reverse=True))

    def _are_kept(self, descriptor: int, blocks: Iterable[int]) -> bool:
        for block in blocks:
            begin = self.begin + block * BLOCK
            end = min(begin + BLOCK, self.size)
            content = read_at(descriptor, begin, end)
            if len(content) != end - begin or zlib.crc32(content) != self._sums[block]:
                return False
        return True


@contextlib.contextmanager
def pause_collection() -> Iterator[None]:
    """Disable garbage collection for the block.

    Entries have no cycles, and the collector would scan each of them many times.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def get_position(reader: JournalReader) -> ReadPosition | None:
    """Return a reader's position, None without a file.

    Raises:
        StorageError: The file cannot be read.
    """
    if reader.header is None:
        return None
    with translated(reader.path, "read"), opened(reader.path, os.O_RDONLY) as descriptor:
        return ReadPosition.of(descriptor, reader.header, reader.read_seq, reader.offset, reader.lines)


def resume_at(reader: JournalReader, place: ReadPosition) -> bool:
    """Move an unused reader to a position; False if lost."""
    try:
        with opened(reader.path, os.O_RDONLY) as descriptor:
            current = place.in_file(descriptor, os.fstat(descriptor).st_size)
    except OSError:
        return False
    if current is not None:
        reader.begin_at(current)
    return current is not None


def find_deleted_ids(path: Path) -> set[str]:
    """Return the IDs of all records with a deletion.

    Raises:
        StorageError: The file is there but cannot be read.
    """
    entries = JournalReader(path, [b'"delete"'], AS_IT_STANDS).poll().entries
    return {change.id for entry in entries for change in entry.changes if change.op == "delete"}
