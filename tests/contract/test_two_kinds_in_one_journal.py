"""Resources and topics lie in one file: what happens to the records of one kind leaves those of the other alone."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from agent_memory.care.checks.examination import examine_agent
from agent_memory.embeddings import text_hash
from agent_memory.embeddings.testing import HashEmbedder
from agent_memory.files.layout import folder_of
from agent_memory.memory.scratchpad_entries import Selection
from agent_memory.models import RESOURCE, TOPIC, Kind, Resource, Topic
from agent_memory.settings import ServiceSettings
from agent_memory.storage import copy_agent, summary_of
from agent_memory.store.memory_storage import Files
from agent_memory.store.record_storage import RecordStorage
from agent_memory.store.segment_builder import seal_up

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.support import FrozenClock

Both = tuple[RecordStorage[Resource], RecordStorage[Topic]]


def opened(kind: Kind[Any], root: Path, clock: FrozenClock, embedder: Any = None) -> RecordStorage[Any]:
    files = Files(kind, folder_of("bob", root), ServiceSettings(embedder="none"), clock, embedder)
    return RecordStorage(files.backend())


@pytest.fixture
async def both(root: Path, clock: FrozenClock) -> AsyncIterator[Both]:
    storages = opened(RESOURCE, root, clock), opened(TOPIC, root, clock)
    yield storages
    for each in storages:
        await each.close()


def resource(content: str, **fields: Any) -> Resource:
    return Resource(agent_id="bob", content=content, **fields)


def topic(body: str, name: str = "home_network") -> Topic:
    return Topic(agent_id="bob", name=name, description="What is known of the network at home", body=body)


async def test_each_has_its_own_records_changes_and_numbers(both: Both) -> None:
    resources, topics = both
    known = await resources.store(resource("The router is upstairs"))
    page = await topics.store(topic("The router is upstairs"))
    assert (await resources.count(), await topics.count()) == (1, 1)
    assert await topics.history(known) == []
    before = (await resources.history(known))[-1].seq
    await topics.update(page, {"body": "The router is in the cellar"})
    assert (await resources.history(known))[-1].seq == before
    await resources.update(known, {"title": "Router"}, expect_seq=before)
    await topics.delete(page)
    assert await resources.forgotten() == []
    assert not await resources.was_forgotten("The router is in the cellar")
    assert await topics.was_forgotten("The router is in the cellar")


async def test_a_compaction_of_one_keeps_the_other_and_purges_both(both: Both, root: Path, clock: FrozenClock) -> None:
    resources, topics = both
    kept = [await resources.store(resource(f"Kept {number}")) for number in range(3)]
    gone = await resources.store(resource("Nobody needs this"))
    page = await topics.store(topic("First words"))
    await topics.update(page, {"body": "Second words"})
    await resources.delete(gone)
    await resources.touch([kept[0]])
    await topics.compact(timedelta(0))
    text = (root / "bob" / "knowledge.yaml").read_text()
    assert "Nobody needs this" not in text
    assert "First words" not in text
    for storage in (resources, opened(RESOURCE, root, clock)):
        counts = {each.content: each.access_count async for each in storage.iter_all()}
        assert counts == {"Kept 0": 1, "Kept 1": 0, "Kept 2": 0}
        assert (await storage.health())["status"] == "ok"
    assert [each.body async for each in topics.iter_all()] == ["Second words"]


async def test_what_one_wrote_gives_no_reason_to_compact_for_the_other(both: Both) -> None:
    resources, topics = both
    page = await topics.store(topic("Words"))
    for _ in range(12):
        await resources.store_many([resource(f"Text {number}") for number in range(100)])
        for record in await resources.list_recent(100):
            await resources.touch([record.id])
    await topics.update(page, {"body": "Other words"})
    assert await topics.folds() == 0


async def test_what_is_sealed_of_one_stays_whole_after_a_compaction_of_the_other(
    both: Both, root: Path, clock: FrozenClock
) -> None:
    pytest.importorskip("numpy")
    resources, topics = both
    await resources.store_many([resource(f"Text {number}") for number in range(40)])
    page = await topics.store(topic("First words"))
    for kind in (RESOURCE, TOPIC):
        seal_up(folder_of("bob", root), kind, None, least=1)
    later, pages = opened(RESOURCE, root, clock), opened(TOPIC, root, clock)
    assert await later.count() == 40
    last = (await later.list_recent(1))[0]
    await later.touch([last.id])
    await pages.update(page, {"body": "Second words"})
    await pages.compact(timedelta(0))
    for storage in (later, opened(RESOURCE, root, clock)):
        assert await storage.count() == 40
        assert (await storage.get(last.id) or last).access_count == 1
        await storage.close()
    assert [each.body async for each in pages.iter_all()] == ["Second words"]
    await pages.close()


async def test_a_vector_stays_while_either_kind_has_its_text(root: Path, clock: FrozenClock) -> None:
    embedder = HashEmbedder()
    resources, topics = opened(RESOURCE, root, clock, embedder), opened(TOPIC, root, clock, embedder)
    known = await resources.store(resource("The router is upstairs"))
    await topics.store(topic("The router is upstairs"))
    assert await resources.prepare()
    assert await topics.prepare()
    await resources.delete(known)
    await resources.close()
    await topics.close()
    with closing(sqlite3.connect(root / "bob" / "embeddings.sqlite3")) as cache:
        kept = {key for (key,) in cache.execute("SELECT hash FROM vectors")}
    assert text_hash("The router is upstairs") in kept


async def test_what_a_start_is_shown_is_kept_for_each(both: Both, root: Path, clock: FrozenClock) -> None:
    resources, topics = both
    await resources.store(resource("Text"))
    await topics.store(topic("Page"))
    for storage in both:
        await storage.recent(Selection(5, 3))
        await storage.close()
    assert {path.name for path in root.glob("bob/*shortlist.json")} == {
        "resource.shortlist.json", "topic.shortlist.json",
    }  # fmt: skip
    again = opened(TOPIC, root, clock)
    assert [each.body for each in await again.recent(Selection(5, 3))] == ["Page"]
    await again.close()


async def test_copies_have_both_and_the_doctor_knows_both(both: Both, root: Path, clock: FrozenClock) -> None:
    resources, topics = both
    known = await resources.store(resource("Text"))
    await topics.store(topic("Page"))
    for each in both:
        await each.close()
    copy_agent(folder_of("bob", root), "eve", root)
    copied, original = ((root / name / "knowledge.yaml").read_bytes().splitlines() for name in ("eve", "bob"))
    assert copied[1:] == original[1:]  # the header has a generation of its own
    assert summary_of("eve", root).others == {"knowledge.yaml": 2}
    report = examine_agent(root, "bob", now=clock(), settings=ServiceSettings())
    codes = {finding.code for finding in report.findings}
    assert codes.isdisjoint({"not_examined", "journal_lines", "journal_records", "journal_rules", "segments_orphaned"})
    assert (
        json.loads((await opened(RESOURCE, root, clock).get(known) or resource("x")).model_dump_json())["id"] == known
    )
