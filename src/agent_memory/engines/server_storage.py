"""Memories of many agents and machines on one Qdrant server.

No record is stored on this machine: words are indexed in this process's memory, cosines come from the server, and the
ranking is the one of files. docs/how-to/server.md describes the guarantees.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final, Generic
from urllib.parse import urlsplit

from agent_memory.embeddings import EmbeddingWorker, VectorCache, make_embedder, reason_without
from agent_memory.embeddings.onnx_runtime import opt_out
from agent_memory.engines.server_vectors import ServerEmbeddings, ServerVectors
from agent_memory.errors import ConfigurationError, EmbeddingError
from agent_memory.index import SearchIndex
from agent_memory.logs import get_logger
from agent_memory.models import MEMORY, Clock, check_agent_id, utc_now
from agent_memory.models.kind import R
from agent_memory.settings import ServiceSettings
from agent_memory.settings.installation import advice
from agent_memory.store.memory_storage import MemoryStorage, get_ranking_settings
from agent_memory.store.storage_edge import Backend
from agent_memory.store.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from qdrant_client import QdrantClient

    from agent_memory.embeddings import Embedder, EmbedderIdentity
    from agent_memory.engines.server_client import ServerRequests
    from agent_memory.models import Clock, Kind

log = get_logger(__name__)
KEY_VARIABLE: Final = "QDRANT_API_KEY"
"""The environment variable with the server's key: the one place it is read from is `connect`."""
_OLDEST_SERVER: Final = (1, 16)
"""The first with conditional updates (`update_filter`). An older one would ignore the condition without a word."""
_FORMAT_KEY: Final = "agent_memory"
_EMBEDDER_KEY: Final = "agent_memory_embedder"
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True, slots=True)
class ServerLimits:
    """Waiting times of a server, in seconds.

    Attributes:
        timeout: Of one attempt; with the pauses a call gives up after some 16 s, and after 5 s while a server is down.
        pauses: Between two attempts of one request.
        longest_wait: After a lost race; with a wait that doubles from 5 ms on, 60 lost races take about the 5 s that a
            file's lock is waited for.
    """

    timeout: int = 5
    pauses: tuple[float, ...] = (0.2, 0.8)
    longest_wait: float = 0.15


SERVER_LIMITS: Final = ServerLimits()


