"""Segments: sealed batches of changes, mapped and immutable, and their chain."""

from __future__ import annotations

import json
import zlib
from bisect import bisect_right
from functools import cached_property
from hashlib import blake2b
from itertools import accumulate, compress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from agent_memory.errors import StorageError
from agent_memory.files.atomic import read_json, replace_file, sync_folder, translated
from agent_memory.files.names import SEGMENTS
from agent_memory.index.columns import ColumnFolder, StringColumn, check_sums, finish_columns
from agent_memory.index.word_lists import ListColumn

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

VERSION: Final = 5
"""Of the arrays' names and meaning, and of how text is read into terms: with another one, all are rebuilt."""
NONE: Final = 2**32 - 1
"""A row's speaker when it has none."""
_ABOUT: Final = "segment.json"
_LISTED: Final = ("", ".ends", ".rows", ".starts")
ARRAYS: Final = frozenset(
    [
        *("seq", "timestamp", "moment", "expires", "promoted", "accessed", "access_count", "trust", "flags", "length"),
        *("session", "speaker", "arrival", "hides"),
        *(name + part for name in ("id", "text", "older", "linked", "session", "piece") for part in (".hash", ".row")),
        *(name + part for name in ("ids", "data", "forgotten", "speakers", "people") for part in ("", ".ends")),
        *(name + part for name in ("terms", "facets", "talkers", "called") for part in _LISTED),
        "terms.counts",
    ]
)
"""Of every segment."""


class SegmentInfo(NamedTuple):
    """Description of a segment.

    Attributes:
        kind: Kind of its records.
        first_seq, last_seq: Numbers of its changes, both included.
        purged_seq: Number of the last purge that it knows.
        rows: Number of its records.
        terms: Number of its terms, repeats included, for the mean length.
    """

    kind: str
    first_seq: int
    last_seq: int
    purged_seq: int
    rows: int
    terms: int


class Segment:
    """Reader of one segment.

    Args:
        folder: Folder of the segment; `ColumnFolder` says what happens if it is removed.

    Attributes:
        about: Description of the segment.
        columns: Its arrays; those of one item a row have no further names: `seq`, `timestamp`, `moment`, `expires`,
            `promoted`, `accessed`, `access_count`, `trust`, `flags`, `length`, `session` and `speaker`.

    Raises:
        StorageError: It is none, or one of another version.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.about = read_about(folder)
        self.columns = ColumnFolder(folder)
        if missing := [name for name in sorted(ARRAYS) if name not in self.columns]:
            raise StorageError(f"{missing[0]} of the segment {folder.name} is missing.")
        self._strings: dict[str, StringColumn] = {}
        self._lists: dict[str, ListColumn] = {}

    def __len__(self) -> int:
        return self.about.rows

    def strings(self, name: str) -> StringColumn:
        """Return a column of strings.

        `ids` and `data` are by row; `forgotten`, `speakers` and `people` in order.

        A row's speaker is the place in `speakers` that the column `speaker` has; people take part in a talk.
        """
        strings = self._strings.get(name)
        if strings is None:
            strings = self._strings[name] = StringColumn(self.columns, name)
        return strings

    def lists(self, name: str) -> ListColumn:
        """Return rows by key.

        Keys are `terms` (with counts), `facets` (see `facet_key`), `talkers` and `called`.

        Talkers are who speaks in a whole talk that a row holds; what is called are words that it calls like names.
        """
        lists = self._lists.get(name)
        if lists is None:
            lists = self._lists[name] = ListColumn(self.columns, name, counted=name == "terms")
        return lists

    def rows_with(self, facet: tuple[str, str]) -> NDArray[np.uint32]:
        """Return the rows that have a facet, ascending."""
        return self.lists("facets").of(facet_key(facet)).rows

    def id(self, row: int) -> str:
        """Return the id of a row."""
        return self.strings("ids")[row].decode()

    def find_row(self, record_id: str) -> int | None:
        """Return the row of a record, or None."""
        wanted = record_id.encode("utf-8", "surrogatepass")
        rows = _rows_at(self.columns["id.hash"], self.columns["id.row"], hash_id(wanted))
        return next((row for row in rows if self.strings("ids")[row] == wanted), None)

    def find_rows(self, hashes: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Return the row for each hash of an ID, or -1."""
        hashes_known, rows = self.columns["id.hash"], self.columns["id.row"]
        if not len(hashes_known):
            return np.full(len(hashes), -1, np.int64)
        places = np.minimum(np.searchsorted(hashes_known, hashes), len(hashes_known) - 1)
        return np.where(hashes_known[places] == hashes, rows[places].astype(np.int64), -1)

    @cached_property
    def arrivals(self) -> NDArray[np.int64]:
        """Place of each row in the order of storing.

        The order of the last change in segments of earlier versions.
        """
        places: NDArray[np.int64] = self.columns["arrival" if "arrival" in self.columns else "seq"]
        return places

    @cached_property
    def hashes(self) -> NDArray[np.uint64]:
        """The hash of each row's id."""
        return by_row(self.columns["id.hash"], self.columns["id.row"])

    def saying(self, text_hash: bytes) -> list[int]:
        """Return the rows whose text probably has this hash.

        Its first eight bytes are compared.
        """
        return _rows_at(self.columns["text.hash"], self.columns["text.row"], get_text_prefix(text_hash))

    def record(self, row: int) -> dict[str, Any]:
        """Return a record as the journal has it."""
        try:
            record: dict[str, Any] = json.loads(self.strings("data")[row])
        except ValueError:
            raise StorageError(
                f"A record in the index {self.folder.name} is damaged; the journal has it.",
                recovery="Run `agent-memory doctor --repair`, which rebuilds the index.",
            ) from None
        return record

    def forgot(self, text_hash: bytes) -> bool:
        """Return True if this segment deleted a text of this hash."""
        return self.strings("forgotten").find(text_hash) is not None


