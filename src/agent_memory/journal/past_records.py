"""Records that existed at a change, from a scan of undecoded lines.

It relies on the order of keys that `encode_entry` writes. Inside a text, quotes are escaped, so that no text looks like
a change.
"""

from __future__ import annotations

import mmap
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from agent_memory.files.atomic import opened, translated
from agent_memory.late import compile_late

if TYPE_CHECKING:
    from pathlib import Path

_LINE: Final = compile_late(rb'--- \{"seq": (\d{1,16}), "at": "([^"\\]{10,40})"')
_CHANGE: Final = compile_late(rb'"op": "(put|delete)", "kind": "([a-z_]+)", "id": "([^"\\]{1,80})"')
_NO_LINE: Final = (0, "")


@dataclass(frozen=True, slots=True)
class PastRecords:
    """Records that existed at a change.

    Attributes:
        seq: Number of the change, the last one at or before the asked number.
        at: Time of that change; empty before the first.
        first, last: Numbers of the first and the last change of the journal.
        ids: IDs of the records, in the order of their creation.
    """

    seq: int
    at: str
    first: int
    last: int
    ids: tuple[str, ...]


def load_past_records(path: Path, kind: str, seq: int | None = None, moment: str | None = None) -> PastRecords:
    """Return the records of a kind that existed at a change.

    Args:
        path: Journal to read; it may be missing.
        kind: Name of the kind.
        seq: Number of the change; None for the last one.
        moment: Time in UTC as text, instead of a number.

    Raises:
        StorageError: The journal cannot be read.
    """
    with translated(path, "read"):
        if not path.exists() or not path.stat().st_size:
            return PastRecords(0, "", 0, 0, ())
        with opened(path, os.O_RDONLY) as descriptor, mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ) as content:
            end = _find_end(content, seq, moment)
            first, last = _find_line(content, 0), _find_last(content, len(content))
            change = _find_last(content, end)
            ids = _scan(content, kind.encode(), end)
    return PastRecords(change[0], change[1], first[0], last[0], ids)


def _find_end(content: mmap.mmap, seq: int | None, moment: str | None) -> int:
    """Return the offset after the last line of a time.

    A binary search, because the numbers of lines rise.
    """
    if seq is None and moment is None:
        return len(content)
    low, high = 0, len(content)  # a line that begins before `low` counts, one from `high` on does not
    while low < high:
        middle = content.rfind(b"\n", low, (low + high) // 2) + 1 or low
        number, written_at = _find_line(content, middle, middle)
        is_later = number > seq if seq is not None else written_at > str(moment)
        if is_later and number:
            high = middle
        else:
            low = content.find(b"\n", max(middle, (low + high) // 2)) + 1 or high
    return low


def _find_line(content: mmap.mmap, start: int, exact: int | None = None) -> tuple[int, str]:
    """Return number and time of the first line from an offset on."""
    line = _LINE.search(content, start) if exact is None else _LINE.match(content, exact)
    return (int(line[1]), line[2].decode()) if line else _NO_LINE


def _find_last(content: mmap.mmap, end: int) -> tuple[int, str]:
    """Return number and time of the last line before an offset."""
    while end > 0:
        begin = content.rfind(b"\n", 0, end - 1) + 1
        line = _find_line(content, begin, begin)
        if line[0]:
            return line
        end = begin
    return _NO_LINE


def _scan(content: mmap.mmap, kind: bytes, end: int) -> tuple[str, ...]:
    ids: dict[bytes, None] = {}
    for change in _CHANGE.finditer(content, 0, end):
        operation, changed_kind, record_id = change.groups()
        if changed_kind == kind:
            if operation == b"put":
                ids.setdefault(record_id)
            else:
                ids.pop(record_id, None)
    return tuple(record_id.decode() for record_id in ids)
