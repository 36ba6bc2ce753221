"""Folders that are moved, renamed, deleted or copied while sessions use them."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from agent_memory.embeddings.testing import HashEmbedder
from agent_memory.memories import MigratableStorage
from agent_memory.storage import FileStorage
from tests.hostile.attacks import attack
from tests.hostile.trouble import OFFLINE, open_storage, refusal, reopened
from tests.support import memory_of

if TYPE_CHECKING:
    from pathlib import Path

    from agent_memory.memory import MemoryService
    from tests.support import FrozenClock


@pytest.mark.parametrize("how", ["home renamed", "agent renamed", "home deleted", "journal deleted"])
async def test_a_session_does_not_begin_an_empty_memory_where_its_own_was(
    service: MemoryService, root: Path, clock: FrozenClock, how: str
) -> None:
    memory = (await service.store({"content": "peppermint tea"})).memory
    await service.scratchpad()
    await service.settle()
    journal = root / "bob" / "memories.yaml"
    if how == "home renamed":
        root.rename(root.with_name("moved"))
    elif how == "agent renamed":
        (root / "bob").rename(root / "robert")
    elif how == "home deleted":
        shutil.rmtree(root)
    else:
        journal.unlink()
    for attempt in (
        service.store({"content": "black coffee"}),
        service.update(memory.id, {"pinned": True}),
        service.forget(memory.id),
        service.list_recent(),
        service.storage.compact(),
    ):
        refused = await refusal(attempt)
        assert refused["code"] == "gone"
        assert "moved, renamed or deleted" in refused["message"]
        assert "Put it back" in refused["recovery"]
    found = await service.search("peppermint")
    assert [hit.memory.content for hit in found.results] == ["peppermint tea"]
    assert "scratchpad alone" in (found.degraded or "")
    assert (await service.status()).health["status"] == "unreadable"
    await service.settle()
    assert not journal.exists()
    if how != "journal deleted":
        assert not journal.parent.exists(), "nothing derived was written to the old place either"
    if how == "agent renamed":
        renamed = FileStorage("robert", root, settings=OFFLINE, clock=clock)
        assert [each.content for each in await renamed.list_recent()] == ["peppermint tea"]
        await renamed.close()


async def test_a_home_that_comes_back_is_taken_up_again(service: MemoryService, root: Path, clock: FrozenClock) -> None:
    await service.store({"content": "peppermint tea"})
    await service.settle()
    root.rename(root.with_name("moved"))
    assert (await refusal(service.store({"content": "lost?"})))["code"] == "gone"
    root.with_name("moved").rename(root)
    await service.store({"content": "black coffee"})
    assert await reopened(root, clock) == ["peppermint tea", "black coffee"]


async def test_a_new_session_after_a_deletion_begins_anew(
    service: MemoryService, root: Path, clock: FrozenClock
) -> None:
    await service.store({"content": "peppermint tea"})
    await service.settle()
    shutil.rmtree(root)
    storage = open_storage(root, clock)
    await storage.store(memory_of("a new life"))
    await storage.close()
    assert await reopened(root, clock) == ["a new life"]


@attack("exchanged-journal")
async def test_another_memory_in_its_place_is_noticed_and_what_was_known_is_kept(
    service: MemoryService, root: Path, clock: FrozenClock
) -> None:
    await service.store({"content": "peppermint tea"})
    await service.settle()
    root.rename(root.with_name("moved"))
    other = open_storage(root, clock)
    await other.store(memory_of("of another home"))
    await other.close()
    await service.store({"content": "black coffee"})
    health = (await service.status()).health
    assert health["status"] == "damaged"
    assert any("lost" in note for note in health["notes"])
    assert await reopened(root, clock) == ["of another home", "black coffee"]
    assert await reopened(root.with_name("moved"), clock) == ["peppermint tea"]


async def test_a_copied_agent_is_an_agent_of_its_own(storage: FileStorage, root: Path, clock: FrozenClock) -> None:
    await storage.store(memory_of("peppermint tea"))
    shutil.copytree(root / "bob", root / "alice")
    copy = FileStorage("alice", root, settings=OFFLINE, clock=clock)
    assert [memory.agent_id for memory in await copy.list_recent()] == ["alice"]
    await copy.store(memory_of("of alice alone", agent_id="alice"))
    await storage.store(memory_of("of bob alone"))
    assert [memory.content for memory in await copy.valid()] == ["peppermint tea", "of alice alone"]
    assert [memory.content for memory in await storage.valid()] == ["peppermint tea", "of bob alone"]
    await copy.close()


async def test_a_copied_index_answers_under_its_new_name(root: Path) -> None:
    storage = MigratableStorage("bob", root, embedder=HashEmbedder())
    for number in range(3):
        await storage.store(memory_of(f"fact number {number}"))
    await storage.migrate()
    await storage.close()
    shutil.copytree(root / "bob", root.with_name("second machine") / "alice")
    copy = MigratableStorage("alice", root.with_name("second machine"), embedder=HashEmbedder())
    await copy.prepare(None)
    await copy.store(memory_of("fact number 7", agent_id="alice"))
    assert await copy.caught_up(30)
    results = await copy.search("fact number 7")
    assert (copy.backend, results.mode, results[0].memory.content) == ("vector", "hybrid", "fact number 7")
    assert {hit.memory.agent_id for hit in results} == {"alice"}
    await copy.close()


async def test_a_session_that_holds_an_index_notices_that_its_home_is_gone_and_takes_it_up_again(root: Path) -> None:
    storage = MigratableStorage("bob", root, embedder=HashEmbedder())
    await storage.store(memory_of("fact number 1"))
    await storage.migrate()
    assert await storage.caught_up(30)
    root.rename(root.with_name("moved"))
    for attempt in (storage.store(memory_of("lost?")), storage.search("fact"), storage.migrate()):
        assert (await refusal(attempt))["code"] == "gone"
    assert not root.exists()
    root.with_name("moved").rename(root)
    await storage.store(memory_of("fact number 2"))
    assert len(await storage.search("fact")) == 2
    await storage.close()
