"""Writes segments: seals rows in a new one, and merges neighbouring ones."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from heapq import merge as merged_in_order
from itertools import compress, count
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from agent_memory.embeddings import text_hash
from agent_memory.index.columns import ColumnFile, StringsFile, read_column, write_columns
from agent_memory.index.segment import NONE, SegmentInfo, by_row, facet_key, get_text_prefix, hash_id, write_about
from agent_memory.index.segment_vectors import join_vectors, open_vectors
from agent_memory.index.terms import document_terms, find_talkers, read_turn
from agent_memory.index.word_lists import ListColumn, ListsFile
from agent_memory.language.text_forms import embedded_texts, tells_time

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from agent_memory.index.segment import Segment
    from agent_memory.models import Document

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
TRUSTS: Final = ("high", "medium", "low")
"""A trust is kept by its place in here."""
TELLS_TIME: Final = 1
PINNED: Final = 2
ASKS: Final = 4
_KEYS_AT_ONCE: Final = 10_000
_LISTED_AT_ONCE: Final = 500_000
_ROWS_AT_ONCE: Final = 50_000
_GONE: Final = -1
_KeyBatch = tuple[list[bytes], dict[int, tuple[int, list[int]]]]
"""Keys in order; and for some parts their first key among these, and which of these it and the next ones are."""


class Row(NamedTuple):
    """Content of one record in a segment.

    Attributes:
        id: ID of the record.
        seq: Number of its last change.
        data: As the journal has it, JSON.
        text_hash: Of its words, 32 bytes.
        older: Id of the record that it replaces; empty when it replaces none.
        links: Ids of the records that it is linked to, and names of relations by which it is looked up.
        timestamp, moment: When it was stored, and when what it tells was so; seconds since 1970.
        expires: When it expires; infinite when it does not.
        promoted, accessed: When it was promoted and last accessed; minus infinity when it never was.
        access_count: How often it was accessed.
        trust: One of `TRUSTS`.
        flags: `TELLS_TIME`, `PINNED` and `ASKS`; 8 in segments of earlier versions, and ignored.
        length: How many terms it has, repeats included.
        terms: Terms with their frequencies.
        facets: Names and values.
        session: Number of its session, 64 bits; 0 without one.
        speaker: Who says it, when it has the form of a turn; empty otherwise.
        speakers: Who speaks in a whole talk that it holds.
        called: Words that it calls, as if they were names.
        pieces: Hashes of the texts that are embedded for it, 32 bytes each.
        arrival: Its place in the order of storing, which no change alters.
    """

    id: str
    seq: int
    data: bytes
    text_hash: bytes
    timestamp: float
    moment: float
    terms: Mapping[str, int]
    length: int
    facets: Sequence[tuple[str, str]] = ()
    older: str = ""
    links: Collection[str] = ()
    expires: float = math.inf
    promoted: float = -math.inf
    accessed: float = -math.inf
    access_count: int = 0
    trust: str = "medium"
    flags: int = 0
    session: int = 0
    speaker: str = ""
    speakers: Sequence[str] = ()
    called: Sequence[str] = ()
    pieces: Sequence[bytes] = ()
    arrival: int = 0


def seal(
    folder: Path,
    rows: Sequence[Row],
    about: SegmentInfo,
    *,
    hides: NDArray[np.uint64] | None = None,
    forgotten: Collection[bytes] = (),
) -> None:
    """Write a segment into an empty folder.

    Args:
        folder: Empty folder to write to.
        rows: Records of the segment, in the order of storing.
        about: Description of the segment; `rows` and `terms` are counted here.
        hides: Hashes of IDs of records that were changed or deleted and are in an older segment.
        forgotten: Hashes of the deleted texts.

    Raises:
        StorageError: No room, for instance.
    """
    speakers = _KeyNumbers(row.speaker for row in rows)
    sessions = np.array([row.session for row in rows], np.uint64)
    write_columns(
        folder,
        {
            **{name: _plain(rows, name, dtype) for name, dtype in PLAIN.items()},
            "trust": np.array([TRUSTS.index(row.trust) for row in rows], np.uint8),
            "arrival": np.array([row.arrival for row in rows], np.int64),
            "speaker": speakers.numbers,
            **sorted_hashes("id", np.array([hash_id(row.id.encode()) for row in rows], np.uint64)),
            **sorted_hashes("text", np.array([get_text_prefix(row.text_hash) for row in rows], np.uint64)),
            **sort_sessions(sessions),
            **_sort_targets("older", ([row.older] if row.older else [] for row in rows)),
            **_sort_targets("linked", (row.links for row in rows)),
            **_pieces(rows),
            "hides": np.empty(0, np.uint64) if hides is None else np.unique(hides),
        },
    )
    write_strings(folder, "ids", [row.id.encode() for row in rows])
    write_strings(folder, "data", [row.data for row in rows])
    write_strings(folder, "forgotten", sorted(forgotten))
    write_strings(folder, "speakers", speakers.keys)
    write_people(folder, speakers.keys, sessions, speakers.numbers)
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


def sort_sessions(sessions: NDArray[np.uint64]) -> dict[str, NDArray[Any]]:
    """Return the columns that find rows by their session.

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
    folder: Path, names: Sequence[bytes], session: NDArray[np.uint64], speaker: NDArray[np.uint32]
) -> None:
    """Write the names of those who take part in a talk."""
    turns = (session != 0) & (speaker != NONE)
    write_strings(folder, "people", [names[place] for place in find_talkers(session[turns], speaker[turns]).tolist()])


