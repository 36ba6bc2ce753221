"""Background embedding: a queue of texts, embedded in shared threads.

Neither the agent nor a search waits for a model. Deals in texts and their hashes, not in memories; the caller collects
vectors when it likes. Thread-safe.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import threading
import time
import weakref
from collections import OrderedDict, deque
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Final, Literal

from agent_memory.embeddings.cache import VectorCache, round_vector
from agent_memory.embeddings.onnx_runtime import estimate_length, pieces
from agent_memory.embeddings.schedule import SCHEDULE
from agent_memory.errors import EmbeddingError
from agent_memory.files.vectors import concatenate_vectors

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Container, Iterable

    from agent_memory.embeddings.protocol import Embedder, Vector

_LOOKED_UP: Final = 1_000
"""Texts looked up in the cache at once, about 10 ms."""
WarmUpStage = Literal["loading", "reading", "done"]
"""What the first search of a process waits for: the model; then vectors from the cache and of one batch of texts."""
_WORKING: Final[weakref.WeakSet[EmbeddingWorker]] = weakref.WeakSet()
_REMEMBERED_QUERIES: Final = 64
_UNSAVED_AT_MOST: Final = 10_000
"""Vectors that wait to be kept, about 15 MB; what is beyond is computed again by the next process."""
_OF_ONE_TEXT: Final = frozenset({"http_400", "http_413", "http_422", "vector_not_finite"})
"""Errors that may lie in one text of a batch: that one is found by trying them singly, and given up."""


@dataclass(frozen=True, slots=True)
class WorkerLimits:
    """Batch size and waiting times of a worker.

    Attributes:
        batch: Texts looked up together, and sent together to an API; a model in this process gets them in pieces.
        window: Oldest texts among which those of a batch are chosen.
        failures: Batches that fail in a row before the embedder is left alone for a while; words still find.
        rest_seconds: How long that is.
        head_start_seconds: Loading a model holds the interpreter for a third of a second. What has just been opened is
            first read, and searched by words, unless a caller waits for the model.
        remote_seconds: What a first search, and closing, wait for an API; a thread that waits for a network can be left
            behind.
    """

    batch: int = 32
    window: int = 256
    failures: int = 3
    rest_seconds: float = 30.0
    head_start_seconds: float = 0.5
    remote_seconds: float = 5.0


LIMITS = WorkerLimits()
"""For workers that are given none."""


@dataclass(frozen=True, slots=True)
class WorkerStatus:
    """State of embedding.

    Attributes:
        ready: True if queries can be embedded now.
        pending: Texts waiting for a vector.
        problem: Last problem, for people, or None.
        code: Machine-readable code of the problem.
        begun: True if the model was needed, or a problem occurred.
        recovery: Advice about the problem.
        is_settled: True if the model is loaded and every submitted text has a stored vector.
        is_failing: True if the last attempt failed, so that texts wait for another one.
        goes_on: True if waiting makes sense: neither closed, nor pausing after failures.
    """

    ready: bool
    pending: int
    problem: str | None = None
    code: str | None = None
    begun: bool = True
    recovery: str | None = None
    is_settled: bool = False
    is_failing: bool = False
    goes_on: bool = True


class EmbeddingWorker:
    """Fills a vector cache in the background and embeds queries.

    Work begins with the first `submit` or `start`. The model is loaded for a text that is not in the cache, for a
    query, and for `start`. An interpreter that ends has it stop after the piece at hand
    and waits for that, also without a call of `close`: left inside a model, it would abort the process. Nothing is
    lost, since what was not embedded is found missing by the next process.

    Args:
        embedder: Converts texts to vectors; loaded in a shared thread.
        cache: Cache of vectors, shared with other processes.
        limits: Batch size and waiting times.

    Attributes:
        cache: The same.
        notice_texts: Called with texts that were embedded for the first time, in the background.
    """

    def __init__(
        self, embedder: Embedder, cache: VectorCache | None = None, limits: WorkerLimits | None = None
    ) -> None:
        self._limits = limits or LIMITS
        self.cache = cache or VectorCache(None)
        self._source = CachingEmbedder(embedder, self.cache)
        self._state = threading.Condition()
        self._backlog = TextBacklog(self._limits)
        self._done: deque[tuple[bytes, Vector]] = deque()
        self._has_stepped = False
        self._rest_ends = 0.0
        self._closing = False
        self._wanted = False  # a caller waits for the model
        self._has_query = False  # True after a query that found no loaded model
        self._finishing = False  # a session ends: the model is loaded only for a text that needs it
        self._least = 0  # texts that may be left due then
        self._is_warm = False  # the first texts after loading have their vectors
        self.notice_texts: Callable[[Iterable[str]], object] = lambda _: None

    @property
    def embedder(self) -> Embedder:
        """Embedder of the worker."""
        return self._source.embedder

    @property
    def ready(self) -> bool:
        """True if the model is loaded, so that a query costs milliseconds."""
        return self._source.ready

    @property
    def is_remote(self) -> bool:
        """True if vectors come from an API."""
        return self._source.is_remote

    @property
    def remote_seconds(self) -> float:
        """Seconds to wait for an API."""
        return self._limits.remote_seconds

    @property
    def is_warm(self) -> bool:
        """True if model and first texts are ready for a search."""
        return self._is_warm

    @property
    def status(self) -> WorkerStatus:
        """State of embedding."""
        with self._state:
            source, backlog, error = self._source, self._backlog, self._backlog.problem
            problem = error.message if error else self.cache.problem
            is_idle = source.ready and not backlog.pending
            has_begun = self._wanted or self._has_query or source.ready or backlog.needs_model
            return WorkerStatus(
                source.ready,
                backlog.pending,
                problem,
                code=error.code if error else ("vector_cache" if problem else None),
                begun=has_begun or problem is not None,
                recovery=error.recovery if error else None,
                is_settled=is_idle and not source.has_unsaved and not self._closing,
                is_failing=error is not None and not is_idle,
                goes_on=not self._closing and not backlog.is_resting,
            )

    def start(self) -> None:
        """Begin loading the model, if that has not begun."""
        with self._state:
            self._wanted = True
            self._begin()

    def submit(self, texts: dict[bytes, str]) -> None:
        """Request the vectors of texts by their hashes; see `collect`."""
        with self._state:
            self._backlog.unchecked.update(texts)
            self._begin()

    def withdraw(self, key: bytes) -> None:
        """Cancel a request; callers ignore an answer that arrives later."""
        with self._state:
            self._backlog.withdraw(key)

    def collect(self) -> list[tuple[bytes, Vector]]:
        """Return the vectors that arrived since the last call, without waiting."""
        vectors = []
        while self._done:
            vectors.append(self._done.popleft())
        return vectors

    def embed_query(self, text: str) -> Vector | None:
        """Return the vector of a query, or None if that fails.

        None, too, while the model is loading (see `status`).
        """
        with self._state:
            if not self._source.ready:
                self._has_query = True
                self._begin()
                return None
        try:
            return self._source.query(text)
        except Exception as error:  # noqa: BLE001 - as in `_run`: words still find
            with self._state:
                self._backlog.problem = _as_embedding_error(error)
            return None

    def drain(self, timeout: float | None = None) -> bool:
        """Wait until every submitted text has its vector.

        False on timeout, failure or after `close`.
        """
        if self._source.has_unsaved:
            self._source.save({})
        self.start()

        def is_idle() -> bool:
            return self._source.ready and not self._backlog.pending

        with self._state:
            self._state.wait_for(lambda: is_idle() or self._closing or self._backlog.is_resting, timeout)
            return is_idle()

    def warm_up(self, timeout: float) -> WarmUpStage:
        """Wait until a first search is ready; return the stage reached.

        It needs the model, the vectors in the cache, and those of the pending texts, if they fit in one batch.
        A model that failed to load ends the wait. Waits once in a process.
        """
        self.start()
        with self._state:
            self._state.wait_for(lambda: self._stage() == "done", timeout)
            return self._stage()

    def finish(self, most: int, timeout: float) -> bool:
        """Embed up to `most` pending texts; return True if done in time.

        Pending are those of the first call. Loads the model only if a text needs it. The rest stays pending.
        """
        with self._state:
            if not (most and self._backlog.pending):
                return True
            if not self._finishing:
                self._finishing, self._least = True, max(0, self._backlog.pending - most)
            self._begin()

            def is_done() -> bool:
                backlog = self._backlog
                return backlog.pending <= self._least or not self._goes_on() or backlog.problem is not None

            return self._state.wait_for(is_done, timeout)

    def _goes_on(self) -> bool:
        return not (self._closing or self._backlog.is_resting)

    def _stage(self) -> WarmUpStage:
        backlog = self._backlog
        if not self._goes_on() or backlog.problem is not None:
            return "done"
        if not self._source.ready:
            return "loading"
        waits = backlog.unchecked or (backlog.pending and not self._is_warm and backlog.pending <= self._limits.batch)
        return "reading" if waits else "done"

    def close(self) -> None:
        """Stop after the current batch and close the cache.

        The next process embeds the rest. Returns when the thread has left the model, however long that takes; only an
        API is not waited for.
        """
        with self._state:
            self._closing = True
            self._state.notify_all()
        _remove(self, self._limits.remote_seconds if self._source.is_remote else None)
        self.cache.close()

    @property
    def _needs_model(self) -> bool:
        return (self._wanted or self._has_query) and not (self._source.ready or self._finishing)

    def _begin(self) -> None:
        """Schedule a step; the lock is held."""
        if self._closing:
            return
        is_urgent = self._has_stepped or self._wanted or self._finishing
        try:
            SCHEDULE.add(self, 0.0 if is_urgent else self._limits.head_start_seconds)
        except RuntimeError as error:  # no room for a thread: tried again with the next text
            self._backlog.rest(_as_embedding_error(error))
            return
        _WORKING.add(self)

    def step(self) -> float | None:
        """Embed a batch; return the seconds until the next, or None."""
        with self._state:
            self._has_stepped = True
            if self._backlog.is_resting:
                if (seconds := self._rest_ends - time.monotonic()) > 0:
                    return seconds
                self._backlog.end_rest()
            if self._closing or not self._has_work:
                return None
        self._embed_batch()
        with self._state:
            if not self._backlog.is_resting:
                return 0.0 if self._has_work else None
            self._rest_ends = time.monotonic() + self._limits.rest_seconds
            return self._limits.rest_seconds

    @property
    def _has_work(self) -> bool:
        return bool(self._backlog.unchecked or self._backlog.texts or self._needs_model)

    def _embed_batch(self) -> None:
        batch: dict[bytes, str] = {}
        try:
            self._look_up()
            with self._state:
                batch = self._backlog.take()
            if batch or self._needs_model:
                vectors = self._source.documents(batch, load=self._wanted, stops=lambda: self._closing)
                self._done.extend(vectors.items())
                self.notice_texts(batch.values())
        except Exception as error:  # noqa: BLE001 - a model is foreign code; a dead thread would keep all waiting
            with self._state:
                self._backlog.put_back(batch, _as_embedding_error(error), ready=self._source.ready)
                self._state.notify_all()
            return
        with self._state:
            self._backlog.clear_failures()
            self._is_warm = self._source.ready and (self._is_warm or bool(batch) or not self._backlog.pending)
            self._state.notify_all()

    def _look_up(self) -> None:
        """Use cached vectors before a model is loaded for the rest."""
        while not self._closing:
            with self._state:
                texts = dict(islice(self._backlog.unchecked.items(), _LOOKED_UP))
            if not texts:
                return
            cached = self._source.find_cached(texts)
            self._done.extend(cached.items())
            with self._state:
                self._backlog.note_checked(texts, cached)
                self._state.notify_all()


def _remove(worker: EmbeddingWorker, seconds: float | None) -> None:
    try:
        SCHEDULE.remove(worker, seconds)
    except KeyboardInterrupt:
        _remove(worker, seconds)
        raise


@atexit.register
def _end_all() -> None:
    """Stop every thread before the interpreter ends it inside its model."""
    for worker in list(_WORKING):
        with contextlib.suppress(KeyboardInterrupt):
            worker.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_WORKING.clear)  # threads and locks of the parent


def _as_embedding_error(error: Exception) -> EmbeddingError:
    if isinstance(error, EmbeddingError):
        return error
    return EmbeddingError(
        f"The embedder failed with {type(error).__name__}: {' '.join(str(error).split())[:200]}. "
        "Search by words still works.",
        code="embedder_failed",
    )


class CachingEmbedder:
    """Embeds texts whose vectors are not cached, and caches them. Thread-safe.

    Args:
        embedder: Converts texts to vectors; loaded at the first text that is not in the cache.
        cache: Cache of vectors, shared with other processes.

    Attributes:
        ready: True if the model is loaded.
        query: Returns the vector of a query, cached if recent; raises the errors of the embedder.
    """

    def __init__(self, embedder: Embedder, cache: VectorCache) -> None:
        self.embedder, self.cache = embedder, cache
        self.is_remote = bool(getattr(embedder, "is_remote", False))
        self.ready = False
        self._lock = threading.Lock()
        self.query = lru_cache(maxsize=_REMEMBERED_QUERIES)(embedder.embed_query)
        self._unsaved: dict[bytes, Vector] = {}

    @property
    def has_unsaved(self) -> bool:
        """True if vectors wait to be stored."""
        return bool(self._unsaved)

    def documents(self, texts: dict[bytes, str], *, load: bool, stops: Callable[[], bool]) -> dict[bytes, Vector]:
        """Return the vectors of texts by their hashes.

        Raises the errors of the embedder.

        Args:
            texts: Texts by their hashes; none loads the model.
            load: Load the model even if the cache has all of them.
            stops: Returns True between two batches to leave out the rest.
        """
        cached = self.find_cached(texts)
        fresh = [key for key in texts if key not in cached]
        if not self.ready and (fresh or not texts or load):
            self.embedder.embed_query("ready")  # loads the model; an API answers or names its trouble
            self.ready = True
        vectors = dict(cached)
        for piece in self._pieces([texts[key] for key in fresh]):
            if stops():
                break
            keys = [fresh[index] for index in piece]
            exact = self._embed_texts({key: texts[key] for key in keys})
            self.save(exact)
            identity = self.embedder.identity
            vectors |= {key: round_vector(row, identity) for key, row in exact.items()}  # as the cache returns them
        return vectors

    def _embed_texts(self, texts: dict[bytes, str]) -> dict[bytes, Vector]:
        """Return the vectors of texts.

        Each embedder of a pair reads what it has not cached.
        """
        columns = []
        for part in getattr(self.embedder, "parts", None) or (self.embedder,):
            cached = {} if part is self.embedder else self.cache.get_many(part.identity, texts)
            fresh = [key for key in texts if key not in cached]
            rows = part.embed_documents([texts[key] for key in fresh]) if fresh else ()
            columns.append(cached | dict(zip(fresh, rows, strict=True)))
        if len(columns) == 1:
            return columns[0]
        return {key: concatenate_vectors([vectors[key] for vectors in columns]) for key in texts}

    def find_cached(self, texts: Collection[bytes]) -> dict[bytes, Vector]:
        """Return cached vectors by text hash.

        Raises the errors of the embedder.
        """
        return self.cache.get_many(self.embedder.identity, texts)

    def save(self, vectors: dict[bytes, Vector]) -> None:
        """Store vectors, and those that could not be stored before.

        A full disk may have room again.
        """
        with self._lock:
            vectors, self._unsaved = {**self._unsaved, **vectors}, {}
        if vectors and not self.cache.put_many(self.embedder.identity, vectors):
            with self._lock:
                room = max(0, _UNSAVED_AT_MOST - len(self._unsaved))
                self._unsaved |= dict(list(vectors.items())[:room])

    def _pieces(self, texts: list[str]) -> Iterable[list[int]]:
        """Return the positions of texts by batch; `stops` is asked between two."""
        if self.is_remote:
            return [list(range(len(texts)))] if texts else []
        count_tokens = getattr(self.embedder, "count_tokens", None)
        return pieces(texts, count_tokens(texts) if count_tokens and texts else ())


class TextBacklog:
    """Texts that wait for their vector. Used under the worker's lock."""

    def __init__(self, limits: WorkerLimits) -> None:
        self._limits = limits
        self.unchecked: OrderedDict[bytes, str] = OrderedDict()
        """Texts not yet looked up in the cache."""
        self.texts: OrderedDict[bytes, str] = OrderedDict()
        """Texts to embed."""
        self.problem: EmbeddingError | None = None
        self._busy = 0
        self._failures = 0
        self._singly = 0
        """Texts still to be tried one by one."""

    @property
    def pending(self) -> int:
        """Number of texts without a vector."""
        return len(self.unchecked) + len(self.texts) + self._busy

    @property
    def needs_model(self) -> bool:
        """True if a text has no cached vector."""
        return bool(self.texts or self._busy)

    @property
    def is_resting(self) -> bool:
        """True if the embedder failed so often that it pauses."""
        return self._failures >= self._limits.failures

    def rest(self, error: EmbeddingError) -> None:
        """Pause the embedder, so that no caller waits for it."""
        self.problem, self._failures = error, self._limits.failures

    def end_rest(self) -> None:
        """Try the embedder again."""
        self._failures = 0

    def withdraw(self, key: bytes) -> None:
        """Remove a text from the queue."""
        self.unchecked.pop(key, None)
        self.texts.pop(key, None)

    def note_checked(self, keys: Iterable[bytes], cached: Container[bytes]) -> None:
        """Queue texts without a cached vector, unless they were withdrawn."""
        for key in keys:
            text = self.unchecked.pop(key, None)
            if text is not None and key not in cached:
                self.texts[key] = text

    def take(self) -> dict[bytes, str]:
        """Take the next batch: the oldest text and those of similar length.

        Texts of one length need no padding: 5,000 memories then cost a model 12 % less.
        """
        size = 1 if self._singly else self._limits.batch
        oldest = list(islice(self.texts.items(), size if self._singly else self._limits.window))
        if len(oldest) > size:
            lengths = {key: estimate_length(text) for key, text in oldest}
            first = lengths[oldest[0][0]]
            oldest.sort(key=lambda item: abs(lengths[item[0]] - first))
        batch = dict(oldest[:size])
        for key in batch:
            del self.texts[key]
        self._singly = max(0, self._singly - len(batch))
        self._busy = len(batch)
        return batch

    def put_back(self, batch: dict[bytes, str], error: EmbeddingError, *, ready: bool) -> None:
        """Put a batch back, first in the queue.

        A single text that the loaded model refuses is given up.
        """
        self._busy = 0
        self.problem = error
        if ready and error.code in _OF_ONE_TEXT and len(batch) == 1:
            return
        for key, text in batch.items():
            self.unchecked.pop(key, None)
            self.texts.setdefault(key, text)
            self.texts.move_to_end(key, last=False)
        self._singly = len(batch) if error.code in _OF_ONE_TEXT else 0
        self._failures += error.code not in _OF_ONE_TEXT

    def clear_failures(self) -> None:
        """Clear the last problem."""
        self._busy = self._failures = 0
        self.problem = None
