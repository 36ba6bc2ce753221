"""Folders that a cloud service copies about: conflict copies are told of, never read as the truth, never removed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_memory.files.entries import list_names
from agent_memory.files.names import COPIES
from tests.hostile.trouble import refusal, reopened
from tests.support import memory_of

if TYPE_CHECKING:
    from pathlib import Path

    from agent_memory.memory import MemoryService
    from agent_memory.storage import FileStorage
    from tests.support import FrozenClock


@pytest.mark.parametrize(
    "name",
    [
        "memories (Bob's conflicted copy 2026-03-01).yaml",
        "memories.sync-conflict-20260301-120000-ABCDEF7.yaml",
        "memories (conflicted copy 2026-03-01 120000).yaml",
        "memories-LAPTOP.yaml",
        "memories 2.yaml",
        "memories (1).yaml",
        "Memories.yaml",
        "metadata (1).json",
        "scratchpad.sync-conflict-20260301-120000-ABCDEF7.yaml",
        ".lock (Bob's conflicted copy 2026-03-01)",
        "embeddings 2.sqlite3",
    ],
)
async def test_a_conflict_copy_is_told_of_and_otherwise_left_alone(
    service: MemoryService, root: Path, clock: FrozenClock, name: str
) -> None:
    await service.store({"content": "peppermint tea"})
    await service.settle()
    copy = root / "bob" / name
    content = (root / "bob" / "memories.yaml").read_bytes().replace(b"peppermint", b"conflicting")
    if copy.exists():
        pytest.skip("this file system does not tell upper case from lower case")
    copy.write_bytes(content)
    await service.store({"content": "black coffee"})
    await service.storage.compact()
    health = (await service.status()).health
    assert health["status"] != "damaged"
    assert name in health["notes"][0]
    assert "nothing in them is used" in health["notes"][0]
    assert await reopened(root, clock) == ["peppermint tea", "black coffee"]
    assert copy.read_bytes() == content


async def test_none_of_our_own_files_is_taken_for_a_conflict_copy(
    service: MemoryService, root: Path, clock: FrozenClock
) -> None:
    memory = (await service.store({"content": "peppermint tea"})).memory
    await service.settle()
    folder = root / "bob"
    with (folder / "memories.yaml").open("ab") as file:
        file.write(b"torn")
    await service.update(memory.id, {"pinned": True})
    (folder / "scratchpad.yaml").write_text("- [broken")
    await service.scratchpad()
    (folder / "memories.yaml").write_bytes(b"")
    await service.list_recent()
    for name in (
        "events.1.jsonl",
        "embeddings.sqlite3-wal",
        "embeddings.sqlite3.broken",
        ".memories.yaml.0a1b2c3d.tmp",
    ):
        (folder / name).write_bytes(b"")
    assert len(list(folder.iterdir())) >= 11
    assert list_names(folder, *COPIES) == []


async def test_a_journal_that_is_only_in_the_cloud_is_not_begun_anew(storage: FileStorage) -> None:
    folder = storage.folder.path
    folder.mkdir(parents=True)
    (folder / ".memories.yaml.icloud").write_bytes(b"placeholder")
    refused = await refusal(storage.store(memory_of("tea")))
    assert refused["code"] == "not_downloaded"
    assert not storage.folder.journal.exists()
    (folder / ".memories.yaml.icloud").unlink()
    await storage.store(memory_of("tea"))
