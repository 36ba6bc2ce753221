"""The clients of programs, on real folders."""

from __future__ import annotations

import asyncio
import os
import threading
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from agent_memory import models
from agent_memory.errors import UnknownIdError, ValidationError
from agent_memory.memory import Memory, MemorySync, open_service
from agent_memory.memory.inbox_access import opened_inbox
from agent_memory.settings import ServiceSettings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

LATER = datetime(2126, 1, 1, tzinfo=UTC)


@pytest.fixture
async def memory(root: Path) -> AsyncIterator[Memory]:
    async with Memory("bob", root=root) as client:
        yield client


@pytest.fixture
def blocking(root: Path) -> Iterator[MemorySync]:
    with MemorySync("bob", root=root) as client:
        yield client


async def test_add_writes_a_record_with_the_given_fields(memory: Memory, root: Path) -> None:
    stored = await memory.add("Tea at four", category="decision", tags=["tea"], project="kitchen", expires_at=LATER)
    assert isinstance(stored.memory, models.Memory)
    assert (stored.memory.category, stored.memory.tags, stored.memory.project) == ("decision", ["tea"], "kitchen")
    assert stored.memory.expires_at == LATER
    assert "Tea at four" in (root / "bob" / "memories.yaml").read_text(encoding="utf-8")


async def test_add_of_a_stored_text_returns_the_first(memory: Memory) -> None:
    first = await memory.add("Tea at four")
    second = await memory.add("Tea at four")
    assert (second.duplicate, second.memory.id) == (True, first.memory.id)


async def test_search_filters_by_category_tags_and_time(memory: Memory) -> None:
    await memory.add("Tea at four", category="decision", tags=["tea"])
    await memory.add("Tea is green", tags=["colour"])
    assert [hit.memory.content for hit in await memory.search("tea", category="decision")] == ["Tea at four"]
    assert [hit.memory.content for hit in await memory.search("tea", tags=["colour"])] == ["Tea is green"]
    assert not (await memory.search("tea", since=LATER)).results


async def test_search_for_an_id_returns_that_memory(memory: Memory) -> None:
    memory_id = (await memory.add("Tea at four")).memory.id
    assert [hit.memory.id for hit in await memory.search(memory_id)] == [memory_id]


async def test_search_with_an_invalid_category_is_refused(memory: Memory) -> None:
    with pytest.raises(ValidationError):
        await memory.search("tea", category="Not A Name")


async def test_list_returns_pages_of_current_memories(memory: Memory) -> None:
    first = (await memory.add("Tea at four")).memory
    second = (await memory.add("Tea at five", supersedes=first.id)).memory
    third = (await memory.add("Cake", category="task")).memory
    assert [record.id for record in await memory.list()] == [third.id, second.id]
    assert [record.id for record in await memory.list(limit=1, offset=1)] == [second.id]
    assert [record.id for record in await memory.list(category="task")] == [third.id]


async def test_update_changes_only_the_given_fields(memory: Memory) -> None:
    memory_id = (await memory.add("Tea at four", tags=["tea"], expires_at=LATER)).memory.id
    assert (await memory.update(memory_id, category="decision")).fields == ("category",)
    assert (await memory.get(memory_id)).expires_at == LATER
    assert set((await memory.update(memory_id, expires_at=None, tags=[])).fields) == {"expires_at", "tags"}
    record = await memory.get(memory_id)
    assert (record.content, record.tags, record.expires_at) == ("Tea at four", [], None)


async def test_update_of_an_unknown_id_is_refused(memory: Memory) -> None:
    with pytest.raises(UnknownIdError):
        await memory.update("mem-000000000000", content="new")


async def test_delete_hides_a_memory_and_undo_restores_it(memory: Memory) -> None:
    memory_id = (await memory.add("Tea at four")).memory.id
    forgotten = await memory.delete(memory_id)
    assert forgotten.kept_until is not None
    with pytest.raises(UnknownIdError):
        await memory.get(memory_id)
    restored = await memory.undo(memory_id)
    assert (restored.what, [record.id for record in restored.memories]) == ("forgotten", [memory_id])
    assert [hit.memory.id for hit in await memory.search("tea")] == [memory_id]


async def test_delete_removes_the_same_text_from_the_inbox(memory: Memory, root: Path) -> None:
    service = open_service("bob", ServiceSettings(storage_root=str(root), embedder="none"))
    async with opened_inbox(service) as inbox:
        await inbox.hold_store({"content": "Coffee at five"})
        await inbox.hold_store({"content": "Tea at four"})
    await memory.delete((await memory.add("Tea at four")).memory.id)
    async with opened_inbox(service) as inbox:
        assert [candidate.content for candidate in await inbox.waiting()] == ["Coffee at five"]
    await service.close()


async def test_list_includes_an_edit_of_the_scratchpad_file(root: Path) -> None:
    async with Memory("bob", root=root) as memory:
        await memory.add("Tea at four")
    file = root / "bob" / "scratchpad.yaml"
    file.write_text(file.read_text(encoding="utf-8") + "- content: Milk at six\n", encoding="utf-8")
    async with Memory("bob", root=root) as memory:
        assert {record.content for record in await memory.list()} == {"Tea at four", "Milk at six"}


