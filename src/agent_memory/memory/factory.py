"""Opening the service of an agent as its settings say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_memory.encryption import unlock
from agent_memory.files.temporary import sweep_leftovers
from agent_memory.logs import get_logger
from agent_memory.memory.audit import AuditLog
from agent_memory.memory.service import MemoryService
from agent_memory.redaction import SecretRedactor
from agent_memory.store.backend_detection import detect_storage
from agent_memory.store.file_storage import FileStorage

if TYPE_CHECKING:
    from agent_memory.embeddings import Embedder
    from agent_memory.settings import ServiceSettings

log = get_logger(__name__)


def open_service(agent_id: str, settings: ServiceSettings, embedder: Embedder | None = None) -> MemoryService:
    """Return the service of an agent; nothing but the key of encrypted files is read before it is asked something.

    Args:
        agent_id: Whose.
        settings: Where it is, the backend and the embedder.
        embedder: One of the program's own, instead of that; memories are in files then.

    Raises:
        ValidationError, ConfigurationError, StorageError: It cannot be opened.
    """
    if embedder is not None:
        return MemoryService(FileStorage(agent_id, settings=settings, embedder=embedder), settings)
    storage = detect_storage(agent_id, settings=settings)
    audit = None
    if isinstance(storage, FileStorage):
        audit = AuditLog(storage.folder.audit)
        if swept := sweep_leftovers(storage.folder.path):
            log.warning("leftovers_removed", files=[path.name for path in swept])
        unlock(storage.folder.path)
    return MemoryService(storage, settings, redactor=SecretRedactor(), audit=audit)
