"""Vectors of a segment's pieces, added to it once they are there: a byte and a sign of each dimension.

A sign code takes a bit a dimension. Two codes differ in about as many bits as the angle between their vectors is wide
(Charikar, 2002), so a few hundred nearest by code hold the nearest by cosine, which are then compared exactly.
"""

from __future__ import annotations

import contextlib
import shutil
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from agent_memory.errors import StorageError
from agent_memory.files.atomic import sync_folder, translated
from agent_memory.files.vectors import pack_vectors, unpack_vectors
from agent_memory.index.columns import ColumnFile, Columns, finish_columns, write_columns

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

_WORD_BITS: Final = 64
_AT_ONCE: Final = 20_000
_PREFIX: Final = "vectors-"
_KEPT: Final = "bytes"
_HALVES: Final = "halves"
"""Name of the array of vectors that are no bytes."""


class Vectors:
    """Vectors by piece, in the order of `piece.row` and `piece.hash` of their segment.

    Args:
        folder: Where they are.

    Attributes:
        kept: Shape (pieces, dimension), as `files.vectors` has them; of versions before always float16, unit length.
        codes: Shape (words, pieces), uint64: so that one word of all pieces is compared at a time, in a fifth of the
            time that rows of six words take.

    Raises:
        StorageError: They are not there, or damaged.
    """

    def __init__(self, folder: Path) -> None:
        columns = Columns(folder)
        self.kept: NDArray[Any] = columns[_KEPT if _KEPT in columns else _HALVES]
        self.codes: NDArray[np.uint64] = columns["codes"]
        if self.codes.shape != (_words(self.dimension), len(self.kept)):
            raise StorageError(f"{folder.name} of an index does not hold what it should.")

    def __len__(self) -> int:
        return len(self.kept)

    @property
    def dimension(self) -> int:
        """Of each vector."""
        return int(self.kept.shape[-1])

    def distances(self, query: NDArray[np.float32]) -> NDArray[np.uint16]:
        """Return in how many signs each piece differs from a query, shape (pieces,)."""
        wanted = codes_of(query[np.newaxis])[:, 0]
        found = np.zeros(len(self), np.uint16)
        for word, of_query in zip(self.codes, wanted, strict=True):
            found += np.bitwise_count(word ^ of_query)
        return found

    def of(self, pieces: NDArray[Any] | slice) -> NDArray[np.float32]:
        """Return the vectors of some pieces as floats of unit length, with which products are fast."""
        return unpack_vectors(self.kept[pieces])

    def packed(self, pieces: NDArray[Any]) -> NDArray[Any]:
        """Return the vectors of some pieces as they are kept now."""
        kept = self.kept[pieces]
        return kept if kept.dtype == np.int8 else pack_vectors(kept)


def folder_name(embedder: str) -> str:
    """Return the name, in a segment's folder, of the folder with the vectors of an embedder."""
    return f"{_PREFIX}{blake2b(embedder.encode(), digest_size=6).hexdigest()}"


def add_vectors(segment: Path, embedder: str, dimension: int, vectors: Iterable[NDArray[np.float32]]) -> None:
    """Write the vectors of all pieces of a segment, in their order, and their codes.

    Args:
        segment: Its folder.
        embedder: Whose they are.
        dimension: Of each.
        vectors: In portions, each of shape (n, dimension), unit length.

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
            for portion in vectors:
                file.append(pack_vectors(portion))
                codes.append(codes_of(portion))
        write_columns(unfinished, {"codes": np.concatenate(codes, axis=1)})
        finish_columns(unfinished)
        with translated(place, "write"):
            sync_folder(unfinished)
            unfinished.rename(place)
            sync_folder(segment)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def vectors_within(segment: Path) -> dict[str, Vectors]:
    """Return the vectors that a segment's folder holds, by the name of their folder; without damaged ones."""
    found = {}
    with translated(segment, "read"):
        names = [path.name for path in segment.iterdir() if path.name.startswith(_PREFIX)]
    for name in names:
        with contextlib.suppress(StorageError):
            found[name] = Vectors(segment / name)
    return found


def remove_unfinished(segment: Path) -> None:
    """Remove vectors that a killed process began to add to a segment."""
    for path in segment.glob(f".{_PREFIX}*"):
        shutil.rmtree(path, ignore_errors=True)


def join_vectors(folder: Path, sources: Sequence[tuple[Vectors, NDArray[np.int64]]]) -> None:
    """Write vectors that others have, with their codes, into a new folder.

    Memory: some megabytes, and 8 bytes a vector.

    Args:
        folder: Where to.
        sources: Vectors, and which of them, ascending; in the order of the new pieces.

    Raises:
        StorageError: No room, for instance.
    """
    with translated(folder, "write"):
        folder.mkdir(mode=0o700)
    first = sources[0][0]
    kept = _column(folder, first.dimension)
    with contextlib.closing(kept):
        for vectors, pieces in sources:
            for begin in range(0, len(pieces), _AT_ONCE):
                kept.append(vectors.packed(pieces[begin : begin + _AT_ONCE]))
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


def codes_of(vectors: NDArray[np.floating[Any]]) -> NDArray[np.uint64]:
    """Return the signs of vectors, shape (n, dimension), as bits, shape (words, n)."""
    bits = np.packbits(vectors > 0, axis=1)
    padded = np.zeros((len(bits), _words(vectors.shape[1]) * 8), np.uint8)
    padded[:, : bits.shape[1]] = bits
    return np.ascontiguousarray(padded.view(np.uint64).T)


def _words(dimension: int) -> int:
    return -(-dimension // _WORD_BITS)
