"""A server in this process, bob's memory on it as two machines have it, and what lies in the collection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from qdrant_client import models

from agent_memory.engines.server_client import ServerRequests
from agent_memory.engines.server_storage import SERVER_LIMITS
from tests.qdrant_server import QdrantServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from agent_memory.memories import QdrantServerStorage
    from tests.support import FrozenClock

COLLECTION = "agent_memory"


@pytest.fixture
async def server() -> AsyncIterator[QdrantServer]:
    server = QdrantServer()
    yield server
    await server.close_opened()


@pytest.fixture
def bob(server: QdrantServer, clock: FrozenClock) -> QdrantServerStorage:
    return server.open(clock=clock)


@pytest.fixture
def other(server: QdrantServer, clock: FrozenClock) -> QdrantServerStorage:
    """Return bob's memory on another machine."""
    return server.open(clock=clock)


def points_of(server: QdrantServer, agent: str) -> dict[str, Any]:
    only = models.Filter(must=[models.FieldCondition(key="agent_id", match=models.MatchValue(value=agent))])
    found, _ = server.client.scroll(COLLECTION, only, limit=10_000, with_vectors=True)
    return {str(point.id): (point.payload, point.vector) for point in found}


def point_of(server: QdrantServer, memory_id: str = "head:") -> str:
    """Return the point of a memory of bob's, or of his head."""
    return ServerRequests(server.client, COLLECTION, "bob", "memory", SERVER_LIMITS.pauses).point(memory_id)
