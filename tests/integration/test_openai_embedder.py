"""The OpenAI embedder against a real HTTP server on loopback that answers, and fails, as the API does."""

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
import pytest

from agent_memory.embeddings import EmbeddingWorker, OpenAIEmbedder, text_hash
from agent_memory.embeddings.openai_api import MAX_TOKENS
from agent_memory.errors import ConfigurationError, EmbeddingError
from tests.support import raises

pytest.importorskip("openai")
pytestmark = pytest.mark.enable_socket

KEY = "not-a-real-key"
Answer = Callable[[dict[str, Any]], tuple[int, Any]]


def vectors(request: dict[str, Any], dimension: int = 8) -> tuple[int, Any]:
    """Answer as the API does, in another order than asked, as it may."""
    rows = [
        {"object": "embedding", "index": at, "embedding": [float(len(text)), float(at + 1)] + [0.5] * (dimension - 2)}
        for at, text in enumerate(request["input"])
    ]
    usage = {"prompt_tokens": 1, "total_tokens": 1}
    return 200, {"object": "list", "data": rows[::-1], "model": request["model"], "usage": usage}


def refusal(status: int) -> tuple[int, Any]:
    return status, {"error": {"message": f"no, {KEY}", "type": "x", "code": None, "param": None}}


class Server:
    """The API on loopback; `answers` are given in turn, the last one for ever."""

    def __init__(self) -> None:
        self.answers: list[Answer] = [vectors]
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.release = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.requests.append(body)
                outer.headers.append({name.lower(): value for name, value in self.headers.items()})
                answer = outer.answers.pop(0) if len(outer.answers) > 1 else outer.answers[0]
                status, payload = answer(body)
                data = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.send_header("retry-after-ms", "5")
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        class Http(ThreadingHTTPServer):
            def handle_error(self, *_: object) -> None:
                """A client that gave up is what some tests want; say nothing."""

        self.http = Http(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}/v1"
        self.thread = threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()

    def close(self) -> None:
        self.release.set()
        self.http.shutdown()
        self.thread.join()
        self.http.server_close()


@pytest.fixture
def server() -> Iterator[Server]:
    running = Server()
    yield running
    running.close()


@pytest.fixture
def embedder(server: Server) -> OpenAIEmbedder:
    return OpenAIEmbedder("my-model", api_key=KEY, base_url=server.url, dimensions=8, max_retries=2, timeout=5)


def test_vectors_come_back_normalised_and_in_the_order_asked(embedder: OpenAIEmbedder) -> None:
    matrix = embedder.embed_documents(["a", "bb", "ccc"])
    assert matrix.shape == (3, 8)
    assert np.allclose(np.linalg.norm(matrix, axis=1), 1, atol=1e-5)
    assert (matrix[:, 1] / matrix[:, 0]).tolist() == pytest.approx([1, 1, 1])


def test_many_texts_go_in_batches(server: Server) -> None:
    embedder = OpenAIEmbedder("m", api_key=KEY, base_url=server.url, dimensions=8, batch_size=10)
    assert embedder.embed_documents([f"text {number}" for number in range(25)]).shape == (25, 8)
    assert [len(request["input"]) for request in server.requests] == [10, 10, 5]


def test_shorter_vectors_are_asked_for_only_when_wanted(server: Server) -> None:
    server.answers = [lambda request: vectors(request, request.get("dimensions", 1536))]
    full = OpenAIEmbedder(api_key=KEY, base_url=server.url)
    short = OpenAIEmbedder(api_key=KEY, base_url=server.url, dimensions=256)
    assert (full.embed_query("x").shape, short.embed_query("x").shape) == ((1536,), (256,))
    assert "dimensions" not in server.requests[0]


@pytest.mark.parametrize("status", [429, 500, 503])
def test_passing_trouble_is_tried_again(server: Server, embedder: OpenAIEmbedder, status: int) -> None:
    server.answers = [lambda _: refusal(status), lambda _: refusal(status), vectors]
    assert embedder.embed_query("x").shape == (8,)
    assert len(server.requests) == 3


@pytest.mark.parametrize(("status", "calls"), [(429, 3), (500, 3), (401, 1), (404, 1)])
def test_lasting_trouble_is_an_error_that_quotes_no_key(
    server: Server, embedder: OpenAIEmbedder, status: int, calls: int
) -> None:
    server.answers = [lambda _: refusal(status)]
    with pytest.raises(EmbeddingError) as caught:
        embedder.embed_query("my private text")
    assert caught.value.code == f"http_{status}"
    assert len(server.requests) == calls
    for text in (str(caught.value), caught.value.recovery, repr(embedder)):
        assert KEY not in text
        assert "private" not in text