class _KeyNumbers:
    """Distinct words in order, and the place of each word among them."""

    def __init__(self, words: Iterable[str]) -> None:
        listed_words = list(words)
        self.keys = sorted({word.encode() for word in listed_words if word})
        place = {key: place_of_key for place_of_key, key in enumerate(self.keys)}
        self.numbers = np.array([place.get(word.encode(), NONE) for word in listed_words], np.uint32)


def _sort_targets(name: str, targets: Iterable[Iterable[str]]) -> dict[str, NDArray[Any]]:
    """Return the rows that name each record, in the order of hashes.

    Args:
        name: Of the columns.
        targets: Ids of the records that each row names.
    """
    pairs = sorted((hash_id(target.encode()), number) for number, named in enumerate(targets) for target in {*named})
    return {
        f"{name}.hash": np.array([hashed for hashed, _ in pairs], np.uint64),
        f"{name}.row": np.array([number for _, number in pairs], np.uint32),
    }


def _pieces(rows: Sequence[Row]) -> dict[str, NDArray[Any]]:
    hashes = b"".join(piece for row in rows for piece in row.pieces)
    return {
        "piece.row": np.repeat(np.arange(len(rows), dtype=np.uint32), [len(row.pieces) for row in rows]),
        "piece.hash": np.frombuffer(hashes, np.uint8).reshape(-1, HASH_BYTES),
    }


def _write_lists(folder: Path, name: str, counts: Iterable[Mapping[str, int]], *, counted: bool = False) -> None:
    """Write lists of rows, from the counts of each row."""
    places: defaultdict[str, int] = defaultdict(count().__next__)  # in the order of coming
    numbers, times, lengths = list[int](), list[int](), list[int]()
    for row_counts in counts:
        numbers.extend(map(places.__getitem__, row_counts))
        times.extend(row_counts.values())
        lengths.append(len(row_counts))
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


def searched_fields(document: Document) -> dict[str, Any]:
    """Return the fields of a `Row` that searches read."""
    terms = document_terms(document)
    turn = read_turn(document)
    return {
        "timestamp": document.timestamp.timestamp(),
        "moment": document.moment.timestamp(),
        "terms": Counter(terms),
        "length": len(terms),
        "facets": document.facets,
        "access_count": document.access_count,
        "trust": document.trust,
        "flags": TELLS_TIME * tells_time(terms) | ASKS * turn.asks,
        "session": turn.session,
        "speaker": turn.speaker,
        "speakers": sorted(turn.speakers),
        "called": sorted(turn.called),
        "pieces": list(dict.fromkeys(text_hash(text) for text in embedded_texts(document.text))),
    }


