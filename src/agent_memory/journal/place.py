"""Positions of readers in a journal, from which another reader can continue."""

from __future__ import annotations

import re
import zlib
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from agent_memory.files.atomic import iter_blocks, read_at
from agent_memory.journal.format import Header, MalformedLineError, decode_entry, decode_header

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from collections.abc import Set as AbstractSet


_NUMBERED: Final = re.compile(rb'\n--- \{"seq": (\d+),')
_AT_ONCE: Final = 1 << 16
_COMPARED: Final = 4096
"""Bytes before a position that are compared to recognize the file."""
_LOOKED_BACK: Final = 1 << 18
"""Bytes before a position that are searched for its last lines; the longest line takes half of them."""
LAST_LINES: Final = 16
"""Number of last known lines, one of which a compacted file must have."""

ChangeSign = tuple[int, int]
"""Number of a change, and a checksum of its time, kind and ID; a compaction keeps both."""


@dataclass(frozen=True, slots=True)
class ReadPosition:
    """A place behind a whole line.

    Attributes:
        header: Of the file.
        seq: The highest number before it.
        offset, lines: How many bytes and whole lines are before it.
        checksum: Of the last bytes before it.
        signs: Of the changes in the last lines before it.
    """

    header: Header
    seq: int
    offset: int
    lines: int
    checksum: int
    signs: frozenset[ChangeSign] = frozenset()

    @classmethod
    def of(cls, descriptor: int, header: Header, seq: int, offset: int, lines: int) -> ReadPosition:
        """Return a position in an open file."""
        last = _read_lines_before(descriptor, offset)[-LAST_LINES:]
        signs = frozenset(sign for line in last for sign in _compute_signs(line))
        return cls(header, seq, offset, lines, _compute_checksum(descriptor, offset), signs)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> ReadPosition | None:
        """Return the position that `to_json` wrote, None if damaged."""
        try:
            signs = frozenset((int(seq), int(checksum)) for seq, checksum in value["signs"])
            return cls(**{**value, "header": Header(**value["header"]), "signs": signs})
        except (KeyError, TypeError, ValueError):
            return None

    def to_json(self) -> dict[str, Any]:
        """Return the position as JSON."""
        return {**asdict(self), "signs": sorted(self.signs)}

    def in_file(self, descriptor: int, size: int) -> ReadPosition | None:
        """Return this position in the present file, or None.

        After a compaction it is at the first number above `seq`, unless the compaction removed something that a reader
        at this position would miss. The line before it must be one of the last known lines: a copy of the file may have
        continued in another way and then been compacted.

        Args:
            descriptor: Descriptor of the open file.
            size: Size of the file in bytes.
        """
        try:
            header = decode_header(read_at(descriptor, 0, _COMPARED).split(b"\n", 1)[0])
        except MalformedLineError:
            return None
        if header.generation == self.header.generation:
            same = size >= self.offset and _compute_checksum(descriptor, self.offset) == self.checksum
            return self if same else None
        if not header.continues(self.header, self.seq):
            return None
        offset = find_offset(descriptor, size, self.seq)
        if not _is_known(descriptor, offset, self.signs):
            return None
        return ReadPosition.of(descriptor, header, self.seq, offset, _count_lines(descriptor, offset))


def continues_from(descriptor: int, size: int, seq: int, signs: Collection[ChangeSign], last: Iterable[bytes]) -> bool:
    """Return True if a compacted file continues what a reader knows.

    Args:
        descriptor: Descriptor of the open file.
        size: Size of the file in bytes.
        seq: Number of the last known change.
        signs: Signs of known changes.
        last: Last lines read, without newlines.
    """
    all_signs = {*signs, *(sign for line in last for sign in _compute_signs(line + b"\n"))}
    return _is_known(descriptor, find_offset(descriptor, size, seq), all_signs)


def _is_known(descriptor: int, offset: int, known_signs: AbstractSet[ChangeSign]) -> bool:
    """Return True if the last line before an offset is known."""
    before = _read_lines_before(descriptor, offset)
    signs = _compute_signs(before[-1]) if before else set()
    return bool(signs) and signs <= known_signs


def _compute_checksum(descriptor: int, offset: int) -> int:
    return zlib.crc32(read_at(descriptor, max(0, offset - _COMPARED), offset))


def _count_lines(descriptor: int, offset: int) -> int:
    return sum(block.count(b"\n") for block in iter_blocks(descriptor, 0, offset))


def _read_lines_before(descriptor: int, offset: int) -> list[bytes]:
    """Return the last whole lines before an offset, with newlines."""
    return read_at(descriptor, max(0, offset - _LOOKED_BACK), offset).splitlines(keepends=True)


def _compute_signs(line: bytes) -> set[ChangeSign]:
    """Return the signs of a line's changes; none if malformed."""
    try:
        entry = decode_entry(line)
    except MalformedLineError:
        return set()
    return {(entry.seq, zlib.crc32(f"{entry.at} {change.kind} {change.id}".encode())) for change in entry.changes}


def find_position(descriptor: int, size: int, seq: int) -> ReadPosition:
    """Return the position after a known change in a compacted file.

    Reading everything again takes 60 ms of CPU time at 100,000 lines, for which each writer of a process waits.

    Args:
        descriptor: Descriptor of the open file, which begins with a header.
        size: Size of the file in bytes.
        seq: Number of the last known change.
    """
    header = decode_header(read_at(descriptor, 0, _COMPARED).split(b"\n", 1)[0])
    offset = find_offset(descriptor, size, seq)
    return ReadPosition(header, seq, offset, _count_lines(descriptor, offset), 0)


def find_offset(descriptor: int, size: int, seq: int) -> int:
    """Return the offset of the first line with a number above `seq`.

    Returns the end of the last whole line if there is none. Numbers ascend in every journal written by our programs.
    Damaged lines are skipped.

    Args:
        descriptor: Descriptor of the open file.
        size: Size of the file in bytes.
        seq: Number of the last known change.
    """
    low, high = 0, size  # a line at or before `low` is known, one at or behind `high` is not
    while high - low > _AT_ONCE:
        middle = (low + high) // 2
        numbered = _find_first_numbered(descriptor, middle, high)
        if numbered is None or numbered[1] > seq:
            high = middle if numbered is None else min(numbered[0], middle)
        else:
            low = numbered[0]
    position = low
    while (numbered := _find_first_numbered(descriptor, position, size)) is not None:
        if numbered[1] > seq:
            return numbered[0]
        position = numbered[0]
    while position < size:  # the end of the last whole line, which may be long
        content = read_at(descriptor, max(position, size - _AT_ONCE), size)
        end = content.rfind(b"\n")
        if end >= 0:
            return size - len(content) + end + 1
        size -= len(content)
    return position


def _find_first_numbered(descriptor: int, begin: int, end: int) -> tuple[int, int] | None:
    """Return offset and number of the first line in a range.

    The newline before the line is in the range.
    """
    position = begin
    while position < end:
        content = read_at(descriptor, position, min(end, position + _AT_ONCE) + 32)
        match = _NUMBERED.search(content)
        if match is not None:
            line = position + match.start() + 1
            return (line, int(match[1])) if line < end else None
        position += _AT_ONCE
    return None