def write_about(folder: Path, about: SegmentInfo) -> None:
    """Write the manifest and the description, the last files of a segment.

    Raises:
        StorageError: The disk is full, for instance.
    """
    finish_columns(folder)
    content = json.dumps({**_describe(about), "crc": _crc(about)}).encode()
    with translated(folder / _ABOUT, "write"):
        replace_file(folder / _ABOUT, content, durable=True)


def read_about(folder: Path) -> SegmentInfo:
    """Read the description of a segment.

    Raises:
        StorageError: It is missing, damaged or of another version.
    """
    content = read_json(folder / _ABOUT) or {}
    if content.pop("version", None) != VERSION:
        raise StorageError(f"{folder.name} is not a segment of this version.")
    crc = content.pop("crc", None)
    try:
        about = SegmentInfo(**content)
    except TypeError as error:
        raise StorageError(f"{folder.name} does not describe its content: {error}.") from error
    if crc != _crc(about):
        raise StorageError(f"What {folder.name} says of itself is damaged.")
    return about


def _describe(about: SegmentInfo) -> dict[str, Any]:
    return {"version": VERSION, **about._asdict()}


def _crc(about: SegmentInfo) -> int:
    return zlib.crc32(json.dumps(_describe(about)).encode())


def hash_id(record_id: bytes) -> int:
    """Return 64 bits of an id's hash."""
    return int.from_bytes(blake2b(record_id, digest_size=8).digest(), "little")


def get_text_prefix(text_hash: bytes) -> int:
    """Return the first 64 bits of a text's hash."""
    return int.from_bytes(text_hash[:8], "little")


def facet_key(facet: tuple[str, str]) -> str:
    """Return the key of a facet in the list `facets` of a segment."""
    return "\0".join(facet)


def by_row(values: NDArray[Any], rows: NDArray[Any]) -> NDArray[Any]:
    """Return values, sorted, in the order of their rows."""
    ordered = np.empty(len(values), values.dtype)
    ordered[rows] = values
    return ordered


def _rows_at(hashes: NDArray[np.uint64], rows: NDArray[np.uint32], wanted: int) -> list[int]:
    value = np.uint64(wanted)
    begin, end = np.searchsorted(hashes, value), np.searchsorted(hashes, value, side="right")
    matching: list[int] = rows[begin:end].tolist()
    return matching


