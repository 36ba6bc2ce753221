"""Memory sessions on real coordinators, released at the end of each test."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agent_memory.host import MemorySession
from agent_memory.settings import ToolSettings
from tests.support import coordinator_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path


@pytest.fixture
async def make_session(root: Path) -> AsyncIterator[Callable[..., MemorySession]]:
    """Return a function that opens the memory of a session, as the tool module does in its mount."""
    opened: list[MemorySession] = []

    def make(session_id: str = "root-1", *, settings: dict[str, Any] | None = None, **session: Any) -> MemorySession:
        memory = MemorySession.of(coordinator_of(session_id, **session))
        memory.configure(
            "tool-memory-semantic",
            ToolSettings,
            {"storage_root": str(root), "embedder": "none", **(settings or {})},
        )
        opened.append(memory)
        return memory

    yield make
    for memory in reversed(opened):
        await memory.release()


def heard(session: MemorySession, name: str) -> list[dict[str, Any]]:
    """Have the session's hooks keep an event; return the list that fills."""
    events: list[dict[str, Any]] = []

    async def keep(_event: str, data: dict[str, Any]) -> None:
        events.append(data)

    session._coordinator.hooks.register(name, keep, name=f"test-{name}")
    return events