class _MergePart:
    """One segment of a merge.

    Attributes:
        segment: Segment of the part.
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
    purged_seq: int,
    oldest: bool,
) -> None:
    """Merge neighbouring segments into an empty folder, without their texts.

    Memory: a few megabytes and 30 bytes a row.

    Args:
        folder: Empty folder to write to.
        segments: Neighbours, oldest first, each with a mask of its alive rows.
        purged_seq: The last purge of the journal.
        oldest: True if no older segment exists: then there is nothing left that they could hide.

    Raises:
        StorageError: One of them cannot be read, or the disk is full.
    """
    parts: list[_MergePart] = []
    for segment, alive in segments:
        parts.append(_MergePart(segment, alive, sum(len(part.kept) for part in parts)))
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
    write_people(folder, names, read_column(folder, "session"), read_column(folder, "speaker"))
    write_columns(
        folder,
        {
            **_hashes("id", parts),
            **_hashes("text", parts),
            **sort_sessions(read_column(folder, "session")),
            **_merge_targets("older", parts),
            **_merge_targets("linked", parts),
            "hides": np.empty(0, np.uint64) if oldest else _hides(parts),
        },
    )
    _merge_pieces(folder, parts)
    _merge_vectors(folder, parts)
    forgotten = {text for part in parts for text in part.segment.strings("forgotten").every()}
    write_strings(folder, "forgotten", sorted(forgotten))
    write_about(folder, _about(parts, purged_seq))


def _about(parts: Sequence[_MergePart], purged_seq: int) -> SegmentInfo:
    first, last = parts[0].segment.about, parts[-1].segment.about
    terms = sum(int(part.segment.columns["length"][part.kept].sum()) for part in parts)
    return SegmentInfo(
        first.kind, first.first_seq, last.last_seq, purged_seq, sum(len(part.kept) for part in parts), terms
    )


def _write_column(folder: Path, name: str, dtype: Any, sources: Any) -> None:
    file = ColumnFile(folder, name, dtype)
    for values, part in sources:
        for begin in range(0, len(part.kept), _ROWS_AT_ONCE):
            file.append(values[part.kept[begin : begin + _ROWS_AT_ONCE]])
    file.close()


def _write_places(folder: Path, name: str, places: Sequence[NDArray[np.int64]], parts: Sequence[_MergePart]) -> None:
    """Write a column that names keys, whose places have changed."""
    sources = []
    for part, new in zip(parts, places, strict=True):
        # The last place is that of rows without a key.
        places_known = np.append(new, NONE)
        sources.append([places_known[np.minimum(part.segment.columns[name], len(new))], part])
    _write_column(folder, name, np.uint32, sources)


def _hashes(name: str, parts: Sequence[_MergePart]) -> dict[str, NDArray[Any]]:
    hashes = [
        by_row(part.segment.columns[f"{name}.hash"], part.segment.columns[f"{name}.row"])[part.kept] for part in parts
    ]
    return sorted_hashes(name, np.concatenate(hashes))


def _merge_targets(name: str, parts: Sequence[_MergePart]) -> dict[str, NDArray[Any]]:
    rows = np.concatenate([part.renumbered[part.segment.columns[f"{name}.row"]] for part in parts])
    hashes = np.concatenate([part.segment.columns[f"{name}.hash"] for part in parts])
    rows, hashes = rows[rows != _GONE], hashes[rows != _GONE]
    order = np.lexsort((rows, hashes))
    return {f"{name}.hash": hashes[order], f"{name}.row": rows[order].astype(np.uint32)}


def _hides(parts: Sequence[_MergePart]) -> NDArray[np.uint64]:
    return np.unique(np.concatenate([part.segment.columns["hides"] for part in parts]))


def _merge_pieces(folder: Path, parts: Sequence[_MergePart]) -> None:
    rows = ColumnFile(folder, "piece.row", np.uint32)
    hashes = ColumnFile(folder, "piece.hash", np.uint8, HASH_BYTES)
    for part in parts:
        owners = part.renumbered[part.segment.columns["piece.row"]]
        rows.append(owners[owners != _GONE])
        hashes.append(part.segment.columns["piece.hash"][owners != _GONE])
    rows.close()
    hashes.close()


def _merge_vectors(folder: Path, parts: Sequence[_MergePart]) -> None:
    """Write the vectors of each embedder whose vectors all parts have."""
    vectors_by_part = [open_vectors(part.segment.folder) for part in parts]
    for name in set(vectors_by_part[0]).intersection(*vectors_by_part):
        sources = []
        for part, vectors in zip(parts, vectors_by_part, strict=True):
            stays = part.renumbered[part.segment.columns["piece.row"]] != _GONE
            if len(vectors[name]) == len(stays):
                sources.append((vectors[name], np.flatnonzero(stays)))
        if len(sources) == len(parts) and len({source.dimension for source, _ in sources}) == 1:
            join_vectors(folder / name, sources)


def _merge_speakers(folder: Path, parts: Sequence[_MergePart]) -> tuple[list[bytes], list[NDArray[np.int64]]]:
    names_by_part = [part.segment.strings("speakers").every() for part in parts]
    names = sorted(set().union(*names_by_part))
    place = {name: number for number, name in enumerate(names)}
    write_strings(folder, "speakers", names)
    return names, [np.array([place[name] for name in own_names], np.int64) for own_names in names_by_part]


def _merge_lists(folder: Path, name: str, parts: Sequence[_MergePart]) -> None:
    """Write the lists of all parts, without empty ones."""
    lists: list[ListColumn] = [part.segment.lists(name) for part in parts]
    file = ListsFile(folder, name, counted=name == "terms")
    for keys, batch_places in _batch_keys(lists):
        lengths, rows, counts = _join_lists(parts, lists, batch_places, len(keys))
        is_used = lengths > 0
        file.append(compress(keys, is_used.tolist()), lengths[is_used], rows, counts)
    file.close()


def _batch_keys(lists: Sequence[ListColumn]) -> Iterator[_KeyBatch]:
    """Yield all keys once, in order, in batches of limited size."""
    keys: list[bytes] = []
    places: dict[int, tuple[int, list[int]]] = {}
    rows = 0
    for key, part_number, number, length in merged_in_order(
        *(_number_keys(part_lists, part_number) for part_number, part_lists in enumerate(lists))
    ):
        if not keys or keys[-1] != key:
            if len(keys) >= _KEYS_AT_ONCE or rows >= _LISTED_AT_ONCE:
                yield keys, places
                keys, places, rows = [], {}, 0
            keys.append(key)
        places.setdefault(part_number, (number, []))[1].append(len(keys) - 1)
        rows += length
    if keys:
        yield keys, places


def _number_keys(lists: ListColumn, part_number: int) -> Iterator[tuple[bytes, int, int, int]]:
    lengths = lists.lengths(0, len(lists.keys)).tolist()
    for number, key in enumerate(lists.keys):
        yield key, part_number, number, lengths[number]


def _join_lists(
    parts: Sequence[_MergePart], lists: Sequence[ListColumn], places: Mapping[int, tuple[int, list[int]]], keys: int
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return the row counts, rows and frequencies of each key."""
    batches = []
    for part_number, (first, of_key) in sorted(places.items()):
        end = first + len(of_key)
        listed = lists[part_number].slice_keys(first, end)
        rows = parts[part_number].renumbered[listed.rows]
        is_kept = rows != _GONE
        owners = np.repeat(np.array(of_key, np.int32), lists[part_number].lengths(first, end))
        counts = listed.counts[is_kept] if len(listed.counts) else listed.counts
        batches.append((owners[is_kept], rows[is_kept].astype(np.uint32), counts))
    owners, rows, counts = (np.concatenate(arrays) for arrays in zip(*batches, strict=True))
    by_key = np.argsort(owners, kind="stable")
    return np.bincount(owners, minlength=keys), rows[by_key], counts[by_key] if len(counts) else counts
