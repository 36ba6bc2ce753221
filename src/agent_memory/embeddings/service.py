"""Embeddings of one agent's memories: chosen by settings, loaded late."""

from __future__ import annotations

import asyncio
import math
import time
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

from agent_memory.embeddings.cache import VectorCache, text_hash
from agent_memory.embeddings.onnx_runtime import reports
from agent_memory.embeddings.registry import SWITCHED_OFF, make_embedder, reason_without
from agent_memory.embeddings.worker import CachingEmbedder, EmbeddingWorker
from agent_memory.errors import EmbeddingError
from agent_memory.logs import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence
    from pathlib import Path

    from agent_memory.embeddings.protocol import Embedder, EmbedderIdentity, Matrix
    from agent_memory.encryption import DataKey
    from agent_memory.settings import ServiceSettings

log = get_logger(__name__)

WORTH_WAITING: Final = 64
"""Texts that a search with a short patience waits for again and again: about half a second of local embedding. For more
it waits once, since they may be in the cache, which is read in no time."""
_SLICE_SECONDS: Final = 0.5
"""Waiting is done in slices: a thread cannot be called back, and the end of an event loop waits for all of them."""
_IDLE_SLICES: Final = 10
_LEAST_CPU: Final = 0.005
"""Seconds of a processor that a slice takes at least while texts are embedded, on however busy a machine."""
AT_THE_END: Final = 64
"""Texts that are embedded when a session ends; what is beyond is left due."""


class VectorIndex(Protocol):
    """Index of a service's vectors; see `index.DenseIndex`."""

    @property
    def is_empty(self) -> bool:
        """True if no memory has a text to embed."""

    def needs(self, key: bytes) -> bool:
        """Return True if a memory has a text of this hash."""


IndexT = TypeVar("IndexT", bound=VectorIndex)


