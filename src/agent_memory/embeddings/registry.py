"""Embedder providers by name, and the public `EmbeddingGenerator`.

Another distribution offers a provider by an entry point of the group `agent_memory.embedders`. Nothing of it is
imported before its name is in a setting.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from agent_memory.embeddings.embedder_pair import LANGUAGES
from agent_memory.embeddings.local import LOCAL, LocalEmbedder
from agent_memory.embeddings.multilingual import PACKAGE, MultilingualEmbedder
from agent_memory.embeddings.openai_api import OPENAI, OpenAIEmbedder
from agent_memory.embeddings.protocol import Embedder, EmbedderIdentity, Provider
from agent_memory.errors import ConfigurationError, EmbeddingError
from agent_memory.settings import LOCAL_MODEL, OPENAI_DIMENSIONS
from agent_memory.settings.installation import EMBEDDERS_GROUP, advice, find_entry_points

if TYPE_CHECKING:
    from agent_memory.settings import ServiceSettings

PROVIDERS: Final[dict[str, Provider]] = {"local": LOCAL, "languages": LANGUAGES, "openai": OPENAI}
"""Those of this distribution; others are entry points of their own distributions."""
SWITCHED_OFF: Final = "embedder is set to none"
_CACHED: Final = 1000
"""About 10 MB of 384 numbers, as Python has them."""


def get_provider(name: str) -> Provider:
    """Return the provider of a name.

    Raises:
        ConfigurationError: It does not exist, or the entry point is not a `Provider`.
    """
    if name in PROVIDERS:
        return PROVIDERS[name]
    entry = find_entry_points(EMBEDDERS_GROUP).get(name)
    provider = None if entry is None else entry.load()
    if isinstance(provider, Provider):
        return provider
    whose = f"{entry.value} is no Provider" if entry is not None else "no installed distribution offers it"
    raise ConfigurationError(
        f"No embedder {name!r}: {whose}.",
        recovery=f"Set embedder to one of: {', '.join([*PROVIDERS, 'none'])}.",
    )


def make_embedder(settings: ServiceSettings) -> Embedder | None:
    """Make the embedder of `settings`, not yet loaded.

    None if it is switched off or not installed.

    Raises:
        ConfigurationError: Its provider does not exist.
    """
    if settings.embedder == "none":
        return None
    provider = get_provider(settings.embedder)
    return None if provider.lacking() else provider.make(settings)


def make_second_embedder(settings: ServiceSettings) -> Embedder | None:
    """Create the embedder for other languages, or return None."""
    return MultilingualEmbedder() if _uses_minilm(settings) and not LANGUAGES.lacking() else None


def lacks_languages(settings: ServiceSettings) -> bool:
    """Return True if only the multilingual model is missing."""
    return _uses_minilm(settings) and LANGUAGES.lacking() == [PACKAGE]


def _uses_minilm(settings: ServiceSettings) -> bool:
    return settings.embedder == "local" and not settings.embedding_model


def reason_without(settings: ServiceSettings) -> str:
    """Explain to people why `make_embedder` returns None."""
    if settings.embedder == "none":
        return SWITCHED_OFF
    provider = get_provider(settings.embedder)
    how = advice(provider.part) if provider.part else f"It needs {', '.join(provider.lacking())}."
    return f"the embedder {settings.embedder!r} is not installed. {how}"


def estimate_embedding(identity: EmbedderIdentity, texts: int, characters: int) -> tuple[float, float]:
    """Estimate seconds and US dollars of embedding.

    0 if the provider gives no figures.

    Args:
        identity: Identity of the embedder.
        texts: Number of the texts.
        characters: Total length of the texts.
    """
    try:
        provider = get_provider(identity.provider)
    except ConfigurationError:  # an embedder that a program handed in
        return 0.0, 0.0
    return provider.seconds_a_text * texts, provider.price(identity.model, characters)


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
        self._embedder = embedder or _choose_embedder(model)

    @property
    def dimension(self) -> int:
        """Number of dimensions of a vector."""
        return self._embedder.dimension

    async def generate(self, text: str) -> list[float]:
        """Return the embedding of one text.

        A list of `dimension` floats of unit length.

        Raises:
            EmbeddingError: The text is blank, or generation failed.
        """
        return (await self.generate_batch([text]))[0]

    async def generate_batch(self, texts: list[str], batch_size: int = 100) -> list[list[float]]:
        """Return the embeddings of texts, in order.

        Args:
            texts: Texts to embed, possibly none.
            batch_size: Texts handed to the model at once, at least 1.

        Raises:
            EmbeddingError: A text is blank, `batch_size` is below 1, or generation failed.
        """
        if batch_size < 1:
            raise EmbeddingError(f"batch_size must be at least 1, got {batch_size}", code="invalid")
        for position, text in enumerate(texts):
            if not text.strip():
                raise EmbeddingError(f"text {position} is blank and has no embedding", code="invalid")
        vectors = {text: self._cached[text] for text in texts if text in self._cached}
        new = [text for text in dict.fromkeys(texts) if text not in vectors]
        for start in range(0, len(new), batch_size):
            batch = new[start : start + batch_size]
            rows = await asyncio.to_thread(self._embedder.embed_documents, batch)
            vectors |= dict(zip(batch, rows.tolist(), strict=True))
        for text, vector in vectors.items():
            self._cached[text] = vector
            self._cached.move_to_end(text)
        while len(self._cached) > self._cache_size:
            self._cached.popitem(last=False)
        return [list(vectors[text]) for text in texts]

    @property
    def cost(self) -> float:
        """Charge so far in US dollars; 0 for a local model."""
        return float(getattr(self._embedder, "cost", 0.0))

    def estimate_cost(self, texts: list[str]) -> float:
        """Estimate the charge for `texts` in US dollars.

        0 for a local model.
        """
        return self._embedder.estimate_cost(texts) if isinstance(self._embedder, OpenAIEmbedder) else 0.0


def _choose_embedder(model: str) -> Embedder:
    if model == LOCAL_MODEL:
        return LocalEmbedder()
    if model in OPENAI_DIMENSIONS:
        return OpenAIEmbedder(model)
    names = ", ".join([LOCAL_MODEL, *OPENAI_DIMENSIONS])
    raise EmbeddingError(f"no embedding model {model!r}", code="model_unknown", recovery=f"Use one of: {names}.")
