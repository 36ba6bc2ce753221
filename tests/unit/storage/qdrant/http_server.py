"""A Qdrant server on loopback for tests: real HTTP and JSON in front of the client's local mode, and every bad answer.

Checks what the remote client really sends against the API's own models. The engine behind it is not Qdrant's.
"""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from pydantic import TypeAdapter
from qdrant_client import models
from qdrant_client.http.exceptions import UnexpectedResponse

from tests.unit.storage.qdrant.local_server import LocalServer

if TYPE_CHECKING:
    from collections.abc import Callable

Answer = tuple[int, Any]


class HttpServer(LocalServer):
    """Answers on `url` until `close`.

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
