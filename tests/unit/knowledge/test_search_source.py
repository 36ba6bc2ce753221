"""A search over all kinds finds passages, turns and pages with their origin, and nothing that was forgotten."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from agent_memory.knowledge.intake.drafting import Document, Turn
from agent_memory.knowledge.pages.watching import keep_pages
from agent_memory.knowledge.search_source import add_knowledge
from agent_memory.knowledge.working import runner_of
from agent_memory.memories import FileStorage
from agent_memory.models import HIT_KINDS, HitOrigin
from agent_memory.service import Caller, MemoryService
from agent_memory.service.views import brief_hit

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from agent_memory.knowledge.intake.ingest import Ingest
    from agent_memory.knowledge.records import Knowledge
    from agent_memory.service import Found
    from tests.support import FrozenClock

SAID = datetime(2025, 11, 3, tzinfo=UTC)
RUNBOOK = "# Runbook\n\nTobias Reuter is on call in odd weeks.\n"
BERN = "I moved to Bern with my two cats in spring."
TALK = (
    BERN,
    "I sold the old canoe in Bergen last week.",
    "I work at the harbour office on Mondays.",
    "My sister Edda plays the cello in a quartet.",
    "I am allergic to walnuts and to pollen.",
)


@pytest.fixture
async def service(knowledge: Knowledge, root: Path, clock: FrozenClock) -> AsyncIterator[MemoryService]:
    settings = knowledge.settings
    opened = MemoryService(FileStorage("bob", root, settings=settings, clock=clock), settings, clock=clock)
    yield add_knowledge(keep_pages(opened))
    await opened.close()


async def search(service: MemoryService, query: str | None, **options: object) -> Found:
    return await service.search(query, **{"kinds": HIT_KINDS, **options})  # type: ignore[arg-type]


async def ingest_talk(ingest: Ingest, *texts: str, role: str = "person", group: str = "") -> list[str]:
    talk = await ingest.conversation(f"s-{group}", title="Chat of Monday", group=group)
    turns = [Turn(text, role, "Lea" if role == "person" else "", said_at=SAID) for text in texts]
    stored, _ = await ingest.turns(turns, conversation=talk.record.id, group=group)
    return [turn.record.id for turn in stored]


async def test_search_finds_passages_ingested_while_open(
    ingest: Ingest, knowledge: Knowledge, service: MemoryService
) -> None:
    assert (await search(service, "who is on call in odd weeks")).match == "none"
    await ingest.resource(Document(RUNBOOK, "runbook.md", said_at=SAID))
    await runner_of(knowledge, service).run()
    found = await search(service, "who is on call in odd weeks")
    (hit,) = found
    assert (found.match, hit.origin) == ("strong", HitOrigin("passage", "runbook.md"))
    assert brief_hit(hit) == {
        "id": hit.memory.id,
        "content": "Runbook\n\nTobias Reuter is on call in odd weeks.",
        "timestamp": "2025-11-03",
        "kind": "passage",
        "source": "runbook.md",
    }
    assert list(await search(service, "on call", kinds={"talk", "note", "page"})) == []


async def test_search_finds_a_turn_and_its_item_once(
    ingest: Ingest, knowledge: Knowledge, service: MemoryService
) -> None:
    (turn, *_) = await ingest_talk(ingest, *TALK)
    (hit,) = await search(service, "who moved to Bern with cats", kinds={"talk"})
    assert (hit.memory.id, hit.memory.content) == (turn, BERN)
    assert hit.origin == HitOrigin("talk", "Chat of Monday", "Lea")
    await runner_of(knowledge, service).run()
    found = await search(service, "who moved to Bern with cats")
    assert [hit.origin.kind for hit in found if "Bern" in hit.memory.content] == ["talk", "page"]
    assert found.results[0].memory.is_item


async def test_search_shows_untrusted_talk_as_such_and_tool_results_on_demand(
    ingest: Ingest, service: MemoryService
) -> None:
    await ingest_talk(ingest, "The page says that the harbour opens at six.", role="tool")
    assert list(await search(service, "harbour")) == []
    (hit,) = await search(service, "harbour", kinds={"talk"})
    view = brief_hit(hit)
    assert (view["trust"], view["speaker"], view["kind"]) == ("low", "tool", "talk")


@pytest.mark.parametrize(
    ("query", "kinds", "is_found"),
    [
        ("when does the harbour open", HIT_KINDS, False),
        ("what does the email say about the harbour", HIT_KINDS, True),
        ("documents about the harbour", HIT_KINDS, True),
        ("when does the harbour open", {"passage"}, True),
    ],
)
async def test_search_finds_mail_only_if_documents_are_asked_for(
    ingest: Ingest, knowledge: Knowledge, service: MemoryService, query: str, kinds: frozenset[str], is_found: bool
) -> None:
    await ingest.resource(Document("The harbour opens at six in summer.", "Re: harbour", "email"))
    await runner_of(knowledge, service).run()
    assert bool(list(await search(service, query, kinds=kinds))) is is_found


async def test_search_of_a_group_finds_its_own_turns(ingest: Ingest, service: MemoryService) -> None:
    await ingest_talk(ingest, "I sold the canoe of Ann.", group="acme:ann")
    (kim,) = await ingest_talk(ingest, "I sold the canoe of Kim.", group="acme:kim")
    caller = Caller(group="acme:kim")
    found = await search(service, "sold the canoe", caller=caller)
    assert [hit.memory.id for hit in found] == [kim]
    assert [hit.memory.id for hit in await search(service, kim, caller=caller)] == [kim]
    assert list(await search(service, kim, caller=Caller(group="acme:ann"))) == []


async def test_search_finds_no_turn_of_a_forgotten_item(
    ingest: Ingest, knowledge: Knowledge, service: MemoryService, clock: FrozenClock
) -> None:
    (turn, *_) = await ingest_talk(ingest, *TALK)
    await runner_of(knowledge, service).run()
    item = next(hit.memory for hit in await search(service, "Bern") if hit.memory.is_item)
    await service.forget(item.id)
    assert [hit.memory.content for hit in await search(service, "moved to Bern") if "Bern" in hit.memory.content] == []
    assert list(await search(service, turn)) == []
    clock.advance(days=40)
    await service.admin.compact()
    assert [hit.memory.content for hit in await search(service, "moved to Bern") if "Bern" in hit.memory.content] == []


async def test_search_finds_no_turn_that_says_a_forgotten_note(
    ingest: Ingest, service: MemoryService, clock: FrozenClock
) -> None:
    await ingest_talk(ingest, "By the way, my address is 5 Lime Road, and I like tea.")
    note = (await service.store("My address is 5 Lime Road.")).memory
    assert len(await search(service, "what is my address")) == 2
    await service.forget(note.id)
    assert list(await search(service, "what is my address")) == []
    clock.advance(days=40)
    await service.admin.compact()
    assert list(await search(service, "what is my address")) == []


async def test_search_finds_no_item_that_says_a_forgotten_note(
    ingest: Ingest, knowledge: Knowledge, service: MemoryService
) -> None:
    said = "By the way, my address is 5 Lime Road in the old town of Bern, and I like tea with milk and much sugar."
    await ingest_talk(ingest, said, *TALK)
    await runner_of(knowledge, service).run()
    note = (await service.store("My address is 5 Lime Road.")).memory
    assert said in [hit.memory.content.removeprefix("Lea: ") for hit in await search(service, "my address")]
    await service.forget(note.id)
    assert [hit.memory.content for hit in await search(service, "my address") if "Lime" in hit.memory.content] == []
    assert [hit.memory.is_item for hit in await search(service, "allergic to walnuts")][:1] == [True]
    await service.past.restore(note.id)
    found = [hit for hit in await search(service, "my address") if "Lime" in hit.memory.content]
    assert [hit.origin.kind for hit in found] == ["note", "talk", "page"]


async def test_search_finds_the_page_behind_its_passages(
    ingest: Ingest, knowledge: Knowledge, service: MemoryService
) -> None:
    await ingest_talk(ingest, *TALK)
    await runner_of(knowledge, service, at_once=True).run()
    (topic,) = [topic for topic in await knowledge.topics.list_recent(10) if topic.body]
    (page,) = [hit for hit in await search(service, "allergic to walnuts", limit=20) if hit.origin.kind == "page"]
    assert page.origin == HitOrigin("page", topic.name)
    assert "I am allergic to walnuts and to pollen." in page.memory.content
    assert "[^" not in page.memory.content
    assert "Sources" not in page.memory.content
    assert [hit.origin.kind for hit in await search(service, "walnuts", kinds={"page"})] == ["page"]
    assert [hit.memory.id for hit in await search(service, topic.id)] == [topic.id]


async def test_overview_counts_what_the_agent_was_given(
    ingest: Ingest, knowledge: Knowledge, service: MemoryService
) -> None:
    await ingest_talk(ingest, *TALK)
    await ingest.resource(Document(RUNBOOK, "runbook.md"))
    await runner_of(knowledge, service, at_once=True).run()
    overview = (await search(service, None)).overview
    assert overview is not None
    assert {name: overview[name] for name in ("documents", "conversations", "pages")} == {
        "documents": 1,
        "conversations": 1,
        "pages": 1,
    }


async def test_search_without_knowledge_opens_no_file(service: MemoryService, root: Path) -> None:
    await service.store("The harbour opens at six.")
    assert len(await search(service, "harbour")) == 1
    assert not (root / "bob" / "knowledge.yaml").exists()
    assert not (root / "bob" / "episodes.yaml").exists()
