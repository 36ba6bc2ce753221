"""Memories of many agents and machines on one Qdrant server.

No record is stored on this machine: words are indexed in this process's memory, cosines come from the server, and the
ranking is the one of files. docs/how-to/server.md describes the guarantees.
"""

from __future__ import annotations

import asyncio
import bisect
import hashlib
import os
import threading
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, Generic
from urllib.parse import urlsplit

from typing_extensions import override

from agent_memory.embeddings import (
    WORTH_WAITING,
    EmbeddingWorker,
    VectorCache,
    make_embedder,
    reason_without,
    text_hash,
    warm_up,
    without_embedder,
)
from agent_memory.embeddings.onnx_runtime import opt_out
from agent_memory.errors import AgentMemoryError, ConfigurationError, EmbeddingError, StorageError
from agent_memory.index import SearchIndex, VectorSource
from agent_memory.logs import get_logger
from agent_memory.models import MEMORY, Clock, check_agent_id, utc_now
from agent_memory.models.kind import R
from agent_memory.settings import ServiceSettings
from agent_memory.settings.installation import advice
from agent_memory.store.memory_storage import MemoryStorage, get_ranking_settings
from agent_memory.store.storage_edge import Backend
from agent_memory.store.store import Store
from agent_memory.store.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from qdrant_client import QdrantClient

    from agent_memory.embeddings import Embedder, EmbedderIdentity
    from agent_memory.embeddings.protocol import Matrix, Vector
    from agent_memory.engines.server_client import Payload, ServerRequests
    from agent_memory.index import QueryCosines, SearchScope
    from agent_memory.models import Kind

log = get_logger(__name__)

_READY_SHARE: Final = 0.9
"""As in `DenseIndex`: below it, memories with a vector would outrank the others."""

_AT_ONCE: Final = 32
_BATCH_SECONDS: Final = 120.0
_MOST_CANDIDATES: Final = 10_000
"""Cosines fetched for one search. Up to so many memories the ranking is that of the file backend to the last digit;
beyond, those farther from the query are judged by their words alone. 10,000 ids and scores are 1 MB."""


