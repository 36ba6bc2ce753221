"""`QdrantServerStorage`: memories of many agents and many machines on one Qdrant server, which is the truth.

Nothing is kept on this machine: words are indexed in this process's memory from what the server says, cosines come from
the server, and the ranking is the one of `FileStorage`. docs/server.md tells what is guaranteed.
"""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import urlsplit

from typing_extensions import override

from agent_memory.embeddings import EmbeddingWorker, VectorCache, embedder_of, reason_without
from agent_memory.embeddings.runtime import opt_out
from agent_memory.errors import ConfigurationError, EmbeddingError
from agent_memory.installing import advice
from agent_memory.logs import get_logger
from agent_memory.models import MEMORY, Clock, SearchRequest, check_agent_id, check_limit, filters_of, utc_now
from agent_memory.retrieval import SearchIndex
from agent_memory.settings import ServiceSettings
from agent_memory.storage.answer import results_of
from agent_memory.storage.base import MemoryStorage
from agent_memory.storage.file import PATIENCE, ranking_of
from agent_memory.storage.store import RecordStore
from agent_memory.storage.trouble import weakness
from agent_memory.storage.worker import Worker

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
    from datetime import timedelta
    from pathlib import Path

    from qdrant_client import QdrantClient

    from agent_memory.embeddings import Embedder, EmbedderIdentity
    from agent_memory.models import Memory, SearchFilters, SearchResults
    from agent_memory.storage.qdrant.client import Wire
    from agent_memory.storage.qdrant.vectors import ServerEmbeddings

T = TypeVar("T")
log = get_logger(__name__)

KEY_VARIABLE: Final = "QDRANT_API_KEY"
"""The environment variable with the server's key: the one place it is read from is `connect`."""

_TIMEOUT_SECONDS: Final = 5
"""Of one attempt; with the pauses in between a call gives up after some 16 s, and after 5 s while a server is down."""

_OLDEST_SERVER: Final = (1, 16)
"""The first with conditional updates (`update_filter`). An older one would ignore the condition without a word."""

