"""Byte strings by number, in two arrays: all their bytes, and where each one ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from agent_memory.index.columns import ColumnFile

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from agent_memory.index.columns import Columns

_AT_ONCE: Final = 1 << 22
"""Bytes that are gathered in one portion."""
_STRINGS_AT_ONCE: Final = 10_000


class Strings:
    """Strings of a folder.

    Args:
        columns: Where they are.
        name: Of the two arrays `<name>` and `<name>.ends`.
    """

    def __init__(self, columns: Columns, name: str) -> None:
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
        """Return the number of a string, None if it is not there; they must be sorted."""
        low, high = 0, len(self)
        while low < high:
            middle = (low + high) // 2
            if self[middle] < wanted:
                low = middle + 1
            else:
                high = middle
        return low if low < len(self) and self[low] == wanted else None

    def beginning(self, prefix: bytes) -> NDArray[np.bool_]:
        """Return which of them begin so."""
        found = np.zeros(len(self), bool)
        starts = np.concatenate([np.zeros(1, np.int64), self.ends[:-1]])
        rows = np.flatnonzero(self.ends - starts >= len(prefix))
        for place, byte in enumerate(prefix):
            rows = rows[self.content[starts[rows] + place] == byte]
        found[rows] = True
        return found

    def every(self) -> list[bytes]:
        """Return all of them; for few."""
        return list(self)


class StringsFile:
    """Strings that are written in portions.

    Args:
        folder: Where to.
        name: As in `Strings`.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self._content = ColumnFile(folder, name, np.uint8)
        self._ends = ColumnFile(folder, f"{name}.ends", np.int64)
        self._bytes = 0

    def append(self, strings: Iterable[bytes]) -> None:
        """Write some behind the rest."""
        every = list(strings)
        self._put(np.frombuffer(b"".join(every), np.uint8), np.array([len(each) for each in every], np.int64))

    def append_from(self, source: Strings, numbers: NDArray[np.integer[Any]]) -> None:
        """Write some strings of others, in the order given; no more than a few megabytes are held at a time."""
        begins = np.concatenate([np.zeros(1, np.int64), source.ends])[numbers]
        lengths = source.ends[numbers] - begins
        cuts = np.flatnonzero(np.diff(np.cumsum(lengths) // _AT_ONCE)) + 1
        for some_begins, some in zip(np.split(begins, cuts), np.split(lengths, cuts), strict=True):
            if len(some):
                # Neighbours are copied in one go.
                gaps = np.flatnonzero(some_begins[1:] != (some_begins + some)[:-1]) + 1
                firsts, ends = some_begins[np.append(0, gaps)], (some_begins + some)[np.append(gaps - 1, len(some) - 1)]
                runs = [source.content[begin:end] for begin, end in zip(firsts.tolist(), ends.tolist(), strict=True)]
                self._put(np.concatenate(runs), some)

    def close(self) -> None:
        """Sync both files."""
        self._content.close()
        self._ends.close()

    def _put(self, content: NDArray[np.uint8], lengths: NDArray[np.int64]) -> None:
        self._content.append(content)
        self._ends.append(self._bytes + np.cumsum(lengths))
        self._bytes += len(content)
