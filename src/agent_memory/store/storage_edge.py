"""`StorageEdge`: a store in its own thread, for event loops."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, cast

from agent_memory.errors import BusyError, ConfigurationError, StorageError, ValidationError
from agent_memory.files.lock import WAIT_SECONDS
from agent_memory.index import embedded_texts
from agent_memory.logs import get_logger
from agent_memory.models.kind import R
from agent_memory.store.protocols import Trouble, find_embedder_trouble
from agent_memory.store.shortlist import Shortlist, ShownRecords
from agent_memory.store.store import WARM_AT_ONCE, Store
from agent_memory.store.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from agent_memory.journal import Change
    from agent_memory.models import Clock, Kind
    from agent_memory.store.protocols import Absorb, Built, Estimate, IndexUpkeep, MovableIndex, Progress, Settle
    from agent_memory.store.state import State

log = get_logger(__name__)

T = TypeVar("T")

_BETWEEN_TRIES: Final = 0.05
"""Seconds until a requested compaction is tried again."""
_SLICE_SECONDS: Final = 0.5
"""Waiting is done in slices, since a thread cannot be called back."""


def _get_immovable_error() -> ConfigurationError:
    return ConfigurationError("This memory cannot be moved to the vector engine.", code="cannot_migrate")


@dataclass(frozen=True, slots=True)
class Backend(Generic[R]):
    """Access to one agent's records, which are not opened yet.

    Attributes:
        kind: Kind of the records.
        agent_id: Name of the agent.
        clock: Source of the present.
        open: Opens the records for the storage that is its argument.
        close: Releases the resources of `open`.
        name: Name of the backend while it is not open.
        is_remote: True if opening waits for a network: then the first call opens, else the storage at once.
        why_immovable: Returns the error for a storage that cannot be moved to the vector engine.
        grace: Time for which forgotten texts stay and can be restored; None for no time.
        wait: Seconds that a write waits for other writers.
        patience: Seconds that a search without its own patience waits for missing vectors; None waits while a model
            loads, and for no texts.
        shortlist: File that a start reads instead of the log, or None.
        lacks_languages: Returns True if the model for other languages can be installed.
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
    lacks_languages: Callable[[], bool] = lambda: False


