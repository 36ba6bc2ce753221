"""A file, a program and a live session make the same passages of the same text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_memory.knowledge import MemoryManager
from agent_memory.knowledge.intake.drafts import PERSON, ReceivedTurn
from agent_memory.knowledge.intake.ingest import Ingest
from agent_memory.knowledge.passages.items import split_turns
from agent_memory.knowledge.pipeline.background_work import runner_of
from agent_memory.knowledge.records import Knowledge
from agent_memory.memory import open_service
from agent_memory.settings import ServiceSettings
from tests.unit.knowledge.passages.test_exchanges import MEETING
from tests.unit.knowledge.passages.test_sections import POLICY

if TYPE_CHECKING:
    from pathlib import Path

Passages = dict[str, tuple[str, object, str]]


async def store_file(folder: Path, text: str, name: str) -> Passages:
    service, knowledge = open_agent(folder)
    (folder / name).write_text(text)
    await Ingest(knowledge).file(folder / name)
    await runner_of(knowledge, service).run()
    await knowledge.close()
    return await read_passages(folder)


async def store_with_manager(folder: Path, text: str, resource_type: str) -> Passages:
    manager = MemoryManager(agent_id="bob", settings=settings_of(folder))
    stored = await manager.store_resource(text, resource_type)
    await manager.extract_and_store(stored.resource_id)
    await manager.close()
    return await read_passages(folder)


async def store_live(folder: Path, turns: list[ReceivedTurn]) -> Passages:
    service, knowledge = open_agent(folder)
    ingest = Ingest(knowledge)
    talk = (await ingest.conversation("s-1")).record.id
    for order, turn in enumerate(turns):
        await ingest.turns([turn], conversation=talk, first=order, is_live=True)
        await runner_of(knowledge, service).run()
    await knowledge.close()
    return await read_passages(folder)


def settings_of(folder: Path) -> ServiceSettings:
    return ServiceSettings(storage_root=str(folder / "root"), embedder="none")


def open_agent(folder: Path):  # noqa: ANN201 - a pair
    folder.mkdir(parents=True, exist_ok=True)
    return open_service("bob", settings_of(folder)), Knowledge("bob", settings_of(folder))


async def read_passages(folder: Path) -> Passages:
    service = open_service("bob", settings_of(folder))
    every = await service.searcher.list_all()
    current = (await service.storage.valid_among([memory.id for memory in every])).values()
    found = {
        memory.content: (memory.source.detail, memory.metadata.get("speaker"), str(memory.metadata.get("heading", "")))
        for memory in current
    }
    await service.close()
    return found


@pytest.mark.parametrize(("name", "resource_type"), [("policy.md", "document"), ("pool.toml", "config")])
async def test_document_is_cut_alike(tmp_path: Path, name: str, resource_type: str) -> None:
    text = POLICY * 8 if resource_type == "document" else "[pool]\n# slow\nsize = 3\n\n[retry]\nlimit = 5\n"
    as_file = await store_file(tmp_path / "file", text, name)
    with_manager = await store_with_manager(tmp_path / "manager", text, resource_type)
    assert as_file == with_manager
    assert {rule for rule, _, _ in as_file.values()} == {"passage"}


async def test_talk_is_cut_alike(tmp_path: Path) -> None:
    turns = [ReceivedTurn(turn.text, PERSON, turn.speaker) for turn in split_turns(MEETING)]
    as_file = await store_file(tmp_path / "file", MEETING, "meeting.txt")
    with_manager = await store_with_manager(tmp_path / "manager", MEETING, "conversation")
    live = await store_live(tmp_path / "live", turns)
    assert as_file == with_manager == live
    assert len(as_file) == 4
    assert "Ben: The changelog needs writing. Can you?" not in as_file