class QdrantServerStorage(MemoryStorage):
    """An agent's memories on a Qdrant server.

    Connects at the first call. Several objects, processes and machines may use one agent at the same time.

    Args:
        agent_id: ID of the agent, without regard to case, as for folders.
        settings: Settings of server, embedder and ranking.
        clock: Source of the present.
        client: Makes the connection; `connect(settings)` if omitted.
        embedder: Embedder to use instead of that of the settings.
        cache: File with vectors by hash of their text, so that texts embedded for files are not embedded again.
        limits: Timeouts and pauses.

    Raises:
        ValidationError: `agent_id` cannot name an agent (also a ValueError).
        ConfigurationError: `qdrant_url` is missing, or the client library is not installed.
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


@dataclass(slots=True)
class Server(Generic[R]):
    """Records of one agent on a Qdrant server.

    Connects when a storage opens them.

    Attributes:
        kind: Kind of the records.
        agent_id: ID of the agent, without regard to case, as for folders.
        settings: Settings of server, embedder and ranking.
        clock: Source of the present.
        client: Makes the connection; `connect(settings)` if omitted.
        embedder: Embedder to use instead of that of the settings.
        cache: File with vectors by hash of their text, so that texts embedded for files are not embedded again.
        limits: Timeouts and pauses.

    Raises:
        ValidationError: `agent_id` cannot name an agent (also a ValueError).
        ConfigurationError: `qdrant_url` is missing, or the client library is not installed.
    """

    kind: Kind[R]
    agent_id: str
    settings: ServiceSettings
    clock: Clock
    client: Callable[[], QdrantClient] | None = None
    embedder: Embedder | None = None
    cache: Path | None = None
    limits: ServerLimits = SERVER_LIMITS
    _line: tuple[int, QdrantClient, ServerRequests] | None = None

    def __post_init__(self) -> None:
        check_agent_id(self.agent_id)
        if self.client is None:
            _check_possible(self.settings)

    def backend(self) -> Backend[R]:
        """Return the backend for a storage of these records."""
        return Backend(
            self.kind, self.agent_id, self.clock, self._open_store, close=self._close, name="server", is_remote=True
        )

    def _open_store(self, _storage: object) -> Store[R]:
        from agent_memory.engines.server_client import ServerRequests  # the client library takes a second
        from agent_memory.engines.server_log import ServerChangeLog, ServerLog

        if self._line is None or self._line[0] != os.getpid():  # a connection does not survive fork()
            client = self.client() if self.client is not None else connect(self.settings, self.limits.timeout)
            collection, tenant = self.settings.qdrant_collection, self.agent_id.lower()
            wire = ServerRequests(client, collection, tenant, self.kind.name, pauses=self.limits.pauses)
            self._line = os.getpid(), client, wire
        wire = self._line[2]
        embedder = self.embedder or make_embedder(self.settings)
        identity, absent = _identify(embedder, self.settings)
        absent = _check_collection(wire, self.settings, identity) or absent
        server = ServerLog(wire, self.kind.text)
        vectors, worker = None, None
        if embedder is not None and absent is None:
            worker = EmbeddingWorker(embedder, VectorCache(self.cache if self.settings.enable_caching else None))
            vectors = ServerVectors(wire, server.rows, worker)
        index = SearchIndex(get_ranking_settings(self.settings), vectors)
        log = ServerChangeLog(self.kind, server, self.clock, self.limits.longest_wait)
        store = Store(self.kind, self.agent_id, log, index, self.clock)
        store.embeddings = ServerEmbeddings(vectors, worker, absent)
        return store

    def _close(self) -> None:
        line, self._line = self._line, None
        if line is not None and line[0] == os.getpid():
            line[1].close()


def _check_possible(settings: ServiceSettings) -> None:
    if settings.qdrant_url is None:
        raise ConfigurationError(
            "backend is 'server', but there is no qdrant_url.",
            code="unsupported_backend",
            recovery="Set qdrant_url to the server's address, such as http://localhost:6333.",
        )
    if find_spec("qdrant_client") is None:
        raise ConfigurationError(
            "backend is 'server', but the client of Qdrant servers is not installed.",
            code="unsupported_backend",
            recovery=advice("server"),
        )


def connect(settings: ServiceSettings, timeout: int = SERVER_LIMITS.timeout) -> QdrantClient:
    """Return a client of the server in `settings`; nothing is sent yet.

    The key is read from the environment here and nowhere else, and passed to the client alone.

    Raises:
        ConfigurationError: The client library is not installed, or the address is missing or invalid.
    """
    _check_possible(settings)
    opt_out()  # the client imports fastembed, and that onnxruntime, where it is installed
    from qdrant_client import QdrantClient as Client  # an extra, and it takes a second

    url = settings.qdrant_url.get_secret_value() if settings.qdrant_url is not None else ""
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.username or parts.password:
        raise ConfigurationError(
            "qdrant_url is not the address of a server.",
            recovery=f"It looks like https://host:6333; put the key into the environment variable {KEY_VARIABLE}.",
        )
    key = os.environ.get(KEY_VARIABLE)
    if key and parts.scheme == "http" and parts.hostname not in _LOOPBACK:
        log.warning("key_travels_unencrypted", message=f"qdrant_url begins with http, so {KEY_VARIABLE} can be read")
    port = parts.port or (443 if parts.scheme == "https" else 6333)
    headers = {"api-key": key} if key else None  # as a header: the client would print a warning of its own to stderr
    return Client(url=url, port=port, headers=headers, timeout=timeout, check_compatibility=False)


def _identify(embedder: Embedder | None, settings: ServiceSettings) -> tuple[EmbedderIdentity | None, str | None]:
    """Return the embedder's identity, or the reason for its absence."""
    if embedder is None:
        return None, reason_without(settings)
    try:
        return embedder.identity, None
    except EmbeddingError as error:
        return None, error.message


def _check_collection(wire: ServerRequests, settings: ServiceSettings, identity: EmbedderIdentity | None) -> str | None:
    """Find or create the collection.

    Return the reason why it takes no vectors, or None.

    Raises:
        ConfigurationError: The server is too old, the collection is something else's, or of another embedder.
        StorageError: The server does not answer.
    """
    version = wire.version()
    if tuple(int(part) for part in version.split(".")[:2] if part.isdigit()) < _OLDEST_SERVER:
        raise ConfigurationError(
            f"The memory server is of version {version}; it takes 1.16 or later to keep two writers apart.",
            code="old_server",
            recovery="Upgrade Qdrant; stored memories stay.",
        )
    collection = wire.collection()
    if collection is None:
        metadata = {_FORMAT_KEY: 1} | ({_EMBEDDER_KEY: str(identity)} if identity else {})
        wire.create(
            identity.dimension if identity else None, metadata, settings.qdrant_shards, settings.qdrant_replicas
        )
        collection = wire.collection()
    metadata_known = dict(collection.config.metadata or {}) if collection is not None else {}
    if metadata_known.get(_FORMAT_KEY) != 1:
        raise ConfigurationError(
            f"The collection {settings.qdrant_collection!r} on the server was not made by this version.",
            code="foreign_collection",
            recovery="Give qdrant_collection another name, or upgrade this package.",
        )
    if identity is None:
        return None
    if _EMBEDDER_KEY not in metadata_known:
        return "the collection on the server was begun without an embedder, so it has no place for vectors"
    if metadata_known[_EMBEDDER_KEY] != str(identity):
        raise ConfigurationError(
            f"The vectors on the server are of {metadata_known[_EMBEDDER_KEY]}, this session embeds with {identity}.",
            code="other_embedder",
            recovery="Use that embedder, set embedder: none to search by words, or name another qdrant_collection.",
        )
    return None
