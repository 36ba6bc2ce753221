"""`EmbeddingWorker`: embeds on a thread of its own, so that neither the agent nor a search waits for a model.

Owns the queue and the thread. Must not know memories: it deals in texts and their hashes, and whoever asked collects
vectors when it likes. Thread-safe.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import threading
import weakref
from collections import deque
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Final, Literal

from agent_memory.embeddings.cache import VectorCache
from agent_memory.embeddings.caching import CachingEmbedder
from agent_memory.embeddings.text_backlog import Backlog, WorkerLimits
from agent_memory.errors import EmbeddingError

if TYPE_CHECKING:
    from agent_memory.embeddings.protocol import Embedder, Vector


LIMITS = WorkerLimits()
"""For workers that are given none."""
_LOOKED_UP: Final = 1_000
"""Texts looked up in the cache at once, about 10 ms."""

WarmUpStage = Literal["loading", "reading", "done"]
"""What the first search of a process waits for: the model; then vectors from the cache and of one batch of texts."""


@dataclass(frozen=True, slots=True)
class WorkerStatus:
    """How embedding stands.

    Attributes:
        ready: Whether queries can be embedded now.
        pending: Texts waiting for a vector.
        problem: What went wrong last, for people; None while all is well.
        code: The problem's machine-readable word.
        begun: Whether anything has asked for the model or a vector yet.
        recovery: What to do about the problem.
        is_settled: Whether the model is loaded and every submitted text has its vector, all of them kept.
        is_failing: Whether the last attempt to embed failed, so that texts wait for another one.
        goes_on: Whether waiting for what is queued has any sense: neither closed, nor resting after failures.
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

    The thread starts with the first `submit` or `start`. An interpreter that ends has it stop after the piece at hand
    and waits for that, also without a call of `close`: left inside a model, it would abort the process. Nothing is
    lost, since what was not embedded is found missing by the next process.

    Args:
        embedder: Turns texts into vectors; loaded on the thread.
        cache: Where vectors are kept; shared with other processes.
        limits: How much at once, and how long.

    Attributes:
        cache: The same.
    """

    def __init__(
        self, embedder: Embedder, cache: VectorCache | None = None, limits: WorkerLimits | None = None
    ) -> None:
        self._limits = limits or LIMITS
        self.cache = cache or VectorCache(None)
        self._source = CachingEmbedder(embedder, self.cache)
        self._state = threading.Condition()
        self._backlog = Backlog(self._limits)
        self._done: deque[tuple[bytes, Vector]] = deque()
        self._thread: threading.Thread | None = None
        self._ended = threading.Event()
        self._closing = False
        self._wanted = False  # a caller waits for the model
        self._finishing = False  # a session ends: the model is loaded only for a text that needs it
        self._least = 0  # texts that may be left due then
        self._is_warm = False  # the first texts after loading have their vectors

    @property
    def embedder(self) -> Embedder:
        """What turns texts into vectors."""
        return self._source.embedder

    @property
    def ready(self) -> bool:
        """Whether the model is loaded, so that a query costs milliseconds."""
        return self._source.ready

    @property
    def is_remote(self) -> bool:
        """Return True if vectors come from an API."""
        return self._source.is_remote

    @property
    def remote_seconds(self) -> float:
        """Seconds to wait for an API."""
        return self._limits.remote_seconds

    @property
    def is_warm(self) -> bool:
        """Return True if model and first texts are ready for a search."""
        return self._is_warm

    @property
    def status(self) -> WorkerStatus:
        """How embedding stands."""
        with self._state:
            source, backlog, error = self._source, self._backlog, self._backlog.problem
            problem = error.message if error else self.cache.problem
            is_idle = source.ready and not backlog.pending
            return WorkerStatus(
                source.ready,
                backlog.pending,
                problem,
                code=error.code if error else ("vector_cache" if problem else None),
                begun=self._thread is not None or problem is not None,
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
        """Ask for the vectors of texts by their hashes; `collect` hands them out when they are there."""
        with self._state:
            self._backlog.unchecked.update(texts)
            self._begin()

    def withdraw(self, key: bytes) -> None:
        """Take back a request whose text is no longer wanted; one already answered is ignored by whoever asked."""
        with self._state:
            self._backlog.withdraw(key)

    def collect(self) -> list[tuple[bytes, Vector]]:
        """Return the vectors that became known since the last call, without waiting."""
        found = []
        while self._done:
            found.append(self._done.popleft())
        return found

    def embed_query(self, text: str) -> Vector | None:
        """Return the vector of a query, or None while there is no model or when it fails (see `status`)."""
        with self._state:
            if not self._source.ready:
                self._begin()
                return None
        try:
            return self._source.query(text)
        except Exception as error:  # noqa: BLE001 - as in `_run`: words still find
            with self._state:
                self._backlog.problem = _as_embedding_error(error)
            return None

    def drain(self, timeout: float | None = None) -> bool:
        """Wait until every submitted text has its vector; False on timeout, failure or after `close`."""
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
        is_alive = self._thread is not None and self._thread.is_alive()
        return is_alive and not self._closing and not self._backlog.is_resting

    def _stage(self) -> WarmUpStage:
        backlog = self._backlog
        if not self._goes_on() or backlog.problem is not None:
            return "done"
        if not self._source.ready:
            return "loading"
        waits = backlog.unchecked or (backlog.pending and not self._is_warm and backlog.pending <= self._limits.batch)
        return "reading" if waits else "done"

    def close(self) -> None:
        """Stop after the piece at hand and close the cache; what is queued is left to the next process.

        Returns when the thread has left the model, which no impatience can change; only an API is not waited for.
        """
        with self._state:
            self._closing = True
            self._state.notify_all()
            thread = self._thread
        if thread is not None and thread.is_alive() and thread is not threading.current_thread():
            _wait_for(self._ended, self._limits.remote_seconds if self._source.is_remote else None)
        self.cache.close()

    def _begin(self) -> None:
        """Have the thread look, which is started if there is none; the lock is held."""
        self._state.notify_all()
        if self._closing or (self._thread is not None and self._thread.is_alive()):
            return  # a thread does not survive fork(), so a child that finds it dead starts its own
        self._ended = threading.Event()
        # A daemon only so that the end of the interpreter, which waits for other threads first, can tell it to stop.
        thread = threading.Thread(target=self._run, args=(self._ended,), name="agent-memory-embedding", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:  # no room for a thread: tried again with the next text
            self._backlog.rest(_as_embedding_error(error))
            return
        self._thread = thread
        _WORKING.add(self)

    def _run(self, ended: threading.Event) -> None:
        try:
            with self._state:
                self._state.wait_for(
                    lambda: self._closing or self._wanted or self._finishing, self._limits.head_start_seconds
                )
            while self._wait_for_work():
                self._embed()
        finally:
            ended.set()

    def _wait_for_work(self) -> bool:
        """Wait for texts or the end of a pause; False when closing."""

        def has_work() -> bool:
            backlog = self._backlog
            return bool(backlog.unchecked or backlog.texts or not (self._source.ready or self._finishing))

        with self._state:
            if self._backlog.is_resting:
                self._state.wait_for(lambda: self._closing, self._limits.rest_seconds)
                self._backlog.end_rest()
            self._state.wait_for(lambda: self._closing or has_work())
            return not self._closing

    def _embed(self) -> None:
        batch: dict[bytes, str] = {}
        try:
            self._look_up()
            with self._state:
                batch = self._backlog.take()
            if batch or not (self._source.ready or self._finishing):
                vectors = self._source.documents(batch, load=self._wanted, stops=lambda: self._closing)
                self._done.extend(vectors.items())
        except Exception as error:  # noqa: BLE001 - a model is foreign code; a dead thread would keep all waiting
            with self._state:
                self._backlog.failed(batch, _as_embedding_error(error), ready=self._source.ready)
                self._state.notify_all()
            return
        with self._state:
            self._backlog.succeeded()
            self._is_warm = self._source.ready and (self._is_warm or bool(batch) or not self._backlog.pending)
            self._state.notify_all()

    def _look_up(self) -> None:
        """Use cached vectors before a model is loaded for the rest."""
        while not self._closing:
            with self._state:
                texts = dict(islice(self._backlog.unchecked.items(), _LOOKED_UP))
            if not texts:
                return
            cached = self._source.known(texts)
            self._done.extend(cached.items())
            with self._state:
                self._backlog.checked(texts, cached)
                self._state.notify_all()


def _wait_for(ended: threading.Event, seconds: float | None) -> None:
    try:  # not join(), which takes an interrupt for the end of the thread
        ended.wait(seconds)
    except KeyboardInterrupt:
        _wait_for(ended, seconds)
        raise


_WORKING: Final[weakref.WeakSet[EmbeddingWorker]] = weakref.WeakSet()


@atexit.register
def _end_all() -> None:
    """Have every thread leave its model before the interpreter ends it by force."""
    for worker in list(_WORKING):
        with contextlib.suppress(KeyboardInterrupt):
            worker.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_WORKING.clear)  # threads and locks of the parent


def _as_embedding_error(error: Exception) -> EmbeddingError:
    if isinstance(error, EmbeddingError):
        return error
    return EmbeddingError(
        f"The embedder failed with {type(error).__name__}: {' '.join(str(error).split())[:200]}. Words still find.",
        code="embedder_failed",
    )
