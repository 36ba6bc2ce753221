"""Where a reader stands in a journal, so that another one goes on from there without reading what is before it."""

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
"""Bytes before a place that tell whether it is still the same file."""
_LOOKED_BACK: Final = 1 << 18
"""Bytes before a place in which its last lines are; the longest line takes half of that."""
LAST_LINES: Final = 16
"""Lines of which one must be the last that a compacted file has of what is known."""

ChangeSign = tuple[int, int]
"""The number of a change, and a checksum of its moment and of what it changed: a compaction keeps both."""


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
        """Return a place in an open file."""
        last = _read_lines_before(descriptor, offset)[-LAST_LINES:]
        signs = frozenset(sign for line in last for sign in _compute_signs(line))
        return cls(header, seq, offset, lines, _compute_checksum(descriptor, offset), signs)

    @classmethod
    def from_json(cls, said: Mapping[str, Any]) -> ReadPosition | None:
        """Return what `to_json` gave, None if that is damaged."""
        try:
            signs = frozenset((int(seq), int(checksum)) for seq, checksum in said["signs"])
            return cls(**{**said, "header": Header(**said["header"]), "signs": signs})
        except (KeyError, TypeError, ValueError):
            return None

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {**asdict(self), "signs": sorted(self.signs)}

    def in_file(self, descriptor: int, size: int) -> ReadPosition | None:
        """Return the same place in a file as it is now, None where reading has to begin anew.

        After a compaction it is where the first number above `seq` stands, unless the compaction has taken something
        away of which a reader at this place would not hear. The last line before that must be one of the last that
        were here: a copy of the file may have gone on otherwise, and have been compacted then.

        Args:
            descriptor: The open file.
            size: How many bytes it has.
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
    """Tell whether a compacted file goes on from what a reader knows, as `ReadPosition.in_file` does.

    Args:
        descriptor: The open file.
        size: How many bytes it has.
        seq: Number of the last change that is known.
        signs: Of changes that are known.
        last: The last lines that were read, without their newlines.
    """
    known = {*signs, *(sign for line in last for sign in _compute_signs(line + b"\n"))}
    return _is_known(descriptor, find_offset(descriptor, size, seq), known)


def _is_known(descriptor: int, offset: int, known: AbstractSet[ChangeSign]) -> bool:
    """Tell whether the last line before a place is one of those that are known."""
    before = _read_lines_before(descriptor, offset)
    signs = _compute_signs(before[-1]) if before else set()
    return bool(signs) and signs <= known


def _compute_checksum(descriptor: int, offset: int) -> int:
    return zlib.crc32(read_at(descriptor, max(0, offset - _COMPARED), offset))


def _count_lines(descriptor: int, offset: int) -> int:
    return sum(block.count(b"\n") for block in iter_blocks(descriptor, 0, offset))


def _read_lines_before(descriptor: int, offset: int) -> list[bytes]:
    """Return the whole lines that end before a place, newlines included, as far back as is looked."""
    return read_at(descriptor, max(0, offset - _LOOKED_BACK), offset).splitlines(keepends=True)


def _compute_signs(line: bytes) -> set[ChangeSign]:
    """Return the signs of what a line changes; none of one that is no entry."""
    try:
        entry = decode_entry(line)
    except MalformedLineError:
        return set()
    return {(entry.seq, zlib.crc32(f"{entry.at} {one.kind} {one.id}".encode())) for one in entry.changes}


def find_position(descriptor: int, size: int, seq: int) -> ReadPosition:
    """Return the place in a compacted file behind a change that is known, for a reader to go on there.

    Reading all of it again takes 60 ms of processor time at 100,000 lines, for which each writer of a process waits.

    Args:
        descriptor: The open file, which begins with a header.
        size: How many bytes it has.
        seq: Number of the last change that is known.
    """
    header = decode_header(read_at(descriptor, 0, _COMPARED).split(b"\n", 1)[0])
    offset = find_offset(descriptor, size, seq)
    return ReadPosition(header, seq, offset, _count_lines(descriptor, offset), 0)


def find_offset(descriptor: int, size: int, seq: int) -> int:
    """Return where the first line begins whose number is above `seq`; behind the last whole line if there is none.

    Numbers ascend in every journal that programs of ours wrote. Damaged lines are passed over.

    Args:
        descriptor: The open file.
        size: How many bytes it has.
        seq: Number of the last change that is known.
    """
    low, high = 0, size  # a line at or before `low` is known, one at or behind `high` is not
    while high - low > _AT_ONCE:
        middle = (low + high) // 2
        found = _find_first_numbered(descriptor, middle, high)
        if found is None or found[1] > seq:
            high = middle if found is None else min(found[0], middle)
        else:
            low = found[0]
    position = low
    while (found := _find_first_numbered(descriptor, position, size)) is not None:
        if found[1] > seq:
            return found[0]
        position = found[0]
    while position < size:  # the end of the last whole line, which may be long
        content = read_at(descriptor, max(position, size - _AT_ONCE), size)
        end = content.rfind(b"\n")
        if end >= 0:
            return size - len(content) + end + 1
        size -= len(content)
    return position


def _find_first_numbered(descriptor: int, begin: int, end: int) -> tuple[int, int] | None:
    """Return where the first line begins whose newline before it lies in a stretch, and its number."""
    position = begin
    while position < end:
        content = read_at(descriptor, position, min(end, position + _AT_ONCE) + 32)
        match = _NUMBERED.search(content)
        if match is not None:
            line = position + match.start() + 1
            return (line, int(match[1])) if line < end else None
        position += _AT_ONCE
    return None
