"""`detect_storage`: the right backend for an agent, from what lies on disk and what the settings say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_memory.errors import ConfigurationError
from agent_memory.models import Clock, utc_now
from agent_memory.settings import ServiceSettings
from agent_memory.storage.file import FileStorage

if TYPE_CHECKING:
    from pathlib import Path

    from agent_memory.storage.base import MemoryStorage


def detect_storage(
    agent_id: str,
    storage_root: str | Path | None = None,
    *,
    settings: ServiceSettings | None = None,
    clock: Clock = utc_now,
) -> MemoryStorage:
    """Return the storage of `agent_id`.

    Raises:
        ValidationError: `agent_id` cannot name a folder (also a ValueError).
        ConfigurationError: The settings ask for a backend that this version does not have.
        StorageError: The folder cannot be used.
    """
    settings = settings or ServiceSettings()
    if settings.backend in {"vector", "server"}:
        raise ConfigurationError(
            f"This version has no backend {settings.backend!r}.",
            code="unsupported_backend",
            recovery="Set backend to 'auto' or 'file'; the memories are in files and can be moved later.",
        )
    return FileStorage(agent_id, storage_root, settings=settings, clock=clock)
