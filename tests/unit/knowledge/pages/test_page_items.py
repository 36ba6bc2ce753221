"""Pages of items of different trust, and where these come from."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from agent_memory.knowledge.intake.drafts import ReceivedTurn
from agent_memory.knowledge.pages.page_files import read_page_file
from agent_memory.knowledge.pipeline.background_work import ITEMS_ONLY, runner_of
from agent_memory.memories import FileStorage
from agent_memory.memory import NOBODY, MemoryService
from agent_memory.memory.features import attach_withdrawals
from agent_memory.models import Topic

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from agent_memory.knowledge.intake.ingest import Ingest
    from agent_memory.knowledge.records import Knowledge
    from tests.support import FrozenClock


@pytest.fixture
async def service(knowledge: Knowledge, root: Path, clock: FrozenClock) -> AsyncIterator[MemoryService]:
    settings = knowledge.settings
    opened = MemoryService(FileStorage("bob", root, settings=settings, clock=clock), settings, clock=clock)
    yield attach_withdrawals(opened)
    await opened.close()


@pytest.fixture
def folder(root: Path) -> Path:
    return root / "bob" / "topics"


async def test_page_of_talk_without_times_has_its_order(
    ingest: Ingest, knowledge: Knowledge, service: MemoryService, folder: Path
) -> None:
    names = ("north", "east", "south", "west", "upper", "lower")
    texts = [f"The {name} pier of the harbour is closed for repairs." for name in names]
    talk = await ingest.conversation("s-1", title="piers")
    turns = [ReceivedTurn(text, "person", "Kim") for text in texts]
    await ingest.turns(turns, conversation=talk.record.id)
    await runner_of(knowledge, service, at_once=True, config=ITEMS_ONLY).run()
    page = (folder / "piers.md").read_text()
    places = [page.index(text) for text in texts]
    assert places == sorted(places)


async def test_a_stranger_rewords_nobody_on_a_page_and_is_marked(
    ingest: Ingest, knowledge: Knowledge, service: MemoryService, folder: Path
) -> None:
    words = "The invoice reports of March go to {} in the accounting department of Lea before noon."
    talk = await ingest.conversation("s-1")
    said = await ingest.turn(
        ReceivedTurn(words.format("Alice"), "user"), conversation=talk.record.id, order=0, is_live=True
    )
    for name in ("Mallory", "Malory", "Mallorie", "Maloree"):
        await ingest.resource(words.format(name), caller=replace(NOBODY, trust="low"))
    topic = Topic(
        agent_id="bob", name="reports", description="Invoice reports: to whom in accounting they go, and when."
    )
    await knowledge.topics.store(topic)
    await runner_of(knowledge, service, at_once=True, config=ITEMS_ONLY).run()

    page = read_page_file((folder / "reports.md").read_text()).page
    assert {
        (claim.is_untrusted, *{note.source == said.record.id for note in claim.notes}) for claim in page.claims
    } == {
        (False, True),
        (True, False),
    }
    assert [claim.text for claim in page.claims if "Alice" in claim.text] == [f"User: {words.format('Alice')}"]
    await service.forget(next(each.id for each in await service.searcher.list_all() if "Maloree" in each.content))
    page = read_page_file((folder / "reports.md").read_text()).page
    assert [claim.is_untrusted for claim in page.claims] == [True, True, True, False]
    await service.forget(next(each.id for each in await service.searcher.list_all() if "Alice" in each.content))
    claims = read_page_file((folder / "reports.md").read_text()).page.claims
    assert [claim.is_untrusted for claim in claims] == [True, True, True]
