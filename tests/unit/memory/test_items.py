"""What was drawn from documents and talks stays apart from what an agent noted, and is forgotten like it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_memory.errors import ValidationError
from agent_memory.models import Observation
from tests.support import raises

if TYPE_CHECKING:
    from agent_memory.memory import MemoryService

EXTRACTION = {"kind": "extraction", "detail": "talk.said"}
BERLIN = "The office of Acme is in Berlin."
LYON = "The office of Acme is in Lyon."


async def item(service: MemoryService, content: str) -> str:
    return (await service.store({"content": content, "source": EXTRACTION})).memory.id


async def test_items_are_found_only_where_they_are_asked_for(service: MemoryService) -> None:
    known = await item(service, BERLIN)
    assert list(await service.search("office")) == []
    found = await service.search("office", filters={"include_items": True})
    assert [hit.memory.id for hit in found] == [known]
    assert [hit.memory.id for hit in await service.search(known)] == [known]
    assert await service.list_recent() == []
    assert (await service.scratchpad()).entries == []
    assert (await service.open(known)).content == BERLIN


async def test_they_are_counted_for_themselves(service: MemoryService) -> None:
    await item(service, BERLIN)
    await service.store({"content": "Tea", "category": "preference"})
    counts = (await service.status()).counts
    assert (counts["memories"], counts["items"]) == (1, 1)
    assert counts["by_category"] == {"preference": 1}


async def test_what_only_an_item_says_is_captured(service: MemoryService) -> None:
    await item(service, BERLIN)
    seen = Observation(content=BERLIN, category="note", confidence=0.9, trust="high")
    assert len((await service.capture([seen])).stored) == 1
    assert (await service.capture([seen])).skipped == {"duplicate": 1}


async def test_an_item_is_no_suspect_whether_it_is_the_newer_or_the_older(service: MemoryService) -> None:
    await item(service, BERLIN)
    assert (await service.store({"content": LYON})).suspects == ()
    assert (await service.store({"content": "The office of Acme is in Oslo."})).suspects != ()
    newer = await service.store({"content": "The office of Acme is in Rome.", "source": EXTRACTION})
    assert newer.suspects == ()
    await service.settle()
    assert (await service.get(newer.memory.id)).links == []


async def test_an_item_is_not_promoted_and_the_error_says_what_to_do(service: MemoryService) -> None:
    known = await item(service, BERLIN)
    with raises(ValidationError, "is_item") as caught:
        await service.promote(known)
    assert "own words" in caught.value.recovery
