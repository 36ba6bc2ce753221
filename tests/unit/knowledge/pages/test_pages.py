"""Items become pages: filed, written as files, made anew when it is due, and without what was forgotten."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from agent_memory.knowledge import MemoryManager
from agent_memory.knowledge.intake.drafts import ReceivedTurn
from agent_memory.knowledge.pages import pages
from agent_memory.knowledge.pages.page import parse, render
from agent_memory.knowledge.pages.page_files import read_page_file
from agent_memory.knowledge.pages.pages import Pages, PageShortener, page_for
from agent_memory.knowledge.pipeline.background_work import ITEMS_ONLY, runner_of
from agent_memory.memories import FileStorage
from agent_memory.memory import MemoryService
from agent_memory.memory.features import attach_withdrawals
from agent_memory.models import Topic
from agent_memory.redaction import Redaction, SecretRedactor
from tests.support import read_files

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from agent_memory.knowledge.intake.ingest import Ingest
    from agent_memory.knowledge.pages.page import Page
    from agent_memory.knowledge.records import Knowledge
    from agent_memory.models import Memory
    from tests.support import FrozenClock

SAID = (
    "I moved to Bern with my two cats in spring.",
    "I sold the old canoe in Bergen last week.",
    "I work at the harbour office on Mondays.",
    "My sister Edda plays the cello in a quartet.",
    "I am allergic to walnuts and to pollen.",
    "I bought a red bicycle from a neighbour.",
)
WALNUTS = "walnuts"


@pytest.fixture
async def service(knowledge: Knowledge, root: Path, clock: FrozenClock) -> AsyncIterator[MemoryService]:
    settings = knowledge.settings
    opened = MemoryService(FileStorage("bob", root, settings=settings, clock=clock), settings, clock=clock)
    yield attach_withdrawals(opened)
    await opened.close()


@pytest.fixture
def folder(root: Path) -> Path:
    return root / "bob" / "topics"


async def talk_of(ingest: Ingest, *said: str, speaker: str = "Lea", key: str = "s-1") -> None:
    """Ingest two turns a conversation, which is too few for a page of its own."""
    for order, words in enumerate(said):
        talk = await ingest.conversation(f"{key} {order // 2}", title="Chat")
        await ingest.turn(ReceivedTurn(words, "person", speaker), conversation=talk.record.id, order=order)


async def item_with(service: MemoryService, words: str) -> Memory:
    return next(each for each in await service.searcher.list_all() if words in each.content)


def all_text(folder: Path) -> str:
    return "\n".join(path.read_text() for path in sorted(folder.iterdir()))


async def test_what_five_items_speak_of_gets_a_page_whose_footnotes_lead_to_the_very_words(
    ingest: Ingest, knowledge: Knowledge, service: MemoryService, folder: Path
) -> None:
    await talk_of(ingest, *SAID)
    ran = await runner_of(knowledge, service, config=ITEMS_ONLY).run()
    assert ran.done == {"items": 9, "pages": 1}
    assert sorted(path.name for path in folder.iterdir()) == ["index.md", "lea.md"]
    assert (
        "[Lea](lea.md) - What Lea said, with the questions it answers. (6 items)" in (folder / "index.md").read_text()
    )
    read = read_page_file((folder / "lea.md").read_text())
    assert not read.is_edited
    assert len(read.page.claims) == len(SAID)
    for note in read.page.notes:
        turn = await knowledge.episodes.get(note.source)
        assert turn is not None
        assert await knowledge.text_of(turn) == turn.content
        assert note.quote == ""
        assert any(turn.content[note.start : note.end] in claim.text for claim in read.page.claims)


async def test_doing_it_again_writes_nothing_and_few_new_items_wait(
    ingest: Ingest, knowledge: Knowledge, service: MemoryService, folder: Path
) -> None:
    await talk_of(ingest, *SAID)
    await runner_of(knowledge, service, config=ITEMS_ONLY).run()
    before, record = (folder / "lea.md").read_bytes(), await knowledge.topics.last_change()
    assert (await runner_of(knowledge, service, config=ITEMS_ONLY).run()).done == {"items": 0}
    await talk_of(ingest, *SAID, "I learned to swim in the lake of Thun.")
    await runner_of(knowledge, service, config=ITEMS_ONLY).run()
    assert (folder / "lea.md").read_bytes() == before
    assert await knowledge.topics.last_change() == record
    await runner_of(knowledge, service, at_once=True, config=ITEMS_ONLY).run()  # nothing else is due
    assert "lake of Thun" in (folder / "lea.md").read_text()
    await talk_of(ingest, "I grow tomatoes on the balcony every summer.", key="s-2")
    await runner_of(knowledge, service, at_once=True, config=ITEMS_ONLY).run()
    assert "tomatoes" in (folder / "lea.md").read_text()


async def test_a_page_is_made_anew_after_so_many_new_items(
    ingest: Ingest, knowledge: Knowledge, service: MemoryService, folder: Path
) -> None:
    await talk_of(ingest, *SAID)
    await runner_of(knowledge, service, config=ITEMS_ONLY).run()
    await talk_of(ingest, *[f"I carried box {number} to cellar {number + 40}." for number in range(10)], key="s-2")
    assert (await runner_of(knowledge, service, config=ITEMS_ONLY).run()).done["pages"] == 1
    assert "box 7" in (folder / "lea.md").read_text()


async def test_declared_topic_takes_no_item_from_a_person(
    ingest: Ingest, knowledge: Knowledge, service: MemoryService, folder: Path
) -> None:
    topic = Topic(agent_id="bob", name="boats", description="Boats, the canoe, the harbour and what sails there.")
    await knowledge.topics.store(topic)
    await talk_of(ingest, *SAID)
    await runner_of(knowledge, service, config=ITEMS_ONLY).run()
    boats = parse((folder / "boats.md").read_text().split("---\n", 2)[2])
    assert {claim.text for claim in boats.claims} == {f"Lea: {SAID[1]}", f"Lea: {SAID[2]}"}
    assert len(read_page_file((folder / "lea.md").read_text()).page.claims) == len(SAID)


async def test_a_run_that_was_stopped_goes_on_with_the_other_pages(
    ingest: Ingest, knowledge: Knowledge, service: MemoryService, folder: Path
) -> None:
    await talk_of(ingest, *SAID)
    await talk_of(ingest, *SAID, speaker="Ole", key="s-2")
    await runner_of(knowledge, service, config=ITEMS_ONLY).run(batches=3)  # resources, episodes, one page
    assert len(list(folder.glob("*.md"))) == 1
    assert (await runner_of(knowledge, service, config=ITEMS_ONLY).run()).done == {"items": 0, "pages": 1}
    assert {path.name for path in folder.glob("*.md")} == {"index.md", "lea.md", "ole.md"}
    assert len(await Pages(knowledge, service).list_shown()) == 2


async def test_what_is_forgotten_is_on_no_page_at_once_and_after_a_purge_in_no_file(
    ingest: Ingest, knowledge: Knowledge, service: MemoryService, folder: Path, root: Path
) -> None:
    await talk_of(ingest, *SAID)
    await runner_of(knowledge, service, config=ITEMS_ONLY).run()
    item = await item_with(service, WALNUTS)
    assert WALNUTS in all_text(folder)
    await service.forget(item.id)
    assert WALNUTS not in all_text(folder)
    assert item.id not in all_text(folder)
    assert "cello" in all_text(folder)
    (topic,) = await Pages(knowledge, service).list_shown()
    assert WALNUTS not in topic.body
    await knowledge.episodes.delete(item.links[0].id)
    await service.writer.compact(timedelta(0))
    await knowledge.compact(timedelta(0))
    await service.close()
    kept = [path for path, content in read_files(root / "bob") if WALNUTS.encode() in content]
    assert kept == []


async def test_what_was_forgotten_behind_our_back_goes_with_the_next_run(
    ingest: Ingest, knowledge: Knowledge, service: MemoryService, folder: Path, root: Path, clock: FrozenClock
) -> None:
    await talk_of(ingest, *SAID)
    await runner_of(knowledge, service, config=ITEMS_ONLY).run()
    other = FileStorage("bob", root, settings=knowledge.settings, clock=clock)
    await other.delete((await item_with(service, WALNUTS)).id)
    await other.close()
    assert WALNUTS in all_text(folder)
    assert (await runner_of(knowledge, service, config=ITEMS_ONLY).run()).done == {"items": 0, "pages": 1}
    assert WALNUTS not in all_text(folder)


async def test_a_reworded_item_stands_on_its_page_in_its_new_words(
    ingest: Ingest, knowledge: Knowledge, service: MemoryService, folder: Path
) -> None:
    await talk_of(ingest, *SAID)
    await runner_of(knowledge, service, config=ITEMS_ONLY).run()
    item = await item_with(service, WALNUTS)
    await service.update(item.id, {"content": "Lea: I am allergic to hazelnuts and to pollen."})
    assert "hazelnuts and to pollen. [^" in (folder / "lea.md").read_text()


async def test_page_of_stored_items_is_not_redacted_again(
    ingest: Ingest, knowledge: Knowledge, service: MemoryService, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked = list[str]()
    redact = SecretRedactor.redact

    def note(self: SecretRedactor, text: str) -> Redaction:
        checked.append(text)
        return redact(self, text)

    monkeypatch.setattr(SecretRedactor, "redact", note)
    await talk_of(ingest, *SAID)
    await runner_of(knowledge, service, config=ITEMS_ONLY).run()
    assert any(WALNUTS in text for text in checked)
    assert not any("# Lea" in text or "[^1]" in text for text in checked)


async def test_a_page_that_a_person_changed_is_proposed_beside_it_and_shown_as_they_left_it(
    ingest: Ingest, knowledge: Knowledge, service: MemoryService, folder: Path
) -> None:
    await talk_of(ingest, *SAID)
    await runner_of(knowledge, service, config=ITEMS_ONLY).run()
    page = folder / "lea.md"
    page.write_text(page.read_text().replace("## 2026-03\n", "## 2026-03\n\nAsk her about the boat.\n"))
    edited = page.read_text()
    await talk_of(ingest, "I learned to swim in the lake of Thun.", key="s-2")
    await runner_of(knowledge, service, at_once=True, config=ITEMS_ONLY).run()
    assert page.read_text() == edited
    proposed = folder / "lea.proposed.md"
    assert "lake of Thun" in proposed.read_text()
    assert "Ask her about the boat." in proposed.read_text()
    pages = Pages(knowledge, service)
    (topic,) = await pages.list_shown()
    assert "Ask her about the boat." in await pages.get_text(topic)
    assert "lake of Thun" not in await pages.get_text(topic)
    proposed.rename(page)  # the person takes it
    assert "lake of Thun" in await pages.get_text(topic)
    assert "Ask her about the boat." in await pages.get_text(topic)
    await talk_of(ingest, "I paint small birds on old plates.", key="s-3")
    await runner_of(knowledge, service, at_once=True, config=ITEMS_ONLY).run()
    assert "small birds" in page.read_text()
    assert "Ask her about the boat." in page.read_text()
    assert not proposed.exists()


async def test_forgotten_words_leave_a_changed_page_and_its_proposal_and_a_persons_lines_stay(
    ingest: Ingest, knowledge: Knowledge, service: MemoryService, folder: Path
) -> None:
    await talk_of(ingest, *SAID)
    await runner_of(knowledge, service, config=ITEMS_ONLY).run()
    page = folder / "lea.md"
    page.write_text(page.read_text().replace("## 2026-03\n", "## 2026-03\n\nAsk her about the boat.\n"))
    await talk_of(ingest, "I learned to swim in the lake of Thun.", key="s-2")
    await runner_of(knowledge, service, at_once=True, config=ITEMS_ONLY).run()
    await service.forget((await item_with(service, WALNUTS)).id)
    assert WALNUTS not in all_text(folder)
    assert "Ask her about the boat." in page.read_text()
    assert read_page_file(page.read_text()).is_edited
    assert "cello" in page.read_text()
    assert "lake of Thun" in (folder / "lea.proposed.md").read_text()
    (topic,) = await Pages(knowledge, service).list_shown()
    assert WALNUTS not in topic.body


async def test_a_secret_that_a_person_wrote_into_a_page_is_not_copied_into_its_proposal(
    ingest: Ingest, knowledge: Knowledge, service: MemoryService, folder: Path
) -> None:
    await talk_of(ingest, *SAID)
    await runner_of(knowledge, service, config=ITEMS_ONLY).run()
    page, secret = folder / "lea.md", "ghp" + "_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    page.write_text(page.read_text().replace("## 2026-03\n", f"## 2026-03\n\nHer token is {secret} for now.\n"))
    await talk_of(ingest, "I learned to swim in the lake of Thun.", key="s-2")
    await runner_of(knowledge, service, at_once=True, config=ITEMS_ONLY).run()
    proposed = (folder / "lea.proposed.md").read_text()
    assert secret not in proposed
    assert "Her token is" in proposed
    assert "lake of Thun" in proposed
    assert secret in page.read_text()


async def test_a_topic_of_which_nothing_is_left_goes_unless_somebody_declared_it(
    ingest: Ingest, knowledge: Knowledge, service: MemoryService, folder: Path
) -> None:
    await talk_of(ingest, *SAID)
    await runner_of(knowledge, service, config=ITEMS_ONLY).run()
    items = [each.id for each in await service.searcher.list_all() if each.is_item]
    assert await service.writer.deletion.forget_many(items) == len(SAID)
    assert await Pages(knowledge, service).list_shown() == []
    assert sorted(path.name for path in folder.iterdir()) == ["index.md"]


async def test_the_manager_shows_what_the_file_shows_and_deleting_a_resource_takes_its_lines(
    ingest: Ingest, knowledge: Knowledge, service: MemoryService, folder: Path
) -> None:
    await talk_of(ingest, *SAID)
    await runner_of(knowledge, service, config=ITEMS_ONLY).run()
    manager = MemoryManager(service=service)
    assert await manager.get_category_content("lea") in (folder / "lea.md").read_text()
    page = folder / "lea.md"
    page.write_text(page.read_text() + "\nMine.\n")
    assert "Mine." in await manager.get_category_content("lea")
    assert "Mine." in await manager.consolidate_category("lea", force=True)
    for resource in await manager.resource_layer.list_recent():
        await manager.delete_resource(resource.resource_id)
    assert "cello" not in all_text(folder)
    assert "Mine." in page.read_text()
    await manager.close()


async def test_a_page_for_some_is_made_of_theirs_alone_and_written_nowhere(
    ingest: Ingest, knowledge: Knowledge, service: MemoryService, folder: Path
) -> None:
    await talk_of(ingest, *SAID)
    await runner_of(knowledge, service, config=ITEMS_ONLY).run()
    pages, before = Pages(knowledge, service), all_text(folder)
    (topic,) = await pages.list_shown()
    shown = await page_for(knowledge, topic, (await pages.list_members(topic))[:2])
    assert (SAID[1] in shown, WALNUTS in shown) == (True, False)
    assert all_text(folder) == before


async def test_of_many_items_what_is_gone_is_noticed_before_all_are_filed_again(
    ingest: Ingest, knowledge: Knowledge, service: MemoryService, folder: Path, root: Path, clock: FrozenClock
) -> None:
    await talk_of(ingest, *SAID, *[f"I carried box {number} to cellar {number + 400}." for number in range(200)])
    await runner_of(knowledge, service, config=ITEMS_ONLY).run()
    other = FileStorage("bob", root, settings=knowledge.settings, clock=clock)
    await other.delete((await item_with(service, WALNUTS)).id)
    await other.close()
    await talk_of(ingest, "I grow tomatoes on the balcony every summer.", key="s-2")
    assert (await runner_of(knowledge, service, config=ITEMS_ONLY).run()).done == {"items": 2, "pages": 1}
    assert WALNUTS not in all_text(folder)


async def test_what_is_filed_is_found_within_its_topic_and_says_which_it_is(
    ingest: Ingest, knowledge: Knowledge, service: MemoryService
) -> None:
    topic = Topic(agent_id="bob", name="boats", description="Boats, the canoe, the harbour and what sails there.")
    await knowledge.topics.store(topic)
    await talk_of(ingest, *SAID, "I learned to swim in the lake of Thun.")
    await runner_of(knowledge, service, config=ITEMS_ONLY).run()
    manager = MemoryManager(service=service)
    found = await manager.retrieve("What did Lea sell last week?", "rag", k=1)
    assert [(item.content, item.category) for item in found.items] == [(f"Lea: {SAID[1]}", "boats")]
    within = await manager.retrieve("What did Lea sell last week?", "rag", k=5, category_filter="lea")
    assert f"Lea: {SAID[1]}" in {item.content for item in within.items}
    await manager.close()


async def test_a_proposal_for_a_page_of_many_parts_takes_the_place_of_all_of_them(
    ingest: Ingest, knowledge: Knowledge, service: MemoryService, folder: Path
) -> None:
    await talk_of(ingest, *[f"I carried box {number} to cellar {number + 400}." for number in range(40)])
    await runner_of(knowledge, service, config=ITEMS_ONLY).run()
    second = folder / "lea-2.md"
    second.write_text(second.read_text().replace("## 2026-03\n", "## 2026-03\n\nAsk her about the boat.\n"))
    await talk_of(ingest, "I learned to swim in the lake of Thun.", key="s-2")
    await runner_of(knowledge, service, at_once=True, config=ITEMS_ONLY).run()
    (folder / "lea.proposed.md").rename(folder / "lea.md")
    (topic,) = await Pages(knowledge, service).list_shown()
    assert (await Pages(knowledge, service).get_text(topic)).count("Ask her about the boat.") == 1
    await talk_of(ingest, "I paint small birds on old plates.", key="s-3")
    await runner_of(knowledge, service, at_once=True, config=ITEMS_ONLY).run()
    assert all_text(folder).count("Ask her about the boat.") == 1
    assert all_text(folder).count("- (2026-03-01) Lea: I carried box 7 ") == 1
    assert all_text(folder).count("- (2026-03-01) Lea: I paint small birds") == 1


async def test_what_is_forgotten_while_a_page_is_made_is_not_on_it(
    ingest: Ingest, knowledge: Knowledge, service: MemoryService, folder: Path, root: Path, clock: FrozenClock
) -> None:
    await talk_of(ingest, *SAID)
    await runner_of(knowledge, service, config=ITEMS_ONLY).run()
    pages = Pages(knowledge, service)
    (topic,) = await pages.list_shown()
    members = await pages.list_members(topic)
    other = FileStorage("bob", root, settings=knowledge.settings, clock=clock)
    await other.delete((await item_with(service, WALNUTS)).id)
    await other.close()
    made = await pages.make(topic, members)
    assert (WALNUTS in made.body, WALNUTS in all_text(folder)) == (False, False)
    assert len(made.topic.item_ids) == len(SAID) - 1


async def test_forgetting_writes_nothing_but_the_part_that_names_the_item(
    ingest: Ingest, knowledge: Knowledge, service: MemoryService, folder: Path
) -> None:
    said = [f"I carried the {number}th heavy box to the cellar of house {number + 40}." for number in range(80)]
    await talk_of(ingest, *said)
    await runner_of(knowledge, service, at_once=True, config=ITEMS_ONLY).run()
    item = await item_with(service, "house 71.")
    before = {path.name: path.read_bytes() for path in folder.glob("lea*.md")}
    (part,) = [name for name, content in before.items() if item.id.encode() in content]
    await service.forget(item.id)
    after = {path.name: path.read_bytes() for path in folder.glob("lea*.md")}
    assert len(before) > 2
    assert {name for name, content in after.items() if content != before.get(name)} == {part}
    assert not read_page_file(after[part].decode()).is_edited
    (topic,) = await Pages(knowledge, service).list_shown()
    assert item.id not in {*topic.item_ids, topic.body}
    assert "house 71." not in topic.body
    assert {claim.text for claim in parse(topic.body).claims} == {f"Lea: {each}" for each in said if "71." not in each}
    assert (await runner_of(knowledge, service, config=ITEMS_ONLY).run()).done == {
        "items": 0
    }  # nothing is left to be made


async def test_a_page_that_another_program_wrote_meanwhile_is_made_anew(
    ingest: Ingest, knowledge: Knowledge, service: MemoryService
) -> None:
    await talk_of(ingest, *SAID)
    await runner_of(knowledge, service, config=ITEMS_ONLY).run()
    item = await item_with(service, WALNUTS)
    (topic,) = await Pages(knowledge, service).list_shown()
    short = PageShortener(knowledge, [item.id], ())
    await short.begin()
    await knowledge.topics.update(topic.id, {"description": "Other words."})
    await service.storage.delete(item.id)
    assert await short.cut(topic) is None


async def test_no_page_is_rendered_in_the_thread_of_the_event_loop(
    ingest: Ingest, knowledge: Knowledge, service: MemoryService, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads = []

    def noted(page: Page) -> str:
        threads.append(threading.current_thread())
        return render(page)

    monkeypatch.setattr(pages, "render", noted)
    await talk_of(ingest, *SAID)
    await runner_of(knowledge, service, config=ITEMS_ONLY).run()
    own = Pages(knowledge, service)
    (topic,) = await own.list_shown()
    assert WALNUTS in await own.get_text(topic)
    assert WALNUTS in await page_for(knowledge, topic, await own.list_members(topic))
    assert len(threads) == 3
    assert threading.current_thread() not in threads
