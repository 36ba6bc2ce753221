"""What belongs to the session's project goes before what belongs to another one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from agent_memory.memory import NOBODY

if TYPE_CHECKING:
    from agent_memory.memory import Caller, MemoryService

KESTREL, HERON = replace(NOBODY, project="kestrel"), replace(NOBODY, project="heron")


async def stored(service: MemoryService, content: str, caller: Caller, **fields: Any) -> str:
    return (await service.store({"content": content, **fields}, caller)).memory.id


async def found(service: MemoryService, query: str, caller: Caller, **options: Any) -> list[str]:
    return [hit.memory.id for hit in await service.search(query, caller=caller, **options)]


async def test_a_memory_belongs_to_the_project_it_was_stored_in(service: MemoryService) -> None:
    own = await stored(service, "Releases are tagged by hand.", KESTREL)
    said = await stored(service, "Releases are cut on Tuesdays.", KESTREL, project=" Owl\nhouse ")
    liked = await stored(service, "Prefers short answers.", KESTREL, category="preference")
    none = await stored(service, "The office is in Bremen.", NOBODY)
    assert [(await service.get(one)).project for one in (own, said, liked, none)] == ["kestrel", "Owl house", "", ""]


async def test_the_own_project_comes_first_and_others_are_found(service: MemoryService) -> None:
    ours = await stored(service, "The deploy script is run by the release bot.", KESTREL)
    theirs = await stored(service, "The deploy script is run by the release bot at night.", HERON)
    assert await found(service, "who runs the deploy script?", KESTREL) == [ours, theirs]
    assert await found(service, "who runs the deploy script?", HERON) == [theirs, ours]
    assert await found(service, "deploy script", HERON, limit=1) == [theirs]
    assert await found(service, "deploy script", HERON, filters={"project": "kestrel"}) == [ours]
    (other,) = [hit for hit in await service.search("deploy script", caller=HERON) if hit.memory.id == ours]
    assert other.parts["project"] < 1


async def test_what_answers_far_better_stays_first(service: MemoryService) -> None:
    answer = await stored(service, "The invoice ledger is owned by Kate of accounting.", HERON)
    await stored(service, "Kate likes tea.", KESTREL)
    assert (await found(service, "who owns the invoice ledger of accounting?", KESTREL))[0] == answer


async def test_one_beyond_the_limit_is_brought_in(service: MemoryService) -> None:
    for number in range(6):
        await stored(service, f"The deploy script of stage {number} needs a token.", HERON)
    ours = await stored(service, "The deploy script of stage nine needs a token.", KESTREL)
    assert ours in await found(service, "which deploy script needs a token?", KESTREL, limit=2)


@pytest.mark.parametrize(("other", "disputed"), [(KESTREL, 1), (HERON, 0), (NOBODY, 1)])
async def test_what_holds_elsewhere_is_no_contradiction(service: MemoryService, other: Caller, disputed: int) -> None:
    await stored(service, "The build of the server takes 12 minutes.", KESTREL)
    again = await service.store("The build of the server takes 40 minutes.", other)
    assert len(again.suspects) + (again.replaced is not None) == disputed


async def test_projects_are_counted(service: MemoryService) -> None:
    await stored(service, "Releases are tagged by hand.", KESTREL)
    assert (await service.status()).counts["by_project"] == {"kestrel": 1}
