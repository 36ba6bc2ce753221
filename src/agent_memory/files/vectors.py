"""Vectors in files, one byte per number. Pure.

Only the direction of a vector counts, so its greatest number is scaled to 127 and all are rounded. That changes the
cosine of two vectors of 384 dimensions by some 0.0005; packing again changes nothing. Short vectors lose more and gain
little, so they are stored as float16.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_MOST: Final = 127
_HALVES_BELOW: Final = 64
"""Dimensions below which vectors are stored as float16."""


def pack_vectors(vectors: NDArray[Any]) -> NDArray[Any]:
    """Return vectors, shape (n, dimension), as int8, or float16 if short.

    A vector that is not finite becomes zeros.
    """
    import numpy as np  # nothing slow at import

    if vectors.shape[-1] < _HALVES_BELOW:
        return np.asarray(vectors, "<f2")
    exact = np.asarray(vectors, np.float32)
    most = np.abs(exact).max(axis=-1, keepdims=True)
    usable = np.isfinite(most) & (most > 0)
    rounded = np.rint(np.where(usable, exact, 0) / np.where(usable, most, 1) * _MOST)
    return np.asarray(rounded, np.int8)


def unpack_vectors(packed: NDArray[Any]) -> NDArray[Any]:
    """Return packed vectors with unit length, float32; zeros stay zeros."""
    import numpy as np

    exact = packed.astype(np.float32)
    lengths = np.sqrt(np.einsum("ij,ij->i", exact, exact))
    usable = np.isfinite(lengths) & (lengths > 0)
    exact /= np.where(usable, lengths, 1)[:, None]
    exact[~usable] = 0
    return exact


def concatenate_vectors(matrices: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Join matrices of unit vectors to one of unit vectors.

    Each has the shape (n, dimension). The product of two joined vectors is the mean of the products of their parts.
    """
    import numpy as np

    joined: NDArray[Any] = np.concatenate(matrices, axis=-1) / math.sqrt(len(matrices))
    return joined


def split_vectors(joined: NDArray[Any], dimensions: Sequence[int]) -> list[NDArray[Any]]:
    """Return the parts of joined vectors; each keeps its length in them."""
    import numpy as np

    return np.split(joined, np.cumsum(dimensions)[:-1], axis=-1)


def get_byte_lengths(dimension: int) -> tuple[int, int]:
    """Return the bytes of a vector as int8 and as float16."""
    return dimension, 2 * dimension


def load_vectors(content: bytes, rows: int, dimension: int) -> NDArray[Any]:
    """Return packed vectors from their bytes.

    Earlier versions stored all as float16.

    Raises:
        ValueError: The content has another length.
    """
    import numpy as np

    is_short = len(content) == rows * dimension
    return np.frombuffer(content, np.int8 if is_short else "<f2").reshape(rows, dimension)
