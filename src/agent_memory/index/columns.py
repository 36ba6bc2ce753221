"""Named arrays in a folder, one `.npy` file each: written in portions, mapped when the folder is opened."""

from __future__ import annotations

import io
import mmap
import os
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from agent_memory.errors import StorageError
from agent_memory.files.atomic import open_private, sync_file, translated, write_all
from agent_memory.index.checksums import HEAD_BYTES, check_sums, write_sums

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import DTypeLike, NDArray

_SUFFIX: Final = ".npy"
_HEADER_BYTES: Final = HEAD_BYTES
"""Of a one-dimensional array: numpy leaves room in it for a length that is not known yet."""
_READ_BYTES: Final = 64 << 10
"""Up to which an array is read instead of mapped: each mapping holds a descriptor, of which a process may have 256 on
macOS and 1,024 on Linux, and a segment of a million records has some fifty arrays, most of them small."""


class Columns:
    """Arrays of a folder by name; read-only, and shared by all processes that map them.

    Args:
        folder: Where the files are. All are mapped or, if they are small, read at once, in 30 µs each: so they stay
            readable when another process removes the folder.

    Raises:
        StorageError: One of them is damaged.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        paths = check_sums(folder)
        self._arrays = {path.name.removesuffix(_SUFFIX): _opened(path) for path in paths}

    def __contains__(self, name: str) -> bool:
        return name in self._arrays

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Return an array.

        Raises:
            StorageError: There is no such file.
        """
        try:
            return self._arrays[name]
        except KeyError:
            raise StorageError(f"{name}{_SUFFIX} of the index {self._folder.name} is missing.") from None


class ColumnFile:
    """One array that is written in portions. Memory: one portion.

    Args:
        folder: Where to.
        name: Of the array; there must be none yet.
        dtype: Of its items.
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
        """Write items behind the rest."""
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
        assert len(header) == _HEADER_BYTES, "numpy pads its header for a growing first axis"
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
    """Note how the arrays of a folder are, now that all are written: without it they cannot be opened.

    Raises:
        StorageError: No room, for instance.
    """
    write_sums(folder, _SUFFIX)


def column_of(folder: Path, name: str) -> NDArray[Any]:
    """Return one array of a folder that is still being written.

    Raises:
        StorageError: It cannot be read.
    """
    return _opened(_path(folder, name))


def _path(folder: Path, name: str) -> Path:
    return folder / f"{name}{_SUFFIX}"


def _opened(path: Path) -> NDArray[Any]:
    with translated(path, "read"):
        descriptor = open_private(path, os.O_RDONLY)
    with os.fdopen(descriptor, "rb") as file:
        try:
            np.lib.format.read_magic(file)
            shape, _, dtype = np.lib.format.read_array_header_1_0(file)
            size, begin = int(np.prod(shape)), file.tell()
            if size * dtype.itemsize <= _READ_BYTES:
                return _read_only(np.fromfile(file, dtype, size).reshape(shape))
            mapped = mmap.mmap(file.fileno(), begin + size * dtype.itemsize, access=mmap.ACCESS_READ)
            return np.frombuffer(mapped, dtype, size, begin).reshape(shape)
        except (ValueError, OSError) as error:
            raise StorageError(f"{path.name} of an index cannot be read: {error}.") from error


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    array.flags.writeable = False  # as what is mapped
    return array
