"""Long-term memory for agents: plain files, offline search, no telemetry.

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
    from agent_memory.embeddings import EmbeddingGenerator as EmbeddingGenerator
    from agent_memory.engines.vector_storage import VectorStorage as VectorStorage
    from agent_memory.errors import AgentMemoryError as AgentMemoryError
    from agent_memory.memory import MemoryService as MemoryService
    from agent_memory.memory.scratchpad_manager import ScratchpadManager as ScratchpadManager
    from agent_memory.models import Memory as Memory
    from agent_memory.models import MemorySearchResult as MemorySearchResult
    from agent_memory.models import Observation as Observation
    from agent_memory.models import Scratchpad as Scratchpad
    from agent_memory.models import SearchFilters as SearchFilters
    from agent_memory.models import SearchResults as SearchResults
    from agent_memory.settings import ServiceSettings as ServiceSettings
    from agent_memory.store.memory_storage import FileStorage as FileStorage
    from agent_memory.store.memory_storage import MemoryStorage as MemoryStorage
    from agent_memory.store.memory_storage import detect_storage as detect_storage

__version__ = "0.1.0"


_install()
if not TYPE_CHECKING:  # a type checker would take it for every name there is
    __getattr__, __dir__ = _offer(__name__)
