"""Memories, the kind of record that people know by name: their storages."""

from agent_memory.memories.detect import detect_storage, rollback_migration, should_migrate
from agent_memory.memories.file import FileStorage
from agent_memory.memories.memory_storage import MemoryStorage
from agent_memory.memories.server import QdrantServerStorage
from agent_memory.memories.vector import MigratableStorage, VectorStorage

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
