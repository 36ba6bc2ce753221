"""Memory sessions on real coordinators, released at the end of each test."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import pytest

from agent_memory.integrations.amplifier import MemorySession
from agent_memory.settings import ToolSettings
from tests.support import coordinator_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    Sessions = Callable[..., MemorySession]

_HOSTS: WeakKeyDictionary[MemorySession, Any] = WeakKeyDictionary()


@pytest.fixture
async def make_session(root: Path) -> AsyncIterator[Sessions]:
    """Return a function that opens the memory of a session, as the tool module does in its mount."""
    opened: list[MemorySession] = []

    def make(session_id: str = "root-1", *, settings: dict[str, Any] | None = None, **session: Any) -> MemorySession:
        memory = session_on(coordinator_of(session_id, **session))
        memory.configure(
            "tool-memory-semantic", ToolSettings, {"storage_root": str(root), "embedder": "none", **(settings or {})}
        )
        opened.append(memory)
        return memory

    yield make
    for memory in reversed(opened):
        await memory.release()


def session_on(coordinator: Any) -> MemorySession:
    """Return the memory of a session; `host_of` gives the coordinator back."""
    session = MemorySession.of(coordinator)
    _HOSTS[session] = coordinator
    return session


def host_of(session: MemorySession) -> Any:
    """Return the coordinator of a session."""
    return _HOSTS[session]


def heard(session: MemorySession, name: str) -> list[dict[str, Any]]:
    """Have the session's hooks keep an event; return the list that fills."""
    events: list[dict[str, Any]] = []

    async def keep(_event: str, data: dict[str, Any]) -> None:
        events.append(data)

    host_of(session).hooks.register(name, keep, name=f"test-{name}")
    return events
