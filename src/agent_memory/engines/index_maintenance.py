"""Upkeep of an agent's vector index: migration, rollback, and rebuilds.

A storage holds one, calls it before searches and after writes, and asks it for health. Owns the task that opens indexes
and starts builds; builds run in child processes, and searches wait for neither.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from agent_memory.engines.ann_index import EngineLimits
from agent_memory.engines.index_builder import build_index, estimate
from agent_memory.engines.index_sync import IndexSources, IndexSync
from agent_memory.engines.shard_process import EngineClient
from agent_memory.errors import AgentMemoryError, MigrationError
from agent_memory.logs import get_logger
from agent_memory.store.protocols import Built, Estimate, Progress, Trouble, find_engine_trouble
from agent_memory.store.shards import Shards
from agent_memory.store.worker import LoopLock, Worker

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path


log = get_logger(__name__)

_FILE, _VECTOR = "file", "vector"


@dataclass(frozen=True, slots=True)
class IndexOptions:
    """Options of the engine, for programs and tests.

    Attributes:
        limits: Limits that decide when the engine is asked and rebuilt.
        start: Starts the engine's process for a shard's folder.
        build: Builds an index; as `build_index`.
    """

    limits: EngineLimits = field(default_factory=EngineLimits)
    start: Callable[[Path], EngineClient] = EngineClient
    build: Callable[..., Awaitable[Built]] = build_index


DEFAULT_OPTIONS: Final = IndexOptions()


class IndexMaintenance:
    """Opens and rebuilds an agent's index, and migrates the agent.

    Args:
        indexed: Records and their vectors.
        wanted: True to use an index, and to build a missing one, whatever `metadata.json` says; otherwise that decides.
        batch: Texts whose vectors are moved together.
        options: How the engine is run.

    Attributes:
        backend: `vector` once searches may use an index, else `file`.
        sync: Holds the index.
    """

    can_migrate = True

    def __init__(
        self, indexed: IndexSources, *, wanted: bool, batch: int = 100, options: IndexOptions = DEFAULT_OPTIONS
    ) -> None:
        self._indexed, self._batch, self._options = indexed, batch, options
        self._embeddings, self._worker = indexed.embeddings, indexed.worker
        self._shards = Shards(indexed.folder)
        self.sync = IndexSync(indexed, self._shards, options.start, wanted=wanted)
        self.backend = _VECTOR if wanted else self._shards.active()[0]
        self._task: asyncio.Task[None] | None = None
        self._building = LoopLock("building an index")
        self._looked = 0.0
        self._rest_until = 0.0
        self._swept = False
        self._closed = False

    # -- moving -------------------------------------------------------------------------------------------------------

    async def estimate(self) -> Estimate:
        """Estimate a migration.

        Raises:
            StorageError: The memories cannot be read.
        """
        count, characters = await self._indexed.sizes()
        missing = int(self._embeddings.describe().get("pending", 0))
        identity = await asyncio.to_thread(self._embeddings.identity)
        return estimate(count, missing, round(characters * missing), identity)

    async def migrate(self, progress: Progress | None = None) -> Built:
        """Build an index and answer from it afterwards.

        Stores and searches continue. Waits until every memory has its vector, builds in a child process, and returns
        once the index is complete, checked and in use. What is stored during the build is found at any moment. A build
        that this process began in the background is cancelled for it.

        Args:
            progress: Called with the progress.

        Raises:
            BusyError: Another process, or a task of another event loop, is building.
            EmbeddingError: The embedder fails; the backend is what it was.
            MigrationError: It failed; the backend is what it was.
            StorageError: The memories cannot be read.
        """
        await _end(self._task)  # a build of its own would be in the way
        async with self._building.turn():
            await self._read_whole()
            built = await _build(self._indexed, self._options, progress, batch=self._batch, activate=True)
            self.backend = _VECTOR
        await self._worker.run(self.sync.step)  # releases the earlier index
        self.look_after(is_changed=True)
        return built

    async def _read_whole(self) -> None:
        """Read all records into memory, none from segments.

        An engine's answers are compared with vectors in memory.
        """
        replica = self._indexed.replica
        if replica.state.sealed is not None:
            rebuilt = await asyncio.to_thread(self._indexed.whole)

            def go_on() -> None:
                vars(replica).update(vars(rebuilt))  # in place: others hold the same object
                vectors = self._indexed.candidates
                vectors.elsewhere = None
                # The new state never knew what was forgotten since the old one last read, so it would not remove it.
                for record_id in vectors.texts.keys() - replica.state.table.records.keys():
                    vectors.remove(record_id)

            # Between writes: one that holds the lock of the log so far would wait, with another log, for itself.
            await asyncio.to_thread(self._worker.change, lambda: lambda _: contextlib.nullcontext(), go_on)

    async def migration_begun(self) -> bool:
        """Return True if a migration is unfinished.

        It was begun here or in an earlier session, and has neither ended nor failed.
        """
        return await asyncio.to_thread(lambda: self._shards.is_begun)

    async def note_migration(self, *, begun: bool) -> None:
        """Note the beginning or the end of a migration.

        A failure to do so has no other effect.
        """
        with contextlib.suppress(AgentMemoryError):
            await asyncio.to_thread(self._shards.note_begun, begun=begun)

    async def rollback(self) -> bool:
        """Answer from the files alone again; return False if that was so.

        The index is removed.

        Raises:
            StorageError: The switch could not be thrown; nothing has changed.
        """
        was_vector = self.sync.wanted or self.backend == _VECTOR
        self.sync.wanted = False
        await asyncio.to_thread(self._shards.switch, _FILE, None)
        await _release(self._worker, self.sync)
        self.backend = _FILE
        await asyncio.to_thread(_sweep, self._shards)
        return was_vector

    # -- upkeep -------------------------------------------------------------------------------------------------------

    def after_compaction(self) -> None:
        """Remove segments with texts that were purged; the engine holds no text."""
        self._indexed.sealing.after_compaction()

    def look_after(self, *, is_changed: bool) -> None:
        """See `IndexUpkeep`."""
        self._seal()
        loop = asyncio.get_running_loop()
        if not is_changed and loop.time() < self._looked + self._options.limits.look_seconds:
            return
        busy = self._task is not None and not self._task.done() and self._task.get_loop() is loop
        if not self._closed and not busy:
            self._looked = loop.time()
            self._task = loop.create_task(self._maintain())

    def _seal(self) -> None:
        """Maintain the segments while files are searched."""
        if self.backend == _FILE and not self._building.is_taken:
            self._indexed.sealing.look_after()

    async def caught_up(self, patience: float) -> bool:
        """Wait until this process holds the index and has read every memory.

        Return False after `patience` seconds.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + patience
        while not await self._worker.run(lambda: self.sync.is_current):
            if loop.time() > deadline:
                return False
            self.look_after(is_changed=True)
            await asyncio.sleep(0.02)
        return True

    async def wait_settled(self) -> None:
        """Wait for the background task."""
        if self._task is not None:
            await asyncio.wait({self._task})

    def describe(self) -> tuple[dict[str, Any], list[Trouble]]:
        """Return the engine's state and its problems.

        Empty while files are searched.
        """
        if self.backend != _VECTOR:
            return {}, []
        state = self.sync.describe()
        trouble = find_engine_trouble(state)
        return {"index": state}, [] if trouble is None else [trouble]

    async def close(self) -> None:
        """Close the index and end the task.

        The next search starts both again.
        """
        self._closed = True
        task, self._task = self._task, None
        await _end(task)
        if self.backend == _FILE:
            await self._indexed.sealing.close()
        await _release(self._worker, self.sync)
        self._closed = False

    async def _maintain(self) -> None:
        try:
            if not self._swept:  # what a build or an agent that was killed left
                self._swept = True
                await asyncio.to_thread(_sweep, self._shards)
            while True:
                pause = await self._worker.run(self.sync.step)
                self.backend = _VECTOR if self.sync.wanted else self._shards.active()[0]
                if self.sync.needs_build is not None:
                    pause = await self._rebuild(self.sync.needs_build)
                    self.sync.needs_build = None
                if pause is None:
                    return
                await asyncio.sleep(pause)
        except AgentMemoryError as error:
            log.warning("index_not_maintained", code=error.code, error=error.message)

    async def _rebuild(self, reason: str) -> float | None:
        """Build an index in the background, unless one was built recently.

        Return the seconds until the next step.
        """
        now = asyncio.get_running_loop().time()
        if now < self._rest_until or self._building.is_taken:
            return None
        self._rest_until = now + self._options.limits.rest_seconds  # also after an index that is useless at once
        log.info("index_is_built", reason=reason)
        try:
            async with self._building.turn():
                await _build(self._indexed, self._options, None, batch=self._batch, activate=self.sync.wanted)
        except AgentMemoryError as error:
            self.sync.problem = f"{reason}; building it failed: {error.message}"
            log.warning("index_not_built", reason=reason, code=error.code, error=error.message)
            return None
        return 0.0


