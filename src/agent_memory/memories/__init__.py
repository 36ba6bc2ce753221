"""Storages of memories.

A name is imported on first use.
"""

from typing import TYPE_CHECKING

from agent_memory.late import offer as _offer

if TYPE_CHECKING:
    from agent_memory.engines.server_storage import QdrantServerStorage
    from agent_memory.engines.vector_storage import MigratableStorage, VectorStorage
    from agent_memory.store.memory_storage import (
        FileStorage,
        MemoryStorage,
        detect_storage,
        rollback_migration,
        should_migrate,
    )

__all__ = [
    "FileStorage",
    "MemoryStorage",
    "MigratableStorage",
    "QdrantServerStorage",
    "VectorStorage",
    "detect_storage",
    "rollback_migration",
    "should_migrate",
]

if not TYPE_CHECKING:  # a type checker would take it for every name there is
    __getattr__, __dir__ = _offer(__name__)
