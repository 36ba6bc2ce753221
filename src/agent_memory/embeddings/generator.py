"""`EmbeddingGenerator`: the async public face of the embedders, for people who want vectors and no memory."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from agent_memory.embeddings.local import LocalEmbedder
from agent_memory.embeddings.openai_api import OpenAIEmbedder
from agent_memory.errors import EmbeddingError
from agent_memory.settings import LOCAL_MODEL, OPENAI_DIMENSIONS

if TYPE_CHECKING:
    from agent_memory.embeddings.protocol import Embedder


_CACHED: Final = 1000
"""About 10 MB of 384 numbers, as Python has them."""


class EmbeddingGenerator:
    """Generate embeddings, locally by default.

    Args:
        model: `all-MiniLM-L6-v2` (local, offline, free) or one of OpenAI's: `text-embedding-3-small`,
            `text-embedding-3-large`, `text-embedding-ada-002`.
        embedder: Any embedder; `model` is then only a name.
        cache_size: Texts whose vectors are kept in memory, the last used, so that the same text is embedded once.

    Raises:
        EmbeddingError: The model is not known and no embedder is given.
    """

    def __init__(
        self, model: str = LOCAL_MODEL, *, embedder: Embedder | None = None, cache_size: int = _CACHED
    ) -> None:
        self.model = model
        self._cached: OrderedDict[str, list[float]] = OrderedDict()
        self._cache_size = cache_size
        self._embedder = embedder or _embedder(model)

    @property
    def dimension(self) -> int:
        """How many numbers a vector has."""
        return self._embedder.dimension

    async def generate(self, text: str) -> list[float]:
        """Return the embedding of one text, a list of `dimension` floats of unit length.

        Raises:
            EmbeddingError: The text is blank, or generation failed.
        """
        return (await self.generate_batch([text]))[0]

    async def generate_batch(self, texts: list[str], batch_size: int = 100) -> list[list[float]]:
        """Return the embeddings of texts, in order.

        Args:
            texts: What to embed; may be empty.
            batch_size: Texts handed to the model at once, at least 1.

        Raises:
            EmbeddingError: A text is blank, `batch_size` is below 1, or generation failed.
        """
        if batch_size < 1:
            raise EmbeddingError(f"batch_size must be at least 1, got {batch_size}", code="invalid")
        for position, text in enumerate(texts):
            if not text.strip():
                raise EmbeddingError(f"text {position} is blank and has no embedding", code="invalid")
        found = {text: self._cached[text] for text in texts if text in self._cached}
        new = [text for text in dict.fromkeys(texts) if text not in found]
        for start in range(0, len(new), batch_size):
            batch = new[start : start + batch_size]
            rows = await asyncio.to_thread(self._embedder.embed_documents, batch)
            found |= dict(zip(batch, rows.tolist(), strict=True))
        for text, vector in found.items():
            self._cached[text] = vector
            self._cached.move_to_end(text)
        while len(self._cached) > self._cache_size:
            self._cached.popitem(last=False)
        return [list(found[text]) for text in texts]

    @property
    def cost(self) -> float:
        """What embedding has cost so far in US dollars, by the tokens that the API counted; 0 for a local model."""
        return float(getattr(self._embedder, "cost", 0.0))

    def estimate_cost(self, texts: list[str]) -> float:
        """Return about what embedding `texts` costs in US dollars; a local model costs nothing."""
        return self._embedder.estimate_cost(texts) if isinstance(self._embedder, OpenAIEmbedder) else 0.0


def _embedder(model: str) -> Embedder:
    if model == LOCAL_MODEL:
        return LocalEmbedder()
    if model in OPENAI_DIMENSIONS:
        return OpenAIEmbedder(model)
    known = ", ".join([LOCAL_MODEL, *OPENAI_DIMENSIONS])
    raise EmbeddingError(
        f"there is no embedding model {model!r}", code="model_unknown", recovery=f"Use one of: {known}."
    )
