"""The tools as a session has them: mounted on a real coordinator by the module's own `mount`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agent_memory.settings import TOOL_NAMES
from amplifier_module_tool_memory_semantic import mount
from tests.support import coordinator_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

    from amplifier_core import ModuleCoordinator

    Mount = Callable[..., Awaitable[ModuleCoordinator]]


@pytest.fixture
async def mounted(root: Path) -> AsyncIterator[Mount]:
    """Return a function that mounts the module and returns the coordinator."""
    cleanups: list[Any] = []

    async def mounting(module_config: Any = None, **session: Any) -> ModuleCoordinator:
        coordinator = coordinator_of(**session)
        if module_config is None:
            module_config = {"agent_id": "bob", "storage_root": str(root), "embedder": "none"}
        cleanups.append(await mount(coordinator, module_config))
        return coordinator

    yield mounting
    for cleanup in cleanups:
        await cleanup()


@pytest.fixture
async def tools(mounted: Mount, root: Path) -> dict[str, Any]:
    """Return bob's tools by name, also those that are offered only where they are named."""
    config = {"agent_id": "bob", "storage_root": str(root), "embedder": "none", "tools": list(TOOL_NAMES)}
    return (await mounted(config)).get("tools")
