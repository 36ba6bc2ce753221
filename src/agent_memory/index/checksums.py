"""What tells that the files of a folder are as they were written: their sizes, and two checksums of each.

Sizes and headers are compared whenever a folder is opened, and all bytes of one that is small; the rest before it is
merged, and by the doctor: reading all of a large index would take longer than a start may.
"""

from __future__ import annotations

import json
import os
import zlib
from typing import TYPE_CHECKING, Final, NamedTuple

from agent_memory.errors import StorageError
from agent_memory.files.atomic import iter_blocks, opened, read_at, read_json, replace_file, translated

if TYPE_CHECKING:
    from pathlib import Path

_SUMS: Final = "sums.json"
HEAD_BYTES: Final = 128
_SMALL_BYTES: Final = 1 << 20
"""Files that are this small together are read when they are opened; takes about a millisecond."""


class Sum(NamedTuple):
    """What is known of a file.

    Attributes:
        size: In bytes.
        head: Checksum of the first bytes of it.
        whole: Checksum of all.
    """

    size: int
    head: int
    whole: int


def write_sums(folder: Path, suffix: str) -> None:
    """Note how the files of a folder are now; the last file that is written into it, but for what names it.

    Raises:
        StorageError: No room, for instance.
    """
    with translated(folder, "read"):
        sums = {path.name: _sum_of(path) for path in sorted(folder.iterdir()) if path.suffix == suffix}
    said = json.dumps(sums)
    with translated(folder / _SUMS, "write"):
        content = json.dumps({"files": sums, "crc": zlib.crc32(said.encode())}).encode()
        replace_file(folder / _SUMS, content, durable=True)


def known_sums(folder: Path) -> dict[str, Sum]:
    """Return what was noted of the files of a folder, by their names.

    Raises:
        StorageError: It is damaged or missing.
    """
    said = read_json(folder / _SUMS) or {}
    files = said.get("files")
    if not isinstance(files, dict) or zlib.crc32(json.dumps(files).encode()) != said.get("crc"):
        raise StorageError(f"{_SUMS} of the index {folder.name} is damaged or missing.")
    return {str(name): Sum(*each) for name, each in files.items()}


def check_sums(folder: Path, *, thorough: bool = False) -> list[Path]:
    """Compare the files of a folder with what was noted; return them.

    Args:
        folder: Where they are.
        thorough: Read all of them, not only their heads and what is small.

    Raises:
        StorageError: One of them is damaged or missing.
    """
    sums = known_sums(folder)
    all_of_it = thorough or sum(each.size for each in sums.values()) <= _SMALL_BYTES
    for name, known in sums.items():
        with translated(folder / name, "read"):
            same = _is_same(folder / name, known, all_of_it=all_of_it)
        if not same:
            raise StorageError(f"{name} of the index {folder.name} is damaged.")
    return [folder / name for name in sums]


def _is_same(path: Path, known: Sum, *, all_of_it: bool) -> bool:
    if all_of_it:
        return _sum_of(path) == known
    with opened(path, os.O_RDONLY) as descriptor:
        is_whole = os.fstat(descriptor).st_size == known.size
        return is_whole and zlib.crc32(read_at(descriptor, 0, HEAD_BYTES)) == known.head


def _sum_of(path: Path) -> Sum:
    with opened(path, os.O_RDONLY) as descriptor:
        size, whole = os.fstat(descriptor).st_size, 0
        for block in iter_blocks(descriptor, 0, size):
            whole = zlib.crc32(block, whole)
        return Sum(size, zlib.crc32(read_at(descriptor, 0, HEAD_BYTES)), whole)
