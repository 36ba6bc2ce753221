"""Records of JSON files; a broken one costs only itself."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from itertools import islice
from typing import IO, TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_memory.knowledge.sources.source_files import SourceFile

MAX_RECORD_BYTES: Final = 64 << 20
_CHUNK: Final = 1 << 20
_PEEKED_LINES: Final = 200
_PEEKED_BYTES: Final = 4 << 20
_TOKEN: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[\[\]{}]|"', re.DOTALL)
"""A whole string, a bracket, or the quote of a string that goes on."""
_SCALAR: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[^\s,\[\]{}"]++', re.DOTALL)
_GAP: Final = re.compile(rb"[\s,]*+")
_KEY: Final = re.compile(rb'\{\s*"[^"]*"')
_BOM: Final = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class JsonRecord:
    """One record of a file.

    Attributes:
        number: Place in the list, or line, from 1.
        value: Value of the record; None if broken.
        is_broken: True if it cannot be read.
        size: Number of its bytes.
        is_unfinished: True for a last line without a line break.
    """

    number: int
    value: Any = None
    is_broken: bool = False
    size: int = 0
    is_unfinished: bool = False


def iter_lines(file: SourceFile) -> Iterator[JsonRecord]:
    """Yield the lines of a JSON lines file, except blank ones."""
    number = 0
    with file.open_utf8() as stream:
        while line := stream.readline(MAX_RECORD_BYTES):
            number += 1
            is_cut = len(line) == MAX_RECORD_BYTES and not line.endswith(b"\n")
            while is_cut and (rest := stream.readline(MAX_RECORD_BYTES)) and not rest.endswith(b"\n"):
                pass
            bare = line.removeprefix(_BOM).strip() if number == 1 else line.strip()
            if bare:
                record = JsonRecord(number, is_broken=True) if is_cut else _parse(number, bare)
                yield record if is_cut or line.endswith(b"\n") else replace(record, is_unfinished=True)


def peek_lines(file: SourceFile) -> Iterator[JsonRecord]:
    """Yield the first lines of a JSON lines file."""
    size = 0
    for record in islice(iter_lines(file), _PEEKED_LINES):
        yield record
        size += record.size
        if size > _PEEKED_BYTES:
            return


def iter_elements(file: SourceFile) -> Iterator[JsonRecord]:
    """Yield the elements of a JSON list; another value is one element.

    Memory is bounded by the largest element. After a broken one the next that begins with the same key is found.
    """
    with file.open_utf8() as stream:
        yield from _ElementReader(stream).iter_records()


def read_list(file: SourceFile, key: str) -> tuple[dict[str, Any], Iterator[JsonRecord]]:
    """Return the fields before a list of an object, and its elements.

    The whole object may be larger than the memory. An object without the list has no elements.

    Args:
        file: JSON file with one object.
        key: Name of the list in the object.
    """
    with file.open_utf8() as stream:
        fields, _ = _ElementReader(stream).read_fields(key)
    return fields, _iter_list(file, key)


def _iter_list(file: SourceFile, key: str) -> Iterator[JsonRecord]:
    with file.open_utf8() as stream:
        reader = _ElementReader(stream)
        if reader.read_fields(key)[1]:
            yield from reader.iter_list(ends_at=b"]")


def _parse(number: int, content: bytes) -> JsonRecord:
    try:
        value = json.loads(content)
        if isinstance(value, str) and value.startswith("{"):  # packed twice
            value = json.loads(value)
        return JsonRecord(number, value, size=len(content))
    except (ValueError, RecursionError):
        return JsonRecord(number, is_broken=True, size=len(content))


class _ElementReader:
    """Cuts a stream of JSON into the elements of its list."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._buffer = bytearray()
        self._is_over = False
        self._key = b""

    def iter_records(self) -> Iterator[JsonRecord]:
        """Yield all elements in order."""
        self._begin()
        if self._skip_gap() == b"[":
            del self._buffer[:1]
        yield from self.iter_list()

    def _begin(self) -> None:
        self._fill()
        if self._buffer.startswith(_BOM):
            del self._buffer[: len(_BOM)]

    def read_fields(self, key: str) -> tuple[dict[str, Any], bool]:
        """Return the fields before a list, and whether the list begins.

        The elements of the list are next.
        """
        self._begin()
        start = re.search(rb'"' + re.escape(key.encode()) + rb'"\s*:\s*\[', self._buffer)
        if start is None:
            return {}, False
        record = _parse(0, bytes(self._buffer[: start.end()]) + b"]}")
        del self._buffer[: start.end()]
        return (record.value, True) if isinstance(record.value, dict) else ({}, False)

    def iter_list(self, ends_at: bytes = b"") -> Iterator[JsonRecord]:
        """Yield the elements behind the start of a list.

        Args:
            ends_at: Bracket that ends the list; empty to read to the end of the file.
        """
        number = 0
        while first := self._skip_gap():
            if first == ends_at:
                return
            if first in b"]}":  # the end, or what remains of a broken element
                del self._buffer[:1]
                continue
            number += 1
            end = self._find_end()
            record = JsonRecord(number, is_broken=True) if end is None else self._take(number, end)
            yield record
            if record.is_broken and end is None and not self._find_next():
                return

    def _take(self, number: int, end: int) -> JsonRecord:
        content = bytes(self._buffer[:end])
        record = _parse(number, content) if end <= MAX_RECORD_BYTES else JsonRecord(number, is_broken=True)
        if not record.is_broken and not self._key and (key := _KEY.match(content)):
            self._key = b"".join(key[0].split())
        del self._buffer[:end]
        return record

    def _fill(self, size: int = _CHUNK) -> bool:
        """Read more; return False at the end of the stream."""
        chunk = b"" if self._is_over else self._stream.read(size)
        self._is_over = not chunk
        self._buffer += chunk
        return bool(chunk)

    def _skip_gap(self) -> bytes:
        """Drop white space and commas; return the next byte, if any."""
        while True:
            gap = _GAP.match(self._buffer)
            del self._buffer[: gap.end() if gap else 0]
            if self._buffer or not self._fill():
                return bytes(self._buffer[:1])

    def _find_end(self) -> int | None:
        """Return the end of the first element, or None."""
        if not self._buffer.startswith((b"{", b"[")):
            return self._find_scalar_end()
        depth, place = 0, 0
        while True:
            for token in _TOKEN.finditer(self._buffer, place):
                mark = token[0]
                if mark == b'"':  # its end is not read yet
                    place = token.start()
                    break
                place = token.end()
                depth += (mark in (b"{", b"[")) - (mark in (b"}", b"]"))
                if not depth:
                    return place
            else:
                place = max(place, len(self._buffer))
            if len(self._buffer) > MAX_RECORD_BYTES or not self._fill(max(_CHUNK, len(self._buffer) // 2)):
                return None

    def _find_scalar_end(self) -> int | None:
        scalar = _SCALAR.match(self._buffer)
        while (scalar is None or scalar.end() == len(self._buffer)) and len(self._buffer) <= MAX_RECORD_BYTES:
            if not self._fill():
                break
            scalar = _SCALAR.match(self._buffer)
        return scalar.end() if scalar else None

    def _find_next(self) -> bool:
        """Drop bytes before the next element; return False if none."""
        place = 1
        while self._key:
            keys = _KEY.finditer(self._buffer, place)
            start = next((key.start() for key in keys if b"".join(key[0].split()) == self._key), None)
            del keys  # it locks the buffer
            del self._buffer[: max(1, len(self._buffer) - _CHUNK) if start is None else start]
            if start is not None:
                return True
            place = 0
            if not self._fill():
                return False
        return False