def test_a_timeout_is_an_error(server: Server) -> None:
    def slow(request: dict[str, Any]) -> tuple[int, Any]:
        server.release.wait(5)
        return vectors(request)

    server.answers = [slow]
    embedder = OpenAIEmbedder("m", api_key=KEY, base_url=server.url, dimensions=8, timeout=0.05, max_retries=0)
    with raises(EmbeddingError, "embedder_unreachable"):
        embedder.embed_query("x")
    server.release.set()


def test_a_server_that_is_not_there_is_an_error(server: Server) -> None:
    url = server.url.replace("127.0.0.1", "127.0.0.2")
    embedder = OpenAIEmbedder("m", api_key=KEY, base_url=url, dimensions=8, max_retries=0)
    with raises(EmbeddingError, "embedder_unreachable"):
        embedder.embed_query("x")


def _with(change: Callable[[dict[str, Any]], None]) -> Answer:
    def answer(request: dict[str, Any]) -> tuple[int, Any]:
        status, payload = vectors(request)
        change(payload)
        return status, payload

    return answer


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda payload: payload["data"].pop(), "vector_count"),
        (lambda payload: payload["data"].clear(), None),
        (lambda payload: payload["data"][0].update(index=0), "vector_count"),
        (lambda payload: [row["embedding"].append(1.0) for row in payload["data"]], "vector_dimension"),
        (lambda payload: payload["data"][0]["embedding"].pop(), "vector_shape"),
        (lambda payload: payload["data"][0].update(embedding=[float("nan")] * 8), "vector_not_finite"),
        (lambda payload: payload["data"][0].update(embedding=[0.0] * 8), "vector_not_finite"),
        (lambda payload: payload["data"][0].update(embedding=None), None),
        (lambda payload: payload.update(data=None), None),
    ],
)
def test_nonsense_is_refused(server: Server, embedder: OpenAIEmbedder, change: Any, code: str | None) -> None:
    server.answers = [_with(change)]
    with pytest.raises(EmbeddingError) as caught:
        embedder.embed_documents(["a", "b"])
    if code is not None:
        assert caught.value.code == code


def test_an_answer_that_is_no_json_is_refused(server: Server, embedder: OpenAIEmbedder) -> None:
    server.answers = [lambda _: (200, b"<html>a captive portal</html>")]
    with pytest.raises(EmbeddingError):
        embedder.embed_query("x")


def test_the_key_travels_in_the_header_only(server: Server, embedder: OpenAIEmbedder) -> None:
    embedder.embed_query("x")
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"
    assert KEY not in json.dumps(server.requests)


def test_without_a_key_the_error_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with raises(EmbeddingError, "no_api_key"):
        OpenAIEmbedder().embed_query("x")


def test_an_unknown_model_needs_its_dimension() -> None:
    with pytest.raises(ConfigurationError, match="embedding_dimensions"):
        OpenAIEmbedder("my-model")


def test_the_embedding_thread_reports_a_refusal_and_goes_on_when_it_ends(
    server: Server, embedder: OpenAIEmbedder
) -> None:
    server.answers = [lambda _: refusal(401), vectors]
    worker = EmbeddingWorker(embedder)
    worker.submit({text_hash("a"): "a"})
    assert worker.drain(10)
    assert len(worker.collect()) == 1
    worker.close()


def test_tokens_and_cost_are_those_that_the_api_counted(server: Server) -> None:
    embedder = OpenAIEmbedder("text-embedding-3-small", api_key=KEY, base_url=server.url, dimensions=8)

    def counted(request: dict[str, Any]) -> tuple[int, Any]:
        status, answer = vectors(request)
        return status, {**answer, "usage": {"prompt_tokens": 1000, "total_tokens": 1000}}

    server.answers = [counted]
    embedder.embed_documents(["a", "b"])
    embedder.embed_query("c")
    assert embedder.tokens == 2000
    assert embedder.cost == pytest.approx(2000 * 0.02 / 1e6)


def test_a_text_that_is_too_long_is_cut_when_the_api_refuses_it(server: Server, embedder: OpenAIEmbedder) -> None:
    def strict(request: dict[str, Any]) -> tuple[int, Any]:
        too_long = any(len(text.encode()) > MAX_TOKENS for text in request["input"])
        return refusal(400) if too_long else vectors(request)

    server.answers = [strict]
    assert embedder.embed_documents(["short", "lång " * 4000]).shape == (2, 8)
    assert [len(text.encode()) for text in server.requests[-1]["input"]] == [5, MAX_TOKENS]
    embedder.embed_documents(["short"])
    assert len(server.requests) == 3, "only what was refused is asked for again"


def test_a_refusal_of_short_texts_is_not_asked_again(server: Server, embedder: OpenAIEmbedder) -> None:
    server.answers = [lambda _: refusal(400)]
    with pytest.raises(EmbeddingError):
        embedder.embed_documents(["short"])
    assert len(server.requests) == 1
