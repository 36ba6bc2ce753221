"""`KeptVectors`: an embedder that keeps what it has embedded from one run of a benchmark to the next."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from agent_memory.embeddings import Embedder, EmbedderIdentity, VectorCache, text_hash
from agent_memory.embeddings.cache import round_vector

if TYPE_CHECKING:
    from pathlib import Path

    from agent_memory.embeddings.protocol import Matrix, Vector


class KeptVectors(Embedder):
    """Vectors of another embedder, each made once.

    Args:
        embedder: Makes what is not kept yet.
        path: The file they are kept in; None keeps them for this run alone.
    """

    def __init__(self, embedder: Embedder, path: Path | None) -> None:
        self._embedder = embedder
        self._kept = VectorCache(path)
        self._known: dict[bytes, Vector] = {}

    @property
    def identity(self) -> EmbedderIdentity:
        """Identity of the embedder."""
        return self._embedder.identity

    @property
    def similarity_threshold(self) -> float:
        """That of the embedder."""
        return self._embedder.similarity_threshold

    @property
    def reads_latin_alone(self) -> bool:
        """As the embedder."""
        return bool(getattr(self._embedder, "reads_latin_alone", False))

    def embed_documents(self, texts: list[str]) -> Matrix:
        """Return one unit vector per text, with the precision in which they are kept.

        Raises:
            EmbeddingError: See `Embedder`.
        """
        by_hash = {text_hash(text): text for text in texts}
        self._known |= self._kept.get_many(self.identity, by_hash.keys() - self._known.keys())
        missing = [key for key in by_hash if key not in self._known]
        if missing:
            made = self._embedder.embed_documents([by_hash[key] for key in missing])
            fresh = {key: round_vector(vector) for key, vector in zip(missing, made, strict=True)}
            self._kept.put_many(self.identity, fresh)
            self._known |= fresh
        vectors = np.empty((len(texts), self.dimension), np.float32)
        for number, text in enumerate(texts):
            vectors[number] = self._known[text_hash(text)]
        return vectors

    def close(self) -> None:
        """Close the file."""
        self._kept.close()
