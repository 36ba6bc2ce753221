"""A memory that is forgotten in the archive is never live, wherever the process dies."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from agent_memory.care.archive import Archive
from agent_memory.memory import MemoryService
from agent_memory.memory.features import attach_features
from agent_memory.models import Memory, utc_now
from agent_memory.settings import ServiceSettings
from agent_memory.storage import FileStorage

if TYPE_CHECKING:
    from pathlib import Path

VICTIM = """
import asyncio, sys
from agent_memory.care.archive import Archive
from agent_memory.memory import MemoryService
from agent_memory.memory.features import attach_features
from agent_memory.settings import ServiceSettings
from agent_memory.storage import FileStorage
from benchmarks.crash.process import CallShim

root, memory_id, way, at, how = sys.argv[1:]
shim = CallShim(lambda **_: None)
settings = ServiceSettings(storage_root=root, embedder="none")

async def forget():
    service = attach_features(MemoryService(FileStorage("bob", settings=settings), settings))
    archive = Archive(service)
    assert await archive.get(memory_id)
    shim.arm(int(at), how)
    await (archive.forget(memory_id) if way == "archive" else service.forget(memory_id))
    shim.arm(0, how)

asyncio.run(forget())
"""


def _open(root: Path) -> tuple[MemoryService, Archive]:
    settings = ServiceSettings(storage_root=str(root), embedder="none")
    service = attach_features(MemoryService(FileStorage("bob", settings=settings), settings))
    return service, Archive(service)


@pytest.mark.deep
@pytest.mark.parametrize("way", ["archive", "service"])
async def test_forget_archived_killed_anywhere_leaves_nothing_live(root: Path, tmp_path: Path, way: str) -> None:
    service, archive = _open(root)
    older = Memory(agent_id="bob", content="Maria likes coffee.", timestamp=utc_now() - timedelta(days=9))
    memory = Memory(agent_id="bob", content="Maria likes tea.", supersedes=older.id)
    await service.storage.store_many([older, memory])
    await archive.add([memory.id])
    await archive.close()
    await service.close()
    states = set[str]()
    for at in range(1, 60):
        copy = tmp_path / f"copy-{at}"
        shutil.copytree(root, copy)
        how = ("before", "after", "torn")[at % 3]
        arguments = [sys.executable, "-c", VICTIM, str(copy), memory.id, way, str(at), how]
        outcome = await asyncio.to_thread(subprocess.run, arguments, check=False, capture_output=True, text=True)
        service, archive = _open(copy)
        assert await service.storage.count() == 0, f"live after call {at}"
        forgotten = {forgotten_memory.id for forgotten_memory, _ in await service.history.forgotten()}
        archived = {archived_memory.id for archived_memory in await archive.everything()}
        assert {memory.id, older.id} == forgotten | archived
        assert not forgotten & archived
        states.add("forgotten" if forgotten else "archived")
        if forgotten:
            assert set(await archive.mend()) <= forgotten
            assert len((await service.history.restore(memory.id)).memories) == 2
        await archive.close()
        await service.close()
        if outcome.returncode == 0:
            break
        assert outcome.returncode == -9, outcome.stderr
    assert outcome.returncode == 0
    assert states == {"archived", "forgotten"}
