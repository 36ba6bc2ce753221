"""The tools as a session has them: mounted on a real coordinator by the module's own `mount`; a small workspace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agent_memory.workspace import Workspace
from amplifier_module_tool_memory_workspace import mount
from tests.support import coordinator_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

    Mount = Callable[..., Awaitable[tuple[Any, dict[str, Any]]]]

TALKS = """
workspace: talks
tables:
  talks:
    key: number
    lock: true
    columns: {number: {type: integer, required: true}, title: text, summary: text}
    search: [title, summary]
  notes: {kind: log, columns: {note: {type: text, required: true}}}
phases:
  - {name: analyse, over: talks, reads: own, agents: [{agent: analyst, produces: [summary]}]}
tools:
  get_talk_summary: {operation: get, table: talks, key: talk_num, columns: [summary], bare: true}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the folder of a workspace with two talks."""
    declaration = tmp_path / "talks.yaml"
    declaration.write_text(TALKS)
    workspace = Workspace.create(tmp_path / "talks", declaration)
    for number in (1, 2):
        workspace.tables.save("talks", {"number": number, "title": f"Talk {number}"})
    workspace.close()
    return tmp_path / "talks"


@pytest.fixture
async def mounted() -> AsyncIterator[Mount]:
    """Return a function that mounts the module with some settings and returns a session's coordinator and tools."""
    cleanups: list[Any] = []

    async def mounting(settings: Any = None, **session: Any) -> tuple[Any, dict[str, Any]]:
        coordinator = coordinator_of(**session)
        cleanups.append(await mount(coordinator, settings))
        tools: dict[str, Any] = coordinator.get("tools")
        return coordinator, tools

    yield mounting
    for cleanup in cleanups:
        await cleanup()