class EmbeddingService(Generic[IndexT]):
    """Embeddings of one agent's memories, or the reason for their absence.

    Args:
        settings: Settings that choose the embedder.
        cache: Path of the vector cache.
        make_index: Makes the index that the worker fills.
        embedder: Embedder to use instead of that of `settings`.
        kept_too, key: As in `VectorCache`, both optional.

    Attributes:
        index: Index that a search asks for cosines; None searches by words alone.
    """

    def __init__(
        self,
        settings: ServiceSettings,
        cache: Path,
        make_index: Callable[[EmbeddingWorker], IndexT],
        embedder: Embedder | None = None,
        kept_too: Callable[[], Collection[bytes]] = frozenset,
        key: Callable[[], DataKey | None] = lambda: None,
    ) -> None:
        embedder = embedder or make_embedder(settings)
        self._embedder = embedder
        self._waited = False
        self._absent = None if embedder else reason_without(settings)
        vectors = VectorCache(cache if settings.enable_caching else None, kept_too, key)
        self._worker = EmbeddingWorker(embedder, vectors) if embedder else None
        self.index = make_index(self._worker) if self._worker else None

    @property
    def is_there(self) -> bool:
        """True if there is an embedder."""
        return self._worker is not None

    @property
    def is_empty(self) -> bool:
        """True if no memory has a text to embed."""
        return self.index is not None and self.index.is_empty

    @property
    def cost(self) -> float:
        """US dollars that the embedder has charged so far."""
        return float(getattr(self._embedder, "cost", 0.0))

    @property
    def is_remote(self) -> bool:
        """True if the embedder waits for a network."""
        return self._worker is not None and self._worker.is_remote

    @property
    def is_ready(self) -> bool:
        """True if the model is loaded."""
        return self._worker is not None and self._worker.ready

    @property
    def is_warm(self) -> bool:
        """True if model and first texts are ready for a search."""
        return self._worker is None or self._worker.is_warm

    @property
    def is_settled(self) -> bool:
        """True if all submitted texts have a vector that is stored."""
        return self._worker is not None and self._worker.status.is_settled

    def start(self) -> None:
        """Begin to load the model in the background."""
        if self._worker is not None:
            self._worker.start()

    def notice_texts(self, notice: Callable[[Iterable[str]], object]) -> None:
        """Call a function with texts that are embedded for the first time."""
        if self._worker is not None:
            self._worker.notice_texts = notice

    def known_identity(self) -> EmbedderIdentity | None:
        """Return the identity of the vectors, or None if it requires loading.

        None, too, without an embedder.
        """
        if self._embedder is None or not getattr(self._embedder, "is_known", True):
            return None
        return self._embedder.identity

    def identity(self) -> EmbedderIdentity:
        """Return the identity of the vectors; a folder's model is loaded.

        Raises:
            EmbeddingError: The embedder is missing, or its model cannot be loaded.
        """
        if self._embedder is None:
            raise EmbeddingError(f"There are no vectors: {self._absent}.", code="no_embedder")
        return self._embedder.identity

    async def ready(self, patience: float | None) -> bool:
        """Wait until searches use embeddings too; return True if they do.

        Args:
            patience: Maximum seconds; None waits for all texts. With a limit, a long queue is waited for only once:
                after that, words answer until it is short. An embedder that failed last time retries in the background.
        """
        if self._worker is None or self.index is None:
            return False
        status = self._worker.status
        many = status.pending > WORTH_WAITING
        hopeless = status.is_failing or self.index.is_empty or (many and self._waited)
        if patience is not None and hopeless:
            if not self.index.is_empty:
                self._worker.start()
            return False
        if status.is_settled:
            return True
        self._waited = self._waited or bool(patience)
        deadline = math.inf if patience is None else time.monotonic() + patience
        while True:
            remaining = deadline - time.monotonic()
            if await asyncio.to_thread(self._worker.drain, min(_SLICE_SECONDS, max(0.0, remaining))):
                return True
            if remaining <= _SLICE_SECONDS or not self._worker.status.goes_on:
                return False

    async def warm_up(self) -> None:
        """Load the model and embed the first texts; see `warm_up`."""
        if self._worker is not None and not self.is_empty:
            await warm_up(self._worker)

    async def finish(self) -> int:
        """Embed the first pending texts; return the number still pending.

        Called when a session ends.
        """
        if self._worker is None:
            return 0
        idle = _IdleSlices(self._worker)
        while not await asyncio.to_thread(self._worker.finish, AT_THE_END, _SLICE_SECONDS):
            if idle.is_over():
                break
        return self._worker.status.pending

    def embed_texts(self, texts: Sequence[str]) -> Matrix | None:
        """Return a unit vector for each text, or None if one fails.

        Blocking: loads the model if a text is not in the cache.
        """
        import numpy as np  # nothing slow at import

        if self._worker is None or not texts:
            return None
        keys = list(map(text_hash, texts))
        source = CachingEmbedder(self._worker.embedder, self._worker.cache)
        try:
            vectors = source.documents(dict(zip(keys, texts, strict=True)), load=False, stops=lambda: False)
        except EmbeddingError as error:
            log.warning("not_embedded", code=error.code, error=error.message)
            return None
        return np.stack([vectors[key] for key in keys])

    def fill_later(self) -> None:
        """Do nothing: what is put into the index is embedded by itself."""

    def forget(self, texts: Iterable[str]) -> None:
        """Delete cached vectors of deleted texts that no memory shares.

        For the thread that owns the index.
        """
        if self._worker is not None and self.index is not None:
            hashes = map(text_hash, texts)
            self._worker.cache.forget({key for key in hashes if not self.index.needs(key)})

    def describe(self) -> dict[str, Any]:
        """Return the state of embedding, for people."""
        if self._worker is None:
            return without_embedder(self._absent)
        status = self._worker.status
        if not status.begun:
            if missing := getattr(self._embedder, "missing", lambda: None)():
                return {
                    "status": "failing",
                    "problem": missing,
                    "code": "model_missing",
                    **self._report_unloaded(is_ready=False),
                }
            return {"status": "found"}
        report: dict[str, Any] = {"status": "ready" if status.ready else "loading", "pending": status.pending}
        if (warning := reports()) is not None:
            report["warning"] = warning
        if status.problem:
            report |= {"status": "failing", "problem": status.problem, "code": status.code}
            report |= self._report_unloaded(is_ready=status.ready)
            report |= {"recovery": status.recovery} if status.recovery else {}
        return report

    def _report_unloaded(self, *, is_ready: bool) -> dict[str, bool]:
        """Return `loaded: False` if a local model is not loaded."""
        return {"loaded": False} if self._worker is not None and not self._worker.is_remote and not is_ready else {}

    def close(self) -> None:
        """Stop embedding; the next process embeds the rest."""
        if self._worker is not None:
            self._worker.close()


class _IdleSlices:
    """Detector of a wait without progress.

    A wait is over if an API takes too long, or if nothing uses the processor.

    Args:
        worker: Worker that is waited for.
    """

    def __init__(self, worker: EmbeddingWorker) -> None:
        self._deadline = time.monotonic() + worker.remote_seconds if worker.is_remote else math.inf
        self._spent = time.process_time()
        self._idle = 0

    def is_over(self, *, may_idle: bool = False) -> bool:
        """Return True if waiting is to end after the slice just waited.

        Args:
            may_idle: A file is read, which takes no processor.
        """
        before, self._spent = self._spent, time.process_time()
        has_worked = may_idle or self._spent - before >= _LEAST_CPU
        self._idle = 0 if has_worked else self._idle + 1
        return self._idle >= _IDLE_SLICES or time.monotonic() >= self._deadline


async def warm_up(worker: EmbeddingWorker) -> None:
    """Wait until a first search by meaning is ready.

    Waits while the worker's thread makes progress. No clock ends that for a local model, or a busy machine would find
    less. An API has its timeout.
    """
    if worker.is_warm:
        return
    idle = _IdleSlices(worker)
    while (stage := await asyncio.to_thread(worker.warm_up, _SLICE_SECONDS)) != "done":
        if idle.is_over(may_idle=stage == "loading"):
            return


def without_embedder(reason: str | None) -> dict[str, Any]:
    """Return the status without an embedder.

    It has `chosen` if the settings ask for none.
    """
    return {"status": "off", "reason": reason, **({"chosen": True} if reason == SWITCHED_OFF else {})}
