"""Long-term memory for agents: files are the truth, search works offline, nothing phones home.

    from agent_memory import FileStorage, Memory

    storage = FileStorage("bob")
    await storage.store(Memory(agent_id="bob", content="Use PostgreSQL for the ledger", category="decision"))
    results = await storage.search("which database did we pick")

The layers, from the top: `integrations` (Amplifier), `memory` (the one write path), `store`, `index`, `journal` and
`embeddings`, `models`. Importing this opens no file, starts no thread and loads no model; each name loads
what it needs when it is first asked for, so that the engine's processes start without pydantic.
"""

from typing import TYPE_CHECKING

from agent_memory.earlier_paths import install as _install
from agent_memory.late import offer as _offer

if TYPE_CHECKING:
    from agent_memory.embeddings import EmbeddingGenerator
    from agent_memory.engines.vector_storage import VectorStorage
    from agent_memory.errors import AgentMemoryError
    from agent_memory.memory import MemoryService
    from agent_memory.memory.scratchpad_manager import ScratchpadManager
    from agent_memory.models import (
        Memory,
        MemorySearchResult,
        Observation,
        Scratchpad,
        SearchFilters,
        SearchResults,
    )
    from agent_memory.settings import ServiceSettings
    from agent_memory.store.memory_storage import FileStorage, MemoryStorage, detect_storage

__version__ = "0.1.0"

__all__ = [
    "AgentMemoryError",
    "EmbeddingGenerator",
    "FileStorage",
    "Memory",
    "MemorySearchResult",
    "MemoryService",
    "MemoryStorage",
    "Observation",
    "Scratchpad",
    "ScratchpadManager",
    "SearchFilters",
    "SearchResults",
    "ServiceSettings",
    "VectorStorage",
    "detect_storage",
]

_install()
if not TYPE_CHECKING:  # a type checker would take it for every name there is
    __getattr__, __dir__ = _offer(__name__)
