"""`IndexedFiles`: records in files whose candidates come from the embedded vector engine once there are many.

The journal stays the truth and the ranking stays the same; only who names the nearest records differs.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, Generic

from agent_memory.encryption import is_encrypted
from agent_memory.engines.ann_index import AnnIndex
from agent_memory.engines.index_maintenance import IndexMaintenance, IndexOptions
from agent_memory.engines.index_sync import Indexed
from agent_memory.errors import ConfigurationError
from agent_memory.index import SearchIndex
from agent_memory.models import EVERYTHING, Listing
from agent_memory.models.kind import R
from agent_memory.store.file_storage import ranking_of
from agent_memory.store.shards import Shards, is_installed, no_engine_error
from agent_memory.store.store import Store

if TYPE_CHECKING:
    from agent_memory.store.file_storage import Files

_SAMPLED: Final = 1_000
"""The latest records, whose mean length stands for that of all."""


class IndexedFiles(Generic[R]):
    """Files with an index.

    Args:
        files: Where the records lie, and how they are searched.
        wanted: Use an index, and build it where there is none, whatever `metadata.json` says; else follow what it says.
        options: How the engine is run.
    """

    def __init__(self, files: Files[R], *, wanted: bool, options: IndexOptions) -> None:
        self._files, self._wanted, self._options = files, wanted, options
        self._index: IndexMaintenance | None = None

    def open(self, storage: Any) -> Store[R]:
        """Open the records and their index for a storage.

        Raises:
            ConfigurationError: The engine is not installed, or there is no embedder.
        """
        files, options = self._files, self._options
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
        wanted = self._wanted if self._index is None else self._index.sync.wanted  # as it was in the process before
        is_indexed = wanted or Shards(files.folder).active()[0] == "vector"  # an engine's answers need every vector
        store, sealing = files.open_segments(embeddings, storage.worker, whole=is_indexed)

        async def sizes() -> tuple[int, float]:
            latest = (await storage.browse(Listing(filters=EVERYTHING, limit=_SAMPLED))).records
            characters = sum(len(files.kind.text_of(record)) for record in latest)
            return await storage.count(), characters / max(1, len(latest))

        def read_whole() -> Store[R]:
            index = SearchIndex(ranking_of(files.settings), candidates)
            whole = Store(files.kind, files.folder.agent_id, files.log(), index, files.clock)
            whole.embeddings, whole.upkeep = store.embeddings, store.upkeep
            whole.refresh()
            return whole

        indexed = Indexed(
            files.folder, store, candidates, embeddings, storage.worker, storage.prepare, sizes, read_whole, sealing
        )
        batch = files.settings.migration_batch_size
        store.upkeep = self._index = IndexMaintenance(indexed, wanted=wanted, batch=batch, options=options)
        return store