async def test_undo_of_a_change_restores_the_fields_before(memory: Memory) -> None:
    memory_id = (await memory.add("Tea at four")).memory.id
    await memory.update(memory_id, content="Tea at five", tags=["tea"])
    restored = await memory.undo(memory_id)
    assert (restored.what, set(restored.fields)) == ("changed", {"content", "tags"})
    assert (await memory.get(memory_id)).content == "Tea at four"


async def test_undo_of_a_store_deletes_and_again_restores(memory: Memory) -> None:
    old = (await memory.add("Tea at four")).memory
    new = (await memory.add("Tea at five", supersedes=old.id)).memory
    taken_back = await memory.undo(new.id)
    assert (taken_back.what, [record.id for record in taken_back.memories]) == ("stored", [new.id])
    assert [record.id for record in await memory.list()] == [old.id]
    assert (await memory.undo(new.id)).what == "forgotten"
    assert {record.id for record in await memory.list()} == {old.id, new.id}


async def test_undo_of_a_replaced_memory_makes_both_count(memory: Memory) -> None:
    old = (await memory.add("Tea at four")).memory
    new = (await memory.add("Tea at five", supersedes=old.id)).memory
    assert (await memory.undo(old.id)).replaced_by == new.id
    assert {record.id for record in await memory.list()} == {old.id, new.id}


async def test_undo_of_an_unknown_id_is_refused(memory: Memory) -> None:
    with pytest.raises(UnknownIdError):
        await memory.undo("mem-000000000000")


async def test_history_returns_versions_oldest_first(memory: Memory) -> None:
    memory_id = (await memory.add("Tea at four")).memory.id
    await memory.update(memory_id, content="Tea at five")
    await memory.delete(memory_id)
    versions = await memory.history(memory_id)
    texts = [version.record and version.record.content for version in versions]
    assert texts == ["Tea at four", "Tea at five", None]
    assert await memory.history("mem-000000000000") == ()


async def test_project_of_the_client_is_stored_and_comes_first(root: Path) -> None:
    async with Memory("bob", root=root, project="kitchen") as kitchen, Memory("bob", root=root, project="") as none:
        stored = await kitchen.add("The lamp is broken")
        elsewhere = await kitchen.add("The lamp is bright", project="")
        assert (stored.memory.project, elsewhere.memory.project) == ("kitchen", "")
        assert len(await none.list()) == 2
        assert len(await none.list(project="kitchen")) == 1


async def test_session_of_the_client_is_stored(root: Path) -> None:
    async with Memory("bob", root=root, session_id="run-7") as client:
        assert (await client.add("Tea at four")).memory.created_by_session == "run-7"


def test_client_without_root_uses_the_default_folder(home: Path) -> None:
    with MemorySync("bob") as client:
        client.add("Tea at four")
    assert (home / ".amplifier" / "memory" / "bob" / "memories.yaml").exists()


def test_client_with_an_invalid_name_is_refused(root: Path) -> None:
    with pytest.raises(ValidationError):
        MemorySync("../bob", root=root)


def test_sync_methods_do_what_the_async_ones_do(blocking: MemorySync) -> None:
    stored = blocking.add("Tea at four")
    memory_id = stored.memory.id
    blocking.update(memory_id, expires_at=datetime.now(UTC) + timedelta(days=1))
    assert [hit.memory.id for hit in blocking.search("tea")] == [memory_id]
    assert [record.id for record in blocking.list()] == [memory_id]
    blocking.delete(memory_id)
    assert blocking.undo(memory_id).what == "forgotten"
    assert len(blocking.history(memory_id)) >= 3
    assert blocking.get(memory_id).content == "Tea at four"


async def test_sync_client_works_inside_a_running_loop(root: Path) -> None:
    with MemorySync("bob", root=root) as client:
        assert client.add("Tea at four").memory.content == "Tea at four"


def test_sync_client_serves_several_threads(blocking: MemorySync) -> None:
    threads = [threading.Thread(target=blocking.add, args=(f"Lamp {number}",)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(blocking.list()) == 8


def test_sync_close_ends_the_thread_and_may_be_repeated(root: Path) -> None:
    client = MemorySync("bob", root=root)
    client.add("Tea at four")
    client.close()
    client.close()
    assert not [thread for thread in threading.enumerate() if thread.name == "agent-memory"]


def test_sync_client_in_a_forked_process_still_answers(blocking: MemorySync) -> None:
    blocking.add("Tea at four")
    child = os.fork()
    if child == 0:
        is_stored = len(blocking.search("tea").results) == 1
        os._exit(0 if is_stored else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_sync_and_async_clients_share_a_folder(root: Path, blocking: MemorySync) -> None:
    blocking.add("Tea at four")

    async def read() -> list[str]:
        async with Memory("bob", root=root) as client:
            return [record.content for record in await client.list()]

    assert asyncio.run(read()) == ["Tea at four"]


def test_sync_clients_share_one_thread(root: Path) -> None:
    with MemorySync("bob", root=root, embedder="none") as bob, MemorySync("eve", root=root, embedder="none") as eve:
        bob.add("Tea at four")
        eve.add("Tea at five")

        async def ask_other() -> str:
            return eve.search("tea").results[0].memory.content

        assert bob.wait_for(ask_other()) == "Tea at five"
        assert len([thread for thread in threading.enumerate() if thread.name == "agent-memory"]) == 1
