"""Documents, conversations and people have pages; words in a text begin none."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from agent_memory.knowledge.intake.drafts import ReceivedDocument, ReceivedTurn
from agent_memory.knowledge.pages.assignment import count_passages
from agent_memory.knowledge.pages.page import parse
from agent_memory.knowledge.pages.pages import Pages
from agent_memory.knowledge.pipeline.background_work import ITEMS_ONLY, runner_of
from agent_memory.memories import FileStorage
from agent_memory.memory import MemoryService
from agent_memory.memory.features import attach_withdrawals
from agent_memory.models import DIGEST
from agent_memory.models.memory import FROM, PASSAGE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from agent_memory.knowledge.intake.ingest import Ingest
    from agent_memory.knowledge.records import Knowledge
    from agent_memory.models import Topic
    from tests.support import FrozenClock

WRITTEN = datetime(2026, 1, 2, tzinfo=UTC)
GUIDE = """# Client guide

Read this first.

## Adding options

Allowed:

- option a
  - with a value

## Adding timeouts

| code | tries |
|---|---|
| 429 | 3 |
"""
MEETING = (
    ("Maria", "Who owns the migration to Postgres 16?"),
    ("Tobias", "I do. We postpone it to April because the vendor is late."),
    ("Maria", "The budget is 40,000 euros until June."),
)


@pytest.fixture
async def service(knowledge: Knowledge, root: Path, clock: FrozenClock) -> AsyncIterator[MemoryService]:
    settings = knowledge.settings
    opened = MemoryService(FileStorage("bob", root, settings=settings, clock=clock), settings, clock=clock)
    yield attach_withdrawals(opened)
    await opened.close()


async def make_topics(knowledge: Knowledge, service: MemoryService) -> dict[str, Topic]:
    await runner_of(knowledge, service, at_once=True, config=ITEMS_ONLY).run()
    return {topic.name: topic for topic in await Pages(knowledge, service).list_shown()}


async def ingest_talk(ingest: Ingest, turns: tuple[tuple[str, str], ...], title: str = "Weekly sync") -> None:
    talk = await ingest.conversation(title, title=title, said_at=WRITTEN)
    for order, (speaker, words) in enumerate(turns):
        turn = ReceivedTurn(words, "person", speaker, said_at=WRITTEN)
        await ingest.turn(turn, conversation=talk.record.id, order=order)


async def test_document_page_has_its_outline(ingest: Ingest, knowledge: Knowledge, service: MemoryService) -> None:
    await ingest.resource(ReceivedDocument(GUIDE, "client.md", said_at=WRITTEN))
    topics = await make_topics(knowledge, service)
    assert topics.keys() == {"client"}
    page = parse(topics["client"].body)
    assert (page.title, page.about) == ("Client guide", "Document of 2026-01-02: Adding options, Adding timeouts.")
    assert [section.title for section in page.sections] == ["", "Adding options", "Adding timeouts"]
    assert [claim.text for claim in page.claims] == [
        "Read this first.",
        "Allowed:\n- option a\n  - with a value",
        "| code | tries |\n|---|---|\n| 429 | 3 |",
    ]
    assert "- Allowed:\\\n  \\- option a\\\n    \\- with a value [^2]" in topics["client"].body


async def test_statement_is_below_its_passage(ingest: Ingest, knowledge: Knowledge, service: MemoryService) -> None:
    resource = (await ingest.resource(ReceivedDocument(GUIDE, "client.md", said_at=WRITTEN))).record
    await make_topics(knowledge, service)
    passage = next(item for item in await service.searcher.list_all() if "Read this first" in item.content)
    values = {
        "content": "The guide is to be read first.",
        "category": "decision",
        "source": {"kind": "extraction", "detail": DIGEST},
        "links": [{"rel": FROM, "id": resource.id}],
        "metadata": {"at": [16, 32], PASSAGE: passage.id},
    }
    await service.store(values)
    topics = await make_topics(knowledge, service)
    claims = parse(topics["client"].body).claims
    assert [claim.text for claim in claims][:2] == ["Read this first.", "The guide is to be read first."]
    assert [note.quote for claim in claims[:2] for note in claim.notes] == ["", "Read this first."]


async def test_meeting_of_three_turns_has_a_page(ingest: Ingest, knowledge: Knowledge, service: MemoryService) -> None:
    await ingest_talk(ingest, MEETING)
    topics = await make_topics(knowledge, service)
    assert topics.keys() == {"weekly_sync"}
    page = parse(topics["weekly_sync"].body)
    assert page.about == "Conversation of 2026-01-02 with Maria and Tobias."
    assert [section.title for section in page.sections] == ["Exchanges"]
    assert [claim.text for claim in page.claims] == [
        f"Maria: {MEETING[0][1]}\nTobias: {MEETING[1][1]}",
        f"Maria: {MEETING[2][1]}",
    ]
    assert {claim.said for claim in page.claims} == {WRITTEN.date()}


async def test_talk_of_two_turns_has_no_page(ingest: Ingest, knowledge: Knowledge, service: MemoryService) -> None:
    await ingest_talk(ingest, MEETING[1:])
    assert await make_topics(knowledge, service) == {}


async def test_new_version_keeps_the_page(
    ingest: Ingest, knowledge: Knowledge, service: MemoryService, tmp_path: Path
) -> None:
    file = tmp_path / "client.md"
    file.write_text(GUIDE)
    await ingest.file(file)
    before = await make_topics(knowledge, service)
    file.write_text(GUIDE.replace("Read this first.", "Read this at last."))
    await ingest.file(file)
    after = await make_topics(knowledge, service)
    assert [topic.id for topic in after.values()] == [topic.id for topic in before.values()]
    assert "Read this at last." in after["client"].body
    assert "Read this first." not in after["client"].body


async def test_forgotten_section_leaves_the_description(
    ingest: Ingest, knowledge: Knowledge, service: MemoryService
) -> None:
    await ingest.resource(ReceivedDocument(GUIDE, "client.md", said_at=WRITTEN))
    await make_topics(knowledge, service)
    passage = next(item for item in await service.searcher.list_all() if "429" in item.content)
    await service.forget(passage.id)
    (topic,) = await Pages(knowledge, service).list_shown()
    assert "timeouts" not in f"{topic.description}{topic.body}"


async def test_names_taken_or_foreign_are_made_free(
    ingest: Ingest, knowledge: Knowledge, service: MemoryService
) -> None:
    for title in ("notes.md", "Notes", "港.md", "2026-01-02.md", "shed_100.md"):
        await ingest.resource(ReceivedDocument(f"The text of {title} is about boats.", title))
    names = (await make_topics(knowledge, service)).keys()
    assert names == {"notes", "notes_2", "document", "document_2", "document_2026_01_02"}
    assert (await make_topics(knowledge, service)).keys() == names


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("CLIENT", ["client"]),
        ("Client Guide", ["client"]),
        ("guide", []),
        ("", []),
        ("docs/Client.md", ["client"]),
        ("Retro 2026-03-02", ["retro_2026_03_02"]),
        ("chat.txt", ["chat"]),
        ("CHAT", ["chat"]),
        ("plan.md", ["plan", "plan_2"]),
    ],
)
async def test_page_is_found_by_name_title_or_file(
    ingest: Ingest, knowledge: Knowledge, service: MemoryService, tmp_path: Path, name: str, found: list[str]
) -> None:
    talk = "\n".join(f"{speaker}: {words}" for speaker, words in MEETING)
    texts = {"client.md": GUIDE, "chat.txt": talk, "Retro 2026-03-02.md": f"# Retro\n\n{talk}"}
    texts |= {"a/plan.md": "We sail in May.", "b/plan.md": "We row in June."}
    for file, text in texts.items():
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text(text)
        await ingest.file(tmp_path / file)
    await make_topics(knowledge, service)
    pages = Pages(knowledge, service)
    assert [topic.name for topic in await pages.find(name)] == found


async def test_long_description_ends_between_words(
    ingest: Ingest, knowledge: Knowledge, service: MemoryService
) -> None:
    headings = "\n\n".join(f"## Chapter {number}\n\nWe sail." for number in range(100, 200))
    await ingest.resource(ReceivedDocument(f"# Book\n\n{headings}", "book.md", said_at=WRITTEN))
    description = (await make_topics(knowledge, service))["book"].description
    assert len(description) <= 500
    assert description.endswith(" …")
    last = description.removesuffix(" …").split()[-1]
    assert last == "Chapter" or last in headings.split()


async def test_pages_of_equal_title_name_their_files(
    ingest: Ingest, knowledge: Knowledge, service: MemoryService, tmp_path: Path
) -> None:
    for file in ("chat.text", "chat.txt"):
        (tmp_path / file).write_text("\n".join(f"{speaker}: {words} ({file})" for speaker, words in MEETING * 2))
        await ingest.file(tmp_path / file)
    topics = await make_topics(knowledge, service)
    pages = [parse(await Pages(knowledge, service).get_text(topics[name])) for name in ("chat", "chat_2")]
    assert [page.title for page in pages] == ["chat", "chat"]
    assert {page.about.partition(" in ")[2] for page in pages} == {
        "chat.text with Maria and Tobias.",
        "chat.txt with Maria and Tobias.",
    }


async def test_mentions_are_passages_with_all_words_of_a_name(
    ingest: Ingest, knowledge: Knowledge, service: MemoryService
) -> None:
    await ingest.resource("We run on Kubernetes.\n\n# Old\n\nThe kubernetes-cluster is blue.\n\n# Else\n\nA kubernet.")
    await runner_of(knowledge, service, config=ITEMS_ONLY).run()
    assert await count_passages(service, "Kubernetes") == 2
    assert await count_passages(service, "kubernetes_cluster") == 1
    assert await count_passages(service, "?!") == 0
