"""What every `MemoryStorage` must do. Inherit it and say how a storage is opened; nothing here knows a backend."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from agent_memory.errors import UnknownIdError, ValidationError
from agent_memory.models import (
    BESIDE,
    DISTINCT,
    SUSPECT,
    Link,
    LinkedRecord,
    Memory,
    Source,
    Surroundings,
    new_memory_id,
)
from tests.contract.memory_releasing import MemoryReleasingContract
from tests.contract.memory_search import MemorySearchContract
from tests.support import NOON, FrozenClock, memory_of, raises

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from agent_memory.storage import MemoryStorage

UNKNOWN = "mem-000000000000"


class MemoryStorageContract(MemoryReleasingContract, MemorySearchContract):
    """The suite. A subclass overrides `open_storage`; its storages belong to agent `bob` and tell time by `clock`."""

    @pytest.fixture
    def open_storage(self) -> Callable[[], Awaitable[MemoryStorage]]:
        """Return a function that opens the same memories once more, in a further object."""
        raise NotImplementedError

    @pytest.fixture
    async def storage(self, open_storage: Callable[[], Awaitable[MemoryStorage]]) -> AsyncIterator[MemoryStorage]:
        storage = await open_storage()
        yield storage
        await storage.close()

    @pytest.fixture
    async def other(self, open_storage: Callable[[], Awaitable[MemoryStorage]]) -> AsyncIterator[MemoryStorage]:
        """Return a second object on the same memories, as another process would have."""
        other = await open_storage()
        yield other
        await other.close()

    # -- storing ------------------------------------------------------------------------------------------------------

    async def test_what_was_stored_comes_back_with_every_field(
        self, storage: MemoryStorage, other: MemoryStorage
    ) -> None:
        first = memory_of("Uses tabs.")
        await storage.store(first)
        memory = memory_of(
            "Prefers 4 spaces — “really” 🙂 \u2028 漢字",
            category="a_category_of_ones_own",
            tags=["style", "python 3"],
            observed_at=NOON - timedelta(days=1),
            last_accessed=NOON,
            access_count=2,
            created_by_session="s-1",
            source=Source(kind="user", detail="chat"),
            trust="high",
            confidence=0.75,
            importance=1.0,
            links=[Link(rel="see", id=first.id)],
            supersedes=first.id,
            expires_at=NOON + timedelta(days=1),
            pinned=True,
            promoted_at=NOON,
            evicted_at=NOON - timedelta(hours=1),
            metadata={"n": 1.5e300, "deep": {"list": [None, True, "x"]}},
        )
        assert await storage.store(memory) == memory.id
        assert await storage.get(memory.id) == memory
        assert await other.get(memory.id) == memory

    async def test_an_empty_storage_answers_everything(self, storage: MemoryStorage) -> None:
        assert await storage.count() == 0
        assert await storage.get(UNKNOWN) is None
        assert await storage.list_recent() == []
        assert [m async for m in storage.iter_all()] == []
        assert await storage.superseded() == {}
        found = await storage.search("anything")
        assert (list(found), found.total_found) == ([], 0)
        assert (await storage.health())["status"] == "ok"
        assert await storage.was_forgotten("anything") is False

    async def test_links_are_told_at_both_ends(self, storage: MemoryStorage) -> None:
        tea = memory_of("peppermint tea")
        mug = memory_of("a large mug", links=[Link(rel="derived_from", id=tea.id)])
        await storage.store_many([tea, mug])
        around = await storage.surroundings([tea.id, mug.id, UNKNOWN])
        assert around == {
            tea.id: Surroundings((LinkedRecord("derived_from", mug.id, "a large mug", is_incoming=True),)),
            mug.id: Surroundings((LinkedRecord("derived_from", tea.id, "peppermint tea"),)),
        }
        (hit,) = [each for each in await storage.search("a large mug") if each.memory.id == mug.id]
        assert hit.surroundings == around[mug.id]
        await storage.delete(tea.id)
        left = (await storage.surroundings([mug.id]))[mug.id]
        assert left == Surroundings((), f"it is derived from {tea.id}, which was forgotten")

    async def test_what_waits_for_a_decision_is_listed_by_every_storage_until_it_is_decided(
        self, storage: MemoryStorage, other: MemoryStorage
    ) -> None:
        old, new, kept = memory_of("Ports: 5432"), memory_of("Ports: 6543"), memory_of("Ports: 7654")
        new = new.model_copy(update={"links": [Link(rel=SUSPECT, id=old.id)]})
        kept = kept.model_copy(update={"links": [Link(rel=BESIDE, id=old.id)]})
        await storage.store_many([old, new, kept])
        assert await other.undecided() == [(new, new)]
        await storage.compact(timedelta(0))
        assert await storage.undecided() == [(new, new)]
        around = await other.surroundings([old.id, new.id])
        assert {one: each.disputed for one, each in around.items()} == {old.id: new.id, new.id: None}
        latest = memory_of("Sockets alone", supersedes=new.id)
        await storage.store(latest)
        assert await other.undecided() == [(new, latest)]
        assert (await other.surroundings([old.id]))[old.id].disputed == latest.id
        found = await storage.search("5432", 2)
        assert [hit.memory.id for hit in found] == [old.id]  # a pair changes no order
        await other.update(new.id, {"links": [Link(rel=DISTINCT, id=old.id).model_dump()]})
        assert await storage.undecided() == []

    async def test_alike_are_those_that_share_words_and_still_hold(self, storage: MemoryStorage) -> None:
        old = memory_of("The staging database listens on port 5432.")
        new = memory_of("The staging database listens on port 6543.", supersedes=old.id)
        await storage.store_many([old, new, memory_of("Bob drinks peppermint tea.")])
        alike = await storage.alike("staging database", 5)
        assert alike is not None
        assert [memory.id for memory in alike] == [new.id]

    async def test_storing_the_same_memory_again_changes_nothing(self, storage: MemoryStorage) -> None:
        memory = memory_of("tea")
        assert await storage.store(memory) == await storage.store(memory) == memory.id
        assert await storage.count() == 1

    async def test_an_id_names_one_text_for_ever(self, storage: MemoryStorage) -> None:
        memory = memory_of("tea")
        await storage.store(memory)
        with raises(ValidationError, "id_taken"):
            await storage.store(memory_of("coffee", id=memory.id))
        assert (await storage.get(memory.id)) == memory

    async def test_another_agents_memory_is_refused(self, storage: MemoryStorage) -> None:
        with pytest.raises(ValidationError, match="alice"):
            await storage.store(memory_of("tea", agent_id="alice"))
        assert await storage.count() == 0

    async def test_a_memory_cannot_supersede_an_unknown_one(self, storage: MemoryStorage) -> None:
        with pytest.raises(UnknownIdError):
            await storage.store(memory_of("tea", supersedes=UNKNOWN))
        assert await storage.count() == 0

    async def test_several_come_back_together_also_before_what_they_replaced(self, storage: MemoryStorage) -> None:
        old, gone = memory_of("The office is in Berlin", supersedes=UNKNOWN), memory_of("tea")
        new = memory_of("The office is in Lyon", supersedes=old.id)
        await storage.store_many([new, old, gone])
        await storage.store_many([gone, old])
        assert [memory async for memory in storage.iter_all()] == [new, old, gone]
        assert await storage.superseded() == {old.id: new.id}

    async def test_of_several_that_cannot_all_be_kept_none_is(self, storage: MemoryStorage) -> None:
        memory = memory_of("tea")
        await storage.store(memory)
        first, second = new_memory_id(), new_memory_id()
        refused = (
            memory_of("coffee", id=memory.id),
            memory_of("tea", agent_id="alice"),
            memory_of("itself", id=first, supersedes=first),
        )
        for one in refused:
            with pytest.raises(ValidationError):
                await storage.store_many([memory_of("another"), one])
        with pytest.raises(ValidationError):
            await storage.store_many(
                [memory_of("one", id=first, supersedes=second), memory_of("two", id=second, supersedes=first)]
            )
        assert [each async for each in storage.iter_all()] == [memory]

    async def test_without_unique_a_text_may_be_stored_twice(self, storage: MemoryStorage) -> None:
        await storage.store(memory_of("tea"))
        await storage.store(memory_of("tea"))
        assert await storage.count() == 2

    @pytest.mark.parametrize("again", ["Caf\u00e9  with\nmilk", "  Cafe\u0301 with milk "])
    async def test_store_with_equal_duplicate_key_returns_first(self, storage: MemoryStorage, again: str) -> None:
        known = await storage.store(memory_of("Caf\u00e9 with milk"))
        assert await storage.store(memory_of(again), unique=True) == known
        assert await storage.count() == 1

    @pytest.mark.parametrize(
        ("text", "other_text"),
        [
            ("Use Tabs.", "use tabs."),
            ("The inverter makes 5 mW.", "The inverter makes 5 MW."),
            ("The limit is 10⁵ rows.", "The limit is 105 rows."),
            ("The path is /etc/Foo.", "The path is /etc/foo."),
            ("\uff34ea", "Tea"),
        ],
    )
    async def test_store_with_other_case_or_form_keeps_both(
        self, storage: MemoryStorage, text: str, other_text: str
    ) -> None:
        first = await storage.store(memory_of(text), unique=True)
        second = await storage.store(memory_of(other_text), unique=True)
        assert first != second
        assert await storage.store(memory_of(text), unique=True) == first
        assert await storage.store(memory_of(other_text), unique=True) == second
        assert await storage.count() == 2

    async def test_unique_counts_only_what_is_valid(self, storage: MemoryStorage, clock: FrozenClock) -> None:
        old = await storage.store(memory_of("tea"))
        await storage.store(memory_of("coffee", supersedes=old))
        assert await storage.store(memory_of("tea"), unique=True) != old
        expiring = await storage.store(memory_of("milk", expires_at=NOON + timedelta(hours=1)))
        clock.advance(hours=2)
        assert await storage.store(memory_of("milk"), unique=True) != expiring
        gone = await storage.store(memory_of("sugar"))
        await storage.delete(gone)
        assert await storage.store(memory_of("sugar"), unique=True) != gone

    async def test_unique_still_finds_the_first_after_a_later_twin_was_deleted(self, storage: MemoryStorage) -> None:
        first = await storage.store(memory_of("tea"))
        await storage.store(memory_of("warm-up"), unique=True)
        twin = await storage.store(memory_of("tea"))
        await storage.delete(twin)
        assert await storage.store(memory_of(" tea"), unique=True) == first

    async def test_unique_goes_by_the_text_as_it_is_now(self, storage: MemoryStorage) -> None:
        changed = await storage.store(memory_of("tea"), unique=True)
        await storage.update(changed, {"content": "coffee"})
        assert await storage.store(memory_of("coffee"), unique=True) == changed
        assert await storage.store(memory_of("tea"), unique=True) != changed

    async def test_many_stores_at_once_are_all_kept(self, storage: MemoryStorage, other: MemoryStorage) -> None:
        memories = [memory_of(f"fact {n}") for n in range(24)]
        await asyncio.gather(*((storage, other)[n % 2].store(memory) for n, memory in enumerate(memories)))
        assert {m.id async for m in storage.iter_all()} == {memory.id for memory in memories}

    async def test_two_objects_that_store_the_same_text_at_once_keep_it_once(
        self, storage: MemoryStorage, other: MemoryStorage
    ) -> None:
        stored = await asyncio.gather(*(s.store(memory_of("tea"), unique=True) for s in (storage, other) * 4))
        assert len(set(stored)) == 1
        assert await storage.count() == 1

    async def test_a_cancelled_store_still_finishes(self, storage: MemoryStorage) -> None:
        memory = memory_of("tea")
        task = asyncio.create_task(storage.store(memory))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await storage.touch([])  # writes keep their order; a read might come before one that waits for the lock
        assert await storage.get(memory.id) == memory

    # -- changing -----------------------------------------------------------------------------------------------------

    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("content", "coffee"),
            ("category", "decision"),
            ("tags", ["hot"]),
            ("trust", "low"),
            ("confidence", 0.5),
            ("importance", 0.25),
            ("pinned", True),
            ("expires_at", NOON + timedelta(days=2)),
            ("promoted_at", NOON),
            ("metadata", {"k": [1, {"x": None}]}),
            ("source", Source(kind="import", detail="file")),
        ],
    )
    async def test_a_field_is_changed_and_given_its_default_again(
        self, storage: MemoryStorage, other: MemoryStorage, field: str, value: Any
    ) -> None:
        memory = memory_of("tea")
        await storage.store(memory)
        changed = await storage.update(memory.id, {field: value})
        assert changed == await other.get(memory.id) == memory.model_copy(update={field: value})
        if field != "content":
            assert await storage.update(memory.id, {field: None}) == await other.get(memory.id) == memory

    async def test_a_mapping_given_for_metadata_replaces_the_old_one(self, storage: MemoryStorage) -> None:
        memory_id = await storage.store(memory_of("tea", metadata={"a": 1, "b": 2}))
        assert (await storage.update(memory_id, {"metadata": {"b": 3}})).metadata == {"b": 3}

    @pytest.mark.parametrize(
        "changes",
        [
            {"content": ""},
            {"content": None},
            {"content": "x" * 10_001},
            {"category": "No Such Form"},
            {"tags": "not a list"},
            {"expires_at": "some day"},
            {"confidence": 2},
            {"unknown": 1},
            {"id": "mem-111111111111"},
            {"agent_id": "alice"},
            {"timestamp": NOON},
            {"created_by_session": "other"},
            {"metadata": {"x": float("nan")}},
            {"content": "fine", "tags": [1]},
        ],
    )
    async def test_a_wrong_change_changes_nothing(self, storage: MemoryStorage, changes: dict[str, Any]) -> None:
        memory = memory_of("tea")
        await storage.store(memory)
        with pytest.raises(ValidationError):
            await storage.update(memory.id, changes)
        assert await storage.get(memory.id) == memory

    async def test_an_unknown_memory_cannot_be_changed_or_forgotten(self, storage: MemoryStorage) -> None:
        for attempt in (storage.update(UNKNOWN, {"pinned": True}), storage.delete(UNKNOWN)):
            with raises(UnknownIdError, "unknown_id"):
                await attempt
        with pytest.raises(UnknownIdError):
            await storage.update_access_stats(UNKNOWN)

    async def test_no_memory_can_replace_itself_not_even_in_a_circle(self, storage: MemoryStorage) -> None:
        first = await storage.store(memory_of("first"))
        second = await storage.store(memory_of("second", supersedes=first))
        for target in (first, second):
            with pytest.raises(ValidationError):
                await storage.update(first, {"supersedes": target})
        assert [m.content for m in await storage.list_recent()] == ["second"]

    async def test_forgetting_returns_what_was_forgotten_and_leaves_no_hit(
        self, storage: MemoryStorage, other: MemoryStorage
    ) -> None:
        memory = memory_of("peppermint tea")
        await storage.store(memory)
        assert await storage.delete(memory.id) == memory
        for view in (storage, other):
            assert await view.get(memory.id) is None
            assert await view.count() == 0
            assert list(await view.search("peppermint")) == []
            assert await view.was_forgotten("Peppermint  TEA")
            assert not await view.was_forgotten("peppermint")
        with pytest.raises(UnknownIdError):
            await storage.delete(memory.id)

    async def test_a_forgotten_text_that_was_stored_anew_is_forgotten_no_more(self, storage: MemoryStorage) -> None:
        await storage.delete(await storage.store(memory_of("tea")))
        await storage.store(memory_of("tea"))
        assert not await storage.was_forgotten("tea")

    # -- counting accesses --------------------------------------------------------------------------------------------

    async def test_touching_counts_once_for_each_id_and_notes_the_time(
        self, storage: MemoryStorage, other: MemoryStorage, clock: FrozenClock
    ) -> None:
        one, two = [await storage.store(memory_of(text)) for text in ("one", "two")]
        now = clock.advance(hours=1)
        await storage.touch([one, one, UNKNOWN])
        await storage.update_access_stats(one)
        touched, untouched = await other.get(one), await other.get(two)
        assert (touched.access_count, touched.last_accessed) == (2, now)
        assert (untouched.access_count, untouched.last_accessed) == (0, None)

    async def test_touching_nothing_known_is_no_error(self, storage: MemoryStorage) -> None:
        await storage.touch([])
        await storage.touch([UNKNOWN])
        assert await storage.count() == 0

    # -- listing ------------------------------------------------------------------------------------------------------

    async def test_the_newest_valid_memories_come_first(self, storage: MemoryStorage, clock: FrozenClock) -> None:
        old = await storage.store(memory_of("old"))
        for hours, text in ((3, "third"), (1, "first"), (2, "second")):
            await storage.store(memory_of(text, timestamp=NOON + timedelta(hours=hours)))
        await storage.store(memory_of("replacing", supersedes=old, timestamp=NOON - timedelta(days=1)))
        await storage.store(memory_of("expired", expires_at=NOON + timedelta(hours=1)))
        clock.advance(hours=4)
        assert [m.content for m in await storage.list_recent()] == ["third", "second", "first", "replacing"]
        assert [m.content for m in await storage.list_recent(2)] == ["third", "second"]

    async def test_count_and_iteration_hold_everything_in_the_order_of_storing(self, storage: MemoryStorage) -> None:
        old = await storage.store(memory_of("b", timestamp=NOON + timedelta(days=1)))
        await storage.store(memory_of("a", supersedes=old))
        await storage.store(memory_of("c", expires_at=NOON - timedelta(days=1)))
        assert [m.content async for m in storage.iter_all()] == ["b", "a", "c"]
        assert await storage.count() == 3

    async def test_iteration_shows_the_moment_it_began(self, storage: MemoryStorage) -> None:
        for text in ("a", "b"):
            await storage.store(memory_of(text))
        seen = []
        async for memory in storage.iter_all():
            seen.append(memory.content)
            await storage.store(memory_of(f"meanwhile {memory.content}"))
        assert seen == ["a", "b"]

    # -- keeping house ------------------------------------------------------------------------------------------------

    async def test_compaction_changes_nothing_one_can_see(
        self, storage: MemoryStorage, other: MemoryStorage, clock: FrozenClock
    ) -> None:
        first = await storage.store(memory_of("first tea"))
        second = await storage.store(memory_of("second tea", supersedes=first, tags=["a"]))
        await storage.update(second, {"pinned": True, "tags": None})
        for _ in range(5):
            await storage.touch([first, second])
        gone = await storage.store(memory_of("gone tea"))
        await storage.delete(gone)
        clock.advance(days=90)
        before = {m.id: m async for m in storage.iter_all()}
        await storage.compact()
        for view in (storage, other):
            assert {m.id: m async for m in view.iter_all()} == before
            assert await view.superseded() == {first: second}
            assert [r.memory.id for r in await view.search("tea")] == [second]

    async def test_what_is_forgotten_stays_forgotten_through_a_compaction(self, storage: MemoryStorage) -> None:
        await storage.delete(await storage.store(memory_of("tea")))
        await storage.compact()
        assert await storage.was_forgotten("tea")

    async def test_closing_twice_is_fine(self, storage: MemoryStorage) -> None:
        await storage.store(memory_of("tea"))
        await storage.close()
        await storage.close()

    async def test_a_closed_storage_loses_nothing(
        self, storage: MemoryStorage, open_storage: Callable[[], Awaitable[MemoryStorage]]
    ) -> None:
        memory = Memory(agent_id="bob", content="tea", id=new_memory_id())
        await storage.store(memory)
        await storage.close()
        again = await open_storage()
        assert await again.get(memory.id) == memory
        await again.close()
