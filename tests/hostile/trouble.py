"""What the tests of trouble share: bob's storage, functions of the system that fail, processes with other rights."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from agent_memory.errors import AgentMemoryError
from agent_memory.settings import ServiceSettings
from agent_memory.storage import FileStorage
from tests.concurrency.processes import REPOSITORY, environment

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from tests.support import FrozenClock

OFFLINE = ServiceSettings(embedder="none")
MOUNTS = ("mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs")
PATIENCE = 60.0


def open_storage(root: Path, clock: FrozenClock) -> FileStorage:
    """Return bob's memory, searched by words alone."""
    return FileStorage("bob", root, settings=OFFLINE, clock=clock)


async def reopened(root: Path, clock: FrozenClock) -> list[str]:
    """Return what a new session finds, in the order of storing."""
    storage = open_storage(root, clock)
    contents = [memory.content async for memory in storage.iter_all()]
    await storage.close()
    return contents


async def refusal(attempt: Awaitable[object]) -> dict[str, str]:
    """Return the error that an attempt ends with, as a tool shows it."""
    with pytest.raises(AgentMemoryError) as refused:
        await attempt
    return refused.value.as_dict()


def fail_at(
    monkeypatch: pytest.MonkeyPatch, function: str, number: int, when: Callable[..., bool] = lambda *_: True
) -> None:
    """Let a function of `os` fail with an error number wherever `when` says so."""
    real = getattr(os, function)

    def failing(*args: Any, **kwargs: Any) -> Any:
        if when(*args):
            raise OSError(number, os.strerror(number))
        return real(*args, **kwargs)

    monkeypatch.setattr(os, function, failing)


def inside(name: str, *arguments: object, mounts: bool = False, **extra: str) -> dict[str, Any]:
    """Run a function of `inside` in a process of its own and return what it found.

    Args:
        name: Which.
        arguments: Its arguments.
        mounts: Let it mount file systems that nobody else sees; the test is skipped where that is not allowed.
        extra: Environment variables.
    """
    command = [sys.executable, "-m", "tests.hostile.inside", name, *map(str, arguments)]
    if mounts:
        if not may_mount():
            pytest.skip("mounting a file system in a namespace of one's own is not allowed here")
        command = [*_namespace(), *command]
    result = subprocess.run(
        command,
        cwd=REPOSITORY,
        env={**environment(), **extra},
        capture_output=True,
        encoding="utf-8",
        timeout=PATIENCE,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    found: dict[str, Any] = json.loads(result.stdout.splitlines()[-1])
    return found


def need_root() -> None:
    """Skip a test that changes owners where nobody may."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        pytest.skip("only root can give files to another user")


@functools.cache
def may_mount() -> bool:
    """Tell whether a process may have mounts of its own here."""
    try:
        tried = subprocess.run([*_namespace(), *MOUNTS, "/mnt"], capture_output=True, timeout=PATIENCE, check=False)
    except OSError:
        return False
    return tried.returncode == 0


def _namespace() -> list[str]:
    return ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--mount", "--user", "--map-root-user"]
