"""A real embedder without a model, for tests: deterministic and instant."""

from __future__ import annotations

import hashlib
import re
import threading
from typing import TYPE_CHECKING

from agent_memory.embeddings.protocol import EmbedderIdentity, checked_matrix
from agent_memory.errors import EmbeddingError

if TYPE_CHECKING:
    from agent_memory.embeddings.protocol import Matrix, Vector

_GATE_SECONDS = 20.0
"""Until a test that forgot it fails: the end of the interpreter waits for threads inside an embedder."""
_WORD = re.compile(r"\w+")


class HashEmbedder:
    """Vectors by hashed words: texts that share words are close.

    Synonyms count as the same word.

    Args:
        dimension: Numbers in a vector.
        synonyms: Words to treat as another, e.g. `{"db": "database"}`; the only ones it treats alike.
        model: Name in the identity; another name is another identity.

    Attributes:
        embedded: Every document text embedded so far, in order.
        failure: Raised by each call while set.
        gate: Documents wait here while it is cleared.
    """

    def __init__(self, dimension: int = 64, synonyms: dict[str, str] | None = None, model: str = "hash") -> None:
        self._synonyms = synonyms or {}
        self.identity = EmbedderIdentity("test", model, dimension)
        self.dimension = dimension
        self.similarity_threshold = 0.3
        self.embedded: list[str] = []
        self.failure: EmbeddingError | None = None
        self.gate = threading.Event()
        self.gate.set()

    def embed_documents(self, texts: list[str]) -> Matrix:
        """Return one unit vector per text, shape (len(texts), dimension)."""
        if not self.gate.wait(_GATE_SECONDS):
            raise EmbeddingError("No test opened the gate.")
        if self.failure is not None:
            raise self.failure
        self.embedded.extend(texts)
        return self._matrix(texts)

    def embed_query(self, text: str) -> Vector:
        """Return the unit vector of a query, shape (dimension,)."""
        if self.failure is not None:
            raise self.failure
        vector: Vector = self._matrix([text])[0]
        return vector

    def _matrix(self, texts: list[str]) -> Matrix:
        rows = [self._row(text) for text in texts]
        return checked_matrix(rows, count=len(texts), dimension=self.dimension, source="hash embedder")

    def _row(self, text: str) -> list[float]:
        row = [0.0] * self.dimension
        for word in _WORD.findall(text.casefold()) or ["(blank)"]:
            meaning = self._synonyms.get(word, word)
            row[int.from_bytes(hashlib.sha256(meaning.encode()).digest()[:4], "big") % self.dimension] += 1.0
        return row
