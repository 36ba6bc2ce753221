"""`Threaded`: records that are asked for from an event loop: opened late, in a thread of their own, anew after a fork.

The base of the faces of a storage. Knows no kind and no backend: what is opened, and where, is handed in.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from agent_memory.errors import BusyError, StorageError
from agent_memory.files.lock import WAIT_SECONDS
from agent_memory.index import embedded_texts
from agent_memory.logs import get_logger
from agent_memory.models.kind import R
from agent_memory.store.shown import Shown
from agent_memory.store.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from contextlib import AbstractContextManager
    from datetime import timedelta

    from agent_memory.embeddings.protocol import Matrix
    from agent_memory.models import Clock, Kind
    from agent_memory.store.change_log import ChangeLog, Settle
    from agent_memory.store.protocols import Upkeep
    from agent_memory.store.replica import Replica
    from agent_memory.store.shortlist import Shortlist
    from agent_memory.store.state import State

log = get_logger(__name__)

S = TypeVar("S")
T = TypeVar("T")

BETWEEN_TRIES = 0.05
"""Seconds until somebody who asked for a compaction tries again."""
WARM_AT_ONCE = 200
"""Records read in one go in the background: about 10 ms, which is what another call may have to wait."""


class Embeddings(Protocol):
    """Vectors for the texts of one kind of record, or the reason why there are none."""

    @property
    def is_there(self) -> bool:
        """Whether there is an embedder."""

    @property
    def is_ready(self) -> bool:
        """Whether queries can be embedded."""

    @property
    def is_warm(self) -> bool:
        """Return True if a search has nothing to wait for."""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing that could be found by its embedding."""

    @property
    def cost(self) -> float:
        """What the embedder has charged so far, in US dollars."""

    async def ready(self, patience: float | None) -> bool:
        """Wait until searches go by embeddings too; tell whether they do."""

    async def warm_up(self) -> None:
        """Wait while model and first texts of a search make progress."""

    async def finish(self) -> int:
        """Embed the first pending texts; return the number still pending.

        Called when a session ends.
        """

    def embedded(self, texts: Sequence[str]) -> Matrix | None:
        """Return a unit vector for each text; None where none can be made. Blocking."""

    def fill_later(self) -> None:
        """Embed what is missing, without waiting for it."""

    def forget(self, texts: Iterable[str]) -> None:
        """Drop the cached vectors of texts that are gone, but for those that others share."""

    def describe(self) -> dict[str, Any]:
        """Return how embedding stands, for people."""

    def close(self) -> None:
        """Stop embedding."""


@dataclass(frozen=True, slots=True)
class Opened(Generic[R]):
    """What one process has open.

    Attributes:
        replica: The records.
        embeddings: Their vectors.
        upkeep: What moves them between engines and keeps an index.
    """

    replica: Replica[R]
    embeddings: Embeddings
    upkeep: Upkeep


@dataclass(frozen=True, slots=True)
class Backend(Generic[R]):
    """Opened records of one agent.

    Attributes:
        kind: Kind of the records.
        agent_id: Name of the agent.
        clock: Source of the present.
        open: Opens them for the storage that is its argument, whose thread and `prepare` an index needs.
        close: Gives back what they were opened with.
        upkeep: What is said while nothing is open; None opens at once, where the storage is made.
        grace: How long at least the text of what is forgotten stays and can be brought back; None: not at all.
        wait: Seconds that a write waits for other writers.
        patience: Seconds that a search which names none waits until what is stored is found by its embedding, too; None
            waits while a model loads, and for no texts.
        shortlist: Where to keep what a start needs.
    """

    kind: Kind[R]
    agent_id: str
    clock: Clock
    open: Callable[[Any], Opened[R]]
    close: Callable[[], object] = lambda: None
    upkeep: Upkeep | None = None
    grace: timedelta | None = None
    wait: float = WAIT_SECONDS
    patience: float | None = None
    shortlist: Shortlist[R] | None = None


