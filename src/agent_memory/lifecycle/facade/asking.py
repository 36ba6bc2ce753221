"""`AskedOnce`: an embedder by which a question is embedded once, however many kinds of records are asked it."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agent_memory.embeddings import Embedder
    from agent_memory.embeddings.protocol import EmbedderIdentity, Matrix, Vector


class AskedOnce:
    """Another embedder, and the last question it embedded. Thread-safe, as storages ask from threads of their own.

    Args:
        embedder: Turns texts into vectors.
    """

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._asking = threading.Lock()
        self._last: tuple[str, Vector] | None = None

    @property
    def identity(self) -> EmbedderIdentity:
        """Whose vectors these are."""
        return self._embedder.identity

    @property
    def dimension(self) -> int:
        """Length of the vectors."""
        return self._embedder.dimension

    @property
    def similarity_threshold(self) -> float:
        """Least cosine that tells something."""
        return self._embedder.similarity_threshold

    def embed_documents(self, texts: list[str]) -> Matrix:
        """Return a vector for each text."""
        return self._embedder.embed_documents(texts)

    def embed_query(self, text: str) -> Vector:
        """Return the vector of a question; who asks the same meanwhile waits for it."""
        with self._asking:
            if self._last is None or self._last[0] != text:
                self._last = (text, self._embedder.embed_query(text))
            return self._last[1]

    def __getattr__(self, name: str) -> Any:
        """Return what else the embedder has, such as what it has charged."""
        return getattr(self._embedder, name)
