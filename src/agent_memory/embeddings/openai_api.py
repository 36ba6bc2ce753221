"""OpenAI embedder: vectors from an OpenAI-compatible API.

Owns the call, its retries and the check of its answer. Errors name the model and the status, never a key or a text.
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Any, Final

from agent_memory.embeddings.protocol import CHARS_PER_TOKEN, Embedder, EmbedderIdentity, Provider, checked_matrix
from agent_memory.errors import ConfigurationError, EmbeddingError
from agent_memory.settings import OPENAI_DIMENSIONS
from agent_memory.settings.installation import advice

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_memory.embeddings.protocol import Matrix
    from agent_memory.settings import ServiceSettings

_DEFAULT_MODEL: Final = "text-embedding-3-small"
_DOLLARS_PER_MILLION: Final = {
    "text-embedding-3-small": 0.02,
    "text-embedding-3-large": 0.13,
    "text-embedding-ada-002": 0.10,
}
"""List prices from OpenAI's pricing page, in US dollars per million tokens."""

THRESHOLD: Final = 0.25
"""Least raw cosine of a hit by its embedding alone. From published examples, not measured by us: set
`similarity_threshold` to your own figure if it shows too much or too little."""

_NO_KEY: Final = "no API key for the embedding model; search continues by keyword"

_BATCH: Final = 100
_MAX_BATCH: Final = 2048
"""The API's limit."""
MAX_TOKENS: Final = 8191
"""Of one text, for all of OpenAI's embedding models. A token is at least a byte, so a text of as many bytes fits; a
longer one is sent whole, since in most it does, and cut to this only when the API refuses."""
_TOO_LONG: Final = "http_400"
_TIMEOUT_SECONDS: Final = 30.0
_RETRIES: Final = 4
"""With the client's backoff (0.5 s doubling to 8 s, jitter, Retry-After heeded) about 15 s of patience."""


