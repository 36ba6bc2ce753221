"""The service that a session shares: what is forgotten is on no page, and an interrupted purge goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_memory.integrations.amplifier.services import ServiceShare
from agent_memory.journal import PurgeList
from agent_memory.knowledge.intake.drafts import ReceivedTurn
from agent_memory.knowledge.intake.ingest import Ingest
from agent_memory.knowledge.pipeline.background_work import ITEMS_ONLY, runner_of
from agent_memory.knowledge.records import Knowledge
from agent_memory.settings import ServiceSettings

if TYPE_CHECKING:
    from pathlib import Path


async def test_what_a_session_forgets_is_on_no_page(tmp_path: Path) -> None:
    settings = ServiceSettings(storage_root=str(tmp_path), embedder="none")
    share, knowledge = ServiceShare(), Knowledge("bob", settings)
    service = await share.open("s-1", "bob", settings, lambda _: None)
    talk = await Ingest(knowledge).conversation("s-1", title="Sales")
    for order, what in enumerate(("piano", "canoe", "cello", "bicycle", "kettle", "violin", "ladder")):
        turn = ReceivedTurn(f"I sold the old {what} in Bergen last week.", speaker="Lea" if order else "Tom")
        await Ingest(knowledge).turn(turn, conversation=talk.record.id, order=order)
    await runner_of(knowledge, service, config=ITEMS_ONLY).run()
    pages = [tmp_path / "bob" / "topics" / f"{name}.md" for name in ("lea", "sales")]
    assert all("kettle" in page.read_text() for page in pages)
    item = next(each for each in await service.searcher.list_all() if "kettle" in each.content)
    await service.forget(item.id)
    assert not any("kettle" in page.read_text() for page in pages)
    await knowledge.close()
    await share.close()


async def test_a_purge_that_was_interrupted_goes_on_with_the_first_session(tmp_path: Path) -> None:
    settings, share = ServiceSettings(storage_root=str(tmp_path), embedder="none"), ServiceShare()
    service = await share.open("s-1", "bob", settings, lambda _: None)
    stored = await service.store("Ann's salary is seventy-two thousand a year.")
    await service.forget(stored.memory.id)
    await share.close()
    folder = tmp_path / "bob"
    PurgeList(folder).begin([stored.memory.id], [stored.memory.content], "2026-01-01T00:00:00+00:00")
    await share.open("s-2", "bob", settings, lambda _: None)
    assert PurgeList(folder).list_unfinished() == []
    assert b"seventy-two" not in (folder / "memories.yaml").read_bytes()
    await share.close()
