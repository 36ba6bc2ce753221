"""A Qdrant server for tests, in this process or over HTTP; the client's local mode answers, or Qdrant's engine."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import pytest
import qdrant_edge as edge
from httpx import Headers
from pydantic import TypeAdapter
from qdrant_client import QdrantClient, models
from qdrant_client.http.exceptions import UnexpectedResponse

from agent_memory.memories import QdrantServerStorage
from agent_memory.settings import ServiceSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from agent_memory.embeddings import Embedder
    from tests.support import FrozenClock

Answer = tuple[int, Any]
QUIET = [
    pytest.mark.filterwarnings("ignore:Payload indexes have no effect"),
    pytest.mark.filterwarnings("ignore:Local mode performs exact"),
    pytest.mark.filterwarnings("ignore:Local mode is not recommended"),
]


class QdrantServer:
    """What several clients connect to.

    Args:
        shard: An empty folder: Qdrant's own engine (`qdrant-edge-py`) answers from a shard in it, so that conditions,
            filters and vectors are real. What is missing is the server around the engine: its network, its collections,
            its consensus. When omitted the client's local mode answers.

    Attributes:
        calls: (method, positional and named arguments) of every request so far.
        hold: While cleared, requests wait.
        before: Called with the method's name before each request; may raise or do something behind a client's back.
    """

    def __init__(self, shard: Path | None = None) -> None:
        self.client: Any = QdrantClient(":memory:") if shard is None else _ShardClient(shard)
        self.calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []
        self.hold = threading.Event()
        self.hold.set()
        self.before: Callable[[str], object] | None = None
        self.opened: list[QdrantServerStorage] = []
        self._lock = threading.RLock()

    def open(
        self,
        agent_id: str = "bob",
        *,
        clock: FrozenClock,
        embedder: Embedder | None = None,
        kind: type[QdrantServerStorage] = QdrantServerStorage,
        **settings: Any,
    ) -> QdrantServerStorage:
        """Return a storage of its own connection; without an embedder it searches by words."""
        values = ServiceSettings(backend="server", embedder="none", **settings)
        opened = kind(agent_id, settings=values, clock=clock, client=self.connect, embedder=embedder)
        self.opened.append(opened)
        return opened

    async def close_opened(self) -> None:
        """Close what `open` returned."""
        for storage in self.opened:
            await storage.close()

    def connect(self) -> Any:
        """Return a client."""
        return _Client(self)

    def answer(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """Carry out a request."""
        self.hold.wait()
        if self.before is not None:
            self.before(name)
        with self._lock:
            self.calls.append((name, args, kwargs))
            try:
                return getattr(self.client, name)(*args, **kwargs)
            except ValueError as error:
                if "already exists" not in str(error):
                    raise
                raise UnexpectedResponse(409, "Conflict", b"", Headers()) from None  # as a server says it

    def close(self) -> None:
        """Stop answering."""
        self.client.close()


class _Client:
    def __init__(self, server: QdrantServer) -> None:
        self._server = server

    def __getattr__(self, name: str) -> Any:
        return lambda *args, **kwargs: self._server.answer(name, *args, **kwargs)

    def close(self) -> None:
        """Leave the server running."""


class QdrantHttpServer(QdrantServer):
    """Real HTTP and JSON in front of it, on loopback: answers on `url` until `close`, badly where a test wants that.

    Checks what the remote client really sends against the API's own models.

    Attributes:
        trouble: Asked before each request with (method, path); an answer instead of None is given in its place.
        headers: What each request carried.
        queries: (path, parameters) of each request.
        release: Requests for which `trouble` waits go on when it is set.
    """

    def __init__(self) -> None:
        super().__init__()
        self.trouble: Callable[[str, str], Answer | None] = lambda method, path: None
        self.headers: list[dict[str, str]] = []
        self.queries: list[tuple[str, dict[str, list[str]]]] = []
        self.release = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def _answer(self) -> None:
                parts = urlsplit(self.path)
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                outer.headers.append({name.lower(): value for name, value in self.headers.items()})
                outer.queries.append((parts.path, parse_qs(parts.query)))
                answer = outer.trouble(self.command, parts.path) or outer.route(self.command, parts.path, body)
                status, value = answer
                data = value if isinstance(value, bytes) else json.dumps(value, default=str).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = do_PUT = _answer  # noqa: N815 - the names the library looks for

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        class Http(ThreadingHTTPServer):
            def handle_error(self, *_: object) -> None:
                """A client that gave up is what some tests want; say nothing."""

        self.http = Http(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}"
        self._thread = threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    def close(self) -> None:
        """Stop answering."""
        self.release.set()
        self.http.shutdown()
        self._thread.join()
        self.http.server_close()
        super().close()

    def route(self, method: str, path: str, body: bytes) -> Answer:
        """Carry out one request of the API."""
        if path == "/":
            return 200, {"title": "qdrant - vector search engine", "version": "1.16.0", "commit": None}
        _, _, name, *rest = path.split("/")
        try:
            result = self._result(method, name, "/".join(rest), body)
        except UnexpectedResponse as error:
            return error.status_code, {"status": {"error": "x"}, "time": 0}
        plain = TypeAdapter(Any).dump_python(result, mode="json", exclude_none=False)
        return 200, {"result": plain, "status": "ok", "time": 0.0}

    def _result(self, method: str, name: str, what: str, body: bytes) -> Any:  # noqa: PLR0911 - one for each request
        if (method, what) == ("GET", "exists"):
            return {"exists": self.answer("collection_exists", name)}
        if (method, what) == ("GET", ""):
            return self.answer("get_collection", name)
        if (method, what) == ("PUT", ""):
            asked = models.CreateCollection.model_validate_json(body)
            return self.answer("create_collection", name, vectors_config=asked.vectors, metadata=asked.metadata)
        if (method, what) == ("PUT", "index"):
            models.CreateFieldIndex.model_validate_json(body)
            return models.UpdateResult(status=models.UpdateStatus.COMPLETED)
        if (method, what) == ("POST", "points"):
            asked_points = models.PointRequest.model_validate_json(body)
            return self.answer("retrieve", name, asked_points.ids, with_payload=asked_points.with_payload)
        if (method, what) == ("POST", "points/scroll"):
            page = models.ScrollRequest.model_validate_json(body)
            found, after = self.answer("scroll", name, page.filter, limit=page.limit, offset=page.offset)
            return {"points": found, "next_page_offset": after}
        if (method, what) == ("POST", "points/query"):
            ask = models.QueryRequest.model_validate_json(body)
            vector = ask.query.nearest if isinstance(ask.query, models.NearestQuery) else ask.query
            return self.answer(
                "query_points", name, vector, using=ask.using, query_filter=ask.filter, limit=ask.limit
            )  # fmt: skip
        if (method, what) == ("PUT", "points"):
            put = models.PointsList.model_validate_json(body)
            return self.answer("upsert", name, put.points, update_filter=put.update_filter)
        if (method, what) == ("POST", "points/batch"):
            batch = models.UpdateOperations.model_validate_json(body)
            return self.answer("batch_update_points", name, batch.operations)
        raise AssertionError(f"{method} {what} is not expected")


class _ShardClient:
    """The part of a client's interface that a storage uses, upon one shard.

    Args:
        folder: An empty folder for the shard.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._shard: Any = None
        self._metadata: dict[str, Any] = {}
        self._has_vectors = False

    def close(self) -> None:
        """Close the shard."""
        if self._shard is not None:
            self._shard.close()

    def info(self) -> Any:
        return SimpleNamespace(version="1.16.0")

    def collection_exists(self, name: str) -> bool:
        return self._shard is not None

    def get_collection(self, name: str) -> Any:
        return SimpleNamespace(config=SimpleNamespace(metadata=self._metadata))

    def create_collection(self, name: str, *, vectors_config: dict[str, Any], metadata: Any, **_: Any) -> bool:
        if self._shard is not None:
            raise UnexpectedResponse(409, "Conflict", b"", Headers())
        several = edge.MultiVectorConfig(edge.MultiVectorComparator.MaxSim)
        vectors = {
            key: edge.EdgeVectorParams(params.size, edge.Distance.Cosine, multivector_config=several)
            for key, params in vectors_config.items()
        }
        self._shard = edge.EdgeShard.create(str(self._folder), edge.EdgeConfig(vectors=vectors or None))
        self._metadata, self._has_vectors = metadata, bool(vectors)
        return True

    def create_payload_index(self, name: str, field: str, *, field_schema: Any) -> None:
        kinds = {
            models.KeywordIndexParams: edge.PayloadSchemaType.Keyword,
            models.IntegerIndexParams: edge.PayloadSchemaType.Integer,
            models.BoolIndexParams: edge.PayloadSchemaType.Bool,
        }
        self._shard.update(edge.UpdateOperation.create_field_index(field, kinds[type(field_schema)]))

    def retrieve(self, name: str, points: Sequence[str], *, with_payload: Any, **_: Any) -> list[Any]:
        return self._shard.retrieve(list(points), _fields(with_payload), False) if points else []

    def scroll(self, name: str, scroll_filter: Any, *, limit: int, offset: Any = None, **_: Any) -> Any:
        condition = _filter(scroll_filter)
        ask = edge.ScrollRequest(offset=offset, limit=limit, filter=condition, with_payload=True, with_vector=False)
        return self._shard.scroll(ask)

    def query_points(self, name: str, query: Any, *, using: str, query_filter: Any, limit: int, **_: Any) -> Any:
        ask = edge.QueryRequest(
            limit=limit,
            query=edge.Query.Nearest(query, using=using),
            filter=_filter(query_filter),
            params=edge.SearchParams(exact=True),
            with_payload=False,
            with_vector=False,
        )
        return SimpleNamespace(points=self._shard.query(ask))

    def upsert(self, name: str, points: Sequence[Any], *, update_filter: Any, **_: Any) -> None:
        batch = models.PointsList(points=list(points), update_filter=update_filter)
        self.batch_update_points(name, [models.UpsertOperation(upsert=batch)])

    def batch_update_points(self, name: str, operations: Sequence[Any], **_: Any) -> None:
        for operation in operations:
            self._shard.update(_operation(operation))


