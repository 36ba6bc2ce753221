"""Upkeep of an agent's vector index: migration, rollback, and rebuilds.

A storage holds one, calls it before searches and after writes, and asks it for health. Owns the task that opens indexes
and starts builds; builds run in child processes, and searches wait for neither.

`IndexSync` works in small steps that never wait, so that the thread can answer searches in between; each returns when
the next one is due. It writes nothing: an index is immutable. It is not thread-safe, and not for a forked child, whose
storage opens everything again.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from agent_memory.engines.ann_index import EngineLimits
from agent_memory.engines.index_builder import build_index, estimate
from agent_memory.engines.shard_process import EngineClient
from agent_memory.errors import AgentMemoryError, MigrationError, StorageError
from agent_memory.logs import get_logger
from agent_memory.store.protocols import Built, Estimate, Progress, Trouble, find_engine_trouble
from agent_memory.store.shards import Shards
from agent_memory.store.store import WARM_AT_ONCE, Store
from agent_memory.store.worker import LoopLock, Worker

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from agent_memory.embeddings import EmbeddingService
    from agent_memory.engines.ann_index import AnnIndex
    from agent_memory.files.layout import AgentFolder
    from agent_memory.store.memory_storage import SegmentUpkeep
    from agent_memory.store.shards import ShardState

log = get_logger(__name__)

_SOON: Final = 0.01
_OPENING: Final = 0.05
_LATER: Final = 0.25
"""Seconds until slow work is checked again: reading words, opening a shard, loading a model."""
_BUSY_SECONDS: Final = 30.0
"""Seconds until a shard that another process holds is tried again."""
_TROUBLE_SECONDS: Final = 60.0
"""Seconds until a failed engine is tried again."""


@dataclass(frozen=True, slots=True)
class IndexSources:
    """Sources of an index, as its storage knows them.

    Attributes:
        folder: Folder of the agent.
        replica: Store with the memories.
        candidates: Index of their vectors.
        embeddings: Embeddings of the memories.
        worker: Thread that reads the store.
        prepare: Waits until every memory has its vector, for a maximum of seconds.
        sizes: Returns the number of memories and their mean number of characters.
        whole: Reads the memories again, none from segments; any thread may call it.
        sealing: Seals the memories while no index is in use.
    """

    folder: AgentFolder
    replica: Store[Any]
    candidates: AnnIndex
    embeddings: EmbeddingService[Any]
    worker: Worker
    prepare: Callable[[float | None], Awaitable[bool]]
    sizes: Callable[[], Awaitable[tuple[int, float]]]
    whole: Callable[[], Store[Any]]
    sealing: SegmentUpkeep[Any]


class IndexSync:
    """Gives searches the engine in use, and collects later changes.

    Args:
        indexed: Memories, read in the thread that calls `step`, and the index that gets the engine.
        shards: Shards of the agent, one of them in use.
        start: Starts the engine's process for a shard's folder.
        wanted: True to use an index even if the switch does not say so yet.

    Attributes:
        wanted: As above.
        needs_build: Reason to build an index, or None.
        problem: Last problem, for people, or None.
    """

    def __init__(
        self, indexed: IndexSources, shards: Shards, start: Callable[[Path], EngineClient], *, wanted: bool
    ) -> None:
        self.wanted = wanted
        self.needs_build: str | None = None
        self.problem: str | None = None
        self._replica, self._index, self._embeddings = indexed.replica, indexed.candidates, indexed.embeddings
        self._shards, self._start = shards, start
        self._client: EngineClient | None = None
        self._closing: threading.Thread | None = None
        self._shard = ""
        self._seq = 0
        self._not_before = 0.0
        self._rewritten = 0

    @property
    def is_holding(self) -> bool:
        """True if searches get their candidates from a shard held here."""
        return self._index.engine is not None

    @property
    def is_current(self) -> bool:
        """True if this process holds an up-to-date shard and has read all."""
        return self.is_holding and self._find_reason() is None and self._has_read(0)

    def _has_read(self, at_most: int) -> bool:
        """Read changes and the words of up to `at_most` memories.

        Return True if all are read.
        """
        self._replica.refresh()
        return self._replica.warm(at_most)

    def step(self) -> float | None:
        """Work for a few milliseconds; return the seconds until the next step.

        None if there is nothing left to do.

        Raises:
            StorageError: The journal cannot be read.
        """
        backend, shard = self._shards.active()
        if not (self.wanted or backend == "vector"):
            self.release()
            return None
        if self._replica.state.sealed is not None:  # another process moved this agent; the next session follows
            return None
        if shard is None or (self._client is not None and shard != self._shard):
            self.release()
        if shard is None:
            self.needs_build = "there is no index yet"
            return None
        try:
            if self._client is None:
                return self._begin(shard)
            return self._check_opening(self._client) if self._index.engine is None else self._look(self._client)
        except StorageError as error:
            self._handle_failure(error)
            return None

    def release(self) -> threading.Thread | None:
        """Close the shard after the running searches; return the closing thread."""
        client, self._client = self._client, None
        opened = self._index.engine is not None
        self._index.engine = None
        self._index.behind.clear()
        if client is not None:
            if not opened:
                client.kill()  # waiting for an opening may take a second
            self._closing = threading.Thread(target=self._close, args=(client, self._shard))
            self._closing.start()
        return self._closing

    def _close(self, client: EngineClient, shard: str) -> None:
        client.close()
        if self._shards.active()[1] != shard:
            with contextlib.suppress(StorageError):  # the next sweep deletes it
                self._shards.sweep()

    def _begin(self, shard: str) -> float | None:
        if time.monotonic() < self._not_before:
            return None
        if not self._embeddings.is_ready:
            return None if self._embeddings.describe()["status"] == "failing" else _LATER
        if not self._has_read(WARM_AT_ONCE):
            return _SOON
        state = self._shards.state(shard)
        if (unfit := self._unfit(state)) is not None or state is None:
            self.needs_build = unfit
            return None
        self._client = self._start(self._shards.get_path(shard))
        self._shard, self._seq = shard, state.seq
        return _LATER

    def _unfit(self, state: ShardState | None) -> str | None:
        """Return the reason why an index is unusable, or None."""
        if state is None:
            return "the index is missing, half built or of another version"
        if state.embedder != str(self._embeddings.identity()):
            return "the index is of another embedder"
        if state.seq > self._replica.log.watermark[1]:
            return "the index is ahead of the journal, which must have been restored"
        return None

    def _check_opening(self, client: EngineClient) -> float | None:
        try:
            opened = client.read_content()
        except StorageError as error:
            self.release()
            if error.code == "busy":
                self._not_before = time.monotonic() + _BUSY_SECONDS
            else:
                self.needs_build, self.problem = "the index cannot be opened", error.message
            return None
        if opened is None:
            return _OPENING
        self._take_stock(opened)
        return _SOON

    def _take_stock(self, held: dict[str, int]) -> None:
        """Find the changes since the shard was built.

        Later ones are collected by the index itself.
        """
        memories = self._index.texts
        differing = {memory_id for memory_id, keys in memories.items() if held.get(memory_id) != len(keys)}
        self._index.behind = differing | (held.keys() - memories.keys()) | self._replica.state.since(self._seq)
        self._index.engine = self._client
        self._rewritten = self._replica.log.rewrite_count
        self.problem = None

    def _look(self, client: EngineClient) -> float | None:
        """Check whether the shard can be searched, and is worth it."""
        if not client.is_idle:
            client.reply()
        if not self._has_read(WARM_AT_ONCE):
            return _SOON
        self.needs_build = self._find_reason()
        return None

    def _find_reason(self) -> str | None:
        """Return a reason to build a new shard, or None."""
        if self._replica.log.rewrite_count != self._rewritten:  # its numbers may mean other changes now
            return "another program rewrote the journal"
        return "much has changed since the index was built" if self._index.is_outdated else None

    def _handle_failure(self, error: AgentMemoryError) -> None:
        log.warning("vector_engine_failed", code=error.code, error=error.message)
        self.problem = error.message
        if self._client is not None:
            self._client.kill()
        self.release()
        self._not_before = time.monotonic() + _TROUBLE_SECONDS

    def describe(self) -> dict[str, Any]:
        """Return the state of the engine, for people."""
        status = "in use" if self.is_holding else ("opening" if self._client is not None else "not held")
        report: dict[str, Any] = {"status": status, "behind": len(self._index.behind) if self.is_holding else 0}
        return {**report, "problem": self.problem} if self.problem else report


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
    with contextlib.suppress(AgentMemoryError):  # the next sweep deletes shards that are still held
        shards.sweep()
