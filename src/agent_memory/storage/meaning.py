"""What search by meaning needs beside the journal: embedder, vector cache, worker. Chosen by settings, loaded late."""

from __future__ import annotations

import asyncio
import math
import time
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agent_memory.embeddings import EmbeddingWorker, LocalEmbedder, OpenAIEmbedder, VectorCache, text_hash
from agent_memory.embeddings.runtime import reports
from agent_memory.errors import EmbeddingError
from agent_memory.installing import advice
from agent_memory.retrieval import DenseIndex, embedded_texts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from agent_memory.embeddings import Embedder, EmbedderIdentity
    from agent_memory.models import Memory
    from agent_memory.settings import ServiceSettings

_LOCAL_PARTS: Final = ("numpy", "onnxruntime", "tokenizers", "threadpoolctl")
SWITCHED_OFF: Final = "embedder is set to none"
WORTH_WAITING: Final = 64
"""Texts that a search with a short patience waits for again and again: about half a second of local embedding. For more
it waits once, since they may be in the cache, which is read in no time."""
_SLICE_SECONDS: Final = 0.5


class Meaning:
    """Vectors for one agent's memories, or the reason why there are none.

    Args:
        settings: Which embedder.
        cache: The file of vectors.
        make_index: What holds and compares them.
        embedder: One of the caller's own, instead of that of `settings`.

    Attributes:
        index: Where the search index asks for cosines; None searches by words alone.
    """

    def __init__(
        self,
        settings: ServiceSettings,
        cache: Path,
        make_index: Callable[[EmbeddingWorker], DenseIndex] = DenseIndex,
        embedder: Embedder | None = None,
    ) -> None:
        embedder = embedder or embedder_of(settings)
        self._embedder = embedder
        self._waited = False
        self._absent = None if embedder else reason_without(settings)
        kept = VectorCache(cache if settings.enable_caching else None)
        self._worker = EmbeddingWorker(embedder, kept) if embedder else None
        self.index = make_index(self._worker) if self._worker else None

    @staticmethod
    def is_possible(settings: ServiceSettings) -> bool:
        """Tell whether the embedder of `settings` is there, without loading its model."""
        return embedder_of(settings) is not None

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing that could be found by meaning."""
        return self.index is not None and self.index.is_empty

    @property
    def cost(self) -> float:
        """What the embedder has charged so far, in US dollars."""
        return float(getattr(self._embedder, "cost", 0.0))

    @property
    def is_ready(self) -> bool:
        """Whether the model is loaded."""
        return self._worker is not None and self._worker.ready

    def identity(self) -> EmbedderIdentity:
        """Return which vectors these are; a model in a folder is loaded to know.

        Raises:
            EmbeddingError: There is no embedder, or its model cannot be loaded.
        """
        if self._embedder is None:
            raise EmbeddingError(f"There are no vectors: {self._absent}.", code="no_embedder")
        return self._embedder.identity

    async def ready(self, patience: float | None) -> bool:
        """Wait until searches go by meaning too; tell whether they do.

        Args:
            patience: Seconds at most; None waits for all that is to be embedded. With a patience, a long queue is
                waited for only once: after that, words answer until it is short. An embedder that failed last time
                tries again behind the answers.
        """
        if self._worker is None or self.index is None:
            return False
        many = self._worker.status.pending > WORTH_WAITING
        hopeless = self._worker.is_failing or self.index.is_empty or (many and self._waited)
        if patience is not None and hopeless:
            self._worker.start()
            return False
        if self._worker.is_settled:
            return True
        self._waited = self._waited or bool(patience)
        deadline = math.inf if patience is None else time.monotonic() + patience
        while True:  # in slices: nobody can call back a thread, and the end of an event loop waits for all of them
            left = deadline - time.monotonic()
            if await asyncio.to_thread(self._worker.drain, min(_SLICE_SECONDS, max(0.0, left))):
                return True
            if left <= _SLICE_SECONDS or not self._worker.goes_on:
                return False

    def forget(self, memories: Iterable[Memory]) -> None:
        """Drop the cached vectors of memories that are gone, but for texts that others share.

        For the thread that owns the index.
        """
        if self._worker is not None and self.index is not None:
            gone = {text_hash(text) for memory in memories for text in embedded_texts(memory.content)}
            self._worker.forget(gone - self.index.hashes())

    def describe(self) -> dict[str, Any]:
        """Return how embedding stands, for people."""
        if self._worker is None:
            return without_embedder(self._absent)
        status = self._worker.status
        if not status.begun:
            missing = getattr(self._embedder, "missing", lambda: None)()
            return (
                {"status": "failing", "problem": missing, "code": "model_missing"} if missing else {"status": "found"}
            )
        report: dict[str, Any] = {"status": "ready" if status.ready else "loading", "pending": status.pending}
        if (warning := reports()) is not None:
            report["warning"] = warning
        if status.problem:
            report |= {"status": "failing", "problem": status.problem, "code": status.code}
            report |= {"recovery": status.recovery} if status.recovery else {}
        return report

    def close(self) -> None:
        """Stop embedding; what is left to embed is found missing by the next process."""
        if self._worker is not None:
            self._worker.close()


def embedder_of(settings: ServiceSettings) -> Embedder | None:
    """Return the embedder that `settings` ask for, not yet loaded; None if it is switched off or not installed."""
    if settings.embedder == "openai" and find_spec("openai") is not None:
        model = settings.embedding_model or "text-embedding-3-small"
        return OpenAIEmbedder(model, dimensions=settings.embedding_dimensions, base_url=settings.embedding_base_url)
    if settings.embedder == "local" and all(find_spec(part) is not None for part in _LOCAL_PARTS):
        folder = Path(settings.embedding_model).expanduser() if settings.embedding_model else None
        return LocalEmbedder(folder)
    return None


def without_embedder(reason: str | None) -> dict[str, Any]:
    """Return what is told where there is no embedder; `chosen` where that is what somebody wants."""
    return {"status": "off", "reason": reason, **({"chosen": True} if reason == SWITCHED_OFF else {})}


def reason_without(settings: ServiceSettings) -> str:
    """Return, for people, why there is no embedder."""
    if settings.embedder == "none":
        return SWITCHED_OFF
    return f"the embedder {settings.embedder!r} is not installed. {advice(settings.embedder)}"
