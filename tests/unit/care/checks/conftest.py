"""A home with an agent that has everything: journal, scratchpad, vectors, an index, a log, session notes."""

from __future__ import annotations

import asyncio
import os
import shutil
from typing import TYPE_CHECKING

import pytest

from agent_memory.care.checks import examination
from agent_memory.care.checks.examination import examine
from agent_memory.care.checks.repairs import repair_all
from agent_memory.embeddings import VectorCache, text_hash
from agent_memory.embeddings.testing import HashEmbedder
from agent_memory.integrations.amplifier.session_notes import SessionNote, SessionNotes
from agent_memory.memory import AuditLog
from agent_memory.scratchpad import ScratchpadManager
from agent_memory.settings import ServiceSettings
from agent_memory.storage import FileStorage, folder_of
from agent_memory.store.shards import Shards, ShardState
from tests.support import NOON, FrozenClock, memory_of
from tests.unit.care.checks.homes import LIVE

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from agent_memory.care.checks.codes import Finding, RepairAction


async def _remember(root: Path) -> None:
    clock = FrozenClock()
    storage = FileStorage("bob", root, clock=clock, settings=ServiceSettings(storage_root=str(root), embedder="none"))
    try:
        for number in range(LIVE):
            await storage.store(memory_of(f"Fact number {number} ✓", id=f"mem-{number:012x}", pinned=number == 3))
        await storage.store(memory_of("To be forgotten", id="mem-0000000000f0"))
        await storage.delete("mem-0000000000f0")
        await storage.update("mem-000000000001", {"supersedes": "mem-000000000000"})
        await storage.update("mem-000000000002", {"content": "Fact number 2, corrected", "tags": ["x"]})
        await storage.touch(["mem-000000000004"])
        manager = ScratchpadManager("bob", storage=storage, clock=clock)
        await manager.save(await manager.load())
    finally:
        await storage.close()


def _derive(root: Path) -> None:
    folder = folder_of("bob", root)
    embedder = HashEmbedder()
    texts = [f"Fact number {number} ✓" for number in range(LIVE) if number != 2] + ["Fact number 2, corrected"]
    cache = VectorCache(folder.vectors)
    cache.put_many(embedder.identity, {text_hash(text): embedder.embed_query(text) for text in texts})
    cache.close()
    shards = Shards(folder)
    state = ShardState(str(embedder.identity), embedder.dimension, "any", LIVE + 5)
    with shards.building() as (shard, unfinished):
        (unfinished / "shard" / "segment").write_bytes(os.urandom(5000))
        shards.finish(shard, unfinished, state)
    shards.switch("vector", shard, str(embedder.identity))
    audit = AuditLog(folder.audit)
    for number in range(3):
        audit.append("memory:stored", {"timestamp": "2026-03-01T12:00:00Z", "memory_id": f"mem-{number:012x}"})
    SessionNotes(root).remember("session-1", SessionNote("bob"))


@pytest.fixture(autouse=True)
def no_weights(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not read 22 MB of weights in each test."""
    if request.node.get_closest_marker("model") is None:
        monkeypatch.setattr(examination, "_check_model", lambda: iter(()))


@pytest.fixture(scope="session")
def sound_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a home that nobody may change."""
    root = tmp_path_factory.mktemp("sound") / "memory"
    asyncio.run(_remember(root))
    _derive(root)
    return root


@pytest.fixture
def bob(sound_home: Path, root: Path) -> Path:
    """Return bob's folder in a home of this test's own."""
    shutil.copytree(sound_home, root)
    return root / "bob"


@pytest.fixture
def found(root: Path) -> Callable[[], dict[str, Finding]]:
    """Return a function that examines the home and returns what it found by code."""

    def look() -> dict[str, Finding]:
        report = examine(root, now=NOON)
        return {finding.code: finding for agent in report.agents for finding in agent.findings} | {
            finding.code: finding for finding in report.findings
        }

    return look


@pytest.fixture
def repaired(root: Path) -> Callable[[], list[RepairAction]]:
    """Return a function that repairs bob."""
    return lambda: repair_all(root, ["bob"], now=NOON)