class OpenAIEmbedder(Embedder):
    """Vectors from OpenAI's embeddings API. Thread-safe; connects at the first call.

    Args:
        model: Name of an embedding model.
        api_key: Key; None leaves it to the client, which reads OPENAI_API_KEY.
        base_url: Root of another server that speaks the API, e.g. one in your own network.
        dimensions: Shorten vectors to this many numbers (text-embedding-3 models only); None takes the native ones.
        batch_size: Texts per request, 1 to 2048.
        timeout: Seconds for one attempt.
        max_retries: Further attempts after 429, 5xx, a timeout or a lost connection.

    Raises:
        ConfigurationError: The dimension of an unknown model is not given, or a number is out of range.
    """

    is_remote: Final = True

    def __init__(
        self,
        model: str = _DEFAULT_MODEL,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        dimensions: int | None = None,
        batch_size: int = _BATCH,
        timeout: float = _TIMEOUT_SECONDS,
        max_retries: int = _RETRIES,
    ) -> None:
        if dimensions is None and model not in OPENAI_DIMENSIONS:
            raise ConfigurationError(f"embedding_dimensions is needed for the model {model!r}: its size is not known")
        if not 1 <= batch_size <= _MAX_BATCH:
            raise ConfigurationError(f"batch_size must be between 1 and {_MAX_BATCH}, got {batch_size}")
        self._model = model
        self._dimension = dimensions or OPENAI_DIMENSIONS[model]
        self._shorten = dimensions is not None and dimensions != OPENAI_DIMENSIONS.get(model, dimensions)
        self._batch_size = batch_size
        self._options: dict[str, Any] = {
            "api_key": api_key,
            "base_url": base_url,
            "timeout": timeout,
            "max_retries": max_retries,
        }
        self._connecting = threading.Lock()
        self._counting = threading.Lock()
        self._tokens = 0
        self._client: Any = None

    def __repr__(self) -> str:
        return f"OpenAIEmbedder({self._model!r}, dimensions={self._dimension})"

    @property
    def identity(self) -> EmbedderIdentity:
        """Identity of the vectors."""
        return EmbedderIdentity("openai", self._model, self._dimension)

    @property
    def similarity_threshold(self) -> float:
        """Least raw cosine of a hit by its embedding alone, see `THRESHOLD`."""
        return THRESHOLD

    def missing(self) -> str | None:
        """Return a sentence about the missing key, or None; connects to nothing."""
        return None if self._options["api_key"] or os.environ.get("OPENAI_API_KEY") else _NO_KEY

    def embed_documents(self, texts: list[str]) -> Matrix:
        """Return one unit vector per text, in order.

        Shape (len(texts), dimension), float32. Of a text with more than `MAX_TOKENS` tokens its beginning counts.

        Raises:
            EmbeddingError: The API refused, stayed unreachable, or answered with something other than these vectors.
        """
        rows: list[Any] = []
        for start in range(0, len(texts), self._batch_size):
            rows.extend(self._request(texts[start : start + self._batch_size]))
        return checked_matrix(rows, count=len(texts), dimension=self._dimension, source=f"model {self._model}")

    @property
    def tokens(self) -> int:
        """Tokens counted by the API so far."""
        return self._tokens

    @property
    def cost(self) -> float:
        """Charge so far in US dollars, by the list price.

        0 for a model without a list price.
        """
        return self._tokens * _DOLLARS_PER_MILLION.get(self._model, 0.0) / 1_000_000

    def estimate_cost(self, texts: Sequence[str]) -> float:
        """Estimate the charge for `texts` in US dollars.

        0 for a model without a list price.
        """
        tokens = sum(max(1, len(text) // CHARS_PER_TOKEN) for text in texts)
        return tokens * _DOLLARS_PER_MILLION.get(self._model, 0.0) / 1_000_000

    def _request(self, texts: list[str]) -> list[Any]:
        """Embed one batch; cut long texts if the API refuses them."""
        try:
            return self._ask(texts)
        except EmbeddingError as error:
            cut = [_cut(text) for text in texts]
            if error.code != _TOO_LONG or cut == texts:
                raise
            return self._ask(cut)

    def _ask(self, texts: list[str]) -> list[Any]:
        with self._connecting:
            self._client = self._client or _open_client(self._options)
        import openai

        options: dict[str, Any] = {"dimensions": self._dimension} if self._shorten else {}
        try:
            answer = self._client.embeddings.create(model=self._model, input=texts, encoding_format="float", **options)
            used = getattr(getattr(answer, "usage", None), "total_tokens", None)
            if isinstance(used, int):  # not every server that speaks this API reports it
                with self._counting:
                    self._tokens += used
            vectors = sorted(answer.data, key=lambda item: item.index)
            indexes = [item.index for item in vectors]
        except openai.APIStatusError as error:
            raise _build_refusal(self._model, error.status_code) from None  # its text can quote the key or the input
        except openai.OpenAIError as error:
            raise EmbeddingError(
                f"model {self._model} could not be reached ({type(error).__name__}); search continues by keyword",
                code="embedder_unreachable",
                recovery="Check the network and base_url; embedding is retried automatically.",
            ) from None
        except (AttributeError, TypeError, ValueError) as error:
            raise EmbeddingError(
                f"model {self._model} returned an answer that cannot be read", code="vector_shape"
            ) from error
        if indexes != list(range(len(texts))):
            raise EmbeddingError(
                f"model {self._model} returned {len(indexes)} vectors for {len(texts)} texts", code="vector_count"
            )
        return [item.embedding for item in vectors]


def _open_client(options: dict[str, Any]) -> Any:
    try:
        import openai
    except ImportError as error:
        raise EmbeddingError(
            "the openai package is not installed; search continues by keyword",
            code="model_missing",
            recovery=advice("openai"),
        ) from error
    try:
        return openai.OpenAI(**options)
    except openai.OpenAIError as error:
        recovery = "Set OPENAI_API_KEY, or use the local embedder."
        raise EmbeddingError(_NO_KEY, code="no_api_key", recovery=recovery) from error


def _cut(text: str) -> str:
    return text.encode("utf-8", "replace")[:MAX_TOKENS].decode("utf-8", "ignore")


def _build_refusal(model: str, status: int) -> EmbeddingError:
    reasons = {
        401: ("the key was refused", "Check OPENAI_API_KEY."),
        403: ("access was refused", "Check what the key may use."),
        404: ("there is no such model or path", "Check embedding_model and base_url."),
        429: ("the rate limit or quota is used up", "Wait, or check the account's quota; it is tried again by itself."),
    }
    reason, recovery = reasons.get(status, ("the server failed", "It is tried again by itself."))
    return EmbeddingError(
        f"model {model} is not available: {reason} (HTTP {status}); search continues by keyword",
        code=f"http_{status}",
        recovery=recovery,
    )


def _make(settings: ServiceSettings) -> OpenAIEmbedder:
    model = settings.embedding_model or _DEFAULT_MODEL
    return OpenAIEmbedder(model, dimensions=settings.embedding_dimensions, base_url=settings.embedding_base_url)


OPENAI: Final = Provider(
    make=_make, needs=("openai",), part="openai", seconds_a_text=0.01, dollars_per_million=_DOLLARS_PER_MILLION
)
