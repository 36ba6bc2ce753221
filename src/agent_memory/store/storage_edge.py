"""`StorageEdge`: a store in a thread of its own, opened and closed from an event loop."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, cast

from agent_memory.errors import BusyError, ConfigurationError, StorageError, ValidationError
from agent_memory.files.lock import WAIT_SECONDS
from agent_memory.index import embedded_texts
from agent_memory.logs import get_logger
from agent_memory.models.kind import R
from agent_memory.store.protocols import Trouble, trouble_of_embedder
from agent_memory.store.record_redaction import Redacted
from agent_memory.store.shortlist import Shown
from agent_memory.store.store import WARM_AT_ONCE, Store
from agent_memory.store.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from agent_memory.models import Clock, Kind
    from agent_memory.store.protocols import Built, Estimate, IndexUpkeep, MovableIndex, Progress, Settle
    from agent_memory.store.shortlist import Shortlist
    from agent_memory.store.state import State

log = get_logger(__name__)

T = TypeVar("T")

_BETWEEN_TRIES: Final = 0.05
"""Seconds until a requested compaction is tried again."""


def _get_immovable_error() -> ConfigurationError:
    return ConfigurationError("This memory cannot be moved to the vector engine.", code="cannot_migrate")


@dataclass(frozen=True, slots=True)
class Backend(Generic[R]):
    """Place of one agent's records, and how to open them.

    Attributes:
        kind: Kind of the records.
        agent_id: Name of the agent.
        clock: Source of the present.
        open: Opens the records for the storage that is its argument.
        close: Gives back what they were opened with.
        name: Name of the backend while it is not open.
        is_remote: True if opening waits for a network: then the first call opens, else the storage at once.
        why_immovable: Returns the error for a storage that cannot be moved to the vector engine.
        grace: Time for which forgotten texts stay and can be restored; None for no time.
        wait: Seconds that a write waits for other writers.
        patience: Seconds that a search which names none waits for missing vectors; None waits while a model loads, and
            for no texts.
        shortlist: File that a start reads instead of the log, or None.
    """

    kind: Kind[R]
    agent_id: str
    clock: Clock
    open: Callable[[Any], Store[R]]
    close: Callable[[], object] = lambda: None
    name: str = "file"
    is_remote: bool = False
    why_immovable: Callable[[], ConfigurationError] = _get_immovable_error
    grace: timedelta | None = None
    wait: float = WAIT_SECONDS
    patience: float | None = None
    shortlist: Shortlist[R] | None = None


class StorageEdge(Generic[R]):
    """The asynchronous edge of a store; see `RecordStorage`.

    Args:
        backend: Where the records are, and how they are opened.

    Attributes:
        agent_id: Name of the agent.
        kind: Kind of the records.
        worker: Thread of the records.
    """

    def __init__(self, backend: Backend[R]) -> None:
        self.agent_id = backend.agent_id
        self.kind = backend.kind
        self._backend = backend
        self._clock = backend.clock
        self.worker = Worker(f"agent-memory-{self.agent_id}", backend.wait, self._follow_up)
        self._parents: list[object] = []
        self._pid = os.getpid()
        self._open: Store[R] | None = None
        self._shown: Shown[R] = Shown(backend.shortlist)
        self._compactions = 0
        self._is_compacting = False
        if not backend.is_remote:
            self._open = backend.open(self)

    @property
    def opened(self) -> Store[R]:
        """The records as this process has them, opened now if need be.

        In a forked child everything begins again. Its parent's threads may have been in the middle of anything, and
        hold locks that no thread of this process would release. What they left is kept unused: finalising it would
        touch files that are still the parent's.
        """
        if self._open is None or self._pid != os.getpid():
            if self._pid != os.getpid():
                self._parents.append((self._open, self._shown))
                self._pid = os.getpid()
                self._shown = Shown(self._backend.shortlist)
            self._open = self._backend.open(self)
        return self._open

    @property
    def _is_open(self) -> bool:
        return not self._backend.is_remote or (self._open is not None and self._pid == os.getpid())

    @property
    def _upkeep(self) -> IndexUpkeep | None:
        return self.opened.upkeep if self._is_open else None

    async def _run(self, ask: Callable[[Store[R]], T]) -> T:
        """Ask the store, in its thread."""
        return await self.worker.run(lambda: ask(self.opened))

    async def _look(self, ask: Callable[[State[R]], T]) -> T:
        """Ask the state as it is now."""
        return await self.worker.run(lambda: ask(self.opened.refresh()))

    async def _write(
        self,
        write: Callable[[Store[R], Any], T],
        content: object = None,
        clean: Callable[[], object] | None = None,
        *,
        is_indexed: bool = True,
    ) -> T:
        """Change the store, and look after its index.

        Args:
            write: Changes the store with what is to be written.
            content: What is to be written, redacted or not.
            clean: Returns the content without secrets, for content that is not marked as `Redacted`.
            is_indexed: False if the change concerns no search index.
        """
        if isinstance(content, Redacted):
            content, clean = content.value, None

        def write_prepared(cleaned: object) -> tuple[T, Settle]:
            store = self.opened
            return write(store, content if clean is None else cleaned), store.take_settle()

        result = await self.worker.write(write_prepared, self._get_hold, clean)
        if is_indexed and (upkeep := self._upkeep) is not None:
            upkeep.look_after(is_changed=True)
        return result

    def _get_hold(self) -> Callable[[float], AbstractContextManager[None]]:
        """Return what takes the lock of the log.

        A log that was not read yet is read first: under the lock other processes would wait for that.
        """
        store = self.opened
        if not store.log.watermark[1]:
            with contextlib.suppress(StorageError):  # the write itself says what is wrong
                store.refresh()
        return store.log.hold

    def _follow_up(self) -> None:
        """Index new words, request vectors, and compact if that pays."""

        def compact() -> None:
            try:
                with contextlib.suppress(BusyError):  # the next write tries again
                    self._compactions += self._compact()
            finally:
                self._is_compacting = False

        store = self.opened
        if self.kind.read_ahead:
            store.warm(WARM_AT_ONCE)
        store.embeddings.fill_later()
        if not self._is_compacting and store.log.pays_to_compact(store.state):
            self._is_compacting = True
            self.worker.submit(compact, thread="compacting")

    async def prepare(self, patience: float | None = None) -> bool:
        """Get ready to search; return True if searches are hybrid now.

        Args:
            patience: Seconds to wait at most; None waits until every record has its vector.
        """
        await self._read_all()
        is_ready = await self.opened.embeddings.ready(patience)
        if (upkeep := self._upkeep) is not None:
            upkeep.look_after(is_changed=False)
        return is_ready

    async def _read_all(self) -> None:
        """Index the words of all records in batches, between other calls."""
        while not await self._look(lambda _: self.opened.warm(WARM_AT_ONCE)):
            pass

    async def health(self) -> dict[str, Any]:
        """Report problems of the files in numbers and short sentences.

        `{"status": "ok"}` at best.
        """
        report = await self._run(lambda store: store.health())
        return {**report, **(self._upkeep.describe()[0] if self._upkeep is not None else {})}

    async def compact(self, grace: timedelta | None = None) -> None:
        """Drop what is no longer needed from the files.

        Args:
            grace: What was forgotten or replaced longer ago than this is deleted; the storage's own time (30 days)
                when omitted. With `timedelta(0)` nothing can be restored afterwards.

        Raises:
            StorageError: The files are as they were.
        """
        if grace is not None and not isinstance(grace, timedelta):
            raise ValidationError(f"The grace is a timedelta, got {type(grace).__name__}; nothing was changed.")
        await self.worker.run_aside(self._compact, grace, self._backend.wait)

    def _compact(self, grace: timedelta | None = None, patience: float = 0.0) -> bool:
        """Compact the log; return True if it was replaced.

        Runs in a thread that neither reads nor writes wait for.

        Args:
            grace: As in `RecordStorage.compact`.
            patience: Seconds to try again where another process compacts or writes.
        """
        store, deadline = self.worker.ask(lambda: self.opened), time.monotonic() + patience
        # `finish` needs the lock of this very log: a migration may put another one into the store meanwhile.
        log_before = store.log
        while True:
            try:
                with log_before.compacting(grace) as finish:
                    is_done = self.worker.change(lambda: log_before.hold, lambda: store.finish_compaction(finish))
                break
            except BusyError:
                if time.monotonic() >= deadline:
                    raise
                time.sleep(_BETWEEN_TRIES)
        if is_done:
            while not self.worker.ask(lambda: self._warm(store)):
                pass  # what follows needs all words, and others want to get in between
            self.worker.ask(lambda: self._after_compaction(store))
        return is_done

    @staticmethod
    def _warm(store: Store[R]) -> bool:
        store.refresh()
        return store.warm(WARM_AT_ONCE)

    def _after_compaction(self, store: Store[R]) -> None:
        store.after_compaction()
        self._shown.drop()  # it may show what has expired, and is not in the log any more
        if store.upkeep is not None:
            store.upkeep.after_compaction()

    def _forget_vectors(self) -> None:
        store = self.opened
        texts = map(self.kind.text_of, store.take_forgotten())
        store.embeddings.forget(piece for text in texts for piece in embedded_texts(text))

    @property
    def grace(self) -> timedelta | None:
        """Time for which forgotten texts can be restored, or None."""
        return self._backend.grace

    @property
    def backend(self) -> str:
        """Name of what answers searches: `file`, `vector` or `server`."""
        return self._upkeep.backend if self._upkeep is not None else self._backend.name

    def embedding_status(self) -> dict[str, Any]:
        """Return the state of search by embeddings.

        `status` is off, found (not loaded yet), loading, ready or failing; the rest says why.
        """
        if self._is_open:
            return self.opened.embeddings.describe()
        return {"status": "loading", "reason": "not connected yet"}

    def embedding_cost(self) -> float:
        """Return what the embedder has charged so far, in US dollars."""
        return self.opened.embeddings.cost if self._is_open else 0.0

    def troubles(self) -> list[Trouble]:
        """List the parts that do not work as they could, without waiting."""
        trouble = trouble_of_embedder(self.embedding_status())
        further = self._upkeep.describe()[1] if self._upkeep is not None else []
        return [*([trouble] if trouble is not None else []), *further]

    @property
    def can_migrate(self) -> bool:
        """True if this agent can be moved to the vector engine."""
        return self._upkeep is not None and self._upkeep.can_migrate

    @property
    def index(self) -> MovableIndex:
        """The vector engine of this agent.

        Raises:
            ConfigurationError: This storage cannot be moved.
        """
        if not self.can_migrate:
            raise self._backend.why_immovable()
        return cast("MovableIndex", self._upkeep)

    async def estimate(self) -> Estimate:
        """Return the expected cost of `migrate`.

        Raises:
            ConfigurationError: This storage cannot be moved.
        """
        return await self.index.estimate()

    async def migrate(self, progress: Progress | None = None) -> Built:
        """Build an index and answer from it from then on; see `IndexMaintenance.migrate`.

        Args:
            progress: Called with the stage and how much of it is done.

        Raises:
            ConfigurationError: This storage cannot be moved.
        """
        return await self.index.migrate(progress)

    async def migration_begun(self) -> bool:
        """Return True if a migration was begun in any session.

        One that ended or failed does not count.
        """
        return self.can_migrate and await self.index.migration_begun()

    async def note_migration(self, *, begun: bool) -> None:
        """Record that a migration has begun or ended.

        A failure to record costs nothing else.
        """
        if self.can_migrate:
            await self.index.note_migration(begun=begun)

    async def rollback(self) -> bool:
        """Answer from the files alone; return True if that is new.

        Raises:
            ConfigurationError: This storage cannot be moved.
            StorageError: Nothing has changed.
        """
        if self._upkeep is None:
            raise self._backend.why_immovable()
        return await self._upkeep.rollback()

    async def folds(self) -> int:
        """Return how often this object compacted its files after a write, unasked."""
        if self._is_open and self.opened.log.watermark[1] > 0:
            await self.worker.run(bool)  # what decides upon one
            await self.worker.run_aside(bool)
        return self._compactions

    async def close(self) -> None:
        """Finish what is under way; close files and threads.

        May be called more than once.

        A call after that works again, except for embedding: what is stored then is found by its words here, and gets
        its vectors in the next storage that is opened.
        """
        store = self._open if self._pid == os.getpid() else None
        if store is not None:
            await self.worker.run(bool)  # after what asks for vectors behind a write
            if pending := await store.embeddings.finish():
                log.info("texts_left_due", kind=self.kind.name, count=pending)
            if store.upkeep is not None:
                await store.upkeep.close()
            if self._shown.wants_keeping:
                await self.worker.run(self._shown.keep, store)
            await self.worker.run(lambda: store.log.note_current(len(store.state.records)))
        await asyncio.to_thread(self.worker.close)
        self._is_compacting = False
        if store is not None:
            await asyncio.to_thread(store.embeddings.close)
            self._open = None if self._backend.is_remote else store
        await asyncio.to_thread(self._backend.close)
