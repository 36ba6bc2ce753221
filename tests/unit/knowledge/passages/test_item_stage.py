"""Items are drawn from what came in, once; what a person made of them stays."""

from __future__ import annotations

import hashlib
import os
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from agent_memory.knowledge.intake.drafts import ReceivedDocument, ReceivedTurn
from agent_memory.knowledge.intake.withdrawal import undo
from agent_memory.knowledge.passages import items as passage_items
from agent_memory.knowledge.passages.item_stage import ItemStage
from agent_memory.knowledge.pipeline.background_work import ITEMS_ONLY, runner_of
from agent_memory.knowledge.pipeline.stages import Backlog
from agent_memory.memories import FileStorage
from agent_memory.memory import Caller, MemoryService
from agent_memory.memory.trust import lowest
from agent_memory.models import StageCheckpoint, derived_id, to_text

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from agent_memory.knowledge.intake.ingest import Ingest
    from agent_memory.knowledge.records import Knowledge
    from agent_memory.models import Memory, Trust
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
    return [each for each in await service.searcher.list_all() if each.is_item]


async def test_what_was_said_and_written_becomes_items_that_lead_back_to_the_very_words(
    ingest: Ingest, knowledge: Knowledge, service: MemoryService
) -> None:
    talk = await ingest.conversation("s-1", title="Network")
    turn = ReceivedTurn(ROUTER, "user", "Ada", said_at=SAID)
    said = await ingest.turn(turn, conversation=talk.record.id, order=1, is_live=True, group="acme:s-1")
    page = await ingest.resource(ReceivedDocument(f"# Garden\n\n{CABLE}\n"))
    await ingest.turn(
        ReceivedTurn("A page that says much about many things.", "tool"), conversation=talk.record.id, order=2
    )
    ran = await runner_of(knowledge, service, Caller("s-1"), config=ITEMS_ONLY).run()
    assert (ran.done, ran.failed) == ({"items": 4, "pages": 1}, 0)
    items = {item.content: item for item in await items_of(service)}
    assert items.keys() == {f"Ada: {ROUTER}", f"Garden\n\n{CABLE}"}
    ada, cable = items[f"Ada: {ROUTER}"], items[f"Garden\n\n{CABLE}"]
    for item, source, words in ((ada, said.record, ROUTER), (cable, page.record, CABLE)):
        begin, end = item.metadata["at"]  # type: ignore[misc]
        assert source.content[begin:end] == words  # type: ignore[misc]
        assert [(link.rel, link.id) for link in item.links] == [("from", source.id)]
    assert (ada.trust, ada.observed_at, ada.group, ada.created_by_session) == (
        "high",
        SAID,
        "acme:s-1",
        "s-1",
    )
    assert (cable.trust, cable.group) == ("medium", "")
    assert await runner_of(knowledge, service, config=ITEMS_ONLY).backlog() == [
        Backlog("items", "resource"),
        Backlog("items", "episode"),
    ]


async def test_item_of_turn_with_offset_has_the_day_of_its_speaker(
    ingest: Ingest, knowledge: Knowledge, service: MemoryService
) -> None:
    talk = await ingest.conversation("s-1", title="Boats")
    said_at = datetime.fromisoformat("2025-03-31T23:15:00-06:00")
    await ingest.turn(
        ReceivedTurn("I bought the boat yesterday.", "user", "Noa", said_at=said_at), conversation=talk.record.id
    )
    await runner_of(knowledge, service, Caller("s-1"), config=ITEMS_ONLY).run()
    (item,) = await items_of(service)
    assert f"{item.said_at:%Y-%m-%d %H:%M %z}" == "2025-03-31 23:15 -0600"


async def test_doing_it_again_makes_nothing_twice(ingest: Ingest, knowledge: Knowledge, service: MemoryService) -> None:
    page = await ingest.resource(f"# Router\n\n{ROUTER}\n\n# Cable\n\n{CABLE}")
    await runner_of(knowledge, service, config=ITEMS_ONLY).run()
    before = await items_of(service)
    await knowledge.resources.update(page.record.id, {"title": "Network"})
    assert (await runner_of(knowledge, service, config=ITEMS_ONLY).run()).done == {"items": 1}
    assert await items_of(service) == before
    assert len(before) == 2


