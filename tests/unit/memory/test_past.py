"""Bringing back what forgetting, replacing or changing took."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from agent_memory.errors import UnknownIdError, ValidationError
from tests.support import NOON, raises

if TYPE_CHECKING:
    from agent_memory.memory import MemoryService
    from tests.support import FrozenClock
    from tests.unit.memory.conftest import Listener


async def test_a_forgotten_memory_comes_back_with_what_went_with_it(
    service: MemoryService, listener: Listener, clock: FrozenClock
) -> None:
    old = (await service.store({"content": "Office in Berlin", "tags": ["office"]})).memory
    new = (await service.store({"content": "Office in Lyon", "supersedes": old.id, "pinned": True})).memory
    clock.advance(days=1)
    forgotten = await service.forget(new.id)
    assert forgotten.kept_until == NOON + timedelta(days=31)
    assert [(memory.id, at) for memory, at in await service.history.forgotten()] == [
        (old.id, clock.now),
        (new.id, clock.now),
    ]
    done = await service.history.restore(new.id, listener.caller)
    assert (done.what, done.memories) == ("forgotten", (new, old))
    assert [await service.get(each.id) for each in (new, old)] == [new, old]
    assert await service.storage.superseded() == {old.id: new.id}
    assert [event["memory_id"] for event in listener.of("memory:restored")] == [new.id, old.id]
    await service.settle()
    assert new.id in await service.scratchpad()
    assert await service.history.forgotten() == []


async def test_a_replaced_memory_counts_again(service: MemoryService, listener: Listener) -> None:
    old = (await service.store({"content": "Office in Berlin"})).memory
    new = (await service.store({"content": "Office in Lyon", "supersedes": old.id})).memory
    done = await service.history.restore(old.id, listener.caller)
    assert (done.what, done.replaced_by) == ("replaced", new.id)
    assert {memory.id for memory in await service.list_recent()} == {old.id, new.id}
    told = listener.of("memory:restored")
    assert [(event["memory_id"], event["was"]) for event in told] == [(old.id, "replaced")]


async def test_a_change_is_taken_back_and_so_is_taking_it_back(service: MemoryService) -> None:
    memory = (await service.store({"content": "Tea at four", "tags": ["tea"]})).memory
    changed = (await service.update(memory.id, {"content": "Tea at five", "tags": ["late"], "pinned": True})).memory
    await service.storage.touch([memory.id])
    done = await service.history.restore(memory.id)
    assert (done.what, set(done.fields)) == ("changed", {"content", "tags", "pinned"})
    now = await service.get(memory.id)
    assert (now.content, now.tags, now.pinned, now.access_count) == ("Tea at four", ["tea"], False, 1)
    await service.history.restore(memory.id)
    assert (await service.get(memory.id)).content == changed.content


async def test_any_version_that_is_known_can_be_had(service: MemoryService) -> None:
    memory = (await service.store({"content": "one"})).memory
    for text in ("two", "three"):
        await service.update(memory.id, {"content": text})
    versions = await service.history.history(memory.id)
    assert [each.record.content for each in versions if each.record] == ["one", "two", "three"]
    await service.history.restore(memory.id, seq=versions[0].seq)
    assert (await service.get(memory.id)).content == "one"
    with pytest.raises(ValidationError, match="no version 99"):
        await service.history.restore(memory.id, seq=99)


async def test_a_version_that_replaced_what_is_gone_comes_back_without_that(service: MemoryService) -> None:
    old = (await service.store({"content": "old"})).memory
    new = (await service.store({"content": "new", "supersedes": old.id})).memory
    await service.update(new.id, {"content": "newer", "supersedes": None})
    await service.forget(old.id)
    assert (await service.history.restore(new.id)).fields == ("content",)


async def test_what_never_happened_or_was_folded_away_does_not_come_back(service: MemoryService) -> None:
    memory = (await service.store({"content": "Tea at four"})).memory
    with raises(ValidationError, "nothing_to_restore"):
        await service.history.restore(memory.id)
    with pytest.raises(UnknownIdError):
        await service.history.restore("mem-ffffffffffff")
    await service.forget(memory.id)
    await service.writer.compact(timedelta(0))
    assert await service.history.forgotten() == []
    with pytest.raises(UnknownIdError):
        await service.history.restore(memory.id)
