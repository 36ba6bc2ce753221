"""Ascending row numbers by key, such as the rows that hold a term: three arrays behind sorted strings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from agent_memory.index.columns import ColumnFile
from agent_memory.index.strings import Strings, StringsFile

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from numpy.typing import NDArray

    from agent_memory.index.columns import Columns


class Listed(NamedTuple):
    """The rows of one key.

    Attributes:
        rows: Ascending, shape (n,).
        counts: How often the key stands in each, shape (n,); empty where that is not kept.
    """

    rows: NDArray[np.uint32]
    counts: NDArray[np.uint16]


_NOTHING = Listed(np.empty(0, np.uint32), np.empty(0, np.uint16))


class Lists:
    """Lists of rows of a folder.

    Args:
        columns: Where they are.
        name: Of the arrays `<name>`, `<name>.ends`, `<name>.starts`, `<name>.rows` and `<name>.counts`.
        counted: Whether there are counts.
    """

    def __init__(self, columns: Columns, name: str, *, counted: bool = False) -> None:
        self.keys = Strings(columns, name)
        self._starts: NDArray[np.int64] = columns[f"{name}.starts"]
        self._rows: NDArray[np.uint32] = columns[f"{name}.rows"]
        self._counts: NDArray[np.uint16] = columns[f"{name}.counts"] if counted else _NOTHING.counts

    def of(self, key: str) -> Listed:
        """Return the rows of a key; none for one that is not known."""
        number = self.keys.find(key.encode())
        return _NOTHING if number is None else self.at(number)

    def at(self, number: int) -> Listed:
        """Return the rows of the key at this place."""
        begin, end = int(self._starts[number]), int(self._starts[number + 1])
        return Listed(self._rows[begin:end], self._counts[begin:end])

    def lengths(self, first: int, end: int) -> NDArray[np.int64]:
        """Return how many rows each of some neighbouring keys has."""
        return np.diff(self._starts[first : end + 1])

    def stretch(self, first: int, end: int) -> Listed:
        """Return the rows of neighbouring keys, one key's behind the other's."""
        begin, stop = int(self._starts[first]), int(self._starts[end])
        return Listed(self._rows[begin:stop], self._counts[begin:stop])


class ListsFile:
    """Lists that are written key by key, in ascending order of keys.

    Args:
        folder: Where to.
        name: As in `Lists`.
        counted: Whether counts are kept.
    """

    def __init__(self, folder: Path, name: str, *, counted: bool = False) -> None:
        self._keys = StringsFile(folder, name)
        self._starts = ColumnFile(folder, f"{name}.starts", np.int64)
        self._rows = ColumnFile(folder, f"{name}.rows", np.uint32)
        self._counts = ColumnFile(folder, f"{name}.counts", np.uint16) if counted else None
        self._length = 0

    def append(
        self, keys: Iterable[bytes], lengths: NDArray[np.integer[Any]], rows: NDArray[Any], counts: NDArray[Any]
    ) -> None:
        """Write some keys, ascending and behind all so far.

        Args:
            keys: The keys.
            lengths: How many rows each has.
            rows: Those of the first, then those of the second, and so on.
            counts: As `rows`; ignored if not kept.
        """
        self._keys.append(keys)
        self._starts.append(self._length + np.cumsum(lengths) - lengths)
        self._length += int(lengths.sum())
        self._rows.append(rows)
        if self._counts is not None:
            self._counts.append(counts)

    def close(self) -> None:
        """Sync all files."""
        self._starts.append(np.array([self._length], np.int64))
        for file in (self._keys, self._starts, self._rows, self._counts):
            if file is not None:
                file.close()
