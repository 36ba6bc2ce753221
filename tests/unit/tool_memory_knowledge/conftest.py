"""The tools as a session has them: mounted on a real coordinator by the module's own `mount`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from amplifier_module_tool_memory_knowledge import mount
from tests.support import coordinator_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

    Mount = Callable[..., Awaitable[dict[str, Any]]]


@pytest.fixture
async def mounted(root: Path) -> AsyncIterator[Mount]:
    """Return a function that mounts the module with some settings and returns bob's tools by name."""
    cleanups: list[Any] = []

    async def mounting(settings: dict[str, Any] | None = None, **session: Any) -> dict[str, Any]:
        coordinator = coordinator_of(**session)
        config = {"agent_id": "bob", "storage_root": str(root), "embedder": "none", **(settings or {})}
        cleanups.append(await mount(coordinator, config))
        tools: dict[str, Any] = coordinator.get("tools")
        return tools

    yield mounting
    for cleanup in cleanups:
        await cleanup()
