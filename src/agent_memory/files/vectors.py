"""How vectors are kept in files: a byte for each number. Pure.

Only the direction of a vector counts, so its greatest number is 127 and all others are whole numbers beside it. That
moves the cosine of two vectors of 384 dimensions by some 0.0005, and one that was kept before by nothing. Short vectors
lose more by it and gain little: they are kept as halves of floats.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MOST: Final = 127
_HALVES_BELOW: Final = 64
"""Dimensions."""


def pack_vectors(vectors: NDArray[Any]) -> NDArray[Any]:
    """Return vectors, shape (n, dimension), as they are kept: int8, or float16 if they are short.

    One that is not finite becomes zeros.
    """
    import numpy as np  # nothing slow at import

    if vectors.shape[-1] < _HALVES_BELOW:
        return np.asarray(vectors, "<f2")
    exact = np.asarray(vectors, np.float32)
    most = np.abs(exact).max(axis=-1, keepdims=True)
    usable = np.isfinite(most) & (most > 0)
    whole = np.rint(np.where(usable, exact, 0) / np.where(usable, most, 1) * _MOST)
    return np.asarray(whole, np.int8)


def unpack_vectors(kept: NDArray[Any]) -> NDArray[Any]:
    """Return what was kept as vectors of unit length, float32; zeros where there is no direction."""
    import numpy as np

    exact = kept.astype(np.float32)
    lengths = np.sqrt(np.einsum("ij,ij->i", exact, exact))
    usable = np.isfinite(lengths) & (lengths > 0)
    exact /= np.where(usable, lengths, 1)[:, None]
    exact[~usable] = 0
    return exact


def get_byte_lengths(dimension: int) -> tuple[int, int]:
    """Return in how many bytes a vector can be kept: as bytes, or as halves of floats, as versions before kept all."""
    return dimension, 2 * dimension


def load_vectors(content: bytes, rows: int, dimension: int) -> NDArray[Any]:
    """Return so many vectors of a dimension that are kept one behind the other: as bytes, or as halves of floats.

    Raises:
        ValueError: They have another length.
    """
    import numpy as np

    is_short = len(content) == rows * dimension
    return np.frombuffer(content, np.int8 if is_short else "<f2").reshape(rows, dimension)
