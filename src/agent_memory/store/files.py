"""`Files`: the records of one kind in an agent's folder, as a storage opens them."""

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
from agent_memory.store.replica import Replica
from agent_memory.store.segment_upkeep import Sealing
from agent_memory.store.shortlist import Shortlist
from agent_memory.store.threaded import Backend, Opened

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
    """Where the records of one kind lie, and how they are searched.

    Attributes:
        kind: Of which kind.
        folder: The agent's.
        settings: Ranking and embedder.
        clock: Source of the present.
        embedder: One of the caller's own, instead of that of `settings`.
        grace: How long what was forgotten or replaced can be brought back.
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
        """Have whoever opens a file of this folder look for the key where the settings say."""
        take_keys_from(self.folder.path.parent, self.settings.encryption)

    def backend(self, opening: Callable[[Any], Opened[R]]) -> Backend[R]:
        """Return what a storage of these files is made of."""
        return Backend(
            self.kind,
            self.folder.agent_id,
            self.clock,
            opening,
            grace=self.grace,
            wait=self.settings.lock_timeout,
            patience=self.patience,
            shortlist=Shortlist(self.kind, self.folder),
        )

    def open(self, storage: Any) -> Opened[R]:
        """Open the records, to be searched in this process: what is sealed, and what the journal says behind that."""
        embeddings = self.embeddings(DenseIndex)
        replica, sealing = self.from_segments(embeddings, storage.thread)
        return Opened(replica, embeddings, sealing)

    def from_segments(
        self, embeddings: EmbeddingService[Any], thread: Worker, *, whole: bool = False
    ) -> tuple[Replica[R], Sealing[R]]:
        """Return the records, and what seals them.

        Args:
            embeddings: Their vectors.
            thread: Whose the records are.
            whole: Use no segments, and read all that the journal says.
        """
        if is_encrypted(self.folder.path):  # what is derived is kept in this process alone
            whole = True
            with contextlib.suppress(AgentMemoryError):  # without the key reading says so, and nothing is touched
                data_key(self.folder.path)
                remove_derived(self.folder)  # a process that was under way when encryption began may leave some
        log, opening = self.log(), cache(partial(_opening_of, self, embeddings))
        found: tuple[Any, ...] = (SearchIndex(ranking_of(self.settings), embeddings.index), self.clock)
        if not whole and self.folder.has_segments(self.kind.name) and numpy_if_there() is not None:
            sealed = opening().open(log)
            found = (sealed.index, self.clock, sealed.records, sealed.unembedded)
        replica = Replica(self.kind, self.folder.agent_id, log, *found)
        why = partial(cannot_migrate_error, self.settings)
        return replica, Sealing(replica, opening, self.folder, why, thread, is_embedded=lambda: embeddings.is_settled)

    def log(self) -> FileLog:
        """Return the log of the records."""
        return FileLog(self.kind, self.folder, self.clock, self.grace, self.settings.lock_timeout)

    def embeddings(self, make_index: Callable[[EmbeddingWorker], IndexT]) -> EmbeddingService[IndexT]:
        """Return the embeddings of the records; what the folder's other journals need of the cache stays there."""
        others = partial(hashes_elsewhere, self.folder, self.kind)
        key = partial(key_for, self.folder.path)
        return EmbeddingService(self.settings, self.folder.vectors, make_index, self.embedder, others, key)

    def replica(self, index: SearchIndex) -> Replica[R]:
        """Return the records, with an empty search index that is theirs from now on."""
        return Replica(self.kind, self.folder.agent_id, self.log(), index, self.clock)


def ranking_of(settings: ServiceSettings) -> RankingSettings:
    """Return the ranking that `settings` ask for; what they leave open is as measured."""
    asked = {each.name: getattr(settings, each.name, None) for each in fields(RankingSettings)}
    return RankingSettings(**{name: value for name, value in asked.items() if value is not None})


def _opening_of(files: Files[R], embeddings: EmbeddingService[Any]) -> Opening[R]:
    """Return how segments are opened; loads numpy, which a start without segments does not pay for."""
    from agent_memory.store.segment_opener import Opening

    return Opening(files.kind, files.folder, embeddings, ranking_of(files.settings))
