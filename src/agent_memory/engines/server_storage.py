"""`QdrantServerStorage`: memories of many agents and many machines on one Qdrant server, which is the truth.

docs/server.md tells what is guaranteed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_memory.engines.qdrant.server import Server
from agent_memory.engines.qdrant.server_limits import SERVER_LIMITS, ServerLimits
from agent_memory.models import MEMORY, Clock, utc_now
from agent_memory.settings import ServiceSettings
from agent_memory.store.memory_storage import MemoryStorage

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from qdrant_client import QdrantClient

    from agent_memory.embeddings import Embedder


class QdrantServerStorage(MemoryStorage):
    """An agent's memories on a Qdrant server.

    Connects at the first call. Several objects, processes and machines may use one agent at the same time.

    Args:
        agent_id: Whose memories; upper and lower case are the same agent, as they are for folders.
        settings: Where the server is, embedder and ranking.
        clock: Source of the present.
        client: Makes the connection; `connect(settings)` when omitted.
        embedder: Turns texts into vectors; that of the settings when omitted.
        cache: File with vectors by hash of their text, so that what was embedded for files is not embedded again.
        limits: How long the server is waited for.

    Raises:
        ValidationError: `agent_id` cannot name an agent (also a ValueError).
        ConfigurationError: There is no `qdrant_url`, or the client library is not installed.
    """

    def __init__(
        self,
        agent_id: str,
        *,
        settings: ServiceSettings | None = None,
        clock: Clock = utc_now,
        client: Callable[[], QdrantClient] | None = None,
        embedder: Embedder | None = None,
        cache: Path | None = None,
        limits: ServerLimits = SERVER_LIMITS,
    ) -> None:
        server = Server(MEMORY, agent_id, settings or ServiceSettings(), clock, client, embedder, cache, limits)
        super().__init__(server.backend())