class ServerVectors(VectorSource):
    """The `VectorSource` of one agent on a server.

    Owns which memories have their vector, and the thread that embeds the others. Candidates come from the server as raw
    cosines, so the one ranking of `agent_memory.index` judges them as it judges those of a file. Fed and asked by the
    storage's thread; `fill` runs on another.

    Args:
        wire: Requests about this agent.
        rows: Payloads by memory ID, updated by the log.
        worker: Embeds texts and queries; its owner closes it.
    """

    def __init__(self, wire: ServerRequests, rows: Mapping[str, Payload], worker: EmbeddingWorker) -> None:
        self._wire = wire
        self._rows = rows
        self._worker = worker
        self._lock = threading.Lock()
        self._points: dict[str, str] = {}  # point -> memory
        self._marks: dict[str, str] = {}  # memory -> hash of its pieces
        self._missing: dict[str, _MissingVector] = {}  # memory -> what it needs

    @property
    def missing(self) -> int:
        """Memories without a vector."""
        return len(self._missing)

    @property
    def is_empty(self) -> bool:
        """True if no memory needs a vector."""
        return not self._marks

    @property
    def ready(self) -> bool:
        """True if the model and nine vectors in ten are ready."""
        return self._worker.ready and len(self._missing) <= (1 - _READY_SHARE) * len(self._marks)

    def put(self, memory_id: str, texts: Iterable[str]) -> None:
        """Set the texts of a memory.

        If the server has no vectors of them, `fill` makes them.
        """
        pieces = tuple(texts)
        mark = hashlib.sha256(b"".join(map(text_hash, pieces))).hexdigest()
        with self._lock:
            self._points[self._wire.point(memory_id)] = memory_id
            self._marks[memory_id] = mark
            self._missing.pop(memory_id, None)
            row = self._rows[memory_id]
            if row.get("embedded") != mark:
                self._missing[memory_id] = _MissingVector(row["text"], mark, pieces)

    def remove(self, memory_id: str) -> None:
        """Forget a memory; an unknown id changes nothing."""
        with self._lock:
            self._points.pop(self._wire.point(memory_id), None)
            self._marks.pop(memory_id, None)
            self._missing.pop(memory_id, None)

    @override
    def cosines(self, query: Vector, scope: SearchScope | None = None) -> QueryCosines:
        """Compare a query with every memory.

        Raises:
            StorageError: The server does not answer.
        """
        items = scope is None or scope.filters.include_items
        near = self._wire.nearest(query, min(_MOST_CANDIDATES, max(1, len(self._marks))), items=items)
        cosines = [(self._points[point], score) for point, score in near if point in self._points]
        return _ServerCosines(cosines)

    def fill(self) -> bool:
        """Embed every memory; return True if all have a vector.

        And if queries can be embedded.

        Raises:
            StorageError: The server does not answer; what was written stays.
        """
        while batch := self._some_missing():
            stored = self._wire.rows(batch, ["embedded", "text"])
            # Deleted, changed or embedded by another client: nothing to do, or `put` will ask again.
            todo = {i: wanted for i, wanted in batch.items() if wanted.is_missing_in(stored.get(i))}
            self._note({i: wanted for i, wanted in batch.items() if i not in todo})
            if todo and not self._embed_batch(todo):
                return False
        return self._worker.drain(_BATCH_SECONDS)

    def start(self) -> None:
        """Begin loading the model."""
        self._worker.start()

    def _some_missing(self) -> dict[str, _MissingVector]:
        with self._lock:
            return {memory_id: self._missing[memory_id] for memory_id in list(self._missing)[:_AT_ONCE]}

    def _embed_batch(self, todo: dict[str, _MissingVector]) -> bool:
        self._worker.submit({text_hash(piece): piece for wanted in todo.values() for piece in wanted.pieces})
        if not self._worker.drain(_BATCH_SECONDS):
            return False
        vectors = dict(self._worker.collect())
        done = {i: w for i, w in todo.items() if all(text_hash(piece) in vectors for piece in w.pieces)}
        written = [
            (i, wanted.text, wanted.mark, [vectors[text_hash(piece)].tolist() for piece in wanted.pieces])
            for i, wanted in done.items()
        ]
        if written:
            self._wire.write_vectors(written)
        self._note(done)
        return len(done) == len(todo)

    def _note(self, done: Mapping[str, _MissingVector]) -> None:
        with self._lock:
            for memory_id, wanted in done.items():
                if self._missing.get(memory_id) is wanted:  # else its words have changed
                    del self._missing[memory_id]


@dataclass(frozen=True, slots=True)
class _MissingVector:
    """Vector to make for a memory: hash of its content, mark, pieces."""

    text: str
    mark: str
    pieces: tuple[str, ...]

    def is_missing_in(self, row: Payload | None) -> bool:
        """Return True if the server has this content without its vector."""
        return row is not None and row.get("text") == self.text and row.get("embedded") != self.mark


