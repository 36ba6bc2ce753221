"""`Files`: the records of one kind in an agent's folder, and how a storage opens them."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, fields
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Generic

from agent_memory.embeddings import EmbeddingService
from agent_memory.encryption import data_key, is_encrypted, key_for, take_keys_from
from agent_memory.encryption.plain import remove_derived
from agent_memory.errors import AgentMemoryError
from agent_memory.index import DenseIndex, RankingSettings, SearchIndex
from agent_memory.index.scores import numpy_if_there
from agent_memory.journal import GRACE
from agent_memory.models.kind import R
from agent_memory.store.change_log import FileLog
from agent_memory.store.engine_requirements import cannot_migrate_error
from agent_memory.store.other_journals import hashes_elsewhere
from agent_memory.store.segment_upkeep import Sealing
from agent_memory.store.shortlist import Shortlist
from agent_memory.store.storage_edge import Backend
from agent_memory.store.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import timedelta

    from agent_memory.embeddings import Embedder
    from agent_memory.embeddings.service import IndexT
    from agent_memory.embeddings.worker import EmbeddingWorker
    from agent_memory.files.layout import AgentFolder
    from agent_memory.models import Clock, Kind
    from agent_memory.settings import ServiceSettings
    from agent_memory.store.segment_opener import Opening
    from agent_memory.store.worker import Worker


@dataclass(frozen=True, slots=True)
class Files(Generic[R]):
    """Files of one agent's records of one kind.

    Attributes:
        kind: Kind of the records.
        folder: Folder of the agent.
        settings: Ranking, embedder and waiting times.
        clock: Source of the present.
        embedder: Embedder of the caller, instead of that of `settings`.
        grace: Time for which forgotten and replaced texts can be restored.
        patience: As in `Backend`.
    """

    kind: Kind[R]
    folder: AgentFolder
    settings: ServiceSettings
    clock: Clock
    embedder: Embedder | None = None
    grace: timedelta = GRACE
    patience: float | None = None

    def __post_init__(self) -> None:
        """Look for the key of this folder where the settings say."""
        take_keys_from(self.folder.path.parent, self.settings.encryption)

    def backend(self, opening: Callable[[Any], Store[R]] | None = None) -> Backend[R]:
        """Return the backend of a storage of these files.

        Args:
            opening: Opens them for a storage; `open` when omitted.
        """
        return Backend(
            self.kind,
            self.folder.agent_id,
            self.clock,
            opening or self.open,
            why_immovable=partial(cannot_migrate_error, self.settings),
            grace=self.grace,
            wait=self.settings.lock_timeout,
            patience=self.patience,
            shortlist=Shortlist(self.kind, self.folder),
        )

    def open(self, storage: Any) -> Store[R]:
        """Open the records, to be searched in this process.

        They are in segments, and after these in the journal.
        """
        return self.open_segments(self.embeddings(DenseIndex), storage.worker)[0]

    def open_segments(
        self, embeddings: EmbeddingService[Any], worker: Worker, *, whole: bool = False
    ) -> tuple[Store[R], Sealing[R]]:
        """Return the open records and their sealing.

        Args:
            embeddings: Vectors of their texts.
            worker: Thread of the records.
            whole: Use no segments, and read the whole journal.
        """
        if is_encrypted(self.folder.path):  # what is derived is kept in this process alone
            whole = True
            with contextlib.suppress(AgentMemoryError):  # without the key reading says so, and nothing is touched
                data_key(self.folder.path)
                remove_derived(self.folder)  # a process that was under way when encryption began may leave some
        log, opening = self.log(), cache(partial(_opening_of, self, embeddings))
        content: tuple[Any, ...] = (SearchIndex(ranking_of(self.settings), embeddings.index), self.clock)
        if not whole and self.folder.has_segments(self.kind.name) and numpy_if_there() is not None:
            sealed = opening().open(log)
            content = (sealed.index, self.clock, sealed.records, sealed.unembedded)
        store = Store(self.kind, self.folder.agent_id, log, *content)
        sealing = Sealing(store, opening, self.folder, worker, is_embedded=lambda: embeddings.is_settled)
        store.embeddings, store.upkeep = embeddings, sealing
        return store, sealing

    def log(self) -> FileLog:
        """Return the log of the records."""
        return FileLog(self.kind, self.folder, self.clock, self.grace, self.settings.lock_timeout)

    def embeddings(self, make_index: Callable[[EmbeddingWorker], IndexT]) -> EmbeddingService[IndexT]:
        """Return the embeddings of the records.

        What the folder's other journals need stays in the cache.
        """
        others = partial(hashes_elsewhere, self.folder, self.kind)
        key = partial(key_for, self.folder.path)
        return EmbeddingService(self.settings, self.folder.vectors, make_index, self.embedder, others, key)


def ranking_of(settings: ServiceSettings) -> RankingSettings:
    """Return the ranking that `settings` ask for.

    What they leave open is as measured.
    """
    asked = {each.name: getattr(settings, each.name, None) for each in fields(RankingSettings)}
    return RankingSettings(**{name: value for name, value in asked.items() if value is not None})


def _opening_of(files: Files[R], embeddings: EmbeddingService[Any]) -> Opening[R]:
    """Return the opener of segments; loads numpy.

    A start without segments does not pay for that.
    """
    from agent_memory.store.segment_opener import Opening

    return Opening(files.kind, files.folder, embeddings, ranking_of(files.settings))
