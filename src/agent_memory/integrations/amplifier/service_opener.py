"""Services of agents for sessions; loads every layer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_memory.encryption import take_keys_from, unlock
from agent_memory.files.layout import folder_of
from agent_memory.journal.journal import check_all_present
from agent_memory.memory import open_service
from agent_memory.memory.features import attach_features, finish_purges

if TYPE_CHECKING:
    from agent_memory.memory import MemoryService
    from agent_memory.settings import ServiceSettings

__all__ = ["create_service", "finish_purges", "unlock_files"]


def create_service(agent_id: str, settings: ServiceSettings) -> MemoryService:
    """Return a service with its inbox and feature packages."""
    return attach_features(open_service(agent_id, settings))


def unlock_files(agent_id: str, settings: ServiceSettings) -> None:
    """Load the key of encrypted files; blocks.

    Call it in a thread: a key from a passphrase takes 0.3 s.

    Raises:
        StorageError: The key or a journal is missing.
    """
    folder = folder_of(agent_id, settings.storage_root).path
    take_keys_from(folder.parent, settings.encryption)
    unlock(folder)
    check_all_present(folder)
