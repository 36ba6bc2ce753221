"""`detect_storage`: the right backend for an agent, from what lies on disk and what the settings say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_memory.logs import get_logger
from agent_memory.models import Clock, utc_now
from agent_memory.settings import ServiceSettings
from agent_memory.storage.file import FileStorage
from agent_memory.storage.folder import folder_of
from agent_memory.storage.generations import Generations
from agent_memory.storage.vector import GrowingStorage, VectorStorage, can_grow

if TYPE_CHECKING:
    from pathlib import Path

    from agent_memory.storage.base import MemoryStorage

log = get_logger(__name__)


def detect_storage(
    agent_id: str,
    storage_root: str | Path | None = None,
    *,
    settings: ServiceSettings | None = None,
    clock: Clock = utc_now,
) -> MemoryStorage:
    """Return the storage of `agent_id`.

    With `backend: auto` that is what `metadata.json` says: `VectorStorage` once the agent was migrated, else a
    `FileStorage` that can be migrated while it is in use, where the vector engine and an embedder are installed.
    Without them it is a plain one, also for an agent that was migrated elsewhere: the memories are in the journal.

    Raises:
        ValidationError: `agent_id` cannot name a folder (also a ValueError).
        ConfigurationError: The settings ask for a backend that this version or installation does not have.
        StorageError: The folder cannot be used.
    """
    settings = settings or ServiceSettings()
    if settings.backend == "server":
        from agent_memory.storage.server import QdrantServerStorage  # noqa: PLC0415 - not for files

        return QdrantServerStorage(agent_id, settings=settings, clock=clock)
    if settings.backend == "file":
        return FileStorage(agent_id, storage_root, settings=settings, clock=clock)
    if settings.backend == "vector":
        return VectorStorage(agent_id, storage_root, settings=settings, clock=clock)
    migrated = Generations(folder_of(agent_id, storage_root or settings.storage_root)).active()[0] == "vector"
    if can_grow(settings):
        kind = VectorStorage if migrated else GrowingStorage
        return kind(agent_id, storage_root, settings=settings, clock=clock, wanted=False)
    if migrated:
        log.warning("vector_backend_not_available", agent_id=agent_id, recovery="Search goes on from the files.")
    return FileStorage(agent_id, storage_root, settings=settings, clock=clock)
