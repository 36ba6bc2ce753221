"""Arrays and byte strings of a folder, in checksummed `.npy` files.

They are written in batches and mapped when the folder is opened. Sizes and headers are compared whenever a folder is
opened, and all bytes of a small one; the rest before it is merged, and by the doctor: reading all of a large index
would take longer than a start may.
"""

from __future__ import annotations

import io
import json
import mmap
import os
import resource
import weakref
import zlib
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from agent_memory.errors import StorageError
from agent_memory.files.atomic import (
    iter_blocks,
    open_private,
    opened,
    read_at,
    read_json,
    replace_file,
    sync_file,
    translated,
    write_all,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from numpy.typing import DTypeLike, NDArray

_SUFFIX: Final = ".npy"
_READ_BYTES: Final = 64 << 10
"""Up to which an array is read instead of mapped: each mapping holds a descriptor, and a process may have 256 on
macOS and 1,024 on Linux, and a segment of a million records has some fifty arrays, most of them small."""
_MAPPED_BYTES: Final = 16 << 20
"""Bytes from which an array is always mapped."""
_MAPPED_SHARE: Final = 0.25
"""Share of the process's descriptors for mappings; further small arrays are read."""
_MAPPINGS: Final[weakref.WeakSet[mmap.mmap]] = weakref.WeakSet()
_SUMS: Final = "sums.json"
_HEAD_BYTES: Final = 128
"""Bytes of the first checksum, and of the header of an array: numpy leaves room in it for a growing length."""
_SMALL_BYTES: Final = 1 << 20
"""Files that are this small together are read when they are opened; takes about a millisecond."""
_AT_ONCE: Final = 1 << 22
"""Bytes that are gathered in one batch."""
_STRINGS_AT_ONCE: Final = 10_000


class ColumnFolder:
    """Arrays of a folder by name, read-only.

    Shared by all processes that map them.

    Args:
        folder: Folder with the files. All are mapped or, if small, read at once, in 30 µs each: so they stay readable
            when another process removes the folder.

    Raises:
        StorageError: One of them is damaged.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        paths = check_sums(folder)
        self._arrays = {path.name.removesuffix(_SUFFIX): _open_array(path) for path in paths}

    def __contains__(self, name: str) -> bool:
        return name in self._arrays

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Return an array.

        Raises:
            StorageError: The file is missing.
        """
        try:
            return self._arrays[name]
        except KeyError:
            raise StorageError(f"{name}{_SUFFIX} of the index {self._folder.name} is missing.") from None


class ColumnFile:
    """Writer of one array in batches. Memory: one batch.

    Args:
        folder: Folder of the array.
        name: Name of the array, not existing yet.
        dtype: Type of its items.
        width: Items of a row; None for an array of one dimension.

    Raises:
        StorageError: It cannot be written.
    """

    def __init__(self, folder: Path, name: str, dtype: DTypeLike, width: int | None = None) -> None:
        self._path = _path(folder, name)
        self._dtype = np.dtype(dtype)
        self._width = width
        self._length = 0
        with translated(self._path, "write"):
            self._descriptor = open_private(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
            write_all(self._descriptor, self._header())

    def append(self, items: NDArray[Any]) -> None:
        """Append items."""
        self._length += len(items)
        with translated(self._path, "write"):
            write_all(self._descriptor, np.ascontiguousarray(items, self._dtype).tobytes())

    def close(self) -> None:
        """Write the length and sync the file."""
        with translated(self._path, "write"):
            try:
                os.pwrite(self._descriptor, self._header(), 0)
                sync_file(self._descriptor)
            finally:
                os.close(self._descriptor)

    def _header(self) -> bytes:
        made = io.BytesIO()
        shape = (self._length,) if self._width is None else (self._length, self._width)
        described = {"descr": np.lib.format.dtype_to_descr(self._dtype), "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(made, described)
        header = made.getvalue()
        assert len(header) == _HEAD_BYTES, "numpy pads its header for a growing first axis"
        return header


def write_columns(folder: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write whole arrays of one or two dimensions, and sync them.

    Raises:
        StorageError: No room, for instance.
    """
    for name, array in arrays.items():
        file = ColumnFile(folder, name, array.dtype, None if array.ndim == 1 else array.shape[1])
        try:
            file.append(array)
        finally:
            file.close()


def finish_columns(folder: Path) -> None:
    """Write the checksum manifest of finished arrays.

    Without it they cannot be opened.

    Raises:
        StorageError: No room, for instance.
    """
    write_sums(folder, _SUFFIX)


def read_column(folder: Path, name: str) -> NDArray[Any]:
    """Read one array of a folder that is still being written.

    Raises:
        StorageError: It cannot be read.
    """
    return _open_array(_path(folder, name))


def _path(folder: Path, name: str) -> Path:
    return folder / f"{name}{_SUFFIX}"


def _open_array(path: Path) -> NDArray[Any]:
    with translated(path, "read"):
        descriptor = open_private(path, os.O_RDONLY)
    with os.fdopen(descriptor, "rb") as file:
        try:
            np.lib.format.read_magic(file)
            shape, _, dtype = np.lib.format.read_array_header_1_0(file)
            size, begin = int(np.prod(shape)), file.tell()
            if not _is_mapped(size * dtype.itemsize):
                return _read_only(np.fromfile(file, dtype, size).reshape(shape))
            mapped = mmap.mmap(file.fileno(), begin + size * dtype.itemsize, access=mmap.ACCESS_READ)
            _MAPPINGS.add(mapped)
            return np.frombuffer(mapped, dtype, size, begin).reshape(shape)
        except (ValueError, OSError) as error:
            raise StorageError(f"{path.name} of an index cannot be read: {error}.") from error


def _is_mapped(size: int) -> bool:
    """Return True if an array of this size is to be mapped."""
    if size <= _READ_BYTES or size >= _MAPPED_BYTES:
        return size > _READ_BYTES
    descriptors = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return descriptors == resource.RLIM_INFINITY or len(_MAPPINGS) < descriptors * _MAPPED_SHARE


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    array.flags.writeable = False  # as what is mapped
    return array


class FileSum(NamedTuple):
    """Size and checksums of a file.

    Attributes:
        size: Size in bytes.
        head: Checksum of the first bytes.
        whole: Checksum of all bytes.
    """

    size: int
    head: int
    whole: int


def write_sums(folder: Path, suffix: str) -> None:
    """Write the checksum manifest of a folder.

    Raises:
        StorageError: No room, for instance.
    """
    with translated(folder, "read"):
        sums = {path.name: _compute_sum(path) for path in sorted(folder.iterdir()) if path.suffix == suffix}
    encoded = json.dumps(sums)
    with translated(folder / _SUMS, "write"):
        content = json.dumps({"files": sums, "crc": zlib.crc32(encoded.encode())}).encode()
        replace_file(folder / _SUMS, content, durable=True)


def read_sums(folder: Path) -> dict[str, FileSum]:
    """Read the checksum manifest of a folder, by file name.

    Raises:
        StorageError: It is damaged or missing.
    """
    content = read_json(folder / _SUMS) or {}
    files = content.get("files")
    if not isinstance(files, dict) or zlib.crc32(json.dumps(files).encode()) != content.get("crc"):
        raise StorageError(f"{_SUMS} of the index {folder.name} is damaged or missing.")
    return {str(name): FileSum(*values) for name, values in files.items()}


def check_sums(folder: Path, *, thorough: bool = False) -> list[Path]:
    """Compare the files of a folder with its manifest; return them.

    Args:
        folder: Folder with the files.
        thorough: Read all bytes, not only the heads and small files.

    Raises:
        StorageError: One of them is damaged or missing.
    """
    sums = read_sums(folder)
    all_of_it = thorough or sum(entry.size for entry in sums.values()) <= _SMALL_BYTES
    for name, expected in sums.items():
        with translated(folder / name, "read"):
            same = _is_same(folder / name, expected, all_of_it=all_of_it)
        if not same:
            raise StorageError(f"{name} of the index {folder.name} is damaged.")
    return [folder / name for name in sums]


def _is_same(path: Path, expected: FileSum, *, all_of_it: bool) -> bool:
    if all_of_it:
        return _compute_sum(path) == expected
    with opened(path, os.O_RDONLY) as descriptor:
        is_whole = os.fstat(descriptor).st_size == expected.size
        return is_whole and zlib.crc32(read_at(descriptor, 0, _HEAD_BYTES)) == expected.head


def _compute_sum(path: Path) -> FileSum:
    with opened(path, os.O_RDONLY) as descriptor:
        size, whole = os.fstat(descriptor).st_size, 0
        for block in iter_blocks(descriptor, 0, size):
            whole = zlib.crc32(block, whole)
        return FileSum(size, zlib.crc32(read_at(descriptor, 0, _HEAD_BYTES)), whole)


class StringColumn:
    """Byte strings by number: all their bytes, and the end of each.

    Args:
        columns: Arrays of the folder.
        name: Name of the two arrays `<name>` and `<name>.ends`.
    """

    def __init__(self, columns: ColumnFolder, name: str) -> None:
        self.content: NDArray[np.uint8] = columns[name]
        self.ends: NDArray[np.int64] = columns[f"{name}.ends"]

    def __len__(self) -> int:
        return len(self.ends)

    def __getitem__(self, number: int) -> bytes:
        begin = int(self.ends[number - 1]) if number else 0
        return self.content[begin : int(self.ends[number])].tobytes()

    def __iter__(self) -> Iterator[bytes]:
        begin = 0
        for first in range(0, len(self), _STRINGS_AT_ONCE):
            ends = self.ends[first : first + _STRINGS_AT_ONCE].tolist()
            content, base = self.content[begin : ends[-1]].tobytes(), begin
            for end in ends:
                yield content[begin - base : end - base]
                begin = end

    def find(self, wanted: bytes) -> int | None:
        """Return the number of a string, or None; they must be sorted."""
        low, high = 0, len(self)
        while low < high:
            middle = (low + high) // 2
            if self[middle] < wanted:
                low = middle + 1
            else:
                high = middle
        return low if low < len(self) and self[low] == wanted else None

    def beginning(self, prefix: bytes) -> NDArray[np.bool_]:
        """Return a mask of the strings with a prefix."""
        mask = np.zeros(len(self), bool)
        starts = np.concatenate([np.zeros(1, np.int64), self.ends[:-1]])
        rows = np.flatnonzero(self.ends - starts >= len(prefix))
        for place, byte in enumerate(prefix):
            rows = rows[self.content[starts[rows] + place] == byte]
        mask[rows] = True
        return mask

    def every(self) -> list[bytes]:
        """Return all strings."""
        return list(self)


class StringsFile:
    """Writer of strings in batches.

    Args:
        folder: Folder of the arrays.
        name: As in `StringColumn`.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self._content = ColumnFile(folder, name, np.uint8)
        self._ends = ColumnFile(folder, f"{name}.ends", np.int64)
        self._bytes = 0

    def append(self, strings: Iterable[bytes]) -> None:
        """Append strings."""
        texts = list(strings)
        self._put(np.frombuffer(b"".join(texts), np.uint8), np.array([len(text) for text in texts], np.int64))

    def append_from(self, source: StringColumn, numbers: NDArray[np.integer[Any]]) -> None:
        """Append strings of another column, in the order given.

        Holds a few megabytes at a time.
        """
        begins = np.concatenate([np.zeros(1, np.int64), source.ends])[numbers]
        lengths = source.ends[numbers] - begins
        cuts = np.flatnonzero(np.diff(np.cumsum(lengths) // _AT_ONCE)) + 1
        for batch_begins, batch_lengths in zip(np.split(begins, cuts), np.split(lengths, cuts), strict=True):
            if len(batch_lengths):
                # Neighbours are copied in one go.
                gaps = np.flatnonzero(batch_begins[1:] != (batch_begins + batch_lengths)[:-1]) + 1
                firsts, ends = (
                    batch_begins[np.append(0, gaps)],
                    (batch_begins + batch_lengths)[np.append(gaps - 1, len(batch_lengths) - 1)],
                )
                runs = [source.content[begin:end] for begin, end in zip(firsts.tolist(), ends.tolist(), strict=True)]
                self._put(np.concatenate(runs), batch_lengths)

    def close(self) -> None:
        """Sync both files."""
        self._content.close()
        self._ends.close()

    def _put(self, content: NDArray[np.uint8], lengths: NDArray[np.int64]) -> None:
        self._content.append(content)
        self._ends.append(self._bytes + np.cumsum(lengths))
        self._bytes += len(content)