def _operation(given: Any) -> Any:
    make = edge.UpdateOperation
    if isinstance(given, models.UpsertOperation):
        points = [edge.Point(str(point.id), point.vector, point.payload) for point in given.upsert.points]
        return make.upsert_points(points, condition=_filter(given.upsert.update_filter))
    if isinstance(given, models.SetPayloadOperation):
        return make.set_payload_by_filter(_filter(given.set_payload.filter), given.set_payload.payload)
    if isinstance(given, models.UpdateVectorsOperation):
        change = given.update_vectors
        vectors = [edge.PointVectors(str(point.id), point.vector) for point in change.points]
        return make.update_vectors(vectors, condition=_filter(change.update_filter))
    assert isinstance(given, models.DeleteOperation), given
    return make.delete_points_by_filter(_filter(given.delete.filter))


def _filter(given: models.Filter) -> Any:
    return edge.Filter(must=[_condition(one) for one in given.must])


def _condition(given: Any) -> Any:
    if isinstance(given, models.HasIdCondition):
        return edge.HasIdCondition({str(point) for point in given.has_id})
    if given.range is not None:
        bounds = given.range.model_dump(exclude_none=True)
        return edge.FieldCondition(given.key, range=edge.RangeFloat(**bounds))
    return edge.FieldCondition(given.key, match=edge.MatchValue(given.match.value))


def _fields(given: Any) -> Any:
    return edge.PayloadSelector.Exclude(given.exclude) if isinstance(given, models.PayloadSelectorExclude) else given
