"""Seal rows in a new segment."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from itertools import count
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from agent_memory.index.columns import write_columns
from agent_memory.index.row import TRUSTS
from agent_memory.index.segment import NONE, About, facet_key, hash_of, prefix_of, write_about
from agent_memory.index.strings import StringsFile
from agent_memory.index.term_lists import ListsFile

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from agent_memory.index.row import Row

PLAIN: Final[Mapping[str, type[np.generic]]] = {
    "seq": np.int64,
    "timestamp": np.float64,
    "moment": np.float64,
    "expires": np.float64,
    "promoted": np.float64,
    "accessed": np.float64,
    "access_count": np.uint32,
    "flags": np.uint8,
    "length": np.uint32,
    "session": np.uint64,
}
"""Columns that are a field of `Row` each, and their types."""

HASH_BYTES: Final = 32
_MOST: Final[Mapping[type[np.generic], int]] = {np.uint32: 2**32 - 1, np.uint16: 2**16 - 1}


Talking = Callable[["NDArray[np.uint64]", "NDArray[np.uint32]"], "NDArray[np.uint32]"]
"""Given the columns `session` and `speaker` of rows that are turns: the speakers who take part in a talk."""


def seal(
    folder: Path,
    rows: Sequence[Row],
    about: About,
    *,
    talking: Talking,
    hides: NDArray[np.uint64] | None = None,
    forgotten: Collection[bytes] = (),
) -> None:
    """Write a segment into an empty folder.

    Args:
        folder: Where to.
        rows: Its records, in the order of storing.
        about: What it says of itself; `rows` and `terms` are counted here.
        talking: Tells talks from other texts of that form.
        hides: Hashes of ids of records that were changed or deleted in its stretch and are in an older segment.
        forgotten: Hashes of the texts that were deleted.

    Raises:
        StorageError: No room, for instance.
    """
    speakers = _Keys(row.speaker for row in rows)
    sessions = np.array([row.session for row in rows], np.uint64)
    write_columns(
        folder,
        {
            **{name: _plain(rows, name, dtype) for name, dtype in PLAIN.items()},
            "trust": np.array([TRUSTS.index(row.trust) for row in rows], np.uint8),
            "arrival": np.array([row.arrival for row in rows], np.int64),
            "speaker": speakers.numbers,
            **sorted_hashes("id", np.array([hash_of(row.id.encode()) for row in rows], np.uint64)),
            **sorted_hashes("text", np.array([prefix_of(row.text_hash) for row in rows], np.uint64)),
            **sessions_of(sessions),
            **_leading("older", ([row.older] if row.older else [] for row in rows)),
            **_leading("linked", (row.links for row in rows)),
            **_pieces(rows),
            "hides": np.empty(0, np.uint64) if hides is None else np.unique(hides),
        },
    )
    write_strings(folder, "ids", [row.id.encode() for row in rows])
    write_strings(folder, "data", [row.data for row in rows])
    write_strings(folder, "forgotten", sorted(forgotten))
    write_strings(folder, "speakers", speakers.keys)
    write_people(folder, speakers.keys, sessions, speakers.numbers, talking)
    _write_lists(folder, "terms", (row.terms for row in rows), counted=True)
    _write_lists(folder, "facets", (dict.fromkeys(map(facet_key, row.facets), 1) for row in rows))
    _write_lists(folder, "talkers", (dict.fromkeys(row.speakers, 1) for row in rows))
    _write_lists(folder, "called", (dict.fromkeys(row.called, 1) for row in rows))
    write_about(folder, about._replace(rows=len(rows), terms=sum(row.length for row in rows)))


def _plain(rows: Sequence[Row], name: str, dtype: type[np.generic]) -> NDArray[Any]:
    most = _MOST.get(dtype, math.inf)  # another program may have written any number of accesses
    return np.array([min(getattr(row, name), most) for row in rows], dtype)


def sorted_hashes(name: str, hashes: NDArray[np.uint64]) -> dict[str, NDArray[Any]]:
    """Return the columns by which a row is found from its hash."""
    order = np.argsort(hashes, kind="stable")
    return {f"{name}.hash": hashes[order], f"{name}.row": order.astype(np.uint32)}


def sessions_of(sessions: NDArray[np.uint64]) -> dict[str, NDArray[Any]]:
    """Return the columns by which rows are found from the number of their session.

    Args:
        sessions: That of each row, 0 for none.
    """
    rows = np.flatnonzero(sessions)
    columns = sorted_hashes("session", sessions[rows])
    return columns | {"session.row": rows[columns["session.row"]].astype(np.uint32)}


def write_strings(folder: Path, name: str, strings: Iterable[bytes]) -> None:
    """Write strings that are all at hand."""
    file = StringsFile(folder, name)
    file.append(strings)
    file.close()


def write_people(
    folder: Path, names: Sequence[bytes], session: NDArray[np.uint64], speaker: NDArray[np.uint32], talking: Talking
) -> None:
    """Write the names of those who take part in a talk of this segment."""
    turns = (session != 0) & (speaker != NONE)
    write_strings(folder, "people", [names[place] for place in talking(session[turns], speaker[turns]).tolist()])


class _Keys:
    """Distinct words in order, and the place of each one's word among them."""

    def __init__(self, words: Iterable[str]) -> None:
        every = list(words)
        self.keys = sorted({word.encode() for word in every if word})
        place = {key: at for at, key in enumerate(self.keys)}
        self.numbers = np.array([place.get(word.encode(), NONE) for word in every], np.uint32)


def _leading(name: str, targets: Iterable[Iterable[str]]) -> dict[str, NDArray[Any]]:
    """Return which rows name which records, in the order of these records' hashes.

    Args:
        name: Of the columns.
        targets: Ids of the records that each row names.
    """
    pairs = sorted((hash_of(one.encode()), number) for number, named in enumerate(targets) for one in {*named})
    return {
        f"{name}.hash": np.array([each for each, _ in pairs], np.uint64),
        f"{name}.row": np.array([number for _, number in pairs], np.uint32),
    }


def _pieces(rows: Sequence[Row]) -> dict[str, NDArray[Any]]:
    hashes = b"".join(piece for row in rows for piece in row.pieces)
    return {
        "piece.row": np.repeat(np.arange(len(rows), dtype=np.uint32), [len(row.pieces) for row in rows]),
        "piece.hash": np.frombuffer(hashes, np.uint8).reshape(-1, HASH_BYTES),
    }


def _write_lists(folder: Path, name: str, counts: Iterable[Mapping[str, int]], *, counted: bool = False) -> None:
    """Write the lists of some rows, each given as a mapping from key to count."""
    places: defaultdict[str, int] = defaultdict(count().__next__)  # in the order of coming
    numbers, times, lengths = list[int](), list[int](), list[int]()
    for each in counts:
        numbers.extend(map(places.__getitem__, each))
        times.extend(each.values())
        lengths.append(len(each))
    keys = [key.encode() for key in places]
    order = sorted(range(len(keys)), key=keys.__getitem__)
    ranks = np.empty(len(keys), np.int64)
    ranks[order] = np.arange(len(keys))
    of_key = ranks[np.array(numbers, np.int64)]
    by_key = np.argsort(of_key, kind="stable")
    rows = np.repeat(np.arange(len(lengths), dtype=np.uint32), lengths)
    file = ListsFile(folder, name, counted=counted)
    file.append(
        [keys[place] for place in order],
        np.bincount(of_key, minlength=len(keys)),
        rows[by_key],
        np.minimum(np.array(times, np.int64), _MOST[np.uint16])[by_key],
    )
    file.close()
