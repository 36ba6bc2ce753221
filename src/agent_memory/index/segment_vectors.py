"""Vectors of a segment's pieces: a byte and a sign per dimension.

A sign code takes a bit a dimension. Two codes differ in about as many bits as the angle between their vectors is wide
(Charikar, 2002), so a few hundred nearest by code hold the nearest by cosine, which are then compared exactly. Measured
on one core with 384 dimensions: comparing codes and cutting takes 0.6 ms at 100,000 pieces and 8 ms at a million;
comparing all vectors takes 17 and 158 ms (`python -m benchmarks.scale`).
"""

from __future__ import annotations

import contextlib
import shutil
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from agent_memory.errors import StorageError
from agent_memory.files.atomic import sync_folder, translated
from agent_memory.files.vectors import concatenate_vectors, pack_vectors, split_vectors, unpack_vectors
from agent_memory.index.columns import ColumnFile, ColumnFolder, finish_columns, write_columns
from agent_memory.index.dense_index import products

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from agent_memory.index.segment import Segment

_WORD_BITS: Final = 64
_AT_ONCE: Final = 20_000
_PREFIX: Final = "vectors-"
_KEPT: Final = "bytes"
_HALVES: Final = "halves"
"""Name of the array of vectors in half precision."""
_MOST: Final = 0.5
"""Share of rows that may be found from which on all are compared."""
_SAMPLE: Final = 1_024
"""Pieces whose cosines tell about how many reach a floor."""


class PieceVectors:
    """Vectors by piece, in the order of their segment's pieces.

    Args:
        folder: Folder with the vectors.

    Attributes:
        kept: Shape (pieces, dimension), in the form of `files.vectors`; in earlier versions always float16, unit
            length.
        codes: Shape (words, pieces), uint64: so that one word of all pieces is compared at a time, in a fifth of the
            time that rows of six words take.

    Raises:
        StorageError: They are not there, or damaged.
    """

    def __init__(self, folder: Path) -> None:
        columns = ColumnFolder(folder)
        self.kept: NDArray[Any] = columns[_KEPT if _KEPT in columns else _HALVES]
        self.codes: NDArray[np.uint64] = columns["codes"]
        if self.codes.shape != (_words(self.dimension), len(self.kept)):
            raise StorageError(f"{folder.name} of an index has unexpected content.")

    def __len__(self) -> int:
        return len(self.kept)

    @property
    def dimension(self) -> int:
        """Number of dimensions."""
        return int(self.kept.shape[-1])

    def distances(self, query: NDArray[np.float32]) -> NDArray[np.uint16]:
        """Return the number of differing signs of each piece."""
        wanted = compute_codes(query[np.newaxis])[:, 0]
        distances = np.zeros(len(self), np.uint16)
        for word, of_query in zip(self.codes, wanted, strict=True):
            distances += np.bitwise_count(word ^ of_query)
        return distances

    def of(self, pieces: NDArray[Any] | slice) -> NDArray[np.float32]:
        """Return vectors of pieces as floats of unit length."""
        return unpack_vectors(self.kept[pieces])

    def pack(self, pieces: NDArray[Any]) -> NDArray[Any]:
        """Return vectors of pieces in their stored form."""
        stored = self.kept[pieces]
        return stored if stored.dtype == np.int8 else pack_vectors(stored)


class JoinedVectors:
    """Joined vectors of the same pieces by several embedders.

    Args:
        parts: Vectors of each embedder, in the order of their numbers in a joined vector.

    Raises:
        StorageError: They are of different pieces.
    """

    def __init__(self, parts: Sequence[PieceVectors]) -> None:
        if len(set(map(len, parts))) != 1:
            raise StorageError("Vectors of different embedders in an index are of different pieces.")
        self._parts = parts

    def __len__(self) -> int:
        return len(self._parts[0])

    @property
    def dimension(self) -> int:
        """Number of dimensions of a joined vector."""
        return sum(part.dimension for part in self._parts)

    def distances(self, query: NDArray[np.float32]) -> NDArray[np.uint16]:
        """Return the weighted distance of each piece; see `PieceVectors.distances`.

        A differing sign counts by the length of its part of the query, and more in a shorter vector.
        """
        total = np.zeros(len(self), np.float32)
        of_parts = split_vectors(query, [part.dimension for part in self._parts])
        for part, of_part in zip(self._parts, of_parts, strict=True):
            weight = np.linalg.norm(of_part) * self.dimension / part.dimension
            total += np.float32(weight) * part.distances(of_part)
        return np.rint(total).astype(np.uint16)

    def of(self, pieces: NDArray[Any] | slice) -> NDArray[np.float32]:
        """Return joined vectors of pieces as floats of unit length."""
        joined: NDArray[np.float32] = concatenate_vectors([part.of(pieces) for part in self._parts])
        return joined


