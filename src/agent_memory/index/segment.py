"""`Segment`: one sealed stretch of changes, mapped. Immutable; what came later hides what it says."""

from __future__ import annotations

import json
import zlib
from functools import cached_property
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from agent_memory.errors import StorageError
from agent_memory.files.atomic import read_json, replace_file
from agent_memory.index.columns import Columns, finish_columns
from agent_memory.index.strings import Strings
from agent_memory.index.term_lists import Lists

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

VERSION: Final = 5
"""Of the arrays' names and meaning, and of how text is read into terms: with another one, all are made anew."""

NONE: Final = 2**32 - 1
"""A row's speaker when it has none."""

_ABOUT: Final = "segment.json"


class About(NamedTuple):
    """What a segment says of itself.

    Attributes:
        kind: Of which records.
        first_seq, last_seq: Of the changes in it, both included.
        purged_seq: The last purge that it knows of.
        rows: How many records.
        terms: How many terms, repeats included: for the mean length.
    """

    kind: str
    first_seq: int
    last_seq: int
    purged_seq: int
    rows: int
    terms: int


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


class Segment:
    """A segment that is read.

    Args:
        folder: Where it is; see `Columns` for what becomes of it when that is removed.

    Attributes:
        about: What it says of itself.
        columns: Its arrays; those of one item a row have no further names: `seq`, `timestamp`, `moment`, `expires`,
            `promoted`, `accessed`, `access_count`, `trust`, `flags`, `length`, `session` and `speaker`.

    Raises:
        StorageError: It is none, or one of another version.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.about = read_about(folder)
        self.columns = Columns(folder)
        if missing := [name for name in sorted(ARRAYS) if name not in self.columns]:
            raise StorageError(f"{missing[0]} of the segment {folder.name} is missing.")
        self._strings: dict[str, Strings] = {}
        self._lists: dict[str, Lists] = {}

    def __len__(self) -> int:
        return self.about.rows

    def strings(self, name: str) -> Strings:
        """Return strings: `ids` and `data` by row; `forgotten`, `speakers` and `people` in order.

        A row's speaker is the place in `speakers` that the column `speaker` has; people take part in a talk.
        """
        known = self._strings.get(name)
        if known is None:
            known = self._strings[name] = Strings(self.columns, name)
        return known

    def lists(self, name: str) -> Lists:
        """Return rows by key: by `terms` (with counts), `facets` (see `facet_key`), `talkers` and `called`.

        Talkers are who speaks in a whole talk that a row holds; what is called are words that it calls like names.
        """
        known = self._lists.get(name)
        if known is None:
            known = self._lists[name] = Lists(self.columns, name, counted=name == "terms")
        return known

    def rows_with(self, facet: tuple[str, str]) -> NDArray[np.uint32]:
        """Return the rows that have a facet, ascending."""
        return self.lists("facets").of(facet_key(facet)).rows

    def id(self, row: int) -> str:
        """Return the id of a row."""
        return self.strings("ids")[row].decode()

    def row_of(self, record_id: str) -> int | None:
        """Return the row of a record, None if it is not in here."""
        wanted = record_id.encode("utf-8", "surrogatepass")
        rows = _rows_at(self.columns["id.hash"], self.columns["id.row"], hash_of(wanted))
        return next((row for row in rows if self.strings("ids")[row] == wanted), None)

    def rows_of(self, hashes: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Return the row for each hash of an id, -1 for one that is not in here."""
        known, rows = self.columns["id.hash"], self.columns["id.row"]
        if not len(known):
            return np.full(len(hashes), -1, np.int64)
        at = np.minimum(np.searchsorted(known, hashes), len(known) - 1)
        return np.where(known[at] == hashes, rows[at].astype(np.int64), -1)

    @cached_property
    def arrivals(self) -> NDArray[np.int64]:
        """Each row's place in the order of storing; as they changed last in segments made before that was kept."""
        places: NDArray[np.int64] = self.columns["arrival" if "arrival" in self.columns else "seq"]
        return places

    @cached_property
    def hashes(self) -> NDArray[np.uint64]:
        """The hash of each row's id."""
        return by_row(self.columns["id.hash"], self.columns["id.row"])

    def saying(self, text_hash: bytes) -> list[int]:
        """Return the rows whose words probably have this hash: its first eight bytes are compared."""
        return _rows_at(self.columns["text.hash"], self.columns["text.row"], prefix_of(text_hash))

    def record(self, row: int) -> dict[str, Any]:
        """Return what the journal has of a record."""
        try:
            record: dict[str, Any] = json.loads(self.strings("data")[row])
        except ValueError:
            raise StorageError(
                f"A record in the index {self.folder.name} is damaged; the journal has it.",
                recovery="Run `agent-memory doctor --repair`, which has the index made anew.",
            ) from None
        return record

    def forgot(self, text_hash: bytes) -> bool:
        """Tell whether a text of this hash, 32 bytes, was forgotten in this stretch."""
        return self.strings("forgotten").find(text_hash) is not None


def write_about(folder: Path, about: About) -> None:
    """Say what is in a segment: the last files of a new one."""
    finish_columns(folder)
    replace_file(folder / _ABOUT, json.dumps({**_said(about), "crc": _crc(about)}).encode(), durable=True)


def read_about(folder: Path) -> About:
    """Return what a segment says of itself.

    Raises:
        StorageError: It is none, or one of another version.
    """
    said = read_json(folder / _ABOUT) or {}
    if said.pop("version", None) != VERSION:
        raise StorageError(f"{folder.name} is no segment of this version.")
    crc = said.pop("crc", None)
    try:
        about = About(**said)
    except TypeError as error:
        raise StorageError(f"{folder.name} does not say what is in it: {error}.") from error
    if crc != _crc(about):
        raise StorageError(f"What {folder.name} says of itself is damaged.")
    return about


def _said(about: About) -> dict[str, Any]:
    return {"version": VERSION, **about._asdict()}


def _crc(about: About) -> int:
    return zlib.crc32(json.dumps(_said(about)).encode())


def hash_of(record_id: bytes) -> int:
    """Return 64 bits of an id's hash."""
    return int.from_bytes(blake2b(record_id, digest_size=8).digest(), "little")


def prefix_of(text_hash: bytes) -> int:
    """Return the first 64 bits of a text's hash."""
    return int.from_bytes(text_hash[:8], "little")


def facet_key(facet: tuple[str, str]) -> str:
    """Return the key of a facet in `Segment.facets`."""
    return "\0".join(facet)


def by_row(values: NDArray[Any], rows: NDArray[Any]) -> NDArray[Any]:
    """Return values, sorted, in the order of their rows."""
    found = np.empty(len(values), values.dtype)
    found[rows] = values
    return found


def _rows_at(hashes: NDArray[np.uint64], rows: NDArray[np.uint32], wanted: int) -> list[int]:
    value = np.uint64(wanted)
    begin, end = np.searchsorted(hashes, value), np.searchsorted(hashes, value, side="right")
    found: list[int] = rows[begin:end].tolist()
    return found
