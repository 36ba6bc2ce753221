"""`VectorStorage`: a `FileStorage` whose candidates come from the embedded vector engine once there are many memories.

The journal stays the truth and the ranking stays the same; only who names the nearest memories differs. Owns the task
that keeps the engine in step; builds run in child processes, and searches wait for neither.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from typing import TYPE_CHECKING, Any, Final

from typing_extensions import override

from agent_memory.engine import is_installed
from agent_memory.errors import AgentMemoryError, MigrationError
from agent_memory.journal import GRACE
from agent_memory.logs import get_logger
from agent_memory.models import MEMORY, Clock, utc_now
from agent_memory.retrieval import SearchIndex
from agent_memory.storage.change_log import FileLog
from agent_memory.storage.file import PATIENCE, FileStorage, ranking_of
from agent_memory.storage.meaning import Meaning
from agent_memory.storage.store import RecordStore
from agent_memory.storage.trouble import Trouble, trouble_of_engine
from agent_memory.storage.vector.candidates import AnnIndex
from agent_memory.storage.vector.generations import Generations
from agent_memory.storage.vector.migration import Built, Estimate, MigrationProgress, Progress, build_index, estimate
from agent_memory.storage.vector.possible import impossible, with_model
from agent_memory.storage.vector.sync import IndexSync

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import timedelta
    from pathlib import Path

    from agent_memory.embeddings import Embedder
    from agent_memory.models import Memory, SearchFilters, SearchResults
    from agent_memory.settings import ServiceSettings

log = get_logger(__name__)

_LOOK_EVERY: Final = 1.0
"""Seconds between two looks at whether the engine wants attention, when nothing was written."""
_BUILD_AGAIN_SECONDS: Final = 300.0
"""Until an index that is still no good is built once more."""
_FILE, _VECTOR = "file", "vector"


class MigratableStorage(FileStorage):
    """A `FileStorage` that can be moved to the vector engine and back while it is in use.

    Args:
        agent_id: Whose memories.
        storage_root: Folder of all agents; that of `settings` when omitted.
        settings: Ranking, embedder and backend settings; the defaults when omitted.
        clock: Source of the present.
        embedder: One of the caller's own, instead of that of `settings`.
        grace: How long what was forgotten or replaced can be brought back.
        patience: As in `FileStorage`.
        embedding_model: Another model than that of `settings`; one of OpenAI's by its name.
        wanted: Use an index, and build it where there is none, whatever `metadata.json` says; else follow what it says.

    Attributes:
        backend: `vector` once searches may use an index, else `file`.

    Raises:
        ValidationError: `agent_id` cannot name a folder (also a ValueError).
        ConfigurationError: The engine is not installed, or there is no embedder.
        StorageError: The folder leads out of the storage root.
    """

    _wanted = False

    def __init__(  # noqa: PLR0913 - each by its name
        self,
        agent_id: str,
        storage_root: str | Path | None = None,
        *,
        settings: ServiceSettings | None = None,
        clock: Clock = utc_now,
        embedder: Embedder | None = None,
        grace: timedelta = GRACE,
        patience: float = PATIENCE,
        wanted: bool | None = None,
        embedding_model: str | None = None,
    ) -> None:
        settings = with_model(settings, embedding_model)
        self._wanted = self._wanted if wanted is None else wanted
        super().__init__(
            agent_id, storage_root, settings=settings, clock=clock, embedder=embedder, grace=grace, patience=patience
        )
        self._batch = self._settings.migration_batch_size

    @override
    def _begin(self) -> None:
        self._pid = os.getpid()
        self._meaning = Meaning(self._settings, self.folder.vectors, AnnIndex, self._embedder)
        index = self._meaning.index
        if not is_installed() or not isinstance(index, AnnIndex):
            raise impossible(self._meaning)
        log = FileLog(MEMORY, self.folder, self._clock, self._grace)
        search = SearchIndex(ranking_of(self._settings), index)
        self._store = store = RecordStore(MEMORY, self.agent_id, log, search, self._clock)
        self._generations = Generations(self.folder)
        self._keeper = IndexSync(store, index, store.state.get, self._generations, self._meaning, wanted=self._wanted)
        self.backend = _VECTOR if self._wanted else self._generations.active()[0]
        self._tending: asyncio.Task[None] | None = None
        self._looked = 0.0
        self._rest_until = 0.0
        self._swept = False
        self._closed = False

    @override
    def _renew(self) -> None:
        if self._pid != os.getpid():
            self._parents.append((self._keeper, self._tending))
            self._wanted = self._keeper.wanted
        super()._renew()

    # -- moving -------------------------------------------------------------------------------------------------------

    @property
    @override
    def can_migrate(self) -> bool:
        return True

    @override
    async def estimate(self) -> Estimate:
        memories = await self.valid()
        missing = int(self._meaning.describe().get("pending", 0))
        characters = sum(len(memory.content) for memory in memories) * missing // max(1, len(memories))
        identity = await asyncio.to_thread(self._meaning.identity)
        return estimate(await self.count(), missing, characters, identity)

    @override
    async def migrate(self, progress: Progress | None = None) -> Built:
        """Build an index and answer from it from then on; stores and searches go on meanwhile.

        Waits until every memory has its vector, builds in a child process, and returns once the index is whole, checked
        and in use. Memories stored meanwhile are added by and by, and found at any moment.

        Args:
            progress: Told how far it is.

        Raises:
            BusyError: Another process is building.
            EmbeddingError: The embedder fails; the backend is what it was.
            MigrationError: It failed; the backend is what it was.
            StorageError: The memories cannot be read.
        """
        await self._embed_all(progress)
        identity = await asyncio.to_thread(self._meaning.identity)
        built = await build_index(self.folder, identity, activate=True, batch=self._batch, progress=progress)
        self.backend = _VECTOR
        await self._worker.run(self._keeper.step)  # lets go of the index from before
        self._nudge(at_once=True)
        return built

    @override
    async def migration_begun(self) -> bool:
        return await asyncio.to_thread(lambda: self._generations.is_begun)

    @override
    async def note_migration(self, *, begun: bool) -> None:
        with contextlib.suppress(AgentMemoryError):
            await asyncio.to_thread(self._generations.note_begun, begun=begun)

    @override
    async def rollback(self) -> bool:
        """Answer from the files alone again; tell whether that was not so already. The index is removed.

        Raises:
            StorageError: The switch could not be thrown; nothing has changed.
        """
        self._renew()
        was_vector = self._keeper.wanted or self.backend == _VECTOR
        self._keeper.wanted = False
        await asyncio.to_thread(self._generations.switch, _FILE, None)
        await self._let_go()
        self.backend = _FILE
        await asyncio.to_thread(self._sweep)
        return was_vector

    async def caught_up(self, patience: float) -> bool:
        """Wait until this process holds the index and it knows every memory; False after `patience` seconds."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + patience
        while not await self._worker.run(lambda: self._keeper.is_current):
            if loop.time() > deadline:
                return False
            self._nudge(at_once=True)
            await asyncio.sleep(0.02)
        return True

    async def _embed_all(self, progress: Progress | None) -> None:
        preparing = asyncio.ensure_future(self.prepare(None))
        try:
            most = 0
            while not preparing.done():
                await asyncio.wait({preparing}, timeout=0.2)
                pending = int(self._meaning.describe().get("pending", 0))
                most = max(most, pending)
                if progress is not None and most:
                    await progress("embed", most - pending, most)
            preparing.result()
        finally:
            preparing.cancel()
        state = self._meaning.describe()
        if state["status"] != "ready":
            raise MigrationError(f"Not every memory has a vector: {state.get('problem', 'the embedder is not ready')}.")

    # -- what a FileStorage does --------------------------------------------------------------------------------------

    @override
    async def search(
        self,
        query: str,
        limit: int = 5,
        filters: SearchFilters | Mapping[str, Any] | None = None,
        *,
        include_superseded: bool = False,
        explain: bool = False,
        patience: float | None = None,
    ) -> SearchResults:
        self._nudge()
        return await super().search(
            query, limit, filters, include_superseded=include_superseded, explain=explain, patience=patience
        )

    @override
    async def _keep(self, cleaned: Callable[[], Memory], *, unique: bool) -> str:
        memory_id = await super()._keep(cleaned, unique=unique)
        self._nudge(at_once=True)
        return memory_id

    @override
    async def _keep_many(self, cleaned: Callable[[], Sequence[Memory]]) -> None:
        await super()._keep_many(cleaned)
        self._nudge(at_once=True)

    @override
    async def _change(self, memory_id: str, cleaned: Callable[[], Mapping[str, Any]]) -> Memory:
        memory = await super()._change(memory_id, cleaned)
        self._nudge(at_once=True)
        return memory

    @override
    async def delete(self, memory_id: str) -> Memory:
        memory = await super().delete(memory_id)
        self._nudge(at_once=True)
        return memory

    @override
    async def prepare(self, patience: float | None = None) -> bool:
        ready = await super().prepare(patience)
        self._nudge()
        return ready

    @override
    def troubles(self) -> list[Trouble]:
        trouble = trouble_of_engine(self._keeper.describe()) if self.backend == _VECTOR else None
        return [*super().troubles(), *([trouble] if trouble is not None else [])]

    @override
    async def health(self) -> dict[str, Any]:
        report = await super().health()
        return {**report, "index": self._keeper.describe()} if self.backend == _VECTOR else report

    @override
    async def close(self) -> None:
        self._closed = True
        tending, self._tending = self._tending, None
        if tending is not None and tending.get_loop() is asyncio.get_running_loop():
            tending.cancel()
            await asyncio.gather(tending, return_exceptions=True)
        await self._let_go()
        await super().close()
        self._closed = False

    # -- behind the scenes --------------------------------------------------------------------------------------------

    def _nudge(self, *, at_once: bool = False) -> None:
        """See to the engine, unless somebody does or has done so a moment ago."""
        loop = asyncio.get_running_loop()
        busy = self._tending is not None and not self._tending.done() and self._tending.get_loop() is loop
        if self._closed or busy or (not at_once and loop.time() < self._looked + _LOOK_EVERY):
            return
        self._looked = loop.time()
        self._tending = loop.create_task(self._tend())

    async def _tend(self) -> None:
        try:
            if not self._swept:  # what a build or an agent that was killed left
                self._swept = True
                await asyncio.to_thread(self._sweep)
            while True:
                pause = await self._worker.run(self._keeper.step)
                self.backend = _VECTOR if self._keeper.wanted else self._generations.active()[0]
                if self._keeper.needs_build is not None:
                    pause = await self._rebuild(self._keeper.needs_build)
                    self._keeper.needs_build = None
                if pause is None:
                    return
                await asyncio.sleep(pause)
        except AgentMemoryError as error:
            log.warning("index_not_tended", code=error.code, error=error.message)

    async def _rebuild(self, reason: str) -> float | None:
        """Build an index in the background, if that did not fail a moment ago; return when to go on."""
        loop = asyncio.get_running_loop()
        if loop.time() < self._rest_until:
            return None
        self._rest_until = loop.time() + _BUILD_AGAIN_SECONDS  # also after one that is no good at once
        log.info("index_is_built", reason=reason)
        try:
            await self._embed_all(None)
            identity = await asyncio.to_thread(self._meaning.identity)
            await build_index(self.folder, identity, activate=self._keeper.wanted, batch=self._batch)
        except AgentMemoryError as error:
            self._keeper.problem = f"{reason}; building it failed: {error.message}"
            log.warning("index_not_built", reason=reason, code=error.code, error=error.message)
            return None
        return 0.0

    async def _let_go(self) -> None:
        closing = await self._worker.run(self._keeper.release)
        if closing is not None:
            await asyncio.to_thread(closing.join)

    def _sweep(self) -> None:
        with contextlib.suppress(AgentMemoryError):  # what is still held goes with the next sweep
            self._generations.sweep()


class VectorStorage(MigratableStorage):
    """Memories in one YAML journal, with candidates for a search from Qdrant's engine.

    Where there is no index yet it is built in the background, and searches look at every memory until then, unless
    `wanted` is False. As `MigratableStorage` for everything else.
    """

    _wanted = True

    async def migrate_from_file(self, source: FileStorage) -> MigrationProgress:
        """Take over what another storage of this agent holds, build an index of all, and use it; nothing is removed.

        Args:
            source: Of the same folder, as a rule: then there is nothing to copy.

        Raises:
            MigrationError: It failed; the memories are where they were, and found. See `MigratableStorage.migrate`.
            ValidationError: The source is another agent's.
        """
        if source.folder.path != self.folder.path:
            await self.store_many([memory async for memory in source.iter_all()])
        built = await self.migrate()
        return MigrationProgress(built.memories, built.memories)
