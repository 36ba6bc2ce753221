"""A session that is bound to a group is told nothing of what belongs to another one, whatever it asks."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from agent_memory.errors import UnknownIdError
from agent_memory.memory import NOBODY
from agent_memory.models import SUSPECT, Link
from tests.support import memory_of

if TYPE_CHECKING:
    from agent_memory.memory import Caller, MemoryService

ITEM = {"kind": "extraction", "detail": "said"}
ADA, BOB = replace(NOBODY, group="acme:ada"), replace(NOBODY, group="acme:bob")
SALARY = "Ada: my salary at Acme is paid in May."


async def item(service: MemoryService, content: str, caller: Caller, **fields: Any) -> str:
    values = {"content": content, "source": ITEM, "group": caller.group or "", **fields}
    return (await service.store(values, caller)).memory.id


async def found(service: MemoryService, query: str, caller: Caller, **options: Any) -> set[str]:
    answer = await service.search(query, filters={"include_items": True}, caller=caller, **options)
    return {hit.memory.id for hit in answer} | {each["id"] for each in answer.results.rejected}


async def test_a_search_finds_the_own_group_and_what_belongs_to_none(service: MemoryService) -> None:
    hers, his = await item(service, SALARY, ADA), await item(service, "Bob: my salary is paid in June.", BOB)
    shared = await item(service, "The salary office is in Berlin.", NOBODY)
    assert await found(service, "salary", ADA) == {hers, shared}
    assert await found(service, "salary", BOB, explain=True) == {his, shared}
    assert await found(service, "salary", replace(NOBODY, group="")) == {shared}
    assert await found(service, "salary", NOBODY) == {hers, his, shared}


async def test_an_item_of_another_group_is_not_there_by_its_id(service: MemoryService) -> None:
    hers, his = await item(service, SALARY, ADA), await item(service, "Bob: the tent is green.", BOB)
    assert (await service.open(hers, ADA)).content == SALARY
    assert list(await service.search(hers, caller=BOB)) == []
    link = {"rel": "see", "id": hers}
    for attempt in (
        service.open(hers, BOB),
        service.update(hers, {"content": "Mine now."}, BOB),
        service.update(his, {"supersedes": hers}, BOB),
        service.update(his, {"links": [link]}, BOB),
        service.forget(hers, BOB),
        service.promote(hers, BOB),
        service.store({"content": "Bob: no, in July.", "supersedes": hers}, BOB),
        service.store({"content": "Bob: as she said.", "links": [link]}, BOB),
        service.writer.conflicts.decide(his, hers, "replace", BOB),
    ):
        with pytest.raises(UnknownIdError, match=f"No memory .{hers}"):
            await attempt
    assert (await service.get(hers)).content == SALARY


async def test_the_error_is_that_of_an_id_that_was_never_given(service: MemoryService) -> None:
    hers, never = await item(service, SALARY, ADA), "mem-00000000beef"
    for attempt in (service.open, service.forget, service.promote):
        with pytest.raises(UnknownIdError) as of_hers:
            await attempt(hers, BOB)
        with pytest.raises(UnknownIdError) as of_none:
            await attempt(never, BOB)
        assert of_hers.value.message.replace(hers, never) == of_none.value.message


async def test_candidates_for_forgetting_are_of_the_own_group(service: MemoryService) -> None:
    await item(service, SALARY, ADA)
    his = await item(service, "Bob: my salary at Acme is paid in June.", BOB)
    candidates = await service.searcher.find_candidates("everything about Acme", BOB)
    assert [candidate.memory.id for candidate in candidates.listed] == [his]


async def test_the_same_words_of_two_groups_are_two_items(service: MemoryService) -> None:
    hers, his = await item(service, SALARY, ADA), await item(service, SALARY, BOB)
    assert hers != his
    again = await service.store({"content": SALARY, "source": ITEM, "group": "acme:bob"}, BOB)
    assert (again.duplicate, again.memory.id) == (True, his)


async def test_what_is_linked_is_told_where_it_may_be_seen(service: MemoryService) -> None:
    hers = await item(service, SALARY, ADA)
    shared = await item(service, "The salary office is in Berlin.", NOBODY, links=[{"rel": "see", "id": hers}])
    [hit] = await service.search(shared, caller=BOB)
    assert hit.surroundings.links == ()
    [hit] = await service.search(shared, caller=ADA)
    assert [linked.id for linked in hit.surroundings.links] == [hers]


async def test_items_of_others_are_not_counted(service: MemoryService) -> None:
    await item(service, SALARY, ADA)
    await item(service, "Ada: the tent is green.", ADA)
    await item(service, "Bob: the tent is red.", BOB)
    await item(service, "The salary office is in Berlin.", NOBODY)
    counts = [(await service.status(caller)).counts.get("items") for caller in (NOBODY, ADA, BOB)]
    assert counts == [4, 3, 2]


async def test_a_pair_is_told_to_who_sees_both(service: MemoryService) -> None:
    older = memory_of("The office of Acme is in Berlin.", source=ITEM, group="acme:ada")
    link = Link(rel=SUSPECT, id=older.id)
    newer = memory_of("The office of Acme is in Lyon.", source=ITEM, links=[link])
    await service.storage.store_many([older, newer])
    assert [each.newer.id for each in await service.suspects(ADA)] == [newer.id]
    assert await service.suspects(BOB) == []
    assert [await service.writer.conflicts.count(caller) for caller in (NOBODY, ADA, BOB)] == [1, 1, 0]


@pytest.mark.parametrize(
    ("owner", "others", "count"),
    [
        ({"group": "acme:ada"}, {"group": "acme:bob"}, 0),
        ({"group": "acme:ada"}, {"group": "acme:ada"}, 1),
        ({"group": "acme:ada"}, {}, 1),
        ({"project": "kestrel"}, {"project": "Osprey"}, 0),
        ({"project": "kestrel"}, {"project": "Kestrel"}, 1),
    ],
)
async def test_conflicts_two_owners_none(
    service: MemoryService, owner: dict[str, str], others: dict[str, str], count: int
) -> None:
    await service.store({"content": "The office is in Berlin.", **owner})
    stored = await service.store({"content": "The office is in Lyon.", **others})
    assert len(stored.suspects) == len(await service.suspects()) == count
    assert await service.writer.finder.compare_all() == 0
    assert sum(hit.surroundings.disputed is not None for hit in await service.search("office")) == count


async def test_suspects_stored_pair_of_two_groups_hidden(service: MemoryService) -> None:
    older = memory_of("The office is in Berlin.", group="acme:ada")
    newer = memory_of("The office is in Lyon.", group="acme:bob", links=[Link(rel=SUSPECT, id=older.id)])
    await service.storage.store_many([older, newer])
    assert await service.suspects() == []
    assert {hit.surroundings.disputed for hit in await service.search("office")} == {None}
