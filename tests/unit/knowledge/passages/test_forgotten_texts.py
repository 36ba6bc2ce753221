"""Texts of conversations that say a forgotten memory: no door shows them until the memory is restored."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_memory.knowledge import MemoryManager
from agent_memory.knowledge.intake.drafts import ReceivedTurn
from agent_memory.knowledge.passages.forgotten_texts import ForgottenTexts
from agent_memory.knowledge.pipeline.background_work import ITEMS_ONLY, runner_of
from agent_memory.memory.features import attach_withdrawals
from agent_memory.memory.service import open_service

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from agent_memory.knowledge.intake.ingest import Ingest
    from agent_memory.knowledge.records import Knowledge
    from agent_memory.memory import MemoryService


SAID = (
    "Remember that we never push to main without a review. Also, my name is Bob and I live in Bern with two old cats.",
    "I sold the old canoe in Bergen last week.",
    "I work at the harbour office on Mondays.",
    "My sister Edda plays the cello in a quartet.",
)
RULE = "We never push to main without a review."


@pytest.fixture
async def service(knowledge: Knowledge) -> AsyncIterator[MemoryService]:
    opened = attach_withdrawals(open_service("bob", knowledge.settings))
    yield opened
    await opened.close()


async def ingest_talk(ingest: Ingest, knowledge: Knowledge, service: MemoryService) -> None:
    talk = await ingest.conversation("s", title="Chat of Monday")
    await ingest.turns([ReceivedTurn(text, "person", "Lea") for text in SAID], conversation=talk.record.id)
    await runner_of(knowledge, service, at_once=True, config=ITEMS_ONLY).run()


async def list_shown(manager: MemoryManager) -> list[str]:
    """Return what recall, the pages and digest show."""
    shown = [item.content for item in (await manager.retrieve("push to main without a review", "rag", 10)).items]
    shown += [await manager.get_category_content(topic.name) for topic in await manager.list_categories()]
    shown += [passage.content for passage in (await manager.digest.hand_out("", manager.item_layer.caller)).passages]
    return shown


async def test_no_door_shows_what_says_a_forgotten_note(
    ingest: Ingest, knowledge: Knowledge, service: MemoryService
) -> None:
    await ingest_talk(ingest, knowledge, service)
    note = (await service.store(RULE)).memory
    manager = MemoryManager(service=service)
    before = await list_shown(manager)
    assert sum("push to main" in text for text in before) >= 3
    await service.forget(note.id)
    assert [text for text in await list_shown(manager) if "push to main" in text] == []
    assert any("canoe" in text for text in await list_shown(manager))
    await service.history.restore(note.id)
    assert await list_shown(manager) == before
    await manager.close()


async def test_texts_are_left_alone_without_a_conversation(knowledge: Knowledge, service: MemoryService) -> None:
    note = (await service.store(RULE)).memory
    await service.forget(note.id)
    texts = ForgottenTexts(knowledge, service)
    assert await texts.find_saying([RULE]) == set()
    assert await texts.filter_page(f"# Rules\n\n{RULE}\n") == f"# Rules\n\n{RULE}\n"
