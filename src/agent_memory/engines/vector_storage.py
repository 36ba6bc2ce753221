"""Memories in files with candidates from the embedded vector engine.

The journal stays the source of truth and the ranking stays the same; only the search for the nearest memories differs.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

from agent_memory.encryption import is_encrypted
from agent_memory.engines.ann_index import AnnIndex
from agent_memory.engines.index_maintenance import DEFAULT_OPTIONS, IndexMaintenance, IndexOptions, IndexSources
from agent_memory.errors import ConfigurationError
from agent_memory.files.layout import folder_of
from agent_memory.index import SearchIndex
from agent_memory.journal import GRACE
from agent_memory.models import EVERYTHING, MEMORY, Clock, Listing, utc_now
from agent_memory.settings import ServiceSettings
from agent_memory.store.memory_storage import Files, FileStorage, MemoryStorage, get_ranking_settings
from agent_memory.store.protocols import MigrationProgress
from agent_memory.store.shards import Shards, is_installed, no_engine_error, with_model
from agent_memory.store.store import Store

if TYPE_CHECKING:
    from datetime import timedelta
    from pathlib import Path

    from agent_memory.embeddings import Embedder, EmbeddingService
    from agent_memory.models import Memory

_SAMPLED: Final = 1_000
"""The latest records, whose mean length is taken for that of all."""


class MigratableStorage(FileStorage):
    """A `FileStorage` that can migrate to the vector engine and back.

    Args:
        agent_id: ID of the agent.
        storage_root: Folder of all agents; that of `settings` if omitted.
        settings: Ranking, embedder and backend settings; the defaults when omitted.
        clock: Source of the present.
        embedder: Embedder to use instead of that of `settings`.
        grace: How long deleted or replaced memories can be restored.
        patience: As in `FileStorage`.
        second_embedder: As in `FileStorage`.
        embedding_model: Model to use instead of that of `settings`; one of OpenAI's by its name.
        wanted: True to use an index, and to build a missing one, whatever `metadata.json` says; otherwise that decides.
        options: How the engine is run.

    Raises:
        ValidationError: `agent_id` cannot name a folder (also a ValueError).
        ConfigurationError: The engine or the embedder is missing.
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
        patience: float | None = None,
        second_embedder: Embedder | None = None,
        wanted: bool | None = None,
        embedding_model: str | None = None,
        options: IndexOptions = DEFAULT_OPTIONS,
    ) -> None:
        settings = with_model(settings, embedding_model) or ServiceSettings()
        self.folder = folder_of(agent_id, storage_root or settings.storage_root)
        files = Files(MEMORY, self.folder, settings, clock, embedder, grace, patience, second_embedder)
        self._files, self._options = files, options
        self._maintenance: IndexMaintenance | None = None
        if wanted is not None:
            self._wanted = wanted
        MemoryStorage.__init__(self, files.backend(self._open_store))

    @property
    def index(self) -> IndexMaintenance:
        """The vector engine of this agent."""
        return cast("IndexMaintenance", super().index)

    async def caught_up(self, patience: float) -> bool:
        """See `IndexMaintenance.caught_up`."""
        return await self.index.caught_up(patience)

    def _open_store(self, storage: Any) -> Store[Memory]:
        """Open the memories and their index.

        Raises:
            ConfigurationError: The engine or the embedder is missing.
        """
        wanted = self._wanted if self._maintenance is None else self._maintenance.sync.wanted  # of the process before
        is_indexed = wanted or Shards(self.folder).active()[0] == "vector"  # an engine's answers need every vector
        open_records = partial(self._open_records, storage, wanted=wanted, is_indexed=is_indexed)
        # An index is of one embedder; that of another one is rebuilt after the start.
        return self._files.open_with_languages(storage, open_records, can_replace=not is_indexed)

    def _open_records(
        self, storage: Any, files: Files[Memory], *, wanted: bool, is_indexed: bool
    ) -> tuple[Store[Memory], EmbeddingService[Any]]:
        options = self._options
        if is_encrypted(files.folder.path):
            raise ConfigurationError(
                "This memory is encrypted, and an index of the vector engine would not be; nothing was changed.",
                code="encrypted_without_index",
                recovery="Leave `backend` at `auto` or `file`, or run `agent-memory encryption off` first.",
            )
        make = partial(AnnIndex, limits=options.limits)
        embeddings = files.embeddings(make)
        candidates = embeddings.index
        if not is_installed() or not isinstance(candidates, AnnIndex):
            raise no_engine_error(embeddings)
        store, sealing = files.open_segments(embeddings, storage.worker, whole=is_indexed)

        async def sizes() -> tuple[int, float]:
            latest = (await storage.browse(Listing(filters=EVERYTHING, limit=_SAMPLED))).records
            characters = sum(len(files.kind.text_of(record)) for record in latest)
            return await storage.count(), characters / max(1, len(latest))

        def read_whole() -> Store[Memory]:
            index = SearchIndex(get_ranking_settings(files.settings), candidates)
            whole = Store(files.kind, files.folder.agent_id, files.log(), index, files.clock)
            whole.embeddings, whole.upkeep = store.embeddings, store.upkeep
            whole.refresh()
            return whole

        indexed = IndexSources(
            files.folder, store, candidates, embeddings, storage.worker, storage.prepare, sizes, read_whole, sealing
        )
        batch = files.settings.migration_batch_size
        store.upkeep = self._maintenance = IndexMaintenance(indexed, wanted=wanted, batch=batch, options=options)
        return store, embeddings


class VectorStorage(MigratableStorage):
    """Memories in one journal, with candidates from Qdrant's engine.

    A missing index is built in the background, and searches compare every memory until then, unless `wanted` is False.
    As `MigratableStorage` for everything else.
    """

    _wanted = True

    async def migrate_from_file(self, source: FileStorage) -> MigrationProgress:
        """Copy another storage of this agent, build an index, and use it.

        Nothing is removed.

        Args:
            source: Storage of the same folder, as a rule: then there is nothing to copy.

        Raises:
            MigrationError: It failed; the memories are where they were, and found. See `MigratableStorage.migrate`.
            ValidationError: The source is another agent's.
        """
        if source.folder.path != self.folder.path:
            await self.store_many([memory async for memory in source.iter_all()])
        built = await self.migrate()
        return MigrationProgress(built.memories, built.memories)
