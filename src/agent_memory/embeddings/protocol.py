"""What an embedder is, and the one check every vector passes before anyone uses it.

Must not import a model runtime or an API client: numpy is the only heavy import, inside functions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from agent_memory.errors import EmbeddingError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    Matrix: TypeAlias = NDArray[np.float32]
    """Shape (n, dimension), float32, rows of length 1."""

    Vector: TypeAlias = NDArray[np.float32]
    """Shape (dimension,), float32, length 1."""


@dataclass(frozen=True, slots=True)
class EmbedderIdentity:
    """What must be equal for two vectors to be comparable.

    Attributes:
        provider: `local`, `openai`, ...
        model: The provider's name of the model.
        dimension: Numbers in a vector.
        weights: sha256 of the weights, or whatever pins them; empty when the provider tells nothing.
    """

    provider: str
    model: str
    dimension: int
    weights: str = ""

    def __str__(self) -> str:
        weights = f"@{self.weights[:16]}" if self.weights else ""
        return f"{self.provider}:{self.model}:{self.dimension}{weights}"


class Embedder(Protocol):
    """Turns text into vectors. Thread-safe; loads what it needs at the first call, not before.

    Two more members are looked for and need not be there. `is_remote`, a bool: calls wait for a network, so they are
    not cut into pieces, and the end of a program does not wait for them. `missing()`: a sentence about what is not
    there, found without loading anything, or None.
    """

    @property
    def identity(self) -> EmbedderIdentity:
        """Which vectors these are."""

    @property
    def dimension(self) -> int:
        """How many numbers a vector has."""

    @property
    def similarity_threshold(self) -> float:
        """Least raw cosine at which a text found by meaning alone is worth showing; differs by model."""

    def embed_documents(self, texts: list[str]) -> Matrix:
        """Return one vector per text.

        Raises:
            EmbeddingError: The model is missing or broken, or answered nonsense.
        """

    def embed_query(self, text: str) -> Vector:
        """Return the vector of a query.

        Raises:
            EmbeddingError: As `embed_documents`.
        """


def checked_matrix(rows: Sequence[Any] | NDArray[Any], *, count: int, dimension: int, source: str) -> Matrix:
    """Return rows as a float32 matrix of unit rows, refusing everything that is not `count` usable vectors.

    Args:
        rows: Anything numpy can read as numbers.
        count: Vectors asked for.
        dimension: Numbers each must have.
        source: Who answered, for the message.

    Raises:
        EmbeddingError: Too few or too many vectors, a wrong dimension, NaN, infinity or a zero vector.
    """
    import numpy as np  # nothing slow at import

    if len(rows) != count:
        raise EmbeddingError(f"{source} returned {len(rows)} vectors for {count} texts", code="vector_count")
    if count == 0:
        return np.empty((0, dimension), dtype=np.float32)
    try:
        matrix = np.asarray(rows, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise EmbeddingError(
            f"{source} returned something that is not a list of vectors", code="vector_shape"
        ) from error
    if matrix.shape != (count, dimension):
        shape = matrix.shape[1:] or ("no",)
        raise EmbeddingError(
            f"{source} returned vectors of {shape[0]} numbers, expected {dimension}", code="vector_dimension"
        )
    if not np.isfinite(matrix).all():
        raise EmbeddingError(f"{source} returned a vector with NaN or infinity", code="vector_not_finite")
    lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    if not (lengths > 0).all() or not np.isfinite(lengths).all():
        raise EmbeddingError(f"{source} returned a vector that cannot be normalised", code="vector_not_finite")
    unit: Matrix = (matrix / lengths).astype(np.float32)
    return unit
