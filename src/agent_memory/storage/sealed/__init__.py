"""Records that are sealed in segments: read without a replay, hidden once they change, sealed by a child process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_memory.retrieval import SearchIndex
from agent_memory.storage.replica import Replica
from agent_memory.storage.sealed.opening import open_sealed
from agent_memory.storage.sealed.sealing import SEALED_AT
from agent_memory.storage.sealed.upkeep import Sealing
from agent_memory.storage.threaded import Opened

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_memory.embeddings import EmbeddingService
    from agent_memory.errors import ConfigurationError
    from agent_memory.models.kind import R
    from agent_memory.retrieval import DenseIndex
    from agent_memory.storage.files import Files


def opened_with_segments(
    files: Files[R], embeddings: EmbeddingService[DenseIndex], why: Callable[[], ConfigurationError]
) -> Opened[R]:
    """Open records in files: what is sealed is mapped, what is not is replayed.

    Args:
        files: Where they lie.
        embeddings: Their vectors.
        why: Makes the error that says why this storage cannot be moved.
    """
    from agent_memory.storage.files import ranking_of

    identity, log = embeddings.known_identity(), files.log()
    sealed = open_sealed(files.folder, files.kind, log.journal, identity)
    if embeddings.index is not None and sealed is not None:
        embeddings.index.elsewhere = sum(len(each) for each in sealed.corpus.vectors if each is not None)
    index = SearchIndex(ranking_of(files.settings), embeddings.index, sealed=sealed.corpus if sealed else None)
    records, unembedded = (sealed.records, sealed.unembedded) if sealed else (None, ())
    replica = Replica(files.kind, files.folder.agent_id, log, index, files.clock, records, unembedded)
    return Opened(replica, embeddings, Sealing(replica, files.folder, identity, why, SEALED_AT))
