"""Items are drawn from what came in, once; what a person made of them stays."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from agent_memory.knowledge import drawing
from agent_memory.knowledge.drafting import Document, Turn
from agent_memory.knowledge.items import Items, item_id
from agent_memory.knowledge.working import runner_of
from agent_memory.memories import FileStorage
from agent_memory.service import Caller, MemoryService
from agent_memory.tasks.stage import Backlog

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from agent_memory.knowledge.ingest import Ingest
    from agent_memory.knowledge.records import Knowledge
    from agent_memory.models import Memory
    from tests.support import FrozenClock

SAID = datetime(2025, 11, 3, tzinfo=UTC)
ROUTER = "The router stands upstairs in the study."
CABLE = "The cable to the garden was cut in May."


@pytest.fixture
async def service(knowledge: Knowledge, root: Path, clock: FrozenClock) -> AsyncIterator[MemoryService]:
    opened = MemoryService(FileStorage("bob", root, settings=knowledge.settings, clock=clock), clock=clock)
    yield opened
    await opened.close()


async def items_of(service: MemoryService) -> list[Memory]:
    return [each for each in await service.admin.everything() if each.is_item]


async def test_what_was_said_and_written_becomes_items_that_lead_back_to_the_very_words(
    ingest: Ingest, knowledge: Knowledge, service: MemoryService
) -> None:
    talk = await ingest.conversation("s-1", title="Network")
    turn = Turn(f"Hi! {ROUTER} Where is yours?", speaker="Ada", said_at=SAID)
    said = await ingest.turn(turn, conversation=talk.record.id, order=1, is_live=True, group="acme:s-1")
    page = await ingest.resource(Document(f"# Garden\n\n{CABLE}\n"))
    await ingest.turn(Turn("A page that says much about many things.", "tool"), conversation=talk.record.id, order=2)
    ran = await runner_of(knowledge, service, Caller("s-1")).run()
    assert (ran.done, ran.failed) == ({"items": 4}, 0)
    items = {item.content: item for item in await items_of(service)}
    assert items.keys() == {f"Ada: {ROUTER}", CABLE}
    ada, cable = items[f"Ada: {ROUTER}"], items[CABLE]
    for item, source in ((ada, said.record), (cable, page.record)):
        begin, end = item.metadata["at"]  # type: ignore[misc]
        assert source.content[begin:end] == item.content.removeprefix("Ada: ")  # type: ignore[misc]
        assert [(link.rel, link.id) for link in item.links] == [("from", source.id)]
    assert (ada.trust, ada.observed_at, ada.group, ada.created_by_session) == (
        "high",
        SAID,
        "acme:s-1",
        "s-1",
    )
    assert (cable.trust, cable.group) == ("medium", "")
    assert await runner_of(knowledge, service).backlog() == [Backlog("items", "resource"), Backlog("items", "episode")]


@pytest.mark.parametrize("speaker", ["Ada", ""])
async def test_orders_stay_where_no_speaker_is_named_and_courtesies_go_where_one_is(
    ingest: Ingest, knowledge: Knowledge, service: MemoryService, speaker: str
) -> None:
    talk = await ingest.conversation("s-1")
    words = "You should always push to your own branch. I sold the old canoe in Bergen."
    await ingest.turn(Turn(words, speaker=speaker), conversation=talk.record.id, order=1)
    await runner_of(knowledge, service, Caller("s-1")).run()
    said = sorted(item.content for item in await items_of(service))
    kept = (
        ["Ada: I sold the old canoe in Bergen."] if speaker else sorted(f"{each}." for each in words[:-1].split(". "))
    )
    assert said == kept


async def test_doing_it_again_makes_nothing_twice(ingest: Ingest, knowledge: Knowledge, service: MemoryService) -> None:
    page = await ingest.resource(f"{ROUTER} {CABLE}")
    await runner_of(knowledge, service).run()
    before = await items_of(service)
    await knowledge.resources.update(page.record.id, {"title": "Network"})
    assert (await runner_of(knowledge, service).run()).done == {"items": 1}
    assert await items_of(service) == before
    assert len(before) == 2


async def test_what_a_person_edited_or_forgot_is_not_made_again(
    ingest: Ingest, knowledge: Knowledge, service: MemoryService, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = await ingest.resource(f"{ROUTER} {CABLE}")
    await runner_of(knowledge, service).run()
    router, cable = item_id(page.record.id, ROUTER), item_id(page.record.id, CABLE)
    await service.update(router, {"content": "The router stands in the cellar."})
    await service.forget(cable)
    await knowledge.resources.update(page.record.id, {"title": "Network"})
    await runner_of(knowledge, service).run()
    await service.admin.compact(timedelta(0))  # nothing else knows now that it was there
    monkeypatch.setattr(Items, "version", 2)
    await runner_of(knowledge, service).run()
    assert [(each.id, each.content) for each in await items_of(service)] == [
        (router, "The router stands in the cellar.")
    ]


async def test_a_new_version_of_the_rules_replaces_what_its_predecessor_made_of_the_same_words(
    ingest: Ingest, knowledge: Knowledge, service: MemoryService, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = await ingest.resource(f"{ROUTER} {CABLE}")
    begin = len(ROUTER) + 1
    older = [drawing.Statement("Router: upstairs.", 0, 38), drawing.Statement("Cable: cut.", begin, begin + 30)]
    with monkeypatch.context() as patched:
        patched.setattr(drawing, "statements_of", lambda *_, **__: older)
        await runner_of(knowledge, service).run()
    router, cable = (item_id(page.record.id, each.text) for each in older)
    await service.update(cable, {"content": "A person wrote this instead."})
    monkeypatch.setattr(Items, "version", 2)
    await runner_of(knowledge, service).run()
    kept = {each.content: each.supersedes for each in await items_of(service)}
    assert kept == {"Router: upstairs.": None, "A person wrote this instead.": None, ROUTER: router}


async def test_a_long_text_that_is_gone_fails_alone_and_says_why(
    ingest: Ingest, knowledge: Knowledge, service: MemoryService
) -> None:
    long = await ingest.resource(f"{ROUTER} " * 400)
    await ingest.resource(CABLE)
    (knowledge.folder.blobs / long.record.blob).unlink()
    ran = await runner_of(knowledge, service).run()
    assert (ran.done, ran.failed) == ({"items": 1}, 1)
    assert (await runner_of(knowledge, service).backlog())[0].codes == ("blob_missing",)
    assert [each.content for each in await items_of(service)] == [CABLE]


async def test_long_texts_that_nobody_names_go_after_the_work_when_they_are_old(
    ingest: Ingest, knowledge: Knowledge, service: MemoryService
) -> None:
    with knowledge.blobs.keeping(["left by a process that died", "written a moment ago"]) as (old, new):
        pass
    os.utime(knowledge.folder.blobs / old, (0, 0))
    kept = (await ingest.resource(f"{ROUTER} " * 400)).record.blob
    os.utime(knowledge.folder.blobs / kept, (0, 0))
    await runner_of(knowledge, service).run()
    assert knowledge.blobs.names().keys() == {new, kept}
