"""Conflicts of memories: how they are found, stored, shown and settled."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from agent_memory.errors import ValidationError
from agent_memory.memory import NOBODY, MemoryService, views
from agent_memory.models import BESIDE, DISTINCT, REPLACES, SUSPECT, Link
from tests.support import memory_of, raises

if TYPE_CHECKING:
    from agent_memory.memory.results import Imported
    from agent_memory.models import Memory
    from tests.unit.memory.conftest import Listener, Services

OLD, NEW = "The daily backup keeps 14 copies.", "The daily backup keeps 30 copies."


async def two(service: MemoryService, texts: tuple[str, str] = (OLD, NEW), **fields: Any) -> tuple[Memory, Memory]:
    return (await service.store({"content": texts[0], **fields})).memory, (await service.store(texts[1])).memory


async def ids(service: MemoryService) -> list[tuple[str, str]]:
    return [(each.newer.id, each.older.id) for each in await service.suspects()]


async def test_a_store_tells_which_older_memory_it_disputes(service: MemoryService, listener: Listener) -> None:
    old = (await service.store(OLD)).memory
    stored = await service.store(NEW, listener.caller)
    (shown,) = views.view_suspects(stored.suspects)
    assert (shown["id"], shown["title"], shown["hint"]) == (old.id, OLD, "replace")
    assert "30 copies" in shown["evidence"]
    assert stored.replaced is None
    assert await ids(service) == [(stored.memory.id, old.id)]
    (event,) = listener.of("memory:suspect")
    assert (event["memory_id"], event["older_id"], event["outcome"]) == (stored.memory.id, old.id, "queued")


async def test_a_pair_is_in_the_line_of_the_journal_that_stores_the_newer(service: MemoryService) -> None:
    _, new = await two(service)
    versions = await service.history.history(new.id)
    assert [version.op for version in versions] == ["put"]


async def test_search_undecided_pair_marks_older_keeps_order(service: MemoryService) -> None:
    old, new = await two(service)
    found = await service.search("daily backup keeps 14 copies")
    assert [hit.memory.id for hit in found] == [old.id, new.id]
    assert [hit.surroundings.disputed for hit in found] == [new.id, None]
    assert views.view_brief_hit(found.results[0])["disputed"] == new.id
    assert found.results[0].relevance_score > found.results[1].relevance_score
    assert [hit.memory.id for hit in await service.search("14", 1)] == [old.id]


async def test_undecided_pair_of_removed_rule_hidden(make_service: Services) -> None:
    service = make_service(suspects=False)
    old, new = memory_of("Olga leads the desk."), memory_of("The desk is led by Omar now.")
    new.links.append(Link(rel=SUSPECT, id=old.id))
    await service.writer.import_memories([old, new], lambda _: None, NOBODY, trusted=True)
    assert await service.suspects() == []
    assert await service.writer.conflicts.count() == 0
    assert {hit.surroundings.disputed for hit in await service.search("desk")} == {None}
    assert (await service.get(new.id)).links == new.links
    await service.writer.conflicts.decide(new.id, old.id, "replace")
    assert [hit.memory.id for hit in await service.search("desk")] == [new.id]


async def test_store_series_of_texts_raises_no_more_pairs(service: MemoryService) -> None:
    for number in range(1, 9):
        await service.store(f"The import wrote ticket {number}.")
    assert {each.newer.content for each in await service.suspects()} == {
        "The import wrote ticket 2.", "The import wrote ticket 3.",
    }  # fmt: skip


async def test_what_replaced_the_newer_of_a_pair_disputes_the_older_in_its_place(service: MemoryService) -> None:
    old, fly = await two(service)
    now = (await service.store({"content": "Tapes are written all the time.", "supersedes": fly.id})).memory
    assert await ids(service) == [(now.id, old.id)]
    (waiting,) = await service.suspects()
    assert fly.id in waiting.evidence
    disputed = {hit.memory.id: hit.surroundings.disputed for hit in await service.search("daily backup")}
    assert disputed == {now.id: None, old.id: now.id}
    await service.writer.conflicts.decide(now.id, old.id, "replace")
    assert await service.storage.older_versions(now.id) == [fly.id, old.id]
    await service.history.restore(old.id)
    await service.writer.conflicts.decide(now.id, old.id, "keep")
    assert await service.suspects() == []
    assert {hit.surroundings.disputed for hit in await service.search("daily backup")} == {None}


async def test_the_older_that_replaced_the_newer_is_disputed_by_nothing(service: MemoryService) -> None:
    old, new = await two(service)
    await service.update(old.id, {"supersedes": new.id})
    assert await ids(service) == []
    assert [hit.surroundings.disputed for hit in await service.search("daily backup")] == [None]


@pytest.mark.parametrize("decision", ["keep", "not_same"])
async def test_what_both_hold_is_neither_marked_nor_asked_again(service: MemoryService, decision: Any) -> None:
    old, new = await two(service)
    await service.writer.conflicts.decide(old.id, new.id, decision)
    assert await service.suspects() == []
    assert await service.writer.finder.compare_all() == 0
    assert {hit.surroundings.disputed for hit in await service.search("daily backup")} == {None}
    await service.update(new.id, {"links": []})
    assert await service.writer.finder.compare_all() == 0


async def test_a_replacement_hides_the_older_and_can_be_restored(service: MemoryService, listener: Listener) -> None:
    old, new = await two(service)
    await service.writer.conflicts.decide(new.id, old.id, "replace", listener.caller)
    assert [hit.memory.id for hit in await service.search("daily backup")] == [new.id]
    assert await service.suspects() == []
    assert listener.of("memory:suspect")[0]["outcome"] == "replaced"
    restored = await service.history.restore(old.id)
    assert restored.what == "replaced"
    assert {hit.memory.id for hit in await service.search("daily backup")} == {old.id, new.id}


async def test_a_replacement_is_one_change_which_restoring_the_other_takes_back(service: MemoryService) -> None:
    old, new = await two(service)
    await service.writer.conflicts.decide(new.id, old.id, "replace")
    assert [version.op for version in await service.history.history(new.id)] == ["put", "patch"]
    await service.history.restore(old.id)
    assert await ids(service) == [(new.id, old.id)]


@pytest.mark.parametrize("decision", ["replace", "keep", "not_same"])
async def test_what_was_replaced_decides_nothing_until_it_is_restored(service: MemoryService, decision: Any) -> None:
    old, new = await two(service)
    await service.writer.conflicts.decide(new.id, old.id, "replace")
    before = await service.history.history(new.id)
    with pytest.raises(ValidationError) as refused:
        await service.writer.conflicts.decide(old.id, new.id, decision)
    assert refused.value.code == "replaced_already"
    assert f"{new.id} has replaced {old.id}" in refused.value.message
    assert f"agent-memory undo {old.id}" in (refused.value.recovery or "")
    assert await service.history.history(new.id) == before
    await service.writer.conflicts.decide(new.id, old.id, "replace")  # as it is: nothing to do
    assert await service.history.history(new.id) == before
    await service.history.restore(old.id)
    await service.writer.conflicts.decide(old.id, new.id, decision)
    assert await service.suspects() == []


async def test_the_older_may_turn_out_to_be_right(service: MemoryService) -> None:
    old, new = await two(service)
    await service.writer.conflicts.decide(old.id, new.id, "replace")
    assert [hit.memory.id for hit in await service.search("daily backup")] == [old.id]


async def test_what_replaces_something_already_replaces_one_more(service: MemoryService) -> None:
    first = (await service.store("The backup tapes are in the cellar.")).memory
    old = (await service.store(OLD)).memory
    new = (await service.store({"content": NEW, "supersedes": first.id})).memory
    await service.writer.conflicts.decide(new.id, old.id, "replace")
    assert await service.storage.older_versions(new.id) == [first.id, old.id]


async def test_two_memories_that_are_no_pair_are_not_settled(service: MemoryService) -> None:
    tea, mug = await two(service, ("Bob drinks tea.", "The archive has nine rooms."))
    with raises(ValidationError, "no_such_pair"):
        await service.writer.conflicts.decide(tea.id, mug.id, "replace")


async def test_a_forgotten_or_corrected_memory_leaves_the_list(service: MemoryService) -> None:
    old, new = await two(service)
    await service.update(new.id, {"content": OLD.upper()})
    assert await ids(service) == []
    await service.update(new.id, {"content": NEW})
    assert await ids(service) == [(new.id, old.id)]
    await service.forget(old.id)
    assert await ids(service) == []


@pytest.mark.parametrize("corrected", [0, 1])
async def test_an_answer_marks_no_memory_whose_pair_was_resolved_by_other_words(
    service: MemoryService, corrected: int
) -> None:
    pair = await two(service)
    await service.update(pair[corrected].id, {"content": "The daily walk of the dog takes 20 minutes."})
    await service.settle()
    assert {hit.surroundings.disputed for hit in await service.search("daily")} == {None}
    await service.update(pair[corrected].id, {"content": (OLD, NEW)[corrected]})
    await service.settle()
    assert len(await service.suspects()) == 1


async def test_other_words_that_still_dispute_leave_the_pair_as_it_is(service: MemoryService) -> None:
    old, new = await two(service)
    before = (await service.get(new.id)).links
    await service.update(old.id, {"content": "The daily backup keeps 21 copies."})
    await service.settle()
    assert (await service.get(new.id)).links == before
    assert await ids(service) == [(new.id, old.id)]


async def test_a_change_of_words_tells_what_it_disputes(service: MemoryService) -> None:
    old, other = await two(service, (OLD, "The daily backup is verified by Nora."))
    updated = await service.update(other.id, {"content": NEW})
    assert [each.older.id for each in updated.suspects] == [old.id]
    assert await ids(service) == [(other.id, old.id)]


async def test_a_strangers_words_dispute_nothing_of_higher_trust(service: MemoryService, listener: Listener) -> None:
    await service.store(OLD)
    stored = await service.store(NEW, replace(listener.caller, trust="low"))
    assert stored.suspects == ()
    assert await service.suspects() == []
    assert {hit.surroundings.disputed for hit in await service.search("daily backup")} == {None}


async def test_an_import_is_compared_behind_it_whichever_way_round(service: MemoryService) -> None:
    there = (await service.store("Olga lives in Porto.")).memory
    earlier = there.timestamp.replace(year=2001)
    brought = [
        memory_of("Olga lives in Turin.", timestamp=earlier),
        memory_of(OLD, timestamp=earlier),
        memory_of(NEW, timestamp=earlier.replace(year=2002)),
    ]
    await service.writer.import_memories(brought, lambda _: None, NOBODY, trusted=True)
    await service.settle()
    assert set(await ids(service)) == {(there.id, brought[0].id), (brought[2].id, brought[1].id)}


@pytest.mark.parametrize(("count", "pairs"), [(3, 3), (4, 0), (30, 0)])
async def test_import_series_of_texts_raises_no_pairs(service: MemoryService, count: int, pairs: int) -> None:
    tickets = [memory_of(f"The import wrote ticket {number}.") for number in range(count)]
    await service.writer.import_memories(tickets, lambda _: None, NOBODY, trusted=True)
    await service.settle()
    assert len(await service.suspects()) == pairs
    assert await service.writer.finder.compare_all() == 0


async def test_pairs_come_along_with_an_export(service: MemoryService, make_service: Services) -> None:
    old, new = await two(service)
    everything = await service.searcher.list_all()
    for each in (new.id, old.id):
        await service.forget(each)
    off = make_service(suspects=False)
    fresh = [each.model_copy(update={"content": each.content}) for each in everything]
    await off.writer.import_memories(fresh, lambda _: None, NOBODY, trusted=True)
    assert await ids(off) == [(new.id, old.id)]


async def test_nothing_is_compared_where_the_setting_says_so(make_service: Services) -> None:
    service = make_service(suspects=False)
    await two(service)
    assert await service.suspects() == []
    assert await service.writer.finder.compare_all() == 0


async def test_what_was_not_compared_before_is_found_by_looking_at_all(make_service: Services) -> None:
    off, service = make_service(suspects=False), make_service()
    old, new = await two(off)
    assert await service.writer.finder.compare_all() == 1
    assert await ids(service) == [(new.id, old.id)]
    (shown,) = [views.view_pair(each) for each in await service.suspects()]
    assert (shown["newer"]["content"], shown["older"]["content"]) == (NEW, OLD)


async def test_taking_back_a_change_leaves_pairs_as_they_are(service: MemoryService) -> None:
    old, new = await two(service)
    await service.update(new.id, {"tags": ["night"]})
    assert (await service.history.restore(new.id)).fields == ("tags",)
    assert await ids(service) == [(new.id, old.id)]


@pytest.mark.parametrize("rel", [SUSPECT, DISTINCT])
async def test_nobody_raises_or_settles_a_pair_by_a_link_of_ones_own(service: MemoryService, rel: str) -> None:
    old = (await service.store(OLD)).memory
    forged = [{"rel": rel, "id": old.id}]
    with raises(ValidationError, "reserved_link"):
        await service.store({"content": NEW, "links": forged})
    new = (await service.store("Bob drinks peppermint tea.")).memory
    with raises(ValidationError, "reserved_link"):
        await service.update(new.id, {"links": forged})
    assert await ids(service) == []


@pytest.mark.parametrize("rel", [SUSPECT, DISTINCT, BESIDE, REPLACES])
async def test_a_file_nobody_vouches_for_raises_and_settles_no_pair(service: MemoryService, rel: str) -> None:
    old = (await service.store(OLD)).memory
    told = Link(rel="derived_from", id=old.id)
    links = [Link(rel=rel, id=old.id), told]
    brought = memory_of(NEW, timestamp=old.timestamp - timedelta(days=1), links=links)
    other = memory_of("Bob drinks peppermint tea.", links=[Link(rel=rel, id=old.id)])
    outcomes: list[Imported] = []
    await service.writer.import_memories([brought, other], outcomes.append, NOBODY)
    await service.settle()
    assert ["links" in each.lowered for each in outcomes] == [True, True]
    assert (await service.get(other.id)).links == []
    assert told in (await service.get(brought.id)).links
    assert await ids(service) == [(old.id, brought.id)]  # its own words raise what the link would have settled
    await service.writer.import_memories([other], outcomes.append, NOBODY, trusted=True)
    assert outcomes[-1].raised == ("trust", "origin", "links")
    assert (await service.get(other.id)).links == other.links


async def test_pairs_among_some_memories_are_those_that_have_one_of_them(service: MemoryService) -> None:
    old, new = await two(service)
    await two(service, ("The boat has 3 masts.", "The boat has 4 masts."))
    for one in (old.id, new.id):
        (pair,) = await service.writer.conflicts.list_pairs(among=[one])
        assert (pair.newer.id, pair.older.id) == (new.id, old.id)
    assert await service.writer.conflicts.list_pairs(among=[]) == []


async def test_the_status_counts_the_pairs_that_wait(service: MemoryService) -> None:
    old, new = await two(service)
    status = await service.status()
    assert status.counts["suspects"] == 1
    assert any("agent-memory conflicts" in each for each in status.suggestions)
    await service.writer.conflicts.decide(new.id, old.id, "keep")
    status = await service.status()
    assert "suspects" not in status.counts
    assert not any("agent-memory conflicts" in each for each in status.suggestions)


async def test_the_status_counts_no_pair_of_which_one_is_gone(service: MemoryService) -> None:
    old, _ = await two(service)
    await service.forget(old.id)
    assert "suspects" not in (await service.status()).counts
