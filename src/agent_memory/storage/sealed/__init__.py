"""Records that are sealed in segments: read without a replay, hidden once they change, sealed by a child process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_memory.storage.replica import Replica
from agent_memory.storage.sealed.opening import Opening
from agent_memory.storage.sealed.upkeep import Sealing
from agent_memory.storage.threaded import Opened

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from agent_memory.embeddings import EmbeddingService
    from agent_memory.errors import ConfigurationError
    from agent_memory.models.kind import R
    from agent_memory.retrieval import DenseIndex, RankingSettings
    from agent_memory.storage.files import Files


def opened_with_segments(
    files: Files[R],
    embeddings: EmbeddingService[DenseIndex],
    ranking: RankingSettings,
    why: Callable[[], ConfigurationError],
    storage: Any,
) -> Opened[R]:
    """Open records in files: what is sealed is mapped, what is not is replayed.

    Args:
        files: Where they lie.
        embeddings: Their vectors.
        ranking: How they are searched.
        why: Makes the error that says why this storage cannot be moved.
        storage: Whose thread takes new segments into use.
    """
    opening = Opening(files.kind, files.folder, embeddings, ranking)
    log = files.log()
    opened = opening.open(log)
    replica = Replica(
        files.kind, files.folder.agent_id, log, opened.index, files.clock, opened.records, opened.unembedded
    )
    return Opened(replica, embeddings, Sealing(replica, opening, files.folder, why, storage.thread))
