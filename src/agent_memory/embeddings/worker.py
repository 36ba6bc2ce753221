"""`EmbeddingWorker`: embeds on a thread of its own, so that neither the agent nor a search waits for a model.

Owns the queue, the thread and the order cache → embedder → cache. Must not know memories: it deals in texts and their
hashes, and whoever asked collects vectors when it likes. Thread-safe.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import threading
import weakref
from collections import OrderedDict, deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from agent_memory.embeddings.cache import VectorCache, rounded, text_hash
from agent_memory.embeddings.pieces import pieces
from agent_memory.errors import EmbeddingError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_memory.embeddings.protocol import Embedder, EmbedderIdentity, Vector

_BATCH: Final = 32
"""Texts looked up together, and sent together to an API; a model in this process gets them in `pieces`."""
_REMOTE_SECONDS: Final = 5.0
"""What closing waits for an API; a thread that waits for a network can be left behind."""

_HEAD_START_SECONDS: Final = 0.5
"""Loading a model holds the interpreter for a third of a second. What has just been opened is first read, and searched
by words, unless somebody waits for the model."""

_REMEMBERED_QUERIES: Final = 64
_FAILURES_BEFORE_REST: Final = 3
_REST_SECONDS: Final = 30.0
"""After three failed batches in a row an embedder is left alone for half a minute; keyword search goes on."""


_UNSAVED_AT_MOST: Final = 10_000
"""Vectors that wait to be kept, about 15 MB; what is beyond is computed once more by the next process."""

_OF_ONE_TEXT: Final = frozenset({"http_400", "http_413", "http_422", "vector_not_finite"})
"""Errors that may lie in one text of a batch: that one is found by trying them singly, and given up."""


@dataclass(frozen=True, slots=True)
class WorkerStatus:
    """How embedding stands.

    Attributes:
        ready: Whether queries can be embedded now.
        pending: Texts waiting for a vector.
        embedded: Texts this process embedded.
        cached: Texts whose vector the cache knew.
        refused: Texts the model would not embed; they are found by their words alone.
        problem: What went wrong last, for people; None while all is well.
        code: The problem's machine-readable word.
        begun: Whether anything has asked for the model or a vector yet.
        recovery: What to do about the problem.
    """

    ready: bool
    pending: int
    embedded: int
    cached: int
    refused: int = 0
    problem: str | None = None
    code: str | None = None
    begun: bool = True
    recovery: str | None = None


class EmbeddingWorker:
    """Fills a vector cache in the background and embeds queries.

    The thread starts with the first `submit` or `start`. An interpreter that ends has it stop after the piece at hand
    and waits for that, also when nobody called `close`: left inside a model, it would abort the process. Nothing is
    lost, since what was not embedded is found missing by the next process.

    Args:
        embedder: Turns texts into vectors; loaded on the thread.
        cache: Where vectors are kept; shared with other processes.
    """

    def __init__(self, embedder: Embedder, cache: VectorCache | None = None) -> None:
        self._embedder = embedder
        self._cache = cache or VectorCache(None)
        self._state = threading.Condition()
        self._unsaved: dict[bytes, Vector] = {}
        self._queue: OrderedDict[bytes, str] = OrderedDict()
        self._done: deque[tuple[bytes, Vector]] = deque()
        self._queries: OrderedDict[str, Vector] = OrderedDict()
        self._thread: threading.Thread | None = None
        self._ended = threading.Event()
        self._is_remote = bool(getattr(embedder, "is_remote", False))
        self._closing = False
        self._busy = 0
        self._ready = False
        self._wanted = False  # somebody waits for the model
        self._embedded = self._cached = self._refused = self._failures = 0
        self._singly = 0  # texts still to be tried one by one
        self._problem: EmbeddingError | None = None

    @property
    def similarity_threshold(self) -> float:
        """The embedder's own floor for a hit by meaning alone."""
        return self._embedder.similarity_threshold

    @property
    def ready(self) -> bool:
        """Whether the model is loaded, so that a query costs milliseconds."""
        return self._ready

    @property
    def status(self) -> WorkerStatus:
        """How embedding stands, for memory_status."""
        with self._state:
            problem = self._problem.message if self._problem else self._cache.problem
            code = self._problem.code if self._problem else ("vector_cache" if self._cache.problem else None)
            pending = len(self._queue) + self._busy
            begun = self._thread is not None or problem is not None
            recovery = self._problem.recovery if self._problem else None
            counts = (pending, self._embedded, self._cached, self._refused)
            return WorkerStatus(self._ready, *counts, problem, code, begun, recovery)

    def start(self) -> None:
        """Begin loading the model, if that has not begun."""
        with self._state:
            self._hurry()

    def submit(self, texts: dict[bytes, str]) -> None:
        """Ask for the vectors of texts by their hashes; `collect` hands them out when they are there."""
        with self._state:
            self._queue.update(texts)
            self._ensure_thread()
            self._state.notify_all()

    def withdraw(self, key: bytes) -> None:
        """Take back a request whose text is no longer wanted; one already answered is ignored by whoever asked."""
        with self._state:
            self._queue.pop(key, None)

    def collect(self) -> list[tuple[bytes, Vector]]:
        """Return the vectors that became known since the last call, without waiting."""
        found = []
        while self._done:
            found.append(self._done.popleft())
        return found

    def embed_query(self, text: str) -> Vector | None:
        """Return the vector of a query, or None while there is no model or when it fails (see `status`)."""
        with self._state:
            known = self._queries.get(text)
            if known is not None:
                self._queries.move_to_end(text)
                return known
            if not self._ready:
                self._ensure_thread()
                return None
        try:
            vector = self._embedder.embed_query(text)
        except Exception as error:  # noqa: BLE001 - as in `_run`: words still find
            with self._state:
                self._problem = error if isinstance(error, EmbeddingError) else _unexpected(error)
            return None
        with self._state:
            self._queries[text] = vector
            while len(self._queries) > _REMEMBERED_QUERIES:
                self._queries.popitem(last=False)
        return vector

    def drain(self, timeout: float | None = None) -> bool:
        """Wait until every submitted text has its vector; False on timeout, failure or after `close`."""
        if self._unsaved:
            self._save(self._embedder.identity, {})
        with self._state:
            self._hurry()
            self._state.wait_for(lambda: self._idle() or self._closing or self._resting(), timeout)
            return self._idle() and self._ready

    @property
    def is_settled(self) -> bool:
        """Whether the model is loaded and every submitted text has its vector, all of them kept."""
        with self._state:
            return self._idle() and not self._unsaved and not self._closing

    @property
    def is_failing(self) -> bool:
        """Whether the last attempt to embed failed, so that texts wait for another one."""
        with self._state:
            return self._problem is not None and not self._idle()

    @property
    def goes_on(self) -> bool:
        """Whether waiting for what is queued has any sense: neither closed, nor resting after failures."""
        with self._state:
            return not self._closing and not self._resting()

    def prune(self, keep: set[bytes]) -> int:
        """Drop cached vectors of texts that no memory has any more; return how many."""
        return self._cache.prune(keep)

    def forget(self, keys: Iterable[bytes]) -> None:
        """Drop the cached vectors of these texts."""
        self._cache.forget(keys)

    def close(self) -> None:
        """Stop after the piece at hand and close the cache; what is queued is left to the next process.

        Returns when the thread has left the model, which no impatience can change; only an API is not waited for.
        """
        with self._state:
            self._closing = True
            self._state.notify_all()
            thread = self._thread
        if thread is not None and thread.is_alive() and thread is not threading.current_thread():
            self._wait_for_end()
        self._cache.close()

    def _wait_for_end(self) -> None:
        interrupted = None
        while True:
            try:  # not join(), which an interrupt has believe that the thread has ended
                self._ended.wait(_REMOTE_SECONDS if self._is_remote else None)
                break
            except KeyboardInterrupt as error:
                interrupted = error
        if interrupted is not None:
            raise interrupted

    def _idle(self) -> bool:
        return self._ready and not self._queue and not self._busy

    def _resting(self) -> bool:
        return self._failures >= _FAILURES_BEFORE_REST

    def _ensure_thread(self) -> None:
        if self._closing or (self._thread is not None and self._thread.is_alive()):
            return  # a thread does not survive fork(), so a child that finds it dead starts its own
        self._ended = threading.Event()
        # A daemon only so that the end of the interpreter, which waits for other threads first, can tell it to stop.
        thread = threading.Thread(target=self._live, args=(self._ended,), name="agent-memory-embedding", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:  # no room for a thread: tried again with the next text
            self._problem = _unexpected(error)
            self._failures = _FAILURES_BEFORE_REST  # nobody is to wait for it
            return
        self._thread = thread
        _WORKING.add(self)

    def _hurry(self) -> None:
        self._wanted = True
        self._ensure_thread()
        self._state.notify_all()

    def _live(self, ended: threading.Event) -> None:
        try:
            self._run()
        finally:
            ended.set()

    def _run(self) -> None:
        with self._state:
            self._state.wait_for(lambda: self._closing or self._wanted, _HEAD_START_SECONDS)
        while True:
            with self._state:
                if self._resting():
                    self._state.wait_for(lambda: self._closing, _REST_SECONDS)
                    self._failures = 0
                self._state.wait_for(lambda: self._closing or bool(self._queue) or not self._ready)
                if self._closing:
                    return
                batch = dict(self._take())
            try:
                found = self._vectors(batch)
            except EmbeddingError as error:
                self._failed(batch, error)
            except Exception as error:  # noqa: BLE001 - a model is foreign code; a dead thread would keep all waiting
                self._failed(batch, _unexpected(error))
            else:
                self._succeeded(found)

    def _take(self) -> list[tuple[bytes, str]]:
        size = 1 if self._singly else _BATCH
        batch = [self._queue.popitem(last=False) for _ in range(min(size, len(self._queue)))]
        self._singly = max(0, self._singly - len(batch))
        self._busy = len(batch)
        return batch

    def _vectors(self, batch: dict[bytes, str]) -> dict[bytes, Vector]:
        identity: EmbedderIdentity = self._embedder.identity
        known = self._cache.get_many(identity, batch)
        self._cached += len(known)
        fresh_keys = [key for key in batch if key not in known]
        if not self._ready and (fresh_keys or not batch or self._wanted):
            self._embedder.embed_query("ready")  # loads the model; an API answers or names its trouble
            self._ready = True
        fresh: dict[bytes, Vector] = {}
        for piece in self._pieces([batch[key] for key in fresh_keys]):
            if self._closing:
                break
            keys = [fresh_keys[at] for at in piece]
            exact = dict(zip(keys, self._embedder.embed_documents([batch[key] for key in keys]), strict=True))
            self._save(identity, exact)
            fresh |= {key: rounded(row) for key, row in exact.items()}  # as the cache gives them back later
            self._embedded += len(keys)
        return {**known, **fresh}

    def _pieces(self, texts: list[str]) -> Iterable[list[int]]:
        """Return the positions of texts that are embedded between two looks at whether to stop."""
        if self._is_remote:
            return [list(range(len(texts)))] if texts else []
        return pieces(texts)

    def _save(self, identity: EmbedderIdentity, vectors: dict[bytes, Vector]) -> None:
        """Keep vectors, with those that could not be kept before: a full disk has room again one day."""
        with self._state:
            vectors, self._unsaved = {**self._unsaved, **vectors}, {}
        if vectors and not self._cache.put_many(identity, vectors):
            with self._state:
                room = max(0, _UNSAVED_AT_MOST - len(self._unsaved))
                self._unsaved |= dict(list(vectors.items())[:room])

    def _failed(self, batch: dict[bytes, str], error: EmbeddingError) -> None:
        with self._state:
            self._busy = 0
            self._problem = error
            if self._ready and error.code in _OF_ONE_TEXT and len(batch) == 1:
                self._refused += 1
            else:
                for key, text in batch.items():
                    self._queue.setdefault(key, text)
                    self._queue.move_to_end(key, last=False)
                self._singly = len(batch) if error.code in _OF_ONE_TEXT else 0
                self._failures += error.code not in _OF_ONE_TEXT
            self._state.notify_all()

    def _succeeded(self, found: dict[bytes, Vector]) -> None:
        self._done.extend(found.items())
        with self._state:
            self._busy = 0
            self._failures = 0
            self._problem = None
            self._state.notify_all()


_WORKING: Final[weakref.WeakSet[EmbeddingWorker]] = weakref.WeakSet()


@atexit.register
def _end_all() -> None:
    """Have every thread leave its model before the interpreter ends it by force."""
    for worker in list(_WORKING):
        with contextlib.suppress(KeyboardInterrupt):
            worker.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_WORKING.clear)  # threads and locks of the parent


def _unexpected(error: Exception) -> EmbeddingError:
    return EmbeddingError(
        f"The embedder failed with {type(error).__name__}: {' '.join(str(error).split())[:200]}. Words still find.",
        code="embedder_failed",
    )


__all__ = ["EmbeddingWorker", "WorkerStatus", "text_hash"]
