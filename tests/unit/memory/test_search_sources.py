"""One search over all kinds: the order of memories stays, other sources come behind matches of their grade."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agent_memory.errors import StorageError
from agent_memory.memory import Caller
from agent_memory.memory.search_sources import SearchSource
from agent_memory.models import HIT_KINDS, FoundText, HitOrigin, MemorySearchResult, SearchResults

if TYPE_CHECKING:
    from agent_memory.memory import Found, MemoryService
    from agent_memory.memory.search_sources import WideRequest

EXTRACTION = {"kind": "extraction", "detail": "document"}


class FixedSource(SearchSource):
    """Answers every search with the same hits."""

    def __init__(self, *hits: MemorySearchResult) -> None:
        self._hits = hits

    async def find(self, asked: WideRequest) -> SearchResults:
        results = await super().find(asked)
        results += self._hits
        results.total_found = len(self._hits)
        return results


class BrokenSource(SearchSource):
    """Cannot be read."""

    async def find(self, asked: WideRequest) -> SearchResults:
        raise StorageError("episodes.yaml cannot be read.")


def turn(number: int, match: Any, *, is_confirmed: bool = True) -> MemorySearchResult:
    memory = FoundText(agent_id="bob", id=f"epi-{number:012x}", content=f"turn {number}")
    origin = HitOrigin("talk", "chat", "Ann", is_confirmed)
    return MemorySearchResult(memory=memory, relevance_score=0.9, match_type="keyword", match=match, origin=origin)


async def search(service: MemoryService, query: str | None, **options: Any) -> Found:
    return await service.search(query, kinds=options.pop("kinds", HIT_KINDS), **options)


def texts(found: Found) -> list[str]:
    return [hit.memory.content for hit in found]


async def test_search_of_all_kinds_finds_notes_and_items(service: MemoryService) -> None:
    note = (await service.store("The harbour opens at six.")).memory
    item = (await service.store({"content": "Harbour > Hours: closed in winter.", "source": EXTRACTION})).memory
    found = await search(service, "harbour")
    assert {hit.memory.id: hit.origin.kind for hit in found} == {note.id: "note", item.id: "passage"}
    assert (found.match, found.results.total_found) == ("strong", 2)
    assert texts(await search(service, "harbour", kinds={"passage"})) == [item.content]
    assert texts(await search(service, "harbour", kinds={"note"})) == [note.content]
    assert texts(await service.search("harbour")) == [note.content]


async def test_search_item_of_a_turn_is_talk(service: MemoryService) -> None:
    link = {"rel": "from", "id": "epi-000000000001"}
    await service.store({"content": "Ann: the harbour is open.", "source": EXTRACTION, "links": [link]})
    (hit,) = await search(service, "harbour")
    assert hit.origin.kind == "talk"
    assert texts(await search(service, "harbour", kinds={"passage"})) == []


async def test_search_other_sources_come_before_the_first_weak_match(service: MemoryService) -> None:
    service.searcher.add_source(FixedSource(turn(1, "strong"), turn(2, "weak"), turn(3, "strong", is_confirmed=False)))
    await service.store("The ferry to the northern harbour leaves at nine.")
    await service.store("A ferry needs a permit.")
    found = await search(service, "when does the ferry leave for the northern harbour", limit=10)
    assert texts(found) == [
        "The ferry to the northern harbour leaves at nine.",
        "turn 1",
        "A ferry needs a permit.",
        "turn 2",
        "turn 3",
    ]
    assert found.results.total_found == 5
    scores = [hit.relevance_score for hit in found]
    assert scores == sorted(scores, reverse=True)


async def test_search_text_of_a_found_item_is_not_repeated(service: MemoryService) -> None:
    service.searcher.add_source(FixedSource(turn(1, "strong"), turn(2, "strong")))
    link = {"rel": "from", "id": "epi-000000000001"}
    await service.store({"content": "Ann: the harbour is open.", "source": EXTRACTION, "links": [link]})
    assert texts(await search(service, "harbour")) == ["Ann: the harbour is open.", "turn 2"]


async def test_search_unreadable_source_is_reported_and_the_rest_found(service: MemoryService) -> None:
    service.searcher.add_source(BrokenSource())
    await service.store("The harbour opens at six.")
    found = await search(service, "harbour")
    assert texts(found) == ["The harbour opens at six."]
    assert found.degraded == "Documents and talk were not searched: episodes.yaml cannot be read."


async def test_search_filters_without_a_match_list_newest_as_weak(service: MemoryService) -> None:
    await service.store({"content": "Login fails after a token refresh.", "category": "bugfix"})
    await service.store({"content": "Exports lose their last line.", "category": "bugfix"})
    await service.store({"content": "Tea at four.", "category": "note"})
    found = await search(service, "recent defects", filters={"category": "bugfix"})
    assert texts(found) == ["Exports lose their last line.", "Login fails after a token refresh."]
    assert (found.match, {hit.match for hit in found}) == ("weak", {"weak"})
    assert (await search(service, "recent defects")).match == "none"
    assert (await search(service, "recent defects", filters={"category": "task"})).match == "none"


async def test_search_empty_query_lists_newest_of_all_kinds(service: MemoryService) -> None:
    await service.store("The harbour opens at six.")
    await service.store({"content": "Harbour > Hours: closed in winter.", "source": EXTRACTION})
    found = await search(service, "")
    assert texts(found) == ["Harbour > Hours: closed in winter.", "The harbour opens at six."]
    assert (found.match, found.overview) == (None, None)


async def test_search_of_a_group_finds_no_other_groups_items(service: MemoryService) -> None:
    await service.store({"content": "Harbour of Ann", "source": EXTRACTION, "group": "acme:ann"})
    await service.store({"content": "Harbour of Kim", "source": EXTRACTION, "group": "acme:kim"})
    assert texts(await search(service, "harbour", caller=Caller(group="acme:kim"))) == ["Harbour of Kim"]


@pytest.mark.parametrize(
    "query",
    [
        "what do you know about me",
        "What do you remember about me?",
        "what do you know about Bob",
        "tell me everything you know",
        "who am I",
        "everything",
        None,
    ],
)
async def test_search_query_without_topic_gives_overview(service: MemoryService, query: str | None) -> None:
    await service.store({"content": "Deploy on Fridays only.", "category": "decision", "project": "ledger"})
    await service.store({"content": "Renew the certificate.", "category": "task"})
    await service.store({"content": "Prefers short answers.", "category": "preference", "pinned": True})
    for number in range(4):
        await service.store(f"Note {number} of the harbour.")
    await service.store({"content": "Harbour > Hours: closed in winter.", "source": EXTRACTION})
    found = await search(service, query)
    assert found.overview == {
        "memories": 7,
        "by_category": {"note": 4, "decision": 1, "task": 1, "preference": 1},
        "by_project": {"ledger": 1},
        "pinned": 1,
        "open_tasks": 1,
        "passages": 1,
    }
    assert texts(found) == [
        "Prefers short answers.",
        "Renew the certificate.",
        "Note 3 of the harbour.",
        "Note 2 of the harbour.",
    ]


@pytest.mark.parametrize("query", ["what do you know about Kate", "what did we decide", "my preferences", "🎉", "port"])
async def test_search_query_with_topic_gives_no_overview(service: MemoryService, query: str) -> None:
    await service.store("Kate likes tea.")
    assert (await search(service, query)).overview is None


async def test_overview_counts_current_memories_by_category(service: MemoryService) -> None:
    old = (await service.store({"content": "Deploy on Fridays only.", "category": "decision", "project": "a"})).memory
    new = {"content": "Deploy on Mondays.", "category": "decision", "project": "b", "supersedes": old.id}
    await service.store(new)
    await service.store({"content": "Harbour > Hours: closed in winter.", "source": EXTRACTION})
    overview = (await search(service, None)).overview
    assert overview == {
        "memories": 1,
        "by_category": {"decision": 1},
        "by_project": {"b": 1},
        "passages": 1,
    }


async def test_search_with_filters_or_fewer_kinds_gives_no_overview(service: MemoryService) -> None:
    await service.store({"content": "Renew the certificate.", "category": "task"})
    await service.store("Tea at four.")
    found = await search(service, "what do you know about me", filters={"category": "task"})
    assert (texts(found), found.overview) == (["Renew the certificate."], None)
    assert (await search(service, "everything", kinds={"note"})).overview is None
