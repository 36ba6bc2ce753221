"""Taking back what was taken in goes on where another process died."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_memory.knowledge.ingest import Ingest
from agent_memory.knowledge.pages import Pages
from agent_memory.knowledge.records import Knowledge
from agent_memory.knowledge.undoing import taken_from, undo
from agent_memory.knowledge.working import runner_of
from agent_memory.service import NOBODY, open_service
from agent_memory.settings import ServiceSettings

if TYPE_CHECKING:
    from pathlib import Path


async def test_a_page_says_nothing_of_items_whose_forgetting_was_cut_short(tmp_path: Path) -> None:
    settings = ServiceSettings(storage_root=str(tmp_path / "root"), embedder="none")
    service, knowledge = open_service("bob", settings), Knowledge("bob", settings)
    file = tmp_path / "talk.jsonl"
    file.write_text("\n".join(f'{{"speaker": "Ada", "text": "The shelf {at} holds tea in Lyon."}}' for at in range(8)))
    await Ingest(knowledge).file(file)
    await runner_of(knowledge, service, at_once=True).run()
    pages = Pages(knowledge, service)
    assert {topic.name for topic in await pages.topics()} >= {"lyon"}
    items = [each.id for each in await service.admin.everything()]
    await service.requests.many(items)  # as of a process that died before it told anybody
    [resource] = await taken_from(knowledge, file.name)
    await undo(knowledge, service, [resource.id], NOBODY)
    assert [topic.name for topic in await pages.topics() if topic.item_ids] == []
    assert list(knowledge.folder.topics.glob("lyon*")) == []
    assert await taken_from(knowledge, file.name) == []
    await knowledge.close()
    await service.close()
