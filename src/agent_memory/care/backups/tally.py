"""Count what is in a journal while its bytes go by: lines, the last number, records of each kind, damage."""

from __future__ import annotations

import hashlib
import re
import zlib
from typing import TYPE_CHECKING, Final

from agent_memory.journal.format import Entry, Header, MalformedLineError, decode_entry, decode_header

if TYPE_CHECKING:
    from pathlib import Path

_BLOCK: Final = 1 << 20
_PLAIN: Final = re.compile(
    rb'--- {"seq": ([1-9][0-9]{0,14}), "at": "[^"\\]*", "op": "(put|patch|delete|touch|mark)", "kind": "([a-z_]+)", '
    rb'"id": "([a-z]{3}-[0-9a-f]{12})"[,}]'
)
"""How nearly all lines begin that this package wrote; with a checksum that matches, nothing has changed them since, and
they need not be parsed, which takes ten times as long."""
_SEAL: Final = re.compile(rb', "crc": "([0-9a-f]{8})"}\n\Z')
_SEAL_BYTES: Final = 21
LONGEST: Final = 256 << 20
"""Bytes of a line; what a program of ours writes at once takes a hundredth of that at most."""


class LineTally:
    """Takes the blocks of a journal, one behind the other.

    Args:
        deep: Look into each line; otherwise only bytes and their checksum are counted.

    Attributes:
        size: Bytes.
        header: None where the first line is none.
        last_seq: The highest number, in the header or in an entry.
        lines: With the header and damaged ones.
        damaged: Numbers of the lines that are no entries.
        ids: Of the records that are there, by kind.
    """

    def __init__(self, *, deep: bool = True) -> None:
        self._deep = deep
        self._sum = hashlib.sha256()
        self._rest: list[bytes] = []
        self._waiting = 0
        self.size = self.last_seq = self.lines = 0
        self.header: Header | None = None
        self.damaged: list[int] = []
        self.ids: dict[str, set[str]] = {}

    @property
    def sha256(self) -> str:
        """Of all bytes so far."""
        return self._sum.hexdigest()

    @property
    def records(self) -> dict[str, int]:
        """How many records there are of each kind."""
        return {kind: len(ids) for kind, ids in sorted(self.ids.items()) if ids}

    def take(self, block: bytes) -> list[bytes]:
        """Count a block; return the whole lines that it ends, none where they are not looked into.

        Raises:
            MalformedLineError: A line is longer than any of ours.
        """
        self._sum.update(block)
        self.size += len(block)
        if not self._deep:
            return []
        end = block.rfind(b"\n") + 1
        lines: list[bytes] = []
        if end:
            lines = _split(b"".join((*self._rest, block[:end])))
            self._rest, self._waiting = [], 0
        self._rest.append(block[end:])
        self._waiting += len(block) - end
        if self._waiting > LONGEST:
            raise MalformedLineError(f"line {self.lines + len(lines) + 1} has no end")
        for line in lines:
            self._count(line)
        return lines

    def _count(self, line: bytes) -> None:
        self.lines += 1
        if self.lines > 1 and (plain := _PLAIN.match(line)) is not None and _is_sealed(line):
            self.last_seq = max(self.last_seq, int(plain[1]))
            self._note(plain[2].decode(), plain[3].decode(), plain[4].decode())
            return
        try:
            if self.lines == 1 and self._is_header(line):
                return
            if line.strip():
                self._apply(decode_entry(line, self.header.format if self.header else 1))
        except MalformedLineError:
            self.damaged.append(self.lines)

    def _is_header(self, line: bytes) -> bool:
        try:
            self.header = decode_header(line)
        except MalformedLineError:
            return False
        self.last_seq = self.header.last_seq
        return True

    def _apply(self, entry: Entry) -> None:
        self.last_seq = max(self.last_seq, entry.seq)
        for change in entry.changes:
            self._note(change.op, change.kind, change.id)

    def _note(self, op: str, kind: str, record_id: str) -> None:
        if op == "put":
            self.ids.setdefault(kind, set()).add(record_id)
        elif op == "delete":
            self.ids.get(kind, set()).discard(record_id)


def _is_sealed(line: bytes) -> bool:
    """Return True if a line ends with the checksum that it has."""
    seal = _SEAL.search(line, max(0, len(line) - _SEAL_BYTES - 1))
    return seal is not None and zlib.crc32(memoryview(line)[: seal.start()]) == int(seal[1], 16)


def _split(whole: bytes) -> list[bytes]:
    """Return whole lines with their ends; nothing but a newline ends one."""
    return [line + b"\n" for line in whole[:-1].split(b"\n")]


def tally_of(path: Path) -> LineTally:
    """Return what is in a journal.

    Raises:
        OSError: It cannot be read.
        MalformedLineError: A line is longer than any of ours.
    """
    tally = LineTally()
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            tally.take(block)
    return tally
