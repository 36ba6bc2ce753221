"""A search over all kinds finds passages, turns and pages with their origin, and nothing that was forgotten."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from agent_memory.knowledge.digest.passage_digest import PassageDigest, QuotedStatement
from agent_memory.knowledge.intake.drafts import ReceivedDocument, ReceivedTurn
from agent_memory.knowledge.passages.replaced_items import hide_missing
from agent_memory.knowledge.pipeline.background_work import ITEMS_ONLY, runner_of
from agent_memory.knowledge.search_source import add_knowledge
from agent_memory.memories import FileStorage
from agent_memory.memory import NOBODY, Caller, MemoryService
from agent_memory.memory.features import attach_withdrawals
from agent_memory.memory.views import view_brief_hit
from agent_memory.models import HIT_KINDS, HitOrigin

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from agent_memory.knowledge.intake.ingest import Ingest
    from agent_memory.knowledge.records import Knowledge
    from agent_memory.memory import Found
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
    yield add_knowledge(attach_withdrawals(opened))
    await opened.close()


async def search(service: MemoryService, query: str | None, **options: object) -> Found:
    return await service.search(query, **{"kinds": HIT_KINDS, **options})  # type: ignore[arg-type]


async def ingest_talk(ingest: Ingest, *texts: str, role: str = "person", group: str = "") -> list[str]:
    talk = await ingest.conversation(f"s-{group}", title="Chat of Monday", group=group)
    turns = [ReceivedTurn(text, role, "Lea" if role == "person" else "", said_at=SAID) for text in texts]
    stored, _ = await ingest.turns(turns, conversation=talk.record.id, group=group)
    return [turn.record.id for turn in stored]


async def test_search_statement_names_its_document_and_heading(
    service: MemoryService, ingest: Ingest, knowledge: Knowledge
) -> None:
    await ingest.resource(ReceivedDocument("# Policy\n\n## Forbidden\n\nPush to main.\n", "policy.md"))
    await runner_of(knowledge, service, config=ITEMS_ONLY).run()
    digest = PassageDigest(knowledge, service)
    (passage,) = (await digest.hand_out("", NOBODY)).passages
    await digest.take_back([QuotedStatement(passage.id, "Push to main.", "Push to main.")], [], NOBODY)
    origins = {hit.memory.content: hit.origin for hit in (await search(service, "push main")).results}
    assert origins["Push to main."] == HitOrigin("passage", "policy.md \u203a Policy \u203a Forbidden")


async def test_search_finds_passages_ingested_while_open(
    ingest: Ingest, knowledge: Knowledge, service: MemoryService
) -> None:
    assert (await search(service, "who is on call in odd weeks")).match == "none"
    await ingest.resource(ReceivedDocument(RUNBOOK, "runbook.md", said_at=SAID))
    await runner_of(knowledge, service, config=ITEMS_ONLY).run()
    found = await search(service, "who is on call in odd weeks")
    (hit,) = found
    assert (found.match, hit.origin) == ("strong", HitOrigin("passage", "runbook.md"))
    assert view_brief_hit(hit) == {
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
    await runner_of(knowledge, service, config=ITEMS_ONLY).run()
    found = await search(service, "who moved to Bern with cats")
    assert [hit.origin.kind for hit in found if "Bern" in hit.memory.content] == ["talk"]
    assert found.results[0].memory.is_item


async def test_search_shows_untrusted_talk_as_such_and_tool_results_on_demand(
    ingest: Ingest, service: MemoryService
) -> None:
    await ingest_talk(ingest, "The page says that the harbour opens at six.", role="tool")
    assert list(await search(service, "harbour")) == []
    (hit,) = await search(service, "harbour", kinds={"talk"})
    view = view_brief_hit(hit)
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
    await ingest.resource(ReceivedDocument("The harbour opens at six in summer.", "Re: harbour", "email"))
    await runner_of(knowledge, service, config=ITEMS_ONLY).run()
    assert bool(list(await search(service, query, kinds=kinds))) is is_found


@pytest.mark.parametrize(("resource_type", "trust"), [("ticket", "low"), ("document", None)])
async def test_search_shows_stored_text_of_others_with_low_trust(
    ingest: Ingest, knowledge: Knowledge, service: MemoryService, resource_type: str, trust: str | None
) -> None:
    stored = await ingest.resource(ReceivedDocument("The harbour opens at six in summer.", "Harbour"))
    changes = {"resource_type": resource_type}  # as earlier versions stored it, with medium trust
    await knowledge.resources.update(stored.record.id, changes)
    await runner_of(knowledge, service, config=ITEMS_ONLY).run()
    for query in ("when does the harbour open", stored.record.id):
        (hit,) = await search(service, query)
        assert view_brief_hit(hit).get("trust") == trust


async def test_passage_of_a_replaced_version_by_id_is_marked(
    ingest: Ingest, knowledge: Knowledge, service: MemoryService, tmp_path: Path
) -> None:
    file = tmp_path / "harbour.md"
    versions = []
    for time in ("six", "nine"):
        file.write_text(f"The harbour opens at {time} in summer.")
        versions += (await ingest.file(file)).resources
        await runner_of(knowledge, service, config=ITEMS_ONLY).run()
        if time == "six":
            (old,) = await search(service, "harbour")
    (hit,) = await search(service, old.memory.id)
    marks = {"kind": "passage", "source": "harbour.md", "superseded_by": versions[1], "status": "expired"}
    assert view_brief_hit(hit) | marks == view_brief_hit(hit)
    (hit,) = await search(service, versions[0])
    assert view_brief_hit(hit)["superseded_by"] == versions[1]
    assert "superseded_by" not in view_brief_hit(next(iter(await search(service, versions[1]))))


async def test_withdrawn_document_by_id_is_marked(
    ingest: Ingest, knowledge: Knowledge, service: MemoryService, clock: FrozenClock
) -> None:
    clock.now = datetime.now(UTC)  # pages are rebuilt by the real clock, whose grace time is to include the withdrawal
    document = (await ingest.resource(ReceivedDocument(RUNBOOK, "runbook.md"))).record
    await runner_of(knowledge, service, config=ITEMS_ONLY).run()
    (passage,) = [hit for hit in await search(service, "on call") if hit.memory.is_item]
    await hide_missing(knowledge, service, [document], Caller())
    for record_id in (passage.memory.id, document.id):
        (hit,) = await search(service, record_id)
        assert (view_brief_hit(hit)["status"], view_brief_hit(hit).get("superseded_by")) == ("expired", None)


async def test_expired_note_by_id_is_marked(service: MemoryService, clock: FrozenClock) -> None:
    note = (await service.store("The harbour opens at six.")).memory
    await service.update(note.id, {"expires_at": clock() + timedelta(days=1)})
    assert "status" not in view_brief_hit(next(iter(await search(service, note.id))))
    clock.advance(days=2)
    assert view_brief_hit(next(iter(await search(service, note.id))))["status"] == "expired"


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
    await runner_of(knowledge, service, config=ITEMS_ONLY).run()
    item = next(hit.memory for hit in await search(service, "Bern") if hit.memory.is_item)
    await service.forget(item.id)
    assert [hit.memory.content for hit in await search(service, "moved to Bern") if "Bern" in hit.memory.content] == []
    assert list(await search(service, turn)) == []
    clock.advance(days=40)
    await service.writer.compact()
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
    await service.writer.compact()
    assert list(await search(service, "what is my address")) == []


VAULT = "# Vault\n\nThe code word is zanzibar tulip.\n\n# Lunch\n\nLunch is at noon.\n"


async def read(service: MemoryService, record_id: str) -> str:
    """Return the text that a search for an ID shows."""
    return "\n".join(hit.memory.content for hit in await search(service, record_id))


async def test_document_by_id_has_no_forgotten_passage(
    ingest: Ingest, knowledge: Knowledge, service: MemoryService, clock: FrozenClock
) -> None:
    document = (await ingest.resource(ReceivedDocument(VAULT, "vault.md"))).record.id
    assert await read(service, document) == VAULT.strip()
    await runner_of(knowledge, service, config=ITEMS_ONLY).run()
    await service.forget(next(iter(await search(service, "zanzibar"))).memory.id)
    assert await read(service, document) == "Lunch\n\nLunch is at noon."
    again = (await ingest.resource(ReceivedDocument(f"{VAULT}\n# Tea\n\nTea is at four.\n", "vault.md"))).record.id
    assert "zanzibar" not in await read(service, again), "it is not read yet"
    await runner_of(knowledge, service, config=ITEMS_ONLY).run()
    assert "zanzibar" not in await read(service, again)
    assert "Tea is at four." in await read(service, again)
    clock.advance(days=40)
    await service.writer.compact()
    assert "zanzibar" not in await read(service, document) + await read(service, again)


async def test_document_by_id_shows_its_title_when_all_is_forgotten(
    ingest: Ingest, knowledge: Knowledge, service: MemoryService, clock: FrozenClock
) -> None:
    document = (await ingest.resource(ReceivedDocument(VAULT, "vault.md"))).record.id
    await runner_of(knowledge, service, config=ITEMS_ONLY).run()
    for hit in await search(service, "code word zanzibar lunch noon"):
        await service.forget(hit.memory.id)
    assert await read(service, document) == "vault.md"
    clock.advance(days=40)
    await service.writer.compact()
    assert await read(service, document) == "vault.md"


async def test_document_by_id_has_what_a_passage_says_now(
    ingest: Ingest, knowledge: Knowledge, service: MemoryService
) -> None:
    document = (await ingest.resource(ReceivedDocument(VAULT, "vault.md"))).record.id
    await runner_of(knowledge, service, config=ITEMS_ONLY).run()
    await service.update(next(iter(await search(service, "zanzibar"))).memory.id, {"content": "There is a code word."})
    assert await read(service, document) == "There is a code word.\n\nLunch\n\nLunch is at noon."


async def test_search_finds_no_item_that_says_a_forgotten_note(
    ingest: Ingest, knowledge: Knowledge, service: MemoryService
) -> None:
    said = "By the way, my address is 5 Lime Road in the old town of Bern, and I like tea with milk and much sugar."
    await ingest_talk(ingest, said, *TALK)
    await runner_of(knowledge, service, config=ITEMS_ONLY).run()
    note = (await service.store("My address is 5 Lime Road.")).memory
    assert said in [hit.memory.content.removeprefix("Lea: ") for hit in await search(service, "my address")]
    await service.forget(note.id)
    assert [hit.memory.content for hit in await search(service, "my address") if "Lime" in hit.memory.content] == []
    assert [hit.memory.is_item for hit in await search(service, "allergic to walnuts")][:1] == [True]
    await service.history.restore(note.id)
    found = [hit for hit in await search(service, "my address") if "Lime" in hit.memory.content]
    assert [hit.origin.kind for hit in found] == ["note", "talk"]


async def test_search_finds_pages_of_people_on_demand(
    ingest: Ingest, knowledge: Knowledge, service: MemoryService
) -> None:
    await ingest_talk(ingest, *TALK)
    await runner_of(knowledge, service, at_once=True, config=ITEMS_ONLY).run()
    (topic,) = [topic for topic in await knowledge.topics.list_recent(10) if topic.name == "lea"]
    assert "page" not in {hit.origin.kind for hit in await search(service, "allergic to walnuts", limit=20)}
    (page, _) = await search(service, "What Lea said: allergic to walnuts", kinds={"page"})
    assert page.origin == HitOrigin("page", topic.name)
    assert "I am allergic to walnuts and to pollen." in page.memory.content
    assert "[^" not in page.memory.content
    assert "Sources" not in page.memory.content
    assert {hit.origin.kind for hit in await search(service, "walnuts", kinds={"page"})} == {"page"}
    assert [hit.memory.id for hit in await search(service, topic.id)] == [topic.id]


async def test_overview_counts_what_the_agent_was_given(
    ingest: Ingest, knowledge: Knowledge, service: MemoryService
) -> None:
    await ingest_talk(ingest, *TALK)
    await ingest.resource(ReceivedDocument(RUNBOOK, "runbook.md"))
    await runner_of(knowledge, service, at_once=True, config=ITEMS_ONLY).run()
    overview = (await search(service, None)).overview
    assert overview is not None
    assert {name: overview[name] for name in ("documents", "conversations", "pages")} == {
        "documents": 1,
        "conversations": 1,
        "pages": 3,
    }


async def test_search_without_knowledge_opens_no_file(service: MemoryService, root: Path) -> None:
    await service.store("The harbour opens at six.")
    assert len(await search(service, "harbour")) == 1
    assert not (root / "bob" / "knowledge.yaml").exists()
    assert not (root / "bob" / "episodes.yaml").exists()