class Threaded(Generic[R]):
    """A replica in a thread of its own. See `RecordStorage`."""

    def __init__(self, backend: Backend[R]) -> None:
        self.agent_id = backend.agent_id
        self.kind = backend.kind
        self._backend = backend
        self._clock = backend.clock
        self.thread = Worker(f"agent-memory-{self.agent_id}", backend.wait)
        self._parents: list[object] = []
        self._pid = os.getpid()
        self._open: Opened[R] | None = None
        self._shown: Shown[R] = Shown(backend.shortlist)
        self._folds = 0
        self._is_compacting = False
        if backend.upkeep is None:
            self._open = backend.open(self)

    @property
    def opened(self) -> Opened[R]:
        """What this process has open, opened now if need be.

        In a forked child everything begins anew. Its parent's threads may have been in the middle of anything, and hold
        locks that no thread of this process would release. What they left is kept unused: finalising it would touch
        files that are still the parent's.
        """
        if self._pid != os.getpid():
            self._parents.append((self._open, self._shown))
            self._pid, self._open = os.getpid(), None
            self._shown = Shown(self._backend.shortlist)
        if self._open is None:
            self._open = self._backend.open(self)
        return self._open

    @property
    def _worker(self) -> Worker:
        if self._backend.upkeep is None:
            _ = self.opened
        return self.thread

    @property
    def _is_open(self) -> bool:
        return self._backend.upkeep is None or (self._open is not None and self._pid == os.getpid())

    @property
    def _upkeep(self) -> Upkeep:
        return self._backend.upkeep or self.opened.upkeep

    @property
    def _replica(self) -> Replica[R]:
        return self.opened.replica

    async def _run(self, ask: Callable[[Replica[R]], T]) -> T:
        """Ask the replica, in its thread."""
        return await self._worker.run(lambda: ask(self._replica))

    async def _look(self, ask: Callable[[State[R]], T]) -> T:
        """Ask the state as it is now."""
        return await self._worker.run(lambda: ask(self._replica.refresh()))

    async def _write(self, prepare: Callable[[], S], write: Callable[[Replica[R], S], T], *, indexed: bool = True) -> T:
        """Have something written that takes milliseconds to prepare, and see to what follows from it."""

        def written(prepared: S) -> tuple[T, Settle | None]:
            done = write(self._replica, prepared)
            return done, self._replica.log.take_receipt()

        done = await self._worker.write(prepare, lambda: _holding(self._replica, self._replica.log), written)
        self._worker.submit_shared("follow up", self._follow_up)
        if indexed:
            self._upkeep.after_write()
        return done

    def _dropping(self, write: Callable[[Replica[R], S], T]) -> Callable[[Replica[R], S], T]:
        """Return `write` for what forgets or rewords: what is kept for the next start may show the old words."""

        def written(replica: Replica[R], prepared: S) -> T:
            done = write(replica, prepared)
            self._shown.drop()
            return done

        return written

    def _follow_up(self) -> None:
        """Do what a write leaves to be done behind the answer: words now, vectors after that, then the files."""

        def compact() -> None:
            try:
                with contextlib.suppress(BusyError):  # the next write tries again
                    self._folds += self._compact()
            finally:
                self._is_compacting = False

        opened = self.opened
        if opened.replica.kind.read_ahead:
            opened.replica.warm(WARM_AT_ONCE)
        opened.embeddings.fill_later()
        if not self._is_compacting and opened.replica.log.pays_to_compact(opened.replica.state):
            self._is_compacting = True
            self._worker.submit(compact, thread="compacting")

    def _compact(self, grace: timedelta | None = None, patience: float = 0.0) -> bool:
        """Compact the log, in a thread that neither reads nor writes wait for; tell what `finish_compaction` tells.

        Args:
            grace: As in `Storage.compact`.
            patience: Seconds to try again where another process compacts, or got in beside.
        """
        replica, deadline = self._worker.ask(lambda: self._replica), time.monotonic() + patience
        # Its lock is the one that `finish` knows of: a migration may put another log into the replica meanwhile.
        log = replica.log

        def after() -> None:
            replica.after_compaction()
            self._shown.drop()  # it may show what has expired, and is gone from the log now
            self._upkeep.after_compaction()

        while True:
            try:
                with log.compacting(grace) as finish:
                    is_done = self._worker.change(
                        lambda: _holding(replica, log), lambda: replica.finish_compaction(finish)
                    )
                break
            except BusyError:
                if time.monotonic() >= deadline:
                    raise
                time.sleep(BETWEEN_TRIES)
        if is_done:
            while not self._worker.ask(lambda: replica.warm(WARM_AT_ONCE)):
                pass  # what follows needs all words, and others want to get in between
            self._worker.ask(after)
        return is_done

    def _forget_vectors(self) -> None:
        opened = self.opened
        gone = map(self.kind.text_of, opened.replica.take_gone())
        opened.embeddings.forget(piece for text in gone for piece in embedded_texts(text))

    async def close(self) -> None:
        """Finish what is under way; close files and threads. May be called more than once.

        A call after that works again, but for embedding: what is stored then is found by its words here, and gets its
        vectors in the next storage that is opened.
        """
        opened = self._open if self._pid == os.getpid() else None
        if opened is not None:
            await self._worker.run(bool)  # after what asks for vectors behind a write
            if pending := await opened.embeddings.finish():
                log.info("texts_left_due", kind=self.kind.name, count=pending)
            await opened.upkeep.close()
            if self._shown.wants_keeping:
                await self._worker.run(self._shown.keep, opened.replica)
            replica = opened.replica
            await self._worker.run(lambda: replica.log.note_current(len(replica.state.records)))
        await asyncio.to_thread(self.thread.close)
        self._is_compacting = False
        if opened is not None:
            await asyncio.to_thread(opened.embeddings.close)
            self._open = opened if self._backend.upkeep is None else None
        await asyncio.to_thread(self._backend.close)

    async def folds(self) -> int:
        """Return how often this object compacted its files unasked, behind a write."""
        has_read = self._is_open and self._replica.log.watermark[1] > 0
        if has_read:
            await self._worker.run(bool)  # what decides upon one
            await self._worker.aside(bool)
        return self._folds


def _holding(replica: Replica[Any], log: ChangeLog) -> Callable[[float], AbstractContextManager[None]]:
    """Catch up, so that little is left to be read under the lock; return what takes that of a log."""
    if replica.log.is_near:
        with contextlib.suppress(StorageError):  # the write itself says what is wrong
            replica.refresh()
    return log.hold
