"""Storages of memories.

A name is imported on first use.
"""

from typing import TYPE_CHECKING

from agent_memory.late import offer as _offer

if TYPE_CHECKING:
    from agent_memory.engines.server_storage import QdrantServerStorage as QdrantServerStorage
    from agent_memory.engines.vector_storage import MigratableStorage as MigratableStorage
    from agent_memory.engines.vector_storage import VectorStorage as VectorStorage
    from agent_memory.store.memory_storage import FileStorage as FileStorage
    from agent_memory.store.memory_storage import MemoryStorage as MemoryStorage
    from agent_memory.store.memory_storage import detect_storage as detect_storage
    from agent_memory.store.memory_storage import rollback_migration as rollback_migration
    from agent_memory.store.memory_storage import should_migrate as should_migrate


if not TYPE_CHECKING:  # a type checker would take it for every name there is
    __getattr__, __dir__ = _offer(__name__)