async def test_what_a_person_edited_or_forgot_is_not_made_again(
    ingest: Ingest, knowledge: Knowledge, service: MemoryService, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = await ingest.resource(f"# Router\n\n{ROUTER}\n\n# Cable\n\n{CABLE}")
    await runner_of(knowledge, service, config=ITEMS_ONLY).run()
    items = {item.content: item.id for item in await items_of(service)}
    router, cable = items[f"Router\n\n{ROUTER}"], items[f"Cable\n\n{CABLE}"]
    await service.update(router, {"content": "The router stands in the cellar."})
    await service.forget(cable)
    await knowledge.resources.update(page.record.id, {"title": "Network"})
    await runner_of(knowledge, service, config=ITEMS_ONLY).run()
    await service.writer.compact(timedelta(0))  # nothing else knows now that it was there
    monkeypatch.setattr(ItemStage, "version", 2)
    await runner_of(knowledge, service, config=ITEMS_ONLY).run()
    assert [(each.id, each.content) for each in await items_of(service)] == [
        (router, "The router stands in the cellar.")
    ]


async def test_statements_of_an_earlier_version_stay_next_to_passages(
    ingest: Ingest, knowledge: Knowledge, service: MemoryService
) -> None:
    page = await ingest.resource(f"{ROUTER} It is old.")
    of_version_1 = derived_id("mem-", "items", page.record.id, hashlib.sha256(ROUTER.encode()).hexdigest())
    values = {"id": of_version_1, "content": ROUTER, "timestamp": to_text(SAID), "metadata": {"at": [0, len(ROUTER)]}}
    values |= {"source": {"kind": "extraction", "detail": "sentence"}, "links": [{"rel": "from", "id": page.record.id}]}
    await service.writer.store_items([values], Caller("s-1"))
    mark = StageCheckpoint(
        agent_id="bob", id=derived_id("mrk-", "items", "resource"), stage="items", source_kind="resource"
    )
    await knowledge.marks.store(mark.model_copy(update={"through": 1}))
    await runner_of(knowledge, service, config=ITEMS_ONLY).run()
    assert {each.content: each.supersedes for each in await items_of(service)} == {
        ROUTER: None, f"{ROUTER} It is old.": None,
    }  # fmt: skip


async def test_an_id_that_was_forgotten_elsewhere_holds_for_the_same_words_of_less_trust_and_not_of_more(
    ingest: Ingest,
) -> None:
    turn = (await ingest.turn(ReceivedTurn(ROUTER, "user", said_at=SAID), is_live=True)).record
    medium, high = (
        passage_items.make_item(turn.model_copy(update={"trust": trust}), ROUTER, (0, len(ROUTER)), "document")
        for trust in ("medium", "high")
    )
    assert medium["id"] != high["id"]
    assert passage_items.admit_item(medium, {high["id"]}, {}, 1.0) is None
    assert passage_items.admit_item(medium, {medium["id"]}, {}, 1.0) is None
    assert passage_items.admit_item(high, {medium["id"]}, {}, 1.0) == high


async def test_admit_item_with_purged_id_counts_only_later_purges(ingest: Ingest) -> None:
    turn = (await ingest.turn(ReceivedTurn(ROUTER, "user", said_at=SAID), is_live=True)).record
    item = passage_items.make_item(turn, ROUTER, (0, len(ROUTER)), "document")
    again = passage_items.admit_item(item, {item["id"]}, {item["id"]: 1.0}, 2.0)
    assert passage_items.admit_item(item, {item["id"]}, {item["id"]: 2.0}, 1.0) is None
    assert again is not None
    assert again["id"] != item["id"]
    assert passage_items.admit_item(item, {item["id"], again["id"]}, {item["id"]: 1.0}, 2.0) is None


@pytest.mark.parametrize("portion", [1, 100])
@pytest.mark.parametrize("speakers", [("Ann", "Bob"), ("", "")])
async def test_an_answer_is_one_passage_with_its_question(
    ingest: Ingest, knowledge: Knowledge, service: MemoryService, portion: int, speakers: tuple[str, str]
) -> None:
    talk = (await ingest.conversation("s-1")).record.id
    other = (await ingest.conversation("s-2")).record.id
    asked = ReceivedTurn("How long have you had the flat?", "assistant", speakers[0])
    for order, turn in enumerate([asked, ReceivedTurn("Yes, since May.", "user", speakers[1])], 1):
        await ingest.turn(turn, conversation=talk, order=order)
        for at in range(portion // 20):
            await ingest.turn(ReceivedTurn(f"Other {order} {at}.", "tool"), conversation=other, order=10 * order + at)
        if portion == 1:
            await runner_of(knowledge, service, config=ITEMS_ONLY).run()
    await runner_of(knowledge, service, config=ITEMS_ONLY).run()
    [item] = (await service.storage.valid_among([each.id for each in await items_of(service)])).values()
    asker, name = speakers[0] or "Assistant", speakers[1] or "User"
    assert item.content == f"{asker}: How long have you had the flat?\n{name}: Yes, since May."
    assert item.metadata["speaker"] == (speakers[1] or "the user")


async def test_items_of_a_live_session_say_who_spoke_and_their_text_does_not(
    ingest: Ingest, knowledge: Knowledge, service: MemoryService
) -> None:
    talk = (await ingest.conversation("s-1")).record.id
    for order, turn in enumerate([ReceivedTurn(ROUTER, "user"), ReceivedTurn(CABLE, "assistant")]):
        await ingest.turn(turn, conversation=talk, order=order, is_live=True)
    await ingest.turn(ReceivedTurn("The engine was serviced in June.", "assistant"), conversation=talk, order=3)
    await runner_of(knowledge, service, config=ITEMS_ONLY).run()
    said = {item.content: item.metadata["speaker"] for item in await items_of(service)}
    assert said[ROUTER] == "the user"
    assert said[CABLE] == "bob"


@pytest.mark.parametrize(("is_live", "own_trust"), [(True, "high"), (False, "medium")])
@pytest.mark.parametrize(
    "pasted",
    [
        f"Here is what the page says:\n{CABLE}\nThe mast broke on Monday in the storm.",
        f"> {CABLE}",
        f"<document>\n{CABLE}\n</document>",
        f"# Report\n\n{CABLE}\n\n## Mast\n\nThe mast broke on Monday in the storm.",
    ],
)
async def test_item_stage_pasted_part_of_a_turn_is_low(
    ingest: Ingest, knowledge: Knowledge, service: MemoryService, pasted: str, own_trust: str, *, is_live: bool
) -> None:
    talk = (await ingest.conversation("s-1")).record.id
    await ingest.turn(ReceivedTurn(f"{ROUTER}\n\n{pasted}", "user"), conversation=talk, order=1, is_live=is_live)
    await runner_of(knowledge, service, config=ITEMS_ONLY).run()
    trusts = {item.content: item.trust for item in await items_of(service)}
    own = next(content for content in trusts if content.startswith(ROUTER))
    assert trusts.pop(own) == own_trust
    assert CABLE not in own
    others = trusts
    assert any(CABLE in content for content in others)
    assert set(others.values()) == {"low"}
    assert {item.origin for item in await items_of(service) if item.content in others} == {"pasted"}


@pytest.mark.parametrize(("asker", "answerer"), [("low", "high"), ("high", "low"), ("medium", "high")])
@pytest.mark.parametrize("speakers", [("Ann", "Bob"), ("", "")])
async def test_what_has_the_words_of_a_question_is_trusted_no_more_than_who_asked(
    ingest: Ingest,
    knowledge: Knowledge,
    service: MemoryService,
    asker: Trust,
    answerer: Trust,
    speakers: tuple[str, str],
) -> None:
    talk = (await ingest.conversation("s-1")).record.id
    asked = ReceivedTurn("Shall bills of the house be paid to Mallory in Panama?", "assistant", speakers[0])
    answered = ReceivedTurn("Yes, always.", "user", speakers[1])
    moved = ReceivedTurn("I moved to Bern in the spring of last year.", "user", speakers[1])
    for order, (turn, trust) in enumerate([(asked, asker), (answered, answerer), (moved, answerer)]):
        said = await ingest.turn(turn, conversation=talk, order=order, is_live=True)
        await knowledge.episodes.update(said.record.id, {"trust": trust})
    await runner_of(knowledge, service, config=ITEMS_ONLY).run()
    items = await items_of(service)
    assert {item.trust for item in items if "Mallory" in item.content} == {lowest(asker, answerer)}
    assert {item.trust for item in items if "Mallory" not in item.content} == {answerer}


async def test_a_question_of_another_group_is_nobodys_context(
    ingest: Ingest, knowledge: Knowledge, service: MemoryService
) -> None:
    talk = (await ingest.conversation("s-1")).record.id
    await ingest.turn(ReceivedTurn("Where is the safe?", speaker="Ann"), conversation=talk, order=1, group="acme:1")
    await ingest.turn(ReceivedTurn("In Basel.", speaker="Bob"), conversation=talk, order=2, group="acme:2")
    await runner_of(knowledge, service, config=ITEMS_ONLY).run()
    assert [item.group for item in await items_of(service) if "safe" in item.content] == ["acme:1"]


async def test_the_same_statement_of_two_sources_is_one_item_that_leads_to_both(
    ingest: Ingest, knowledge: Knowledge, service: MemoryService
) -> None:
    sources = []
    for text in (ROUTER, f"{ROUTER}\n\n# Age\n\nIt is old.", "# Network\n\nthe router is new"):
        sources.append((await ingest.resource(text)).record.id)
        await runner_of(knowledge, service, config=ITEMS_ONLY).run()
    one, *others = sorted(await items_of(service), key=lambda item: len(item.links), reverse=True)
    assert (one.content, [link.id for link in one.links]) == (ROUTER, sources[:2])
    assert (one.metadata["at"], one.metadata["also_at"]) == ([0, 40], {sources[1]: [0, 40]})
    assert len(others) == 2
    await undo(knowledge, service, sources[:1], Caller("s-1"))
    [kept] = [item for item in await items_of(service) if item.id == one.id]
    assert ([link.id for link in kept.links], kept.metadata) == (sources[1:2], {"at": [0, 40]})
    await undo(knowledge, service, sources[1:2], Caller("s-1"))
    assert [[link.id for link in item.links] for item in await items_of(service)] == [sources[2:]]


@pytest.mark.parametrize(
    "other",
    [
        "The router does not stand upstairs in the study.",
        "The router 2 stands upstairs in the study.",
        "The router-b stands upstairs in the study.",
        "The study stands upstairs in the router.",
    ],
)
async def test_a_number_a_denial_or_another_order_make_another_item(
    ingest: Ingest, knowledge: Knowledge, service: MemoryService, other: str
) -> None:
    await ingest.resource(ROUTER)
    await ingest.resource(other)
    await ingest.resource(ROUTER, group="acme:s-1")
    await runner_of(knowledge, service, config=ITEMS_ONLY).run()
    assert len(await items_of(service)) == 3


async def test_a_long_text_that_is_gone_fails_alone_and_says_why(
    ingest: Ingest, knowledge: Knowledge, service: MemoryService
) -> None:
    long = await ingest.resource(f"{ROUTER} " * 400)
    await ingest.resource(CABLE)
    (knowledge.folder.blobs / long.record.blob).unlink()
    ran = await runner_of(knowledge, service, config=ITEMS_ONLY).run()
    assert (ran.done, ran.failed) == ({"items": 1, "pages": 1}, 1)
    assert (await runner_of(knowledge, service, config=ITEMS_ONLY).backlog())[0].codes == ("blob_missing",)
    assert [each.content for each in await items_of(service)] == [CABLE]


async def test_long_texts_that_nobody_names_go_after_the_work_when_they_are_old(
    ingest: Ingest, knowledge: Knowledge, service: MemoryService
) -> None:
    with knowledge.blobs.keeping(["left by a process that died", "written a moment ago"]) as (old, new):
        pass
    os.utime(knowledge.folder.blobs / old, (0, 0))
    kept = (await ingest.resource(f"{ROUTER} " * 400)).record.blob
    os.utime(knowledge.folder.blobs / kept, (0, 0))
    await runner_of(knowledge, service, config=ITEMS_ONLY).run()
    assert knowledge.blobs.names().keys() == {new, kept}
