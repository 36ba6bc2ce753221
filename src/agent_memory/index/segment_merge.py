"""Merge neighbouring segments into one, without reading a text again. Memory: a few megabytes and 30 bytes a row."""

from __future__ import annotations

from heapq import merge as merged_in_order
from itertools import compress
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from agent_memory.index.columns import ColumnFile, column_of, write_columns
from agent_memory.index.segment import NONE, About, by_row, write_about
from agent_memory.index.segment_vectors import join_vectors, vectors_within
from agent_memory.index.segment_writer import HASH_BYTES, PLAIN, sessions_of, sorted_hashes, write_people, write_strings
from agent_memory.index.strings import StringsFile
from agent_memory.index.term_lists import ListsFile

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from agent_memory.index.segment import Segment
    from agent_memory.index.segment_writer import Talking
    from agent_memory.index.term_lists import Lists

_KEYS_AT_ONCE: Final = 10_000
_LISTED_AT_ONCE: Final = 500_000
_ROWS_AT_ONCE: Final = 50_000
_GONE: Final = -1


class _Part:
    """One segment of a merge.

    Attributes:
        segment: Itself.
        kept: The rows that stay, ascending.
        renumbered: For each row its new number, or `_GONE`.
    """

    def __init__(self, segment: Segment, alive: NDArray[np.bool_], first: int) -> None:
        self.segment = segment
        self.kept = np.flatnonzero(alive)
        self.renumbered = np.full(len(segment), _GONE, np.int64)
        self.renumbered[self.kept] = np.arange(first, first + len(self.kept))


def merge(
    folder: Path,
    segments: Sequence[tuple[Segment, NDArray[np.bool_]]],
    *,
    talking: Talking,
    purged_seq: int,
    oldest: bool,
) -> None:
    """Write one segment of several into an empty folder.

    Args:
        folder: Where to.
        segments: Neighbours, oldest first, each with which of its rows still count.
        talking: See `seal`.
        purged_seq: The last purge of the journal.
        oldest: Whether no segment is older than these: then there is nothing left that they could hide.

    Raises:
        StorageError: One of them cannot be read, or there is no room.
    """
    parts: list[_Part] = []
    for segment, alive in segments:
        parts.append(_Part(segment, alive, sum(len(part.kept) for part in parts)))
    for name, dtype in {**PLAIN, "trust": np.uint8}.items():
        _write_column(folder, name, dtype, ([part.segment.columns[name], part] for part in parts))
    _write_column(folder, "arrival", np.int64, ([part.segment.arrivals, part] for part in parts))
    for name in ("ids", "data"):
        file = StringsFile(folder, name)
        for part in parts:
            file.append_from(part.segment.strings(name), part.kept)
        file.close()
    for name in ("terms", "facets", "talkers", "called"):
        _merge_lists(folder, name, parts)
    names, places = _merge_speakers(folder, parts)
    _write_places(folder, "speaker", places, parts)
    write_people(folder, names, column_of(folder, "session"), column_of(folder, "speaker"), talking)
    write_columns(
        folder,
        {
            **_hashes("id", parts),
            **_hashes("text", parts),
            **sessions_of(column_of(folder, "session")),
            **_leading("older", parts),
            **_leading("linked", parts),
            "hides": np.empty(0, np.uint64) if oldest else _hides(parts),
        },
    )
    _merge_pieces(folder, parts)
    _merge_vectors(folder, parts)
    forgotten = {each for part in parts for each in part.segment.strings("forgotten").every()}
    write_strings(folder, "forgotten", sorted(forgotten))
    write_about(folder, _about(parts, purged_seq))


def _about(parts: Sequence[_Part], purged_seq: int) -> About:
    first, last = parts[0].segment.about, parts[-1].segment.about
    terms = sum(int(part.segment.columns["length"][part.kept].sum()) for part in parts)
    return About(first.kind, first.first_seq, last.last_seq, purged_seq, sum(len(part.kept) for part in parts), terms)


def _write_column(folder: Path, name: str, dtype: Any, sources: Any) -> None:
    file = ColumnFile(folder, name, dtype)
    for values, part in sources:
        for begin in range(0, len(part.kept), _ROWS_AT_ONCE):
            file.append(values[part.kept[begin : begin + _ROWS_AT_ONCE]])
    file.close()


def _write_places(folder: Path, name: str, places: Sequence[NDArray[np.int64]], parts: Sequence[_Part]) -> None:
    """Write a column that names keys, whose places have changed."""
    found = []
    for part, new in zip(parts, places, strict=True):
        # The last place stands for rows that have no key.
        known = np.append(new, NONE)
        found.append([known[np.minimum(part.segment.columns[name], len(new))], part])
    _write_column(folder, name, np.uint32, found)


def _hashes(name: str, parts: Sequence[_Part]) -> dict[str, NDArray[Any]]:
    hashes = [
        by_row(part.segment.columns[f"{name}.hash"], part.segment.columns[f"{name}.row"])[part.kept] for part in parts
    ]
    return sorted_hashes(name, np.concatenate(hashes))


