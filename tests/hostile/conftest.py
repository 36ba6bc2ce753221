"""Bob's memory on real files, for tests of trouble."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from agent_memory.cli.app import build
from agent_memory.memory import AuditLog, MemoryService
from tests.hostile.attacked import Attacked
from tests.hostile.trouble import OFFLINE, open_storage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

    from typer.testing import Result

    from agent_memory.storage import FileStorage
    from tests.support import FrozenClock


@pytest.fixture
async def storage(root: Path, clock: FrozenClock) -> AsyncIterator[FileStorage]:
    """Return bob's memory, searched by words alone."""
    storage = open_storage(root, clock)
    yield storage
    await storage.close()


@pytest.fixture
async def service(storage: FileStorage, clock: FrozenClock) -> AsyncIterator[MemoryService]:
    """Return what tools and commands talk to."""
    service = MemoryService(storage, OFFLINE, audit=AuditLog(storage.folder.audit), clock=clock)
    yield service
    await service.close()


@pytest.fixture
async def attacked(root: Path) -> AsyncIterator[Callable[..., Awaitable[Attacked]]]:
    """Return a function that begins a session with every module; all are ended with the test."""
    begun: list[Attacked] = []

    async def begin(session_id: str = "root-1", **session: Any) -> Attacked:
        begun.append(await Attacked(session.pop("root", root), session_id, **session).begin())
        return begun[-1]

    yield begin
    for each in reversed(begun):
        await each.end()


@pytest.fixture
def cli(root: Path) -> Callable[..., Result]:
    """Return `agent-memory` on bob's memory, in this process; in a thread, since a test may have a loop of its own."""
    app, runner = build(), CliRunner()

    def run(*arguments: str, code: int = 0, given: str | None = None) -> Result:
        where = {"AGENT_MEMORY_ROOT": str(root), "AGENT_MEMORY_AGENT": "bob"}
        invoke = partial(runner.invoke, app, list(arguments), input=given, env=where, catch_exceptions=False)
        with ThreadPoolExecutor(1) as thread:
            result = thread.submit(invoke).result()
        assert result.exit_code == code, result.output
        return result

    return run
