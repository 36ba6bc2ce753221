"""A Qdrant server for tests: the client's local mode, one call at a time as a server does it, and a record of calls."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest
from httpx import Headers
from qdrant_client import QdrantClient
from qdrant_client.http.exceptions import UnexpectedResponse

from agent_memory.memories import QdrantServerStorage
from agent_memory.settings import ServiceSettings

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_memory.embeddings import Embedder
    from tests.support import FrozenClock

QUIET = [
    pytest.mark.filterwarnings("ignore:Payload indexes have no effect"),
    pytest.mark.filterwarnings("ignore:Local mode performs exact"),
    pytest.mark.filterwarnings("ignore:Local mode is not recommended"),
]


class LocalServer:
    """What several clients connect to.

    Args:
        client: What answers; the client's local mode when omitted.

    Attributes:
        calls: (method, positional and named arguments) of every request so far.
        hold: While cleared, requests wait.
        before: Called with the method's name before each request; may raise or do something behind a client's back.
    """

    def __init__(self, client: Any = None) -> None:
        self.client = client or QdrantClient(":memory:")
        self.calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []
        self.hold = threading.Event()
        self.hold.set()
        self.before: Callable[[str], object] | None = None
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
        return kind(agent_id, settings=values, clock=clock, client=self.connect, embedder=embedder)

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


class _Client:
    def __init__(self, server: LocalServer) -> None:
        self._server = server

    def __getattr__(self, name: str) -> Any:
        return lambda *args, **kwargs: self._server.answer(name, *args, **kwargs)

    def close(self) -> None:
        """Leave the server running."""