def _leading(name: str, parts: Sequence[_Part]) -> dict[str, NDArray[Any]]:
    rows = np.concatenate([part.renumbered[part.segment.columns[f"{name}.row"]] for part in parts])
    hashes = np.concatenate([part.segment.columns[f"{name}.hash"] for part in parts])
    rows, hashes = rows[rows != _GONE], hashes[rows != _GONE]
    order = np.lexsort((rows, hashes))
    return {f"{name}.hash": hashes[order], f"{name}.row": rows[order].astype(np.uint32)}


def _hides(parts: Sequence[_Part]) -> NDArray[np.uint64]:
    return np.unique(np.concatenate([part.segment.columns["hides"] for part in parts]))


def _merge_pieces(folder: Path, parts: Sequence[_Part]) -> None:
    rows = ColumnFile(folder, "piece.row", np.uint32)
    hashes = ColumnFile(folder, "piece.hash", np.uint8, HASH_BYTES)
    for part in parts:
        owners = part.renumbered[part.segment.columns["piece.row"]]
        rows.append(owners[owners != _GONE])
        hashes.append(part.segment.columns["piece.hash"][owners != _GONE])
    rows.close()
    hashes.close()


def _merge_vectors(folder: Path, parts: Sequence[_Part]) -> None:
    """Write the vectors of each embedder whose vectors all parts have."""
    known = [vectors_within(part.segment.folder) for part in parts]
    for name in set(known[0]).intersection(*known):
        sources = []
        for part, vectors in zip(parts, known, strict=True):
            stays = part.renumbered[part.segment.columns["piece.row"]] != _GONE
            if len(vectors[name]) == len(stays):
                sources.append((vectors[name], np.flatnonzero(stays)))
        if len(sources) == len(parts) and len({each.dimension for each, _ in sources}) == 1:
            join_vectors(folder / name, sources)


def _merge_speakers(folder: Path, parts: Sequence[_Part]) -> tuple[list[bytes], list[NDArray[np.int64]]]:
    every = [part.segment.strings("speakers").every() for part in parts]
    names = sorted(set().union(*every))
    place = {name: at for at, name in enumerate(names)}
    write_strings(folder, "speakers", names)
    return names, [np.array([place[name] for name in known], np.int64) for known in every]


def _merge_lists(folder: Path, name: str, parts: Sequence[_Part]) -> None:
    """Write the lists of all parts, without keys that no row is left of."""
    lists: list[Lists] = [part.segment.lists(name) for part in parts]
    file = ListsFile(folder, name, counted=name == "terms")
    for keys, found in _stretches(lists):
        lengths, rows, counts = _joined(parts, lists, found, len(keys))
        left = lengths > 0
        file.append(compress(keys, left.tolist()), lengths[left], rows, counts)
    file.close()


_Stretch = tuple[list[bytes], dict[int, tuple[int, list[int]]]]
"""Keys in order; and for some parts their first key among these, and which of these it and the next ones are."""


def _stretches(lists: Sequence[Lists]) -> Iterator[_Stretch]:
    """Yield all keys once, in order, as many at a time as have a limited number of rows."""
    keys: list[bytes] = []
    found: dict[int, tuple[int, list[int]]] = {}
    rows = 0
    for key, at, number, length in merged_in_order(*(_numbered(each, at) for at, each in enumerate(lists))):
        if not keys or keys[-1] != key:
            if len(keys) >= _KEYS_AT_ONCE or rows >= _LISTED_AT_ONCE:
                yield keys, found
                keys, found, rows = [], {}, 0
            keys.append(key)
        found.setdefault(at, (number, []))[1].append(len(keys) - 1)
        rows += length
    if keys:
        yield keys, found


def _numbered(lists: Lists, at: int) -> Iterator[tuple[bytes, int, int, int]]:
    lengths = lists.lengths(0, len(lists.keys)).tolist()
    for number, key in enumerate(lists.keys):
        yield key, at, number, lengths[number]


def _joined(
    parts: Sequence[_Part], lists: Sequence[Lists], found: Mapping[int, tuple[int, list[int]]], keys: int
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return how many rows are left of each key, those of one key behind those of the other, and their counts."""
    every = []
    for at, (first, of_key) in sorted(found.items()):
        end = first + len(of_key)
        listed = lists[at].stretch(first, end)
        rows = parts[at].renumbered[listed.rows]
        left = rows != _GONE
        owners = np.repeat(np.array(of_key, np.int32), lists[at].lengths(first, end))
        counts = listed.counts[left] if len(listed.counts) else listed.counts
        every.append((owners[left], rows[left].astype(np.uint32), counts))
    owners, rows, counts = (np.concatenate(each) for each in zip(*every, strict=True))
    by_key = np.argsort(owners, kind="stable")
    return np.bincount(owners, minlength=keys), rows[by_key], counts[by_key] if len(counts) else counts