def has_vectors(segment: Path, embedders: Iterable[str]) -> bool:
    """Return True if a segment has vectors of all these embedders."""
    return all((segment / folder_name(embedder)).is_dir() for embedder in embedders)


def folder_name(embedder: str) -> str:
    """Return the name of the folder with the vectors of an embedder."""
    return f"{_PREFIX}{blake2b(embedder.encode(), digest_size=6).hexdigest()}"


def add_vectors(segment: Path, embedder: str, dimension: int, vectors: Iterable[NDArray[np.float32]]) -> None:
    """Write the vectors of all pieces of a segment, and their codes.

    Args:
        segment: Folder of the segment.
        embedder: Identity of their embedder.
        dimension: Number of dimensions.
        vectors: Batches of vectors, in the order of the pieces, each of shape (n, dimension), unit length.

    Raises:
        StorageError: No room, for instance; the segment is as it was.
    """
    unfinished, place = segment / f".{folder_name(embedder)}", segment / folder_name(embedder)
    with translated(unfinished, "write"):
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(mode=0o700)
    try:
        file = _column(unfinished, dimension)
        codes = [np.empty((_words(dimension), 0), np.uint64)]
        with contextlib.closing(file):
            for batch in vectors:
                file.append(pack_vectors(batch))
                codes.append(compute_codes(batch))
        write_columns(unfinished, {"codes": np.concatenate(codes, axis=1)})
        finish_columns(unfinished)
        with translated(place, "write"):
            sync_folder(unfinished)
            unfinished.rename(place)
            sync_folder(segment)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def open_vectors(segment: Path) -> dict[str, PieceVectors]:
    """Open the vectors in a segment's folder, by folder name.

    Damaged ones are left out.
    """
    vectors = {}
    with translated(segment, "read"):
        names = [path.name for path in segment.iterdir() if path.name.startswith(_PREFIX)]
    for name in names:
        with contextlib.suppress(StorageError):
            vectors[name] = PieceVectors(segment / name)
    return vectors


def remove_unfinished(segment: Path) -> None:
    """Remove vectors that a killed process began to add to a segment."""
    for path in segment.glob(f".{_PREFIX}*"):
        shutil.rmtree(path, ignore_errors=True)


def join_vectors(folder: Path, sources: Sequence[tuple[PieceVectors, NDArray[np.int64]]]) -> None:
    """Write vectors that others have, with their codes, into a new folder.

    Memory: some megabytes, and 8 bytes a vector.

    Args:
        folder: Folder to create.
        sources: Vectors, and which of them, ascending; in the order of the new pieces.

    Raises:
        StorageError: No room, for instance.
    """
    with translated(folder, "write"):
        folder.mkdir(mode=0o700)
    first = sources[0][0]
    file = _column(folder, first.dimension)
    with contextlib.closing(file):
        for vectors, pieces in sources:
            for begin in range(0, len(pieces), _AT_ONCE):
                file.append(vectors.pack(pieces[begin : begin + _AT_ONCE]))
    codes = ColumnFile(folder, "codes", np.uint64, sum(len(pieces) for _, pieces in sources))
    with contextlib.closing(codes):
        for word in range(len(first.codes)):
            codes.append(np.concatenate([vectors.codes[word][pieces] for vectors, pieces in sources])[np.newaxis])
    finish_columns(folder)
    with translated(folder, "write"):
        sync_folder(folder)


def _column(folder: Path, dimension: int) -> ColumnFile:
    kind = pack_vectors(np.zeros((1, dimension), np.float32)).dtype
    return ColumnFile(folder, _KEPT if kind == np.int8 else _HALVES, kind, dimension)


def compute_codes(vectors: NDArray[np.floating[Any]]) -> NDArray[np.uint64]:
    """Return the signs of vectors as bits, shape (words, n)."""
    bits = np.packbits(vectors > 0, axis=1)
    padded = np.zeros((len(bits), _words(vectors.shape[1]) * 8), np.uint8)
    padded[:, : bits.shape[1]] = bits
    return np.ascontiguousarray(padded.view(np.uint64).T)