class Chain:
    """Segments that follow each other without a gap.

    Args:
        segments: Segments, oldest first.

    Attributes:
        segments: As given.
        firsts: Number of the first row of each segment, and the number of all rows.
        alive: For each segment a mask of its rows that are alive; `hide` changes it.

    Raises:
        StorageError: The segments do not follow each other.
    """

    def __init__(self, segments: Sequence[Segment] = ()) -> None:
        self.segments = tuple(segments)
        expected = 1
        for segment in self.segments:
            if segment.about.first_seq != expected:
                raise StorageError(f"The segment {segment.folder.name} does not begin behind the one before it.")
            expected = segment.about.last_seq + 1
        self.last_seq = expected - 1
        self.firsts: list[int] = [0, *accumulate(len(segment) for segment in self.segments)]
        self.alive = [np.ones(len(segment), bool) for segment in self.segments]
        self._hidden = 0
        for place, segment in enumerate(self.segments):
            self._hide(segment.columns["hides"], place)

    def __len__(self) -> int:
        """Return the number of rows that are alive."""
        return self.firsts[-1] - self._hidden

    def locate(self, number: int) -> tuple[int, int]:
        """Return the segment of a row, and its place in that."""
        place = bisect_right(self.firsts, number) - 1
        return place, number - self.firsts[place]

    def find(self, record_id: str) -> int | None:
        """Return the number of a record's alive row, or None."""
        for place in range(len(self.segments) - 1, -1, -1):
            row = self.segments[place].find_row(record_id)
            if row is not None and self.alive[place][row]:
                return self.firsts[place] + row
        return None

    def find_numbers(self, ids: Sequence[bytes]) -> list[int | None]:
        """Return the number of each record's alive row, or None."""
        hashes = np.array([hash_id(record_id) for record_id in ids], np.uint64)
        numbers = np.full(len(ids), -1, np.int64)
        for first, segment, alive in zip(self.firsts, self.segments, self.alive, strict=False):
            rows = segment.find_rows(hashes)
            here = rows >= 0
            here[here] = alive[rows[here]]
            numbers[here] = rows[here] + first
        return [None if number < 0 else number for number in numbers.tolist()]

    def among(self, ids: Iterable[str]) -> set[str]:
        """Return the IDs that have a row, dead or alive.

        By their hashes, in a tenth of the time of `find` for each.
        """
        listed_ids = list(ids)
        hashes = np.array([hash_id(record_id.encode("utf-8", "surrogatepass")) for record_id in listed_ids], np.uint64)
        mask = np.zeros(len(hashes), bool)
        for segment in self.segments:
            mask |= segment.find_rows(hashes) >= 0
        return set(compress(listed_ids, mask.tolist()))

    def hide(self, hashes: NDArray[np.uint64]) -> None:
        """Hide the rows of IDs by their hashes.

        Later changes replaced or deleted them.
        """
        self._hide(hashes, len(self.segments))

    def hide_all(self) -> None:
        """Hide all rows: the journal is read again from its beginning."""
        for alive in self.alive:
            alive[:] = False  # in place, since other objects have the same arrays
        self._hidden = self.firsts[-1]

    def saying(self, text_hash: bytes) -> Iterator[int]:
        """Yield the alive rows whose text probably has this hash."""
        for first, segment, alive in zip(self.firsts, self.segments, self.alive, strict=False):
            yield from (first + row for row in segment.saying(text_hash) if alive[row])

    def forgot(self, text_hash: bytes) -> bool:
        """Return True if a text with this hash was ever deleted."""
        return any(segment.forgot(text_hash) for segment in self.segments)

    def record(self, number: int) -> tuple[str, dict[str, Any]]:
        """Return the ID of a row, and its record."""
        place, row = self.locate(number)
        segment = self.segments[place]
        return segment.id(row), segment.record(row)

    def numbers(self) -> Iterator[int]:
        """Yield the numbers of all alive rows, in the order of storing."""
        for first, alive in zip(self.firsts, self.alive, strict=False):
            yield from (np.flatnonzero(alive) + first).tolist()

    def column(self, name: str) -> NDArray[Any]:
        """Return one column of all rows, dead or alive."""
        parts = [segment.columns[name] for segment in self.segments]
        return np.concatenate(parts) if parts else np.empty(0)

    def counting(self) -> NDArray[np.bool_]:
        """Return a mask of all rows that are alive."""
        return np.concatenate([np.empty(0, bool), *self.alive])

    def _hide(self, hashes: NDArray[np.uint64], before: int) -> None:
        for segment, alive in zip(self.segments[:before], self.alive[:before], strict=True):
            rows = segment.find_rows(hashes)
            rows = rows[rows >= 0]
            self._hidden += int(alive[rows].sum())
            alive[rows] = False


def arrivals(chain: Chain, ids: Iterable[bytes]) -> NDArray[np.int64]:
    """Return each ID's place in the order of storing, or -1."""
    hashes = np.array([hash_id(record_id) for record_id in ids], np.uint64)
    places = np.full(len(hashes), -1, np.int64)
    for segment in chain.segments:
        rows = segment.find_rows(hashes)
        places[rows >= 0] = segment.arrivals[rows[rows >= 0]]
    return places


