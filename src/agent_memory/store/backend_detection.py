"""`detect_storage`: the right backend for an agent, from what lies on disk and what the settings say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_memory.encryption import is_encrypted, take_keys_from
from agent_memory.files.layout import folder_of
from agent_memory.logs import get_logger
from agent_memory.models import MEMORY, Clock, utc_now
from agent_memory.registry import ENGINES
from agent_memory.settings import ServiceSettings
from agent_memory.store.change_log import FileLog
from agent_memory.store.engine_requirements import can_grow
from agent_memory.store.file_storage import FileStorage
from agent_memory.store.shards import Shards
from agent_memory.store.state import State

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from agent_memory.store.memory_storage import MemoryStorage

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

    This suggests and begins no migration: only `MemoryService` has a session to tell, and does both as `auto_migrate`
    says. A program of its own asks `should_migrate` and calls `storage.migrate()`.

    Raises:
        ValidationError: `agent_id` cannot name a folder (also a ValueError).
        ConfigurationError: The settings ask for a backend that this version or installation does not have.
        StorageError: The folder cannot be used.
    """
    settings = settings or ServiceSettings()
    if settings.backend == "server":
        return _load("server")(agent_id, settings=settings, clock=clock)
    folder = folder_of(agent_id, storage_root or settings.storage_root)
    take_keys_from(folder.path.parent, settings.encryption)
    if is_encrypted(folder.path) or settings.backend == "file":  # an index would not be encrypted
        return FileStorage(agent_id, storage_root, settings=settings, clock=clock)
    if settings.backend == "vector":
        return _load("vector")(agent_id, storage_root, settings=settings, clock=clock)
    migrated = Shards(folder).active()[0] == "vector"
    if can_grow(settings):
        backend = _load("vector" if migrated else "migratable")
        return backend(agent_id, storage_root, settings=settings, clock=clock, wanted=False)
    if migrated:
        log.warning("vector_backend_not_available", agent_id=agent_id, recovery="Search goes on from the files.")
    return FileStorage(agent_id, storage_root, settings=settings, clock=clock)


def should_migrate(
    agent_id: str, storage_root: str | Path | None = None, *, settings: ServiceSettings | None = None
) -> bool:
    """Tell whether an agent's memories are searched from files, can be moved, and are as many as `migration_threshold`.

    Reads the journal as far as that takes; blocking.

    Raises:
        ValidationError: `agent_id` cannot name a folder (also a ValueError).
        StorageError: The memories cannot be read.
    """
    settings = settings or ServiceSettings()
    folder = folder_of(agent_id, storage_root or settings.storage_root)
    if (
        settings.backend != "auto"
        or is_encrypted(folder.path)
        or not can_grow(settings)
        or Shards(folder).active()[0] == "vector"
    ):
        return False
    state = State(MEMORY, folder.agent_id)
    state.absorb(FileLog(MEMORY, folder).poll())
    return len(state.records) >= settings.migration_threshold


async def rollback_migration(
    agent_id: str, storage_root: str | Path | None = None, *, settings: ServiceSettings | None = None
) -> bool:
    """Answer from the files alone again; tell whether that was not so already. See `MigratableStorage.rollback`.

    Raises:
        ValidationError: `agent_id` cannot name a folder (also a ValueError).
        ConfigurationError: The engine or an embedder is missing.
        StorageError: Nothing has changed.
    """
    storage = _load("migratable")(agent_id, storage_root, settings=settings)
    try:
        return await storage.rollback()
    finally:
        await storage.close()


def _load(backend: str) -> Callable[..., MemoryStorage]:
    """Return the class of a backend that needs the vector engine or a server.

    Raises:
        StorageError: The package with it is absent.
    """
    storage_class: Callable[..., MemoryStorage] = ENGINES.load(backend)
    return storage_class