class StorageEdge(Generic[R]):
    """The asynchronous edge of a store; see `RecordStorage`.

    Args:
        backend: Backend that opens the records.

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
        self.worker = Worker(backend.wait, self._follow_up)
        self._parents: list[object] = []
        self._pid = os.getpid()
        self._open: Store[R] | None = None
        self._replaced: list[Store[R]] = []
        self._shown: ShownRecords[R] = ShownRecords(backend.shortlist)
        self._compactions = 0
        self._is_compacting = False
        if not backend.is_remote:
            self._open = backend.open(self)

    @property
    def opened(self) -> Store[R]:
        """The records as this process has them, opened now if necessary.

        A forked child opens them again: threads of its parent may have held locks that no thread of the child would
        release. The parent's objects stay referenced, since their finalizers would touch files of the parent.
        """
        if self._open is None or self._pid != os.getpid():
            if self._pid != os.getpid():
                self._parents.append((self._open, self._shown))
                self._pid = os.getpid()
                self._shown = ShownRecords(self._backend.shortlist)
            self._open = self._backend.open(self)
        return self._open

    def replace_store(self, store: Store[R]) -> Store[R]:
        """Answer from another store of the same records; return the former.

        For the thread of the records.
        """
        replaced, self._open = self.opened, store
        self._replaced.append(replaced)
        return replaced

    @property
    def _is_open(self) -> bool:
        return not self._backend.is_remote or (self._open is not None and self._pid == os.getpid())

    @property
    def _upkeep(self) -> IndexUpkeep | None:
        return self.opened.upkeep if self._is_open else None

    @property
    def _is_embedding_remote(self) -> bool:
        """True if a service embeds questions, so that other calls need not wait."""
        return self._is_open and self.opened.embeddings.is_remote and self.opened.embeddings.is_ready

    async def _run(self, ask: Callable[[Store[R]], T]) -> T:
        """Call a function of the store, in its thread."""
        return await self.worker.run(lambda: ask(self.opened))

    async def _look(self, ask: Callable[[State[R]], T]) -> T:
        """Call a function of the refreshed state, in its thread."""
        return await self.worker.run(lambda: ask(self.opened.refresh()))

    async def _write(
        self,
        decide: Callable[[State[R], Any], tuple[list[Change], T]],
        clean: Callable[[], object] = lambda: None,
        *,
        is_clean: bool = True,
        rewords: bool = False,
        is_indexed: bool = True,
        look: Callable[[], object] | None = None,
        reread: Callable[[], object] | None = None,
    ) -> T:
        """Make the decided changes durable, update the index, and return the answer.

        Args:
            decide: Function of `agent_memory.store.changes` for a state and the cleaned content.
            clean: Returns the content without secrets.
            is_clean: True if `clean` has nothing to redact, and takes no time.
            rewords: True if the change may delete a text of the shortlist.
            is_indexed: False if the change concerns no search index.
            look: As in `Worker.write`.
            reread: Reads the changed store, in its thread; raises nothing.
        """

        def write(prepared: object) -> tuple[T, Settle]:
            cleaned = clean() if is_clean else prepared
            result = self.opened.change(lambda state: decide(state, cleaned))
            if rewords:
                self._shown.drop()
            if reread is not None:
                reread()
            return result

        result = await self.worker.write(write, self._get_hold, None if is_clean else clean, look)
        if is_indexed and (upkeep := self._upkeep) is not None:
            upkeep.look_after(is_changed=True)
        return result

    def _get_hold(self) -> Callable[[float], AbstractContextManager[None]]:
        """Return the function that takes the lock of the log.

        A log that was not read yet is read first: under the lock other processes would wait for that.
        """
        store = self.opened
        if not store.log.watermark[1]:
            with contextlib.suppress(StorageError):  # the write itself reports it
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
        second = self.opened.second_model
        while patience is None and second is not None and await asyncio.to_thread(second.wait, _SLICE_SECONDS):
            pass
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
        """Delete unneeded lines from the files.

        Args:
            grace: Age from which on forgotten and replaced texts are deleted; the storage's own time (30 days) when
                omitted. With `timedelta(0)` nothing can be restored afterwards.

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
            patience: Seconds to try again while another process compacts or writes.
        """
        store, deadline = self.worker.ask(lambda: self.opened), time.monotonic() + patience
        # `finish` needs the lock of this very log: a migration may replace the log of the store.
        log_before = store.log

        def replace(finish: Callable[[Absorb], bool]) -> bool:
            self._shown.drop()  # before: it may show an expired record that leaves the log
            return finish(store.absorb)

        while True:
            try:
                with log_before.compacting(grace) as finish:
                    is_done = self.worker.change(lambda: log_before.hold, partial(replace, finish))
                break
            except BusyError:
                if time.monotonic() >= deadline:
                    raise
                time.sleep(_BETWEEN_TRIES)
        if is_done:
            while not self.worker.ask(lambda: self._warm(store)):
                pass  # in batches, so that other calls get in between
            self.worker.ask(lambda: self._after_compaction(store))
        return is_done

    @staticmethod
    def _warm(store: Store[R]) -> bool:
        store.refresh()
        return store.warm(WARM_AT_ONCE)

    def _after_compaction(self, store: Store[R]) -> None:
        store.after_compaction()
        if store.upkeep is not None:
            store.upkeep.after_compaction()

    def _forget_vectors(self, records: Sequence[R]) -> None:
        """Delete the cached vectors of forgotten records.

        A vector reveals something of its text. The first time those of all texts without a record; later not, since
        that takes as long as ten searches.
        """
        store = self.opened
        if not store.is_pruned:
            store.after_compaction()
        texts = map(self.kind.text_of, records)
        store.embeddings.forget(piece for text in texts for piece in embedded_texts(text))

    @property
    def grace(self) -> timedelta | None:
        """Time for which forgotten texts can be restored, or None."""
        return self._backend.grace

    @property
    def backend(self) -> str:
        """Name of the backend that answers searches: `file`, `vector` or `server`."""
        return upkeep.backend if (upkeep := self._upkeep) is not None else self._backend.name

    def embedding_status(self) -> dict[str, Any]:
        """Return the state of search by embeddings.

        `status` is off, found (not loaded yet), loading, ready or failing; the rest says why.
        """
        if self._is_open:
            second = self.opened.second_model
            return self.opened.embeddings.describe() | (second.describe() if second is not None else {})
        return {"status": "loading", "reason": "not connected yet"}

    @property
    def has_model(self) -> bool:
        """Return True if a model is loaded."""
        return self._is_open and self.opened.index.vectors is not None and self.opened.embeddings.is_ready

    def embedding_cost(self) -> float:
        """Return the costs of the embedder so far, in US dollars."""
        return self.opened.embeddings.cost if self._is_open else 0.0

    def troubles(self) -> list[Trouble]:
        """List the parts with problems, without waiting."""
        trouble = find_embedder_trouble(self.embedding_status())
        further = upkeep.describe()[1] if (upkeep := self._upkeep) is not None else []
        return [*([trouble] if trouble is not None else []), *further]

    @property
    def can_migrate(self) -> bool:
        """True if this agent can be moved to the vector engine."""
        return (upkeep := self._upkeep) is not None and upkeep.can_migrate

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
        """Build an index and answer from it; see `IndexMaintenance.migrate`.

        Args:
            progress: Called with the stage and its steps; see `Progress`.

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
        """Return the number of automatic compactions of this object."""
        if self._is_open and self.opened.log.watermark[1] > 0:
            await self.worker.run(bool)  # after the decision about one
            await self.worker.run_aside(bool)
        return self._compactions

    async def close(self) -> None:
        """Finish pending work; close files and threads.

        May be called more than once. Later calls work, except for embedding: records stored later are found by their
        words here, and get their vectors in the next storage that is opened.
        """
        store = self._open if self._pid == os.getpid() else None
        if store is not None and store.second_model is not None:
            await asyncio.to_thread(store.second_model.close)
            store = self._open  # it may have been replaced
        if store is not None:
            await self.worker.run(bool)  # after requests for vectors that follow a write
            if pending := await store.embeddings.finish():
                log.info("texts_left_due", kind=self.kind.name, count=pending)
            for upkeep in [replaced.upkeep for replaced in self._replaced] + [store.upkeep]:
                if upkeep is not None:
                    await upkeep.close()
            self._replaced.clear()
            if self._shown.has_unsaved:
                await self.worker.run(self._shown.save, store)
            await self.worker.run(lambda: store.log.note_current(len(store.state.records)))
        await asyncio.to_thread(self.worker.close)
        self._is_compacting = False
        if store is not None:
            await asyncio.to_thread(store.embeddings.close)
            self._open = None if self._backend.is_remote else store
        await asyncio.to_thread(self._backend.close)
