"""What is in a journal file, or in a copy of one; takes no lock and repairs nothing."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

from agent_memory.errors import AgentMemoryError, StorageError
from agent_memory.files.atomic import opened, read_at
from agent_memory.files.entries import described, kind_of
from agent_memory.journal.compaction import first_young, fold
from agent_memory.journal.format import Entry, Header, MalformedLineError
from agent_memory.journal.reader import JournalReader, decode_next

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime, timedelta
    from pathlib import Path


@dataclass(slots=True)
class Inspection:
    """What is in a journal file.

    Attributes:
        reader: Has read it; knows header, lines, damaged lines and watermark.
        trouble: Why nothing of it could be read, or None. A missing file is no trouble.
        size: Its bytes; None when there is no file.
        entries: In the order of the file.
        tail: Bytes behind the last line end.
        tail_is_whole: Whether these would be a line, were it not for the missing end.
    """

    reader: JournalReader
    trouble: str | None = None
    size: int | None = None
    entries: list[Entry] = field(default_factory=list)
    tail: bytes = b""
    tail_is_whole: bool = False

    @property
    def readable(self) -> bool:
        """Whether there is a file with something in it."""
        return self.trouble is None and bool(self.size)

    @property
    def last_seq(self) -> int:
        """The number of the last change, also of one that lacks only its line end."""
        tail = decode_next(self.reader, self.tail) if self.tail_is_whole else None
        return max(self.reader.last_seq, tail.seq if isinstance(tail, Entry) else 0)

    def written_ids(self, *ops: str) -> set[str]:
        """Return the ids of all records of which the file still knows something; of those changed by `ops` if given."""
        return {change.id for entry in self.entries for change in entry.changes if change.op in ops or not ops}

    def disorder(self) -> tuple[int, int]:
        """Return how many sequence numbers occur twice, and how many are lower than the one before."""
        numbers = [entry.seq for entry in self.entries]
        back = sum(later < earlier for earlier, later in pairwise(numbers))
        return len(numbers) - len(set(numbers)), back

    def frees(self, now: datetime, grace: timedelta, kinds: Collection[str]) -> int:
        """Return by how many bytes a compaction now would shrink the file; 0 if that cannot be computed."""
        try:
            folded = fold(self.entries, first_young(self.entries, now, grace), kinds)
        except AgentMemoryError:
            return 0
        kept = len(Header.fresh(self.reader.last_seq).encode()) + sum(map(len, folded.lines))
        return max(0, (self.size or 0) - kept)


def inspect_journal(path: Path) -> Inspection:
    """Return what is in a journal, or in a copy of one."""
    reader, kind = JournalReader(path), kind_of(path)
    if kind != "file":
        return Inspection(reader, None if kind == "missing" else f"it is {described(kind)}")
    try:
        entries = reader.poll().entries
        with opened(path, os.O_RDONLY) as descriptor:
            size = os.fstat(descriptor).st_size
            tail = read_at(descriptor, reader.offset, size)
    except (OSError, StorageError) as error:
        return Inspection(reader, error.message if isinstance(error, StorageError) else error.strerror or str(error))
    tail = tail[tail.rfind(b"\n") + 1 :]
    return Inspection(reader, None, size, entries, tail, _is_line(reader, tail))


def _is_line(reader: JournalReader, tail: bytes) -> bool:
    try:
        decode_next(reader, tail)
    except MalformedLineError:
        return False
    return True