def _words(dimension: int) -> int:
    return -(-dimension // _WORD_BITS)


class NearRows(NamedTuple):
    """Rows by cosine, best first; each counts by its best piece.

    Attributes:
        rows: Row numbers, shape (n,), each once.
        cosines: Cosine of each row.
    """

    rows: NDArray[np.int64]
    cosines: NDArray[np.float32]


class SealedVectors:
    """Search over the vectors of one segment.

    Exact for few pieces, and exact among the nearest by sign code.

    Args:
        segment: Segment with the pieces.
        vectors: Vectors of the pieces.
        exact_to: Number of pieces up to which all are compared exactly.
        candidates: Nearest by code that are compared exactly, for each row that is wanted. Of 100,000 real texts and
            1,200 questions, 600 hold .996 of the nearest 10 and .970 of the nearest 60; 1,200 hold .998 and .988, in
            half a millisecond more.
        least: Of those, in any case.
    """

    def __init__(
        self,
        segment: Segment,
        vectors: PieceVectors | JoinedVectors,
        *,
        exact_to: int = 5_000,
        candidates: int = 10,
        least: int = 600,
    ) -> None:
        self._vectors = vectors
        self._owners: NDArray[np.uint32] = segment.columns["piece.row"]
        self._candidates, self._least = candidates, least
        self._exact = len(vectors) <= exact_to
        self._whole: NDArray[np.float32] | None = None
        self._sampled: NDArray[np.float32] | None = None
        self._known: tuple[NDArray[np.float32], NDArray[np.float32]] | None = None  # the last query, its cosines

    def __len__(self) -> int:
        return len(self._vectors)

    def compute_cosines(self, query: NDArray[np.float32], rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the cosine of each row, minus infinity without a vector."""
        begins = np.searchsorted(self._owners, rows)
        counts = np.searchsorted(self._owners, rows, side="right") - begins
        pieces = np.repeat(begins - (np.cumsum(counts) - counts), counts) + np.arange(int(counts.sum()))
        best = np.full(len(rows), -np.inf, np.float32)
        np.maximum.at(best, np.repeat(np.arange(len(rows)), counts), products(self._vectors.of(pieces), query))
        return best

    def get_pieces(self, query: NDArray[np.float32], row: int) -> list[float]:
        """Return the cosine of each piece of a row with several."""
        begin, end = np.searchsorted(self._owners, (row, row + 1)).tolist()
        if end - begin == 1:
            return []
        cosines: list[float] = products(self._vectors.of(np.arange(begin, end)), query).tolist()
        return cosines

    def nearest(self, query: NDArray[np.float32], count: int, floor: float, among: NDArray[np.bool_]) -> NearRows:
        """Return the nearest rows whose cosine reaches a floor.

        Args:
            query: Shape (dimension,), unit length.
            count: How many at most.
            floor: The least cosine.
            among: Which rows may be found, shape (rows,).
        """
        if self._exact:
            cosines = self._all(query)
            pieces = np.flatnonzero(cosines >= floor)
            cosines = cosines[pieces]
        else:
            pieces = self._near_by_code(query, max(self._least, self._candidates * count), among)
            cosines = products(self._vectors.of(pieces), query)
            reach = cosines >= floor
            pieces, cosines = pieces[reach], cosines[reach]
        rows = self._owners[pieces].astype(np.int64)
        may = among[rows]
        return _best(rows[may], cosines[may], count)

    def how_many(self, query: NDArray[np.float32], floor: float, among: NDArray[np.bool_]) -> int:
        """Return the number of rows that reach a floor, estimated if many."""
        step = 1 if self._exact else max(1, len(self._vectors) // _SAMPLE)
        cosines = self._all(query) if self._exact else products(self._sample(step), query)
        rows = np.unique(self._owners[::step][cosines >= floor])
        return int(among[rows].sum()) * step

    def _all(self, query: NDArray[np.float32]) -> NDArray[np.float32]:
        if self._whole is None:
            self._whole = self._vectors.of(slice(None))
        if self._known is None or self._known[0] is not query:  # a search asks for the nearest, then how many are near
            self._known = query, products(self._whole, query)
        return self._known[1]

    def _sample(self, step: int) -> NDArray[np.float32]:
        """Return every `step`-th vector, cached as floats.

        Converting takes longer than comparing.
        """
        if self._sampled is None:
            self._sampled = self._vectors.of(slice(None, None, step))
        return self._sampled

    def _near_by_code(self, query: NDArray[np.float32], count: int, among: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Return the nearest pieces by code, at least `count` of some rows.

        All pieces of these rows if they have fewer. Others may be among them.
        """
        share = np.count_nonzero(among) / max(1, len(among))
        if share > _MOST:  # to pick them out takes longer than to compare some in vain
            return _nearest(self._vectors.distances(query), round(count / share))
        pieces = np.flatnonzero(among[self._owners])
        if len(pieces) <= count:
            return pieces
        return pieces[_nearest(self._vectors.distances(query)[pieces], count)]


def _nearest(distances: NDArray[np.uint16], count: int) -> NDArray[np.int64]:
    up_to = np.cumsum(np.bincount(distances))
    return np.flatnonzero(distances <= np.searchsorted(up_to, count))


def _best(rows: NDArray[np.int64], cosines: NDArray[np.float32], count: int) -> NearRows:
    order = np.lexsort((-rows, -cosines))
    rows, cosines = rows[order], cosines[order]
    _, first = np.unique(rows, return_index=True)
    first.sort()
    return NearRows(rows[first[:count]], cosines[first[:count]])