async def _end(task: asyncio.Task[None] | None) -> None:
    """Cancel a task of this loop and wait for its end.

    A task of another loop belongs to that.
    """
    if task is not None and task.get_loop() is asyncio.get_running_loop():
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _build(
    indexed: IndexSources, options: IndexOptions, progress: Progress | None, *, batch: int, activate: bool
) -> Built:
    await _embed_all(indexed, progress)
    identity = await asyncio.to_thread(indexed.embeddings.identity)
    return await options.build(
        indexed.folder, indexed.replica.kind, identity, activate=activate, batch=batch, progress=progress
    )


async def _release(worker: Worker, sync: IndexSync) -> None:
    closing = await worker.run(sync.release)
    if closing is not None:
        await asyncio.to_thread(closing.join)


async def _embed_all(indexed: IndexSources, progress: Progress | None) -> None:
    """Wait until every memory has its vector.

    Raises:
        MigrationError: One cannot be made.
    """
    preparing = asyncio.ensure_future(indexed.prepare(None))
    try:
        most = 0
        while not preparing.done():
            await asyncio.wait({preparing}, timeout=0.2)
            pending = int(indexed.embeddings.describe().get("pending", 0))
            most = max(most, pending)
            if progress is not None and most:
                await progress("embed", most - pending, most)
        preparing.result()
    finally:
        preparing.cancel()
    state = indexed.embeddings.describe()
    if state["status"] != "ready":
        raise MigrationError(f"Not every memory has a vector: {state.get('problem', 'the embedder is not ready')}.")


def _sweep(shards: Shards) -> None:
    with contextlib.suppress(AgentMemoryError):  # what is still held goes with the next sweep
        shards.sweep()
