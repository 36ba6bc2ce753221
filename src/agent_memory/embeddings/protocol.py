"""The embedder protocol, and the check that every vector passes.

Must not import a model runtime or an API client: numpy is the only heavy import, inside functions.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from agent_memory.errors import EmbeddingError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from agent_memory.settings import ServiceSettings
    from agent_memory.settings.installation import Part

    Matrix: TypeAlias = NDArray[np.float32]
    """Shape (n, dimension), float32, rows of length 1."""

    Vector: TypeAlias = NDArray[np.float32]
    """Shape (dimension,), float32, length 1."""


@dataclass(frozen=True, slots=True)
class EmbedderIdentity:
    """Identity of an embedder: vectors of equal ones are comparable.

    Attributes:
        provider: `local`, `openai`, ...
        model: The provider's name of the model.
        dimension: Numbers in a vector.
        weights: SHA-256 of the weights, or whatever pins them; empty if the provider reports nothing.
        parts: Identities of the embedders whose vectors are joined; empty for a single embedder.
    """

    provider: str
    model: str
    dimension: int
    weights: str = ""
    parts: tuple[EmbedderIdentity, ...] = ()

    @classmethod
    def from_json(cls, text: str) -> EmbedderIdentity:
        """Return the identity that `to_json` wrote."""
        return _from_fields(json.loads(text))

    def to_json(self) -> str:
        """Return the identity as text for a child process."""
        return json.dumps(asdict(self))

    @property
    def members(self) -> tuple[EmbedderIdentity, ...]:
        """The identities under which the vectors are stored."""
        return self.parts or (self,)

    def __str__(self) -> str:
        weights = f"@{self.weights[:16]}" if self.weights else ""
        return f"{self.provider}:{self.model}:{self.dimension}{weights}"


def _from_fields(fields: Mapping[str, Any]) -> EmbedderIdentity:
    return EmbedderIdentity(**{**fields, "parts": tuple(map(_from_fields, fields["parts"]))})


class Embedder(Protocol):
    """Converts text to vectors. Thread-safe; loads at the first call.

    Optional members:

    - `is_remote`: True if calls use a network. They are not cut into pieces, and no program waits for them at exit.
    - `missing()`: Sentence about what is not installed, found without loading anything, or None.
    - `cost`: US dollars charged so far.
    - `parts`: Embedders whose vectors are joined; see `EmbedderPair`.
    - `cosine_scale`: Factor that makes its cosines comparable with the limits of match grades, which are MiniLM's.
    - `reads_latin_alone`: True if texts in other scripts look alike to the model. There words alone decide a match.
    - `reads_script(text)`: False for a text in a script that the model does not read; the same applies.
    """

    @property
    def identity(self) -> EmbedderIdentity:
        """Identity of the vectors."""

    @property
    def dimension(self) -> int:
        """Number of dimensions of a vector."""
        return self.identity.dimension

    @property
    def similarity_threshold(self) -> float:
        """Lowest cosine of a hit by embedding alone; differs by model."""

    def embed_documents(self, texts: list[str]) -> Matrix:
        """Return one vector per text.

        Raises:
            EmbeddingError: The model is missing or broken, or answered nonsense.
        """

    def embed_query(self, text: str) -> Vector:
        """Return the unit vector of a query, shape (dimension,), float32.

        Raises:
            EmbeddingError: As `embed_documents`.
        """
        vector: Vector = self.embed_documents([text])[0]
        return vector


CHARS_PER_TOKEN: Final = 4
"""OpenAI's own rule of thumb for English; other scripts take more tokens."""


@dataclass(frozen=True, kw_only=True)
class Provider:
    """Factory of the embedders of one name.

    Attributes:
        make: Returns the embedder of some settings; loads no model and connects to nothing.
        needs: Modules that must be installed.
        part: The extra of this distribution that brings them; None if another distribution does.
        seconds_a_text: What embedding a text takes on two cores.
        dollars_per_million: Price of a million tokens, by the model's name; what is not named is free.
    """

    make: Callable[[ServiceSettings], Embedder]
    needs: tuple[str, ...] = ()
    part: Part | None = None
    seconds_a_text: float = 0.0
    dollars_per_million: Mapping[str, float] = field(default_factory=dict)

    def lacking(self) -> list[str]:
        """Return the modules that are not installed; imports none."""
        return [name for name in self.needs if find_spec(name) is None]

    def price(self, model: str, characters: int) -> float:
        """Estimate a model's charge for some characters, in US dollars."""
        return self.dollars_per_million.get(model, 0.0) * characters / CHARS_PER_TOKEN / 1_000_000


def checked_matrix(rows: Sequence[Any] | NDArray[Any], *, count: int, dimension: int, source: str) -> Matrix:
    """Return rows as a float32 matrix of unit rows.

    Refuses everything that is not `count` usable vectors.

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
        raise EmbeddingError(f"{source} returned a vector that cannot be normalized", code="vector_not_finite")
    unit: Matrix = (matrix / lengths).astype(np.float32)
    return unit


class TextEmbeddings(Protocol):
    """Embeddings of one kind of record, or the reason for their absence."""

    @property
    def is_there(self) -> bool:
        """True if there is an embedder."""

    @property
    def is_remote(self) -> bool:
        """True if the embedder waits for a network."""

    @property
    def is_ready(self) -> bool:
        """True if queries can be embedded."""

    @property
    def is_warm(self) -> bool:
        """True if a search has nothing to wait for."""

    @property
    def is_empty(self) -> bool:
        """True if nothing could be found by its embedding."""

    @property
    def cost(self) -> float:
        """US dollars that the embedder has charged so far."""

    async def ready(self, patience: float | None) -> bool:
        """Wait until searches use embeddings too; return True if they do."""

    async def warm_up(self) -> None:
        """Wait while model and first texts of a search make progress."""

    async def finish(self) -> int:
        """Embed the first pending texts; return the number still pending.

        Called when a session ends.
        """

    def embed_texts(self, texts: Sequence[str]) -> Matrix | None:
        """Return a unit vector for each text, or None; blocking."""

    def fill_later(self) -> None:
        """Embed what is missing, without waiting for it."""

    def forget(self, texts: Iterable[str]) -> None:
        """Delete cached vectors of deleted texts that no other record shares."""

    def describe(self) -> dict[str, Any]:
        """Return the state of embedding, for people."""

    def known_identity(self) -> EmbedderIdentity | None:
        """Return the identity of the vectors, or None if it requires loading."""

    def close(self) -> None:
        """Stop embedding."""
