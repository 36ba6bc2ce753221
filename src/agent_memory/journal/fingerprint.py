"""Checksums of what was read of a file, by which a reader notices that another program has changed it."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Final

from agent_memory.files.atomic import read_at

if TYPE_CHECKING:
    from collections.abc import Iterable

BLOCK: Final = 1 << 14
"""Bytes under one checksum."""


class Fingerprint:
    """Checksums of what was read of one file, to detect that it has changed.

    A checksum for each block: all of them cost as much as reading the file, a few of them some 20 µs.

    Args:
        begin: Where reading began.

    Attributes:
        begin: As given.
        size: Where reading has come to.
    """

    def __init__(self, begin: int = 0) -> None:
        self.begin = self.size = begin
        self._sums: list[int] = []
        self._turn = 0

    def add(self, content: bytes) -> None:
        """Take in what was read behind the rest."""
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
        """Return whether the open file still holds all that was read; takes about 0.5 ms for each megabyte."""
        return self._are_kept(descriptor, range(len(self._sums)))

    def seems_kept(self, descriptor: int) -> bool:
        """Look at the first block, the last one and, in turn, at one of the others.

        A change in place of a file of N blocks is seen after N such looks at the latest.
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
