"""Memories, the kind of record that people know by name: their storages, and what cleans them on the way in.

Each name loads what it needs when it is first asked for: files need no server's client, and the other way round.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent_memory.memories.cleaning import make_memory, redact_fields, redact_memory
    from agent_memory.memories.detect import detect_storage, rollback_migration, should_migrate
    from agent_memory.memories.file import FileStorage
    from agent_memory.memories.server import QdrantServerStorage
    from agent_memory.memories.storage import MemoryStorage
    from agent_memory.memories.vector import MigratableStorage, VectorStorage

__all__ = [
    "FileStorage",
    "MemoryStorage",
    "MigratableStorage",
    "QdrantServerStorage",
    "VectorStorage",
    "detect_storage",
    "make_memory",
    "redact_fields",
    "redact_memory",
    "rollback_migration",
    "should_migrate",
]

if not TYPE_CHECKING:  # a type checker would take it for every name there is

    def __getattr__(name: str) -> object:
        """Load a public name (PEP 562)."""
        for module, names in _OF.items():
            if name in names:
                value = globals()[name] = getattr(import_module(f"agent_memory.memories.{module}"), name)
                return value
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted([*globals(), *__all__])

    _OF = {
        "cleaning": {"make_memory", "redact_fields", "redact_memory"},
        "detect": {"detect_storage", "rollback_migration", "should_migrate"},
        "file": {"FileStorage"},
        "server": {"QdrantServerStorage"},
        "storage": {"MemoryStorage"},
        "vector": {"MigratableStorage", "VectorStorage"},
    }
