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

__version__: str
