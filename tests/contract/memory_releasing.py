"""What forgetting several memories at once, and releasing some, must do in every `MemoryStorage`."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from agent_memory.errors import UnknownIdError, UnsupportedError
from agent_memory.memory import MemoryService
from agent_memory.models import Trace
from tests.support import NOON, FrozenClock, memory_of

if TYPE_CHECKING:
    from agent_memory.storage import MemoryStorage


class MemoryReleasingContract:
    """The part of the suite about what goes as one change; `MemoryStorageContract` brings the fixtures."""

    async def test_several_memories_go_as_one(self, storage: MemoryStorage, other: MemoryStorage) -> None:
        old = await storage.store(memory_of("Ann's badge is K-11."))
        gone = await storage.store(memory_of("Ann's badge is K-12.", supersedes=old))
        cut = await storage.store(memory_of("Ann has badge K-12 and a dog."))

        went = await storage.forget_many([gone, cut])

        assert [memory.id for memory in went] == [gone, old, cut]
        assert [await other.get(memory_id) for memory_id in (gone, old, cut)] == [None, None, None]
        assert await other.was_forgotten("Ann has badge K-12 and a dog.")

    async def test_several_memories_are_changed_as_one(self, storage: MemoryStorage, other: MemoryStorage) -> None:
        badge = await storage.store(memory_of("Ann's badge is K-11."))
        van = await storage.store(memory_of("Ann drives a van."))
        await storage.update_many({badge: {"pinned": True}, van: {"expires_at": NOON}})

        changed = await other.get(badge), await other.get(van)
        assert [memory is not None and (memory.pinned, memory.expires_at) for memory in changed] == [
            (True, None),
            (False, NOON),
        ]
        with pytest.raises(UnknownIdError):
            await storage.update_many({badge: {"pinned": False}, "mem-000000000000": {"pinned": True}})
        kept = await other.get(badge)
        assert kept is not None
        assert kept.pinned

    async def test_what_a_request_took_comes_back_as_a_whole_where_a_past_is_kept(
        self, storage: MemoryStorage, other: MemoryStorage, clock: FrozenClock
    ) -> None:
        service = MemoryService(storage, clock=clock)
        badge = (await service.store("Ann's badge is K-12.")).memory
        both = (await service.store("Ann has badge K-12 and drives a van.")).memory
        await service.store("Bob drinks peppermint tea.")
        done = await service.writer.deletion.forget([badge.id, both.id])
        assert [memory.id for memory in done.memories] == [badge.id, both.id]
        assert {memory.content async for memory in other.iter_all()} == {"Bob drinks peppermint tea."}
        if done.kept_until is None:
            with pytest.raises(UnsupportedError):
                await service.history.restore(badge.id)
        else:
            restored = await service.history.restore(badge.id)
            assert {memory.id for memory in restored.memories} == {badge.id, both.id}
            there = {memory.id: memory.content async for memory in other.iter_all()}
            assert (there[badge.id], there[both.id]) == (badge.content, both.content)
            assert {badge.id, both.id} <= {hit.memory.id for hit in await storage.search("Ann badge K-12")}
        await service.settle()

    async def test_nothing_goes_where_one_is_unknown(self, storage: MemoryStorage) -> None:
        one = await storage.store(memory_of("Ann's badge is K-12."))
        with pytest.raises(UnknownIdError):
            await storage.forget_many([one, "mem-000000000000"])
        assert await storage.count() == 1

    async def test_what_is_released_leaves_a_trace_that_knows_its_text(
        self, storage: MemoryStorage, other: MemoryStorage, clock: FrozenClock
    ) -> None:
        gone = await storage.store(memory_of("We deploy on Fridays."))
        await storage.store(memory_of("Tea is at four."))
        assert await storage.released("We deploy on Fridays.") is None

        await storage.forget_many([gone], reason="it was a joke")

        for each in (storage, other):
            (trace,) = await each.traces()
            assert (trace.id, trace.reason, trace.at) == (gone, "it was a joke", NOON)
            assert await each.released("we  deploy on FRIDAYS.") == trace
            assert await each.released("Tea is at four.") is None
        assert "riday" not in repr(await storage.traces())
        clock.advance(days=100)
        await storage.compact()
        await storage.compact(timedelta(0))
        assert [each.id for each in await storage.traces()] == [gone]
        assert await other.released("We deploy on Fridays.") is not None
        assert await other.was_forgotten("We deploy on Fridays.")

    async def test_what_is_stored_again_by_its_id_has_no_trace(
        self, storage: MemoryStorage, other: MemoryStorage, clock: FrozenClock
    ) -> None:
        memory = memory_of("We deploy on Fridays.")
        await storage.store(memory)
        await storage.forget_many([memory.id], reason="it was a joke")
        await storage.store_many([memory])
        assert await storage.traces() == []
        assert await other.released(memory.content) is None
        await storage.delete(memory.id)
        clock.advance(days=100)
        await storage.compact()
        assert await storage.traces() == []
        assert await other.traces() == []

    async def test_traces_of_elsewhere_are_added_once(self, storage: MemoryStorage, other: MemoryStorage) -> None:
        here = memory_of("Tea is at four.")
        await storage.store(here)
        salt = Trace.new_salt()
        foreign = Trace.of("mem-00000000000a", "Coffee is at five.", NOON, "moved", salt)
        known = Trace.of(here.id, here.content, NOON, "moved", salt)

        assert await storage.add_traces([foreign, known]) == 1
        assert await other.add_traces([foreign]) == 0
        assert await other.traces() == [foreign]
        assert await storage.released("coffee is at five.") == foreign
        assert [memory.id async for memory in storage.iter_all()] == [here.id]