class ServerEmbeddings:
    """Background embedding of one agent on a server.

    Args:
        vectors: Vectors to make; None searches by words alone.
        worker: Thread of the embedder, closed with this object.
        absent: Reason for the lack of vectors.
    """

    def __init__(self, vectors: ServerVectors | None, worker: EmbeddingWorker | None, absent: str | None) -> None:
        self.vectors = vectors
        self._worker = worker
        self._absent = absent
        self._filler = Worker()

    @property
    def is_there(self) -> bool:
        """True if vectors are used."""
        return self.vectors is not None

    @property
    def is_remote(self) -> bool:
        """True if the embedder waits for a network."""
        return self._worker is not None and self._worker.is_remote

    @property
    def is_ready(self) -> bool:
        """True if queries can be embedded."""
        return self.vectors is not None and self.vectors.ready

    @property
    def is_warm(self) -> bool:
        """True if a search has nothing to wait for."""
        return self.vectors is None or (self.vectors.ready and not self.vectors.missing)

    @property
    def is_empty(self) -> bool:
        """True if no memory needs a vector."""
        return self.vectors is not None and self.vectors.is_empty

    @property
    def cost(self) -> float:
        """0: the charge of embedding for a server is unknown."""
        return 0.0

    def embed_texts(self, texts: Sequence[str]) -> Matrix | None:
        """Return None: records filed by their vectors are in files."""

    def forget(self, texts: Iterable[str]) -> None:
        """Do nothing: a vector is deleted with its record."""

    def fill_later(self) -> None:
        """Embed what is missing, without waiting for it."""
        if self.vectors is not None and self.vectors.missing:
            self._filler.submit(self.vectors.fill)

    async def ready(self, patience: float | None) -> bool:
        """Wait until searches use embeddings too; return True if they do.

        Arguments as in `EmbeddingService.ready`.

        Raises:
            StorageError: The server does not answer.
        """
        if self.vectors is None:
            return False
        if patience is not None and (self.vectors.is_empty or self.vectors.missing > WORTH_WAITING):
            self.vectors.start()
            self.fill_later()
            return False
        filling = asyncio.ensure_future(self._filler.run(self.vectors.fill))
        with suppress(TimeoutError):
            return await asyncio.wait_for(asyncio.shield(filling), patience)
        filling.add_done_callback(_log_failure)  # no caller waits for it any more
        return self.vectors.ready

    async def warm_up(self) -> None:
        """Wait for the model, then briefly for memories without a vector.

        The second wait is as long as that for an API.

        Raises:
            StorageError: The server does not answer.
        """
        if self.vectors is None or self._worker is None:
            return
        self._worker.start()
        if not self.vectors.is_empty:
            await warm_up(self._worker)
            await self.ready(self._worker.remote_seconds)

    async def finish(self) -> int:
        """Embed a few pending memories; return the number still pending.

        Another client embeds those.
        """
        if self.vectors is None or self._worker is None or not self.vectors.missing:
            return 0
        with suppress(StorageError):  # the server is gone: the next client embeds them
            await self.ready(self._worker.remote_seconds)
        return self.vectors.missing

    def describe(self) -> dict[str, Any]:
        """Return the state of embedding, for people."""
        if self.vectors is None or self._worker is None:
            return without_embedder(self._absent)
        status = self._worker.status
        report: dict[str, Any] = {"status": "ready" if status.ready else "loading", "pending": self.vectors.missing}
        return {**report, "status": "failing", "problem": status.problem} if status.problem else report

    def known_identity(self) -> EmbedderIdentity | None:
        """Return None: the server checks the dimension of a vector."""

    def close(self) -> None:
        """Stop embedding; the next client embeds the rest."""
        if self._worker is not None:
            self._worker.close()
        self._filler.close()


def _log_failure(done: asyncio.Future[bool]) -> None:
    error = None if done.cancelled() else done.exception()
    if isinstance(error, AgentMemoryError):
        log.warning("background_work_failed", code=error.code, error=error.message)


class _ServerCosines:
    """Cosines as the server gave them, best first."""

    has_scope = True

    def __init__(self, best_first: list[tuple[str, float]]) -> None:
        self._best_first = best_first
        self._by_id = dict(best_first)

    def of(self, memory_ids: Iterable[str]) -> dict[str, float]:
        return {memory_id: self._by_id[memory_id] for memory_id in memory_ids if memory_id in self._by_id}

    def at_least(self, floor: float, count: int | None = None) -> list[tuple[str, float]]:
        return self._best_first[: self.how_many(floor)][:count]

    def how_many(self, floor: float) -> int:
        return bisect.bisect_right(self._best_first, -floor, key=lambda pair: -pair[1])

    def below(self, floor: float, count: int) -> list[tuple[str, float]]:
        return [pair for pair in self._best_first if pair[1] < floor][:count]


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
