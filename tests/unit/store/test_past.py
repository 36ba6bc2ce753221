"""What files still know of a memory's past, and bringing back what forgetting took."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from agent_memory.errors import UnknownIdError, UnsupportedError
from agent_memory.files.layout import folder_of
from agent_memory.journal import Change, Journal
from agent_memory.memory import MemoryService
from agent_memory.settings import ServiceSettings
from agent_memory.storage import FileStorage
from tests.qdrant_server import QUIET, QdrantServer
from tests.support import NOON, FrozenClock, memory_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection
    from pathlib import Path

    from agent_memory.journal import Entry

pytestmark = QUIET
OFF = ServiceSettings(embedder="none")


@pytest.fixture
async def storage(root: Path, clock: FrozenClock) -> AsyncIterator[FileStorage]:
    storage = FileStorage("bob", root, settings=OFF, clock=clock)
    yield storage
    await storage.close()


async def test_every_version_of_a_memory_is_told_in_order_and_accesses_are_none(
    storage: FileStorage, clock: FrozenClock
) -> None:
    memory_id = await storage.store(memory_of("lives in Lyon"))
    await storage.store(memory_of(f"says nothing about {memory_id}"))
    await storage.touch([memory_id])
    clock.advance(days=1)
    await storage.update(memory_id, {"content": "lives in Oslo", "tags": ["home"]})
    clock.advance(days=1)
    await storage.delete(memory_id)
    versions = await storage.history(memory_id)
    assert [(each.seq, each.op, each.record and each.record.content) for each in versions] == [
        (1, "put", "lives in Lyon"),
        (4, "patch", "lives in Oslo"),
        (5, "delete", None),
    ]
    assert [each.at for each in versions] == [NOON, NOON + timedelta(days=1), NOON + timedelta(days=2)]
    assert await storage.history("mem-000000000000") == []


async def test_what_forgetting_took_comes_back_with_one_change(storage: FileStorage, clock: FrozenClock) -> None:
    lyon = await storage.store(memory_of("lives in Lyon"))
    oslo = await storage.store(memory_of("lives in Oslo", supersedes=lyon))
    await storage.touch([oslo])
    before = [await storage.get(each) for each in (oslo, lyon)]
    await storage.delete(oslo)
    taken = await storage.forgotten_with(oslo)
    assert taken == before
    await storage.store_many(taken)
    assert [await storage.get(each) for each in (oslo, lyon)] == before
    assert await storage.superseded() == {lyon: oslo}
    assert not await storage.was_forgotten("lives in Oslo")
    assert [version.op for version in await storage.history(oslo)] == ["put", "delete", "put"]
    with pytest.raises(UnknownIdError, match="can be restored"):
        await storage.forgotten_with(oslo)


async def test_only_what_is_still_missing_is_brought_back(storage: FileStorage) -> None:
    lyon = await storage.store(memory_of("lives in Lyon"))
    oslo = await storage.store(memory_of("lives in Oslo", supersedes=lyon))
    await storage.delete(oslo)
    await storage.store_many((await storage.forgotten_with(oslo))[1:])
    assert [memory.id for memory in await storage.forgotten_with(oslo)] == [oslo]


async def test_forgotten_of_one_change_reads_the_log_once(
    storage: FileStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory_ids = [await storage.store(memory_of(f"The boat {number} is blue.")) for number in range(4)]
    await storage.forget_many(memory_ids[1:])
    log, reads = storage.opened.log, list[object]()
    naming = log.naming

    def read(record_ids: Collection[str] | None) -> list[Entry]:
        reads.append(record_ids)
        return naming(record_ids)

    monkeypatch.setattr(log, "naming", read)
    forgotten = await storage.forgotten_of([*memory_ids, "mem-000000000000"])
    assert forgotten.keys() == {*memory_ids[1:]}
    assert len(reads) == 3, "two for the change, one for the unknown ID"


async def test_what_forgetting_took_is_gone_for_good_after_the_grace_time(root: Path, clock: FrozenClock) -> None:
    storage = FileStorage("bob", root, settings=OFF, clock=clock, grace=timedelta(days=3))
    memory_id = await storage.store(memory_of("lives in Lyon"))
    await storage.delete(memory_id)
    clock.advance(days=2)
    await storage.compact()
    assert len(await storage.forgotten_with(memory_id)) == 1
    clock.advance(days=2)
    await storage.compact()
    assert await storage.history(memory_id) == []
    with pytest.raises(UnknownIdError):
        await storage.forgotten_with(memory_id)
    await storage.close()


async def test_without_grace_a_compaction_erases_at_once(storage: FileStorage, clock: FrozenClock) -> None:
    service = MemoryService(storage, OFF, clock=clock)
    stored = (await service.store({"content": "lives in Lyon"})).memory
    kept = (await service.store({"content": "likes tea"})).memory
    await service.update(kept.id, {"content": "likes green tea"})
    await service.forget(stored.id)
    await service.writer.compact(timedelta(0))
    await service.settle()
    journal = storage.folder.journal.read_text()
    assert "Lyon" not in journal
    assert "likes tea" not in journal
    assert [memory.content async for memory in storage.iter_all()] == ["likes green tea"]


async def test_a_server_says_that_it_keeps_no_past(clock: FrozenClock) -> None:
    storage = QdrantServer().open(clock=clock)
    with pytest.raises(UnsupportedError, match="neither earlier versions"):
        await storage.history("mem-000000000000")
    with pytest.raises(UnsupportedError):
        await storage.forgotten_with("mem-000000000000")
    await storage.close()


async def test_clause_forgotten_by_earlier_version_comes_back(storage: FileStorage, root: Path) -> None:
    whole, rest = "Ann has badge K-12 and a dog.", "Ann has a dog."
    memory_id = await storage.store(memory_of(whole))
    await storage.close()
    changes = [
        Change("mark", "memory", memory_id, {"trimmed": True}),
        Change("patch", "memory", memory_id, {"content": rest}),
    ]
    with Journal(folder_of("bob", root).journal, {"memory"}).locked() as writer:
        writer.append(changes)
    later = FileStorage("bob", root, settings=OFF)
    assert [memory.content for memory in await later.list_recent(1)] == [rest]
    assert await later.was_forgotten(whole)
    assert (await later.taken_with(memory_id)).texts == {memory_id: whole}
    await later.close()
