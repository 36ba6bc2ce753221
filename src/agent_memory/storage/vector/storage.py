"""`VectorStorage`: a `FileStorage` whose candidates come from the embedded vector engine once there are many memories.

The journal stays the truth and the ranking stays the same; only who names the nearest memories differs.
"""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from agent_memory.embeddings import EmbeddingService
from agent_memory.journal import GRACE
from agent_memory.models import MEMORY, Clock, utc_now
from agent_memory.retrieval import SearchIndex
from agent_memory.storage.change_log import FileLog
from agent_memory.storage.file import PATIENCE, FileStorage, ranking_of
from agent_memory.storage.store import RecordStore
from agent_memory.storage.vector.candidates import AnnIndex
from agent_memory.storage.vector.engine import is_installed
from agent_memory.storage.vector.maintenance import DEFAULT_OPTIONS, Indexed, IndexMaintenance, IndexOptions
from agent_memory.storage.vector.migration import Built, Estimate, MigrationProgress, Progress
from agent_memory.storage.vector.possible import impossible, with_model

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import timedelta
    from pathlib import Path

    from agent_memory.embeddings import Embedder
    from agent_memory.models import Memory, SearchFilters, SearchResults
    from agent_memory.settings import ServiceSettings
    from agent_memory.storage.trouble import Trouble


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
        options: How the engine is run.

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
        options: IndexOptions = DEFAULT_OPTIONS,
    ) -> None:
        settings = with_model(settings, embedding_model)
        self._options = options
        self._wanted = self._wanted if wanted is None else wanted
        super().__init__(
            agent_id, storage_root, settings=settings, clock=clock, embedder=embedder, grace=grace, patience=patience
        )

    @override
    def _begin(self) -> None:
        self._pid = os.getpid()
        limits = self._options.limits
        self._embeddings = EmbeddingService(
            self._settings, self.folder.vectors, partial(AnnIndex, limits=limits), embedder=self._embedder
        )
        index = self._embeddings.index
        if not is_installed() or not isinstance(index, AnnIndex):
            raise impossible(self._embeddings)
        log = FileLog(MEMORY, self.folder, self._clock, self._grace)
        search = SearchIndex(ranking_of(self._settings), index)
        self._store = RecordStore(MEMORY, self.agent_id, log, search, self._clock)
        indexed = Indexed(self.folder, self._store, index, self._embeddings, self._thread, self.prepare, self._sizes)
        self._index = IndexMaintenance(
            indexed, wanted=self._wanted, batch=self._settings.migration_batch_size, options=self._options
        )

    @override
    def _renew(self) -> None:
        if self._pid != os.getpid():
            self._parents.append(self._index)
            self._wanted = self._index.wanted
        super()._renew()

    @property
    def index(self) -> IndexMaintenance:
        """The vector engine of this agent."""
        self._renew()
        return self._index

    @property
    @override
    def backend(self) -> str:
        return self._index.backend

    async def _sizes(self) -> tuple[int, float]:
        memories = await self.valid()
        return await self.count(), sum(len(memory.content) for memory in memories) / max(1, len(memories))

    # -- moving -------------------------------------------------------------------------------------------------------

    @property
    @override
    def can_migrate(self) -> bool:
        return True

    @override
    async def estimate(self) -> Estimate:
        return await self.index.estimate()

    @override
    async def migrate(self, progress: Progress | None = None) -> Built:
        return await self.index.migrate(progress)

    @override
    async def migration_begun(self) -> bool:
        return await self.index.migration_begun()

    @override
    async def note_migration(self, *, begun: bool) -> None:
        await self.index.note_migration(begun=begun)

    @override
    async def rollback(self) -> bool:
        return await self.index.rollback()

    async def caught_up(self, patience: float) -> bool:
        """See `IndexMaintenance.caught_up`."""
        return await self.index.caught_up(patience)

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
        self.index.before_search()
        return await super().search(
            query, limit, filters, include_superseded=include_superseded, explain=explain, patience=patience
        )

    @override
    async def _keep(self, cleaned: Callable[[], Memory], *, unique: bool) -> str:
        memory_id = await super()._keep(cleaned, unique=unique)
        self.index.after_write()
        return memory_id

    @override
    async def _keep_many(self, cleaned: Callable[[], Sequence[Memory]]) -> None:
        await super()._keep_many(cleaned)
        self.index.after_write()

    @override
    async def _change(self, memory_id: str, cleaned: Callable[[], Mapping[str, Any]]) -> Memory:
        memory = await super()._change(memory_id, cleaned)
        self.index.after_write()
        return memory

    @override
    async def delete(self, memory_id: str) -> Memory:
        memory = await super().delete(memory_id)
        self.index.after_write()
        return memory

    @override
    async def prepare(self, patience: float | None = None) -> bool:
        ready = await super().prepare(patience)
        self.index.before_search()
        return ready

    @override
    def troubles(self) -> list[Trouble]:
        return [*super().troubles(), *self._index.troubles()]

    @override
    async def health(self) -> dict[str, Any]:
        return {**await super().health(), **self._index.health()}

    @override
    async def close(self) -> None:
        await self.index.close()
        await super().close()


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
