"""`FileStorage`: memories in one YAML journal, searched in this process. The backend everyone starts with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_memory.files.layout import folder_of
from agent_memory.journal import GRACE
from agent_memory.models import MEMORY, Clock, utc_now
from agent_memory.settings import ServiceSettings
from agent_memory.store.files import Files
from agent_memory.store.memory_storage import MemoryStorage

if TYPE_CHECKING:
    from datetime import timedelta
    from pathlib import Path

    from agent_memory.embeddings import Embedder


class FileStorage(MemoryStorage):
    """An agent's memories in `<storage_root>/<agent_id>/memories.yaml`.

    Opens nothing until the first call and creates nothing until the first write. Several objects, threads and
    processes may use one folder at the same time.

    Args:
        agent_id: Name of the agent.
        storage_root: Folder of all agents; that of `settings` when omitted.
        settings: Ranking and backend settings; the defaults when omitted.
        clock: Source of the present.
        embedder: One of the caller's own, instead of that of `settings`.
        grace: How long what was forgotten or replaced can be brought back.
        patience: Seconds that a search which names none waits until what is stored is found by its embedding, too; None
            waits while a model loads, and for no texts.
            Loading the local model takes about one; thousands of memories that are new are waited for only once.

    Raises:
        ValidationError: `agent_id` cannot name a folder (also a ValueError).
        StorageError: The folder leads out of the storage root.
    """

    def __init__(
        self,
        agent_id: str,
        storage_root: str | Path | None = None,
        *,
        settings: ServiceSettings | None = None,
        clock: Clock = utc_now,
        embedder: Embedder | None = None,
        grace: timedelta = GRACE,
        patience: float | None = None,
    ) -> None:
        settings = settings or ServiceSettings()
        self.folder = folder_of(agent_id, storage_root or settings.storage_root)
        files = Files(MEMORY, self.folder, settings, clock, embedder, grace, patience)
        super().__init__(files.backend())
