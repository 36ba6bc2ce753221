"""An agent bob on real files, and archives that somebody else made."""

from __future__ import annotations

import json
import zipfile
from typing import TYPE_CHECKING, Any

import pytest

from agent_memory.care.backups.backup_writer import create_backup
from agent_memory.memories import FileStorage
from agent_memory.settings import ServiceSettings
from tests.support import memory_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from agent_memory.care.backups.backup_writer import Backup
    from tests.support import FrozenClock

OFF = ServiceSettings(embedder="none")


@pytest.fixture
async def bob(root: Path, clock: FrozenClock) -> AsyncIterator[FileStorage]:
    storage = FileStorage("bob", root, settings=OFF, clock=clock)
    for number in range(4):
        await storage.store(memory_of(f"Ledger {number} is owned by Kate.", id=f"mem-{number:012x}"))
    yield storage
    await storage.close()


@pytest.fixture
def made(bob: FileStorage, clock: FrozenClock) -> Backup:
    return create_backup(bob.folder, clock=clock)


async def texts(storage: FileStorage) -> set[str]:
    """Return what a storage knows."""
    return {memory.content async for memory in storage.iter_all()}


def rewritten(path: Path, change: Callable[[dict[str, bytes]], object], manifest: Any = None) -> Path:
    """Return a copy of a backup whose members were changed; its manifest too, by a function, if one is given."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    change(members)
    if manifest is not None:
        said = json.loads(members["manifest.json"])
        manifest(said)
        members["manifest.json"] = json.dumps(said).encode()
    place = path.with_name("changed.zip")
    with zipfile.ZipFile(place, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return place


def nothing_of(_: object) -> None:
    """Change nothing of an archive."""
