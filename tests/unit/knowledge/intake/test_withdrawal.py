"""Taking back what was taken in goes on where another process died."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from agent_memory.care.archive import Archive
from agent_memory.errors import StorageError
from agent_memory.ingestion import runner_of
from agent_memory.knowledge import MemoryManager
from agent_memory.knowledge.intake.drafts import ReceivedTurn
from agent_memory.knowledge.intake.ingest import Ingest
from agent_memory.knowledge.intake.withdrawal import find_ingested, undo
from agent_memory.knowledge.pages.page import parse
from agent_memory.knowledge.pages.pages import Pages
from agent_memory.knowledge.passages.items import MOST_LINKS
from agent_memory.knowledge.records import Knowledge
from agent_memory.memory import NOBODY, open_service
from agent_memory.memory.features import attach_features, attach_withdrawals
from agent_memory.settings import ServiceSettings

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


async def test_a_page_says_nothing_of_items_whose_forgetting_was_cut_short(tmp_path: Path) -> None:
    settings = ServiceSettings(storage_root=str(tmp_path / "root"), embedder="none")
    service, knowledge = open_service("bob", settings), Knowledge("bob", settings)
    file = tmp_path / "talk.jsonl"
    file.write_text("\n".join(f'{{"speaker": "Ada", "text": "The shelf {at} holds tea in Lyon."}}' for at in range(8)))
    await Ingest(knowledge).file(file)
    await runner_of(knowledge, service, at_once=True).run()
    pages = Pages(knowledge, service)
    assert {topic.name for topic in await pages.list_shown()} >= {"ada", "talk"}
    items = [each.id for each in await service.searcher.list_all()]
    await service.writer.deletion.forget_many(items)  # as of a process that died before it told anybody
    [resource] = await find_ingested(knowledge, file.name)
    await undo(knowledge, service, [resource.id], NOBODY)
    assert [topic.name for topic in await pages.list_shown() if topic.item_ids] == []
    assert list(knowledge.folder.topics.glob("ada*")) == []
    assert await find_ingested(knowledge, file.name) == []
    await knowledge.close()
    await service.close()


async def test_no_entity_is_left_that_nothing_names_where_a_process_died(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = ServiceSettings(storage_root=str(tmp_path / "root"), embedder="none")
    service, knowledge = open_service("bob", settings), Knowledge("bob", settings)
    file = tmp_path / "talk.jsonl"
    file.write_text('{"speaker": "Ada", "text": "Robert Smith works at Acme Corp."}')
    await Ingest(knowledge).file(file)
    await runner_of(knowledge, service).run()
    assert await knowledge.entities.valid()
    [resource] = await find_ingested(knowledge, file.name)
    monkeypatch.setattr(knowledge.mentions, "forget_many", _full_disk)
    with pytest.raises(StorageError):
        await undo(knowledge, service, [resource.id], NOBODY)
    monkeypatch.undo()
    await undo(knowledge, service, [resource.id], NOBODY)
    assert (await knowledge.entities.valid(), await knowledge.mentions.valid()) == ([], [])
    await knowledge.close()
    await service.close()


async def test_what_somebody_else_takes_back_meanwhile_is_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = ServiceSettings(storage_root=str(tmp_path / "root"), embedder="none")
    service, knowledge = open_service("bob", settings), Knowledge("bob", settings)
    file = tmp_path / "talk.jsonl"
    file.write_text("\n".join(f'{{"speaker": "Ada", "text": "Shelf {at} holds tea."}}' for at in range(3)))
    await Ingest(knowledge).file(file)
    [resource] = await find_ingested(knowledge, file.name)
    first, *_ = [each.id for each in await knowledge.episodes.linked_to(resource.id)]
    forget_many = knowledge.episodes.forget_many

    async def after_another(ids: Sequence[str]) -> object:
        monkeypatch.undo()
        await forget_many([first])
        return await forget_many(ids)

    monkeypatch.setattr(knowledge.episodes, "forget_many", after_another)
    assert (await undo(knowledge, service, [resource.id], NOBODY)).episodes == 3
    assert await knowledge.episodes.valid() == []
    await knowledge.close()
    await service.close()


async def _full_disk(_: object) -> None:
    raise StorageError("no room", code="disk_full")


async def test_a_page_that_a_person_changed_keeps_no_words_of_items_that_are_gone_in_its_record(tmp_path: Path) -> None:
    settings = ServiceSettings(storage_root=str(tmp_path / "root"), embedder="none")
    service, knowledge = attach_withdrawals(open_service("bob", settings)), Knowledge("bob", settings)
    file = tmp_path / "talk.jsonl"
    file.write_text("\n".join(f'{{"speaker": "Ada", "text": "The shelf {at} holds tea in Lyon."}}' for at in range(8)))
    await Ingest(knowledge).file(file)
    await runner_of(knowledge, service, at_once=True).run()
    page = knowledge.folder.topics / "ada.md"
    page.write_text(page.read_text() + "\nA line by hand.\n")
    [resource] = await find_ingested(knowledge, file.name)
    await undo(knowledge, service, [resource.id], NOBODY)
    await runner_of(knowledge, service, at_once=True).run()
    assert "A line by hand." in page.read_text()
    left = {
        topic.name: (topic.item_ids, "holds tea" in topic.body)
        for topic in await Pages(knowledge, service).list_shown()
    }
    assert left["ada"] == ([], False)
    await knowledge.close()
    await service.close()


async def test_deleting_a_resource_takes_who_and_what_it_names(tmp_path: Path) -> None:
    settings = ServiceSettings(storage_root=str(tmp_path / "root"), embedder="none")
    service, knowledge = open_service("bob", settings), Knowledge("bob", settings)
    manager = MemoryManager(service=service)
    resource = await manager.store_resource("Robert Smith works at Acme Corp.", "document")
    await runner_of(knowledge, service).run()
    assert await knowledge.entities.valid()
    assert await manager.delete_resource(resource.resource_id)
    assert (await knowledge.entities.valid(), await knowledge.mentions.valid()) == ([], [])
    assert await knowledge.relations.valid() == []
    await manager.close()
    await knowledge.close()
    await service.close()


async def test_footnote_names_the_place_in_the_source_that_is_left(tmp_path: Path) -> None:
    manager = MemoryManager(tmp_path, settings=ServiceSettings(embedder="none"))
    said = "The boat is moored at pier four."
    first = await manager.store_resource(said, "document")
    second = await manager.store_resource(f"{said}\n\n# Diesel\n\nIt was paid in cash in May.", "document")
    for resource in (first, second):
        await manager.extract_and_store(resource.resource_id, category_hint="boats")
    await manager.delete_resource(first.resource_id)
    places = {
        claim.text: [(note.source, note.start, note.end) for note in claim.notes]
        for claim in parse(await manager.consolidate_category("boats")).claims
    }
    assert places[said] == [(second.resource_id, 0, len(said))]
    await manager.close()


async def test_what_more_sources_say_than_an_item_has_links_for_stays_when_the_first_are_taken_back(
    tmp_path: Path,
) -> None:
    settings = ServiceSettings(storage_root=str(tmp_path / "root"), embedder="none")
    service, knowledge = open_service("bob", settings), Knowledge("bob", settings)
    ingest, sources = Ingest(knowledge), list[str]()
    for some in (1, MOST_LINKS + 4, 2):  # one, then several at once, then when the first item is full
        for _ in range(some):
            text = f"The router stands upstairs in the study.\n\n{'=' * (len(sources) + 3)}"
            sources.append((await ingest.resource(text)).record.id)
        await runner_of(knowledge, service).run()
    items = [each for each in await service.searcher.list_all() if each.content.startswith("The router")]
    assert sorted(link.id for each in items for link in each.links) == sorted(sources)
    assert sorted(len(each.links) for each in items) == [7, MOST_LINKS]
    [first] = [each for each in items if len(each.links) == MOST_LINKS]
    await undo(knowledge, service, [link.id for link in first.links], NOBODY)
    [left] = [each for each in await service.searcher.list_all() if each.content.startswith("The router")]
    assert len(left.links) == len(sources) - MOST_LINKS
    await undo(knowledge, service, [link.id for link in left.links], NOBODY)
    assert await service.searcher.list_all() == []
    await knowledge.close()
    await service.close()


async def test_a_title_with_words_of_what_was_forgotten_goes_with_them(tmp_path: Path) -> None:
    settings = ServiceSettings(storage_root=str(tmp_path / "root"), embedder="none")
    service, knowledge = attach_withdrawals(open_service("bob", settings)), Knowledge("bob", settings)
    begun = datetime(2026, 1, 2, 9, 30, tzinfo=UTC)
    ingest, talks = Ingest(knowledge), list[str]()
    for key, title in (("s-1", "My walnut allergy"), ("s-2", "Moving to Lyon")):
        talks.append((await ingest.conversation(key, title=title, said_at=begun)).record.id)
        for order in range(6):
            said = f"Shelf {key}{order} in Lyon holds {'walnut oil' if not order else 'green tea'}."
            await ingest.turn(ReceivedTurn(said, speaker="Ada"), conversation=talks[-1], order=order)
    await runner_of(knowledge, service, at_once=True).run()
    walnuts = next(each for each in await service.searcher.list_all() if "s-10" in each.content)
    await service.forget(walnuts.id)
    titles = [(await knowledge.resources.valid_among(talks))[one].title for one in talks]
    assert titles == ["2026-01-02 09:30", "Moving to Lyon"]
    page = (knowledge.folder.topics / "ada.md").read_text()
    assert ("allergy" in page, "conversation 2026-01-02 09:30" in page, "Moving to Lyon" in page) == (False, True, True)
    await knowledge.close()
    await service.close()


async def test_archived_passage_leaves_its_page_and_goes_with_its_document(tmp_path: Path) -> None:
    settings = ServiceSettings(storage_root=str(tmp_path / "root"), embedder="none")
    service, knowledge = attach_features(open_service("bob", settings)), Knowledge("bob", settings)
    file = tmp_path / "harbor.md"
    file.write_text("# Crane\n\nThe crane is red and was built in Lyon.\n\n# Pump\n\nThe pump of the harbor is blue.\n")
    await Ingest(knowledge).file(file)
    await runner_of(knowledge, service, at_once=True).run()
    crane, archive = (
        next(item for item in await service.searcher.list_all() if "crane" in item.content),
        Archive(service),
    )
    assert any("crane" in page.read_text() for page in knowledge.folder.topics.glob("*.md"))
    await archive.add([crane.id])
    assert not any("crane" in page.read_text() for page in knowledge.folder.topics.glob("*.md"))
    [resource] = await find_ingested(knowledge, file.name)
    await undo(knowledge, service, [resource.id], NOBODY)
    assert await archive.everything() == []
    assert await service.searcher.list_all() == []
    for opened in (archive, knowledge, service):
        await opened.close()
