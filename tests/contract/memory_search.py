"""What replacing and searching must do in every `MemoryStorage`: the part of the suite that asks what is found."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from agent_memory.errors import ValidationError
from agent_memory.models import EVERYTHING, DateRange, Listing, SearchFilters, filters_of
from agent_memory.scratchpad import Selection
from tests.support import NOON, FrozenClock, memory_of, raises

if TYPE_CHECKING:
    from agent_memory.storage import MemoryStorage


class MemorySearchContract:
    """The part of the suite about what is valid and what is found; `MemoryStorageContract` brings the fixtures."""

    # -- replacing ----------------------------------------------------------------------------------------------------

    async def test_a_replaced_memory_is_known_but_no_longer_found(self, storage: MemoryStorage) -> None:
        old = await storage.store(memory_of("The office is in Berlin"))
        new = await storage.store(memory_of("The office is in Lyon", supersedes=old))
        assert await storage.superseded() == {old: new}
        assert [r.memory.id for r in await storage.search("office")] == [new]
        everything = await storage.search("office", include_superseded=True)
        assert {r.memory.id for r in everything} == {old, new}

    async def test_a_memory_is_valid_again_once_its_replacement_has_expired(
        self, storage: MemoryStorage, clock: FrozenClock
    ) -> None:
        old = await storage.store(memory_of("office in Berlin"))
        new = await storage.store(memory_of("office in Lyon", supersedes=old, expires_at=NOON + timedelta(days=1)))
        assert await storage.superseded() == {old: new}
        clock.advance(days=2)
        assert await storage.superseded() == {}
        assert [r.memory.id for r in await storage.search("office")] == [old]

    async def test_forgetting_a_memory_forgets_what_it_replaced_but_not_what_replaces_it(
        self, storage: MemoryStorage, other: MemoryStorage
    ) -> None:
        first = await storage.store(memory_of("office in Berlin"))
        second = await storage.store(memory_of("office in Lyon", supersedes=first))
        third = await storage.store(memory_of("office in Oslo", supersedes=second))
        assert await storage.older_versions(third) == [second, first]
        assert await storage.older_versions(first) == []
        assert (await storage.delete(second)).id == second
        assert [m.id async for m in other.iter_all()] == [third]
        assert await other.was_forgotten("office in Berlin")
        assert await other.was_forgotten("office in Lyon")

    async def test_in_a_chain_only_the_last_is_shown(self, storage: MemoryStorage) -> None:
        first = await storage.store(memory_of("office in Berlin"))
        second = await storage.store(memory_of("office in Lyon", supersedes=first))
        third = await storage.store(memory_of("office in Oslo", supersedes=second))
        assert await storage.superseded() == {first: second, second: third}
        assert [m.id for m in await storage.list_recent()] == [third]

    # -- searching ----------------------------------------------------------------------------------------------------

    async def test_results_are_ordered_scored_and_counted(self, storage: MemoryStorage) -> None:
        await storage.store(memory_of("green tea in the morning"))
        await storage.store(memory_of("tea"))
        await storage.store(memory_of("the train to Oslo"))
        found = await storage.search("green tea", limit=1)
        assert [r.memory.content for r in found] == ["green tea in the morning"]
        assert found.total_found == 2
        scores = [r.relevance_score for r in await storage.search("green tea", limit=100)]
        assert scores == sorted(scores, reverse=True)
        assert all(0 <= score <= 1 for score in scores)
        assert all(r.match_type in {"keyword", "vector", "hybrid"} for r in found)

    async def test_search_reports_match_of_answer_and_results(self, storage: MemoryStorage) -> None:
        await storage.store(memory_of("green tea in the morning"))
        await storage.store(memory_of("the train to Oslo"))
        strong, weak = await storage.search("green tea"), await storage.search("tea plant leaf root")
        assert (strong.match, strong[0].match, strong.answer_confidence) == ("strong", "strong", 1)
        assert (weak.match, weak[0].match) == ("weak", "weak")
        latest = await storage.search("")
        assert (latest.match, latest.answer_confidence, latest.not_known) == (None, None, False)

    async def test_search_with_least_confidence_sets_not_known(self, storage: MemoryStorage) -> None:
        await storage.store(memory_of("green tea in the morning"))
        assert not (await storage.search("green tea", min_answer_confidence=1)).not_known
        assert (await storage.search("green tea plant", min_answer_confidence=1)).not_known
        with pytest.raises(ValidationError):
            await storage.search("tea", min_answer_confidence=1.1)

    async def test_a_time_that_is_over_is_answered_by_what_held_then(
        self, storage: MemoryStorage, clock: FrozenClock
    ) -> None:
        old = await storage.store(memory_of("The office is in Berlin", timestamp=NOON - timedelta(days=30)))
        new = await storage.store(
            memory_of("The office is in Lyon", timestamp=NOON - timedelta(days=9), supersedes=old)
        )
        moved, began = (NOON - timedelta(days=days) for days in (9, 30))
        before = await storage.search(f"where was the office before {moved:%Y-%m-%d}")
        assert ([r.memory.id for r in before], before.looks_back) == ([old, new], True)
        since = await storage.search(f"where is the office since {began:%Y-%m-%d}")
        assert ([r.memory.id for r in since], since.looks_back) == ([new], False)
        clock.advance(days=40)
        assert [r.memory.id for r in await storage.search("where was the office yesterday")] == [new]

    async def test_another_objects_store_is_found_at_once(self, storage: MemoryStorage, other: MemoryStorage) -> None:
        assert list(await other.search("tea")) == []
        memory_id = await storage.store(memory_of("green tea"))
        assert [r.memory.id for r in await other.search("tea")] == [memory_id]
        await other.update(memory_id, {"content": "black coffee"})
        assert list(await storage.search("tea")) == []
        assert [r.memory.id for r in await storage.search("coffee")] == [memory_id]

    async def test_a_search_is_no_access(self, storage: MemoryStorage) -> None:
        memory_id = await storage.store(memory_of("tea"))
        await storage.search("tea")
        found = await storage.get(memory_id)
        assert found.access_count == 0

    async def test_every_filter_holds_for_every_result(self, storage: MemoryStorage) -> None:
        wanted = memory_of(
            "tea one", category="decision", tags=["a", "b"], access_count=5, timestamp=NOON - timedelta(days=3)
        )
        await storage.store(wanted)
        for other in (
            memory_of("tea two", tags=["a", "b"], access_count=5, timestamp=NOON - timedelta(days=3)),
            memory_of("tea three", category="decision", tags=["a"], access_count=5, timestamp=wanted.timestamp),
            memory_of("tea four", category="decision", tags=["a", "b"], access_count=4, timestamp=wanted.timestamp),
            memory_of("tea five", category="decision", tags=["a", "b"], access_count=5, timestamp=NOON),
        ):
            await storage.store(other)
        filters = {
            "category": "decision",
            "tags": ["B", "z"],
            "all_tags": ["B", "a"],
            "min_access_count": 5,
            "date_range": {"start": "2026-02-25", "end": "2026-02-27"},
        }
        found = await storage.search("tea", filters=filters)
        assert [r.memory.id for r in found] == [wanted.id]
        assert found.total_found == 1
        assert len(await storage.search("tea", filters={"category": "decision"})) == 4

    async def test_bounds_of_a_date_range_are_inclusive(self, storage: MemoryStorage) -> None:
        await storage.store(memory_of("tea"))
        for start, end, hits in ((NOON, NOON, 1), (NOON + timedelta(microseconds=1), None, 0), (None, NOON, 1)):
            filters = SearchFilters(date_range=DateRange(start=start, end=end))
            assert len(await storage.search("tea", filters=filters)) == hits

    async def test_date_range_goes_by_the_day_of_saying(self, storage: MemoryStorage) -> None:
        said = memory_of("tea", observed_at=NOON - timedelta(days=300))
        await storage.store(said)
        since = SearchFilters(date_range=DateRange(start=NOON - timedelta(days=1)))
        until = SearchFilters(date_range=DateRange(end=NOON - timedelta(days=299)))
        assert len(await storage.search("tea", filters=since)) == 0
        assert [result.memory.id for result in await storage.search("tea", filters=until)] == [said.id]

    async def test_a_date_without_a_zone_is_local_time(self, storage: MemoryStorage) -> None:
        await storage.store(memory_of("tea"))
        day = DateRange(start=(NOON - timedelta(days=1)).replace(tzinfo=None), end=NOON + timedelta(days=1))
        assert len(await storage.search("tea", filters=SearchFilters(date_range=day))) == 1

    @pytest.mark.parametrize(
        "filters",
        [
            {"category": "NO"},
            {"tags": "a"},
            {"tags": ["x" * 100]},
            {"min_access_count": -1},
            {"date_range": {"start": "someday"}},
            {"date_range": {"start": "2026-02-02", "end": "2026-02-01"}},
            {"date_range": {"start": "0001-01-01T00:00:00+14:00"}},
            {"date_range": {"end": "9999-12-31T23:00:00-14:00"}},
            {"unknown": 1},
            ["tags"],
            5,
        ],
    )
    async def test_a_wrong_filter_is_an_error_and_no_crash(self, storage: MemoryStorage, filters: Any) -> None:
        with raises(ValidationError, "invalid_filter"):
            await storage.search("tea", filters=filters)

    @pytest.mark.parametrize("limit", [0, -1, 101])
    async def test_a_limit_lies_between_1_and_100(self, storage: MemoryStorage, limit: int) -> None:
        with pytest.raises(ValidationError, match="limit"):
            await storage.search("tea", limit=limit)

    @pytest.mark.parametrize("query", ["", " ", "?!", "the", "🙂", "\x00", "\ud800", "a" * 9_999, "'\" OR 1=1 --"])
    async def test_any_query_gets_an_answer(self, storage: MemoryStorage, query: str) -> None:
        await storage.store(memory_of("tea"))
        assert len(await storage.search(query)) <= 1

    async def test_expired_memories_are_not_found(self, storage: MemoryStorage, clock: FrozenClock) -> None:
        await storage.store(memory_of("tea", expires_at=NOON + timedelta(hours=1)))
        assert len(await storage.search("tea")) == 1
        clock.advance(hours=1)
        assert list(await storage.search("tea")) == []
        assert await storage.count() == 1

    async def test_what_was_shown_is_true_until_somebody_changes_what_it_says(
        self, storage: MemoryStorage, other: MemoryStorage, clock: FrozenClock
    ) -> None:
        texts = ("tea", "milk", "juice", "water", "bread")
        ids = [await storage.store(memory_of(text)) for text in texts]
        ids.append(await storage.store(memory_of("cake", expires_at=NOON + timedelta(hours=1))))
        tea, milk, juice, water, bread, cake = shown = [m for m in await storage.valid() if m.id in ids]
        assert await storage.still_true(shown)
        await other.touch(ids)
        await other.update(tea.id, {"pinned": True, "promoted_at": NOON})
        await other.store(memory_of("coffee"))
        assert await storage.still_true(shown), "nothing of it says anything else"
        await other.delete(milk.id)
        assert not await storage.still_true(shown)
        await other.update(juice.id, {"content": "orange juice"})
        await other.store(memory_of("sparkling water", supersedes=water.id))
        await other.update(bread.id, {"tags": ["baked"]})
        clock.advance(hours=1)
        assert [m.content for m in shown if await storage.still_true([m])] == ["tea"]
        assert cake.is_expired(clock())
        assert await storage.still_true([])

    @pytest.mark.parametrize(
        "changes",
        [{"content": "water"}, {"tags": ["hot"]}, {"category": "decision"}, {"expires_at": NOON}],
        ids=lambda changes: next(iter(changes)),
    )
    async def test_what_was_shown_is_untrue_after_a_change_also_where_the_change_was_read_meanwhile(
        self, storage: MemoryStorage, other: MemoryStorage, changes: dict[str, Any]
    ) -> None:
        order = Selection(50, 3)
        tea = await storage.store(memory_of("tea"))
        await storage.store(memory_of("milk"))
        shown = await storage.recent(order)
        await other.update(tea, changes)
        now = await storage.recent(order)
        assert not await storage.still_true(shown)
        assert await storage.still_true(now), "another session may be shown what is true"
        assert not await storage.still_true(shown), "asking for other words makes these no truer"

    async def test_a_moment_of_expiry_counts_that_was_set_after_a_memory_was_shown(
        self, storage: MemoryStorage, other: MemoryStorage, clock: FrozenClock
    ) -> None:
        tea = await storage.store(memory_of("tea"))
        shown = await storage.recent(Selection(50, 3))
        await other.update(tea, {"expires_at": NOON + timedelta(hours=1)})
        assert await storage.still_true(shown), "not yet"
        clock.advance(hours=1)
        assert not await storage.still_true(shown)

    async def test_explaining_names_what_was_left_out_and_why(self, storage: MemoryStorage) -> None:
        old = await storage.store(memory_of("green tea"))
        await storage.store(memory_of("black tea", supersedes=old))
        found = await storage.search("tea", explain=True)
        assert old in {item["id"] for item in found.rejected}
        assert all(item["reason"] for item in found.rejected)
        assert (await storage.search("tea")).rejected == []

    # -- items --------------------------------------------------------------------------------------------------------

    async def test_items_are_left_out_unless_they_are_asked_for(
        self, storage: MemoryStorage, other: MemoryStorage
    ) -> None:
        note = await storage.store(memory_of("The harbour opens in May", category="decision"))
        item = await storage.store(
            memory_of("Ann: The harbour opens in June", source={"kind": "extraction"}, pinned=True, access_count=9)
        )
        for each in (storage, other):
            assert [hit.memory.id for hit in await each.search("harbour")] == [note]
            assert {hit.memory.id for hit in await each.search("harbour", filters={"include_items": True})} == {
                note,
                item,
            }
            assert [memory.id for memory in await each.list_recent()] == [note]
            assert [memory.id for memory in await each.recent(Selection(10, 3))] == [note]
            assert [memory.id for memory in (await each.browse(Listing())).records] == [note]
            assert (await each.browse(Listing(filters=EVERYTHING))).total == 2
            assert [memory.id for memory in await each.alike("the harbour opens", 5) or []] == [note]
            tally = await each.tally()
            assert (tally.records, tally.items, tally.pinned) == (1, 1, 0)
            assert tally.by_facet["category"] == {"decision": 1}
            assert tally.by_trust == {"medium": 1}

    async def test_items_are_exported_opened_and_forgotten_as_others(
        self, storage: MemoryStorage, other: MemoryStorage
    ) -> None:
        item = await storage.store(memory_of("The harbour opens in June", source={"kind": "extraction"}))
        assert [memory.id async for memory in other.iter_all()] == [item]
        assert (await other.get(item)) is not None
        await other.delete(item)
        assert [memory.id async for memory in storage.iter_all()] == []
        assert await storage.was_forgotten("The harbour opens in June")

    async def test_a_note_and_an_item_may_say_the_same(self, storage: MemoryStorage) -> None:
        item = memory_of("The harbour opens in June", source={"kind": "extraction"})
        await storage.store(item)
        note = memory_of("The harbour opens in June")
        assert await storage.store(note, unique=True) == note.id
        assert await storage.store(memory_of("The harbour  opens in June"), unique=True) == note.id
        again = memory_of("The harbour opens in June", source={"kind": "extraction"})
        assert await storage.store(again, unique=True) == item.id

    async def test_all_that_is_linked_to_a_record_of_any_kind_is_told(
        self, storage: MemoryStorage, other: MemoryStorage
    ) -> None:
        links = [{"rel": "from", "id": "res-0123456789ab"}]
        many = [memory_of(f"Fact {at}", source={"kind": "extraction"}, links=links) for at in range(70)]
        await storage.store_many(many)
        await storage.store(memory_of("Of something else"))
        assert {memory.id for memory in await other.linked_to("res-0123456789ab")} == {memory.id for memory in many}
        await other.delete(many[0].id)
        assert len(await storage.linked_to("res-0123456789ab")) == 69
        assert await storage.linked_to("res-ffffffffffff") == []

    async def test_items_of_a_topic_are_found_by_it(self, storage: MemoryStorage) -> None:
        tides = await storage.store(memory_of("The harbour is deep", source={"kind": "extraction"}, topic="tides"))
        await storage.store(memory_of("The harbour is old", source={"kind": "extraction"}, topic="towns"))
        found = await storage.search("harbour", filters={"topic": "tides", "include_items": True})
        assert [hit.memory.id for hit in found] == [tides]
        listed = await storage.browse(Listing(filters=filters_of({"topic": "tides", "include_items": True})))
        assert [memory.id for memory in listed.records] == [tides]