def next_arrival(chain: Chain) -> int:
    """Return the place in the order of storing of the next record."""
    return max((int(segment.arrivals.max()) + 1 for segment in chain.segments if len(segment)), default=0)


def read_listing(folder: Path) -> tuple[list[str], dict[str, Any]]:
    """Return the names of the listed segments, oldest first, and their notes."""
    content = read_json(folder / SEGMENTS) or {}
    names, notes = content.get("segments"), content.get("notes")
    return (names if isinstance(names, list) else []), (notes if isinstance(notes, dict) else {})


def open_chain(folder: Path, kind: str) -> Chain:
    """Open the segments that a folder lists, if any.

    Raises:
        StorageError: One of them is damaged, missing or of another kind or version: all are to be rebuilt.
    """
    names = [str(name) for name in read_listing(folder)[0]]
    if any(not _is_inside(folder, name) for name in names):
        raise StorageError(f"{SEGMENTS} of {folder.name} lists something that is not a folder next to it.")
    segments = [Segment(folder / name) for name in names]
    if any(segment.about.kind != kind for segment in segments):
        raise StorageError(f"The segments in {folder.name} are not of the kind {kind}.")
    return Chain(segments)


def _is_inside(folder: Path, name: str) -> bool:
    """Return True if a name is that of a folder in there.

    False for a link, which may lead to another agent's.
    """
    return name == Path(name).name and name != ".." and not (folder / name).is_symlink()


def is_ours(folder: Path) -> bool:
    """Return True if neither a folder nor its parent is a link."""
    return not folder.is_symlink() and not folder.parent.is_symlink()


def check_segments(segments: Iterable[Segment]) -> None:
    """Read all bytes of segments and of their vectors.

    Raises:
        StorageError: One of them is damaged.
    """
    for segment in segments:
        check_sums(segment.folder, thorough=True)
        for vectors in segment.folder.glob("vectors-*"):
            check_sums(vectors, thorough=True)


def list_segments(folder: Path, names: Iterable[str], notes: Mapping[str, Any]) -> None:
    """Publish segments: the one step that other processes see.

    Args:
        folder: Folder of the segments.
        names: Names of the segments, oldest first.
        notes: Notes about them as a whole, JSON.

    Raises:
        StorageError: No room, for instance; what was listed before still is.
    """
    with translated(folder / SEGMENTS, "write"):
        replace_file(folder / SEGMENTS, json.dumps({"segments": list(names), "notes": notes}).encode(), durable=True)


def unlist_segments(folder: Path) -> None:
    """Stop using all segments.

    Takes no room, so that a text can be purged on a full disk.

    Raises:
        StorageError: No right to, for instance.
    """
    with translated(folder / SEGMENTS, "remove"):
        (folder / SEGMENTS).unlink(missing_ok=True)
        sync_folder(folder)


class ChainPart:
    """Rows of a chain without a facet.

    Rows that are hidden in the chain are hidden here, too.

    Args:
        chain: Chain with all rows.
        facet: Facet of the rows that are left out.

    Attributes:
        segments: Segments of the chain.
        kept: For each segment a mask of the rows of the part, dead or alive; None if all rows belong to it.
    """

    def __init__(self, chain: Chain, facet: tuple[str, str]) -> None:
        self._chain = chain
        self.segments = chain.segments
        self.kept: list[NDArray[np.bool_] | None] = []
        for segment in chain.segments:
            without = segment.lists("facets").of(facet_key(facet)).rows
            mask = np.ones(len(segment), bool)
            mask[without] = False
            self.kept.append(mask if len(without) else None)
        self._known = (-1, chain.alive, 0)

    @property
    def is_whole(self) -> bool:
        """True if the part has all rows."""
        return all(mask is None for mask in self.kept)

    def __len__(self) -> int:
        """Return the number of rows that are alive."""
        return self._count()[1]

    @property
    def alive(self) -> list[NDArray[np.bool_]]:
        """A mask of the alive rows of each segment; read-only."""
        return self._count()[0]

    def of(self, masks: list[NDArray[np.bool_]]) -> list[NDArray[np.bool_]]:
        """Return masks of the masked rows that belong to the part."""
        return [mask if own_mask is None else mask & own_mask for mask, own_mask in zip(masks, self.kept, strict=True)]

    def _count(self) -> tuple[list[NDArray[np.bool_]], int]:
        size, alive, count = self._known
        if size != len(self._chain):  # rows die and never come back
            alive = self.of(self._chain.alive)
            count = sum(int(np.count_nonzero(mask)) for mask in alive)
            self._known = (len(self._chain), alive, count)
        return alive, count