_WARM_AT_ONCE: Final = 200
_FORMAT_KEY: Final = "agent_memory"
_EMBEDDER_KEY: Final = "agent_memory_embedder"
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})


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

    Raises:
        ValidationError: `agent_id` cannot name an agent (also a ValueError).
        ConfigurationError: There is no `qdrant_url`, or the client library is not installed.
    """

    backend = "server"

    def __init__(
        self,
        agent_id: str,
        *,
        settings: ServiceSettings | None = None,
        clock: Clock = utc_now,
        client: Callable[[], QdrantClient] | None = None,
        embedder: Embedder | None = None,
        cache: Path | None = None,
    ) -> None:
        self.agent_id = check_agent_id(agent_id)
        self._settings = settings or ServiceSettings()
        if client is None:
            _check_possible(self._settings)
        self._clock = clock
        self._connect = client or (lambda: connect(self._settings))
        self._embedder = embedder
        self._cache = cache
        self._worker = Worker(f"agent-memory-{agent_id}")
        self._line: _Line | None = None
        self._open: _Open | None = None

    @override
    async def search(
        self,
        query: str,
        limit: int = 5,
        filters: SearchFilters | Mapping[str, Any] | None = None,
        *,
        include_superseded: bool = False,
        explain: bool = False,
        patience: float | None = None,
    ) -> SearchResults:
        patience = PATIENCE if patience is None else patience
        request = SearchRequest(query, limit, self._clock(), filters_of(filters), include_superseded, explain, patience)
        if patience:
            await self.prepare(patience)
        results = results_of(await self._run(lambda store: store.search(request)))
        if results:
            results.degraded = weakness(results, self.embedding())
        return results

    @override
    async def _keep(self, cleaned: Callable[[], Memory], *, unique: bool) -> str:
        memory_id = await self._run(lambda store: store.store(cleaned(), unique=unique))
        self._worker.submit(self._prepare_behind)
        return memory_id

    @override
    async def forgotten_among(self, contents: Collection[str]) -> set[str]:
        def ask(store: RecordStore[Memory]) -> set[str]:
            state = store.refresh()
            return {content for content in contents if state.was_forgotten(content)}

        return await self._run(ask)

    @override
    async def _keep_many(self, cleaned: Callable[[], Sequence[Memory]]) -> None:
        """Do what `store_many` says with some hundred memories at most: they travel in one request.

        Raises:
            ValidationError: One is another agent's, or its id is taken by another text; nothing was stored.
            StorageError: Nothing was stored, unless the message says that this is not known.
        """
        await self._run(lambda store: store.store_many(cleaned()))
        self._worker.submit(self._prepare_behind)

    @override
    async def get(self, memory_id: str) -> Memory | None:
        return await self._run(lambda store: store.refresh().records.get(memory_id))

    @override
    async def list_recent(self, limit: int = 10) -> list[Memory]:
        check_limit(limit)
        return await self._run(lambda store: store.refresh().latest(limit, self._clock()))

    @override
    async def _change(self, memory_id: str, cleaned: Callable[[], Mapping[str, Any]]) -> Memory:
        memory = await self._run(lambda store: store.change(memory_id, cleaned()))
        self._worker.submit(self._prepare_behind)
        return memory

    @override
    async def delete(self, memory_id: str) -> Memory:
        memory = await self._run(lambda store: store.delete(memory_id))
        self._worker.submit(self._compact_behind)  # marks of what was forgotten long ago: nobody else drops them
        return memory

    @override
    async def older_versions(self, memory_id: str) -> list[str]:
        return await self._run(lambda store: store.refresh().replacements.older(memory_id))

    @override
    async def touch(self, memory_ids: Collection[str]) -> None:
        await self._run(lambda store: store.touch(memory_ids))

    @override
    async def count(self) -> int:
        return await self._run(lambda store: len(store.refresh().records))

    @override
    async def iter_all(self) -> AsyncIterator[Memory]:
        for memory in await self._run(lambda store: list(store.refresh().records.values())):
            yield memory

    @override
    async def valid(self) -> list[Memory]:
        return await self._run(lambda store: store.refresh().valid(self._clock()))

    @override
    async def still_true(self, shown: Sequence[Memory]) -> bool:
        return await self._run(lambda store: store.refresh().still_true(shown, self._clock()))

    @override
    async def superseded(self) -> dict[str, str]:
        return await self._run(lambda store: store.refresh().replacements.all(self._clock()))

    @override
    async def was_forgotten(self, content: str) -> bool:
        return await self._run(lambda store: store.refresh().was_forgotten(content))

    @override
    async def prepare(self, patience: float | None = None) -> bool:
        await self._run(lambda store: store.refresh())
        while not await self._run(lambda store: store.warm(_WARM_AT_ONCE)):
            pass  # in portions, so that other calls get in between
        opened = self._open
        return opened is not None and await opened.embeddings.ready(patience)

    @override
    def embedding(self) -> dict[str, Any]:
        if self._open is None:
            return {"status": "loading", "reason": "not connected yet"}
        return self._open.embeddings.describe()

    @override
    async def health(self) -> dict[str, Any]:
        return await self._run(lambda store: store.health())

    @override
    async def compact(self, grace: timedelta | None = None) -> None:
        await self._run(lambda store: store.compact(grace))

    @override
    async def close(self) -> None:
        self._worker.close()
        opened, self._open = self._open, None
        line, self._line = self._line, None
        if opened is not None:
            await asyncio.to_thread(opened.embeddings.close)
        if line is not None and line.pid == os.getpid():
            await asyncio.to_thread(line.client.close)

    # -- in the worker's thread ---------------------------------------------------------------------------------------

    async def _run(self, function: Callable[[RecordStore[Memory]], T]) -> T:
        return await self._worker.run(lambda: function(self._opened().store))

    def _opened(self) -> _Open:
        line = self._line
        if line is None or line.pid != os.getpid():  # a connection does not survive fork()
            from agent_memory.storage.qdrant.client import Wire  # the client library takes a second

            client = self._connect()
            wire = Wire(client, self._settings.qdrant_collection, self.agent_id.lower(), MEMORY.name)
            line = self._line = _Line(client, wire, os.getpid())
            self._open = None
        if self._open is None:
            self._open = self._opening(line.wire)
        return self._open

    def _opening(self, wire: Wire) -> _Open:
        from agent_memory.storage.qdrant.change_log import ServerChangeLog
        from agent_memory.storage.qdrant.log import ServerLog
        from agent_memory.storage.qdrant.vectors import ServerEmbeddings, ServerVectors

        embedder = self._embedder or embedder_of(self._settings)
        identity, absent = _identified(embedder, self._settings)
        absent = _checked_collection(wire, self._settings, identity) or absent
        server = ServerLog(wire, MEMORY.text)
        vectors, worker = None, None
        if embedder is not None and absent is None:
            worker = EmbeddingWorker(embedder, VectorCache(self._cache if self._settings.enable_caching else None))
            vectors = ServerVectors(wire, server.rows, worker)
        index = SearchIndex(ranking_of(self._settings), vectors)
        log = ServerChangeLog(MEMORY, server, self._clock)
        store = RecordStore(MEMORY, self.agent_id, log, index, self._clock)
        return _Open(store, ServerEmbeddings(vectors, worker, absent))

    def _compact_behind(self) -> None:
        self._opened().store.compact()

    def _prepare_behind(self) -> None:
        opened = self._opened()
        opened.store.warm(_WARM_AT_ONCE)
        opened.embeddings.fill_later()


@dataclass(frozen=True, slots=True)
class _Line:
    """A connection, good in the process that made it."""

    client: QdrantClient
    wire: Wire
    pid: int


@dataclass(frozen=True, slots=True)
class _Open:
    """What hangs on a connection to a collection that was looked at."""

    store: RecordStore[Memory]
    embeddings: ServerEmbeddings


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


def connect(settings: ServiceSettings) -> QdrantClient:
    """Return a client of the server in `settings`; nothing is sent yet.

    The key is read from the environment here and nowhere else, and handed to the client alone.

    Raises:
        ConfigurationError: The client library is not installed, there is no address, or it is none.
    """
    _check_possible(settings)
    opt_out()  # the client imports fastembed, and that onnxruntime, where somebody has installed it
    from qdrant_client import QdrantClient as Client  # an extra, and it takes a second

    url = settings.qdrant_url.get_secret_value() if settings.qdrant_url is not None else ""
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.username or parts.password:
        raise ConfigurationError(
            "qdrant_url is no address of a server.",
            recovery=f"It looks like https://host:6333; the key belongs into the environment variable {KEY_VARIABLE}.",
        )
    key = os.environ.get(KEY_VARIABLE)
    if key and parts.scheme == "http" and parts.hostname not in _LOOPBACK:
        log.warning("key_travels_unencrypted", message=f"qdrant_url begins with http, so {KEY_VARIABLE} can be read")
    port = parts.port or (443 if parts.scheme == "https" else 6333)
    headers = {"api-key": key} if key else None  # as a header: the client would print a warning of its own to stderr
    return Client(url=url, port=port, headers=headers, timeout=_TIMEOUT_SECONDS, check_compatibility=False)


def _identified(embedder: Embedder | None, settings: ServiceSettings) -> tuple[EmbedderIdentity | None, str | None]:
    """Return which vectors the embedder makes, or why it makes none."""
    if embedder is None:
        return None, reason_without(settings)
    try:
        return embedder.identity, None
    except EmbeddingError as error:
        return None, error.message


def _checked_collection(wire: Wire, settings: ServiceSettings, identity: EmbedderIdentity | None) -> str | None:
    """Find or create the collection; return why it takes no vectors, None if it does or none are made.

    Raises:
        ConfigurationError: The server is too old, the collection is something else's, or of another embedder.
        StorageError: The server does not answer.
    """
    version = wire.version()
    if tuple(int(part) for part in version.split(".")[:2] if part.isdigit()) < _OLDEST_SERVER:
        raise ConfigurationError(
            f"The memory server is of version {version}; it takes 1.16 or later to keep two writers apart.",
            code="old_server",
            recovery="Upgrade Qdrant; what is stored stays.",
        )
    found = wire.collection()
    if found is None:
        metadata = {_FORMAT_KEY: 1} | ({_EMBEDDER_KEY: str(identity)} if identity else {})
        wire.create(
            identity.dimension if identity else None, metadata, settings.qdrant_shards, settings.qdrant_replicas
        )
        found = wire.collection()
    known = dict(found.config.metadata or {}) if found is not None else {}
    if known.get(_FORMAT_KEY) != 1:
        raise ConfigurationError(
            f"The collection {settings.qdrant_collection!r} on the server is not one of this version's.",
            code="foreign_collection",
            recovery="Give qdrant_collection another name, or upgrade this package.",
        )
    if identity is None:
        return None
    if _EMBEDDER_KEY not in known:
        return "the collection on the server was begun without an embedder, so it has no place for vectors"
    if known[_EMBEDDER_KEY] != str(identity):
        raise ConfigurationError(
            f"The vectors on the server are of {known[_EMBEDDER_KEY]}, this session embeds with {identity}.",
            code="other_embedder",
            recovery="Use that embedder, set embedder: none to search by words, or name another qdrant_collection.",
        )
    return None
