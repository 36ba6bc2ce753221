"""A record that breaks the data model keeps no other one from being sealed, and is reported as before."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from agent_memory.care.checks.examination import examine
from agent_memory.embeddings import EmbeddingService
from agent_memory.index import DenseIndex, RankingSettings
from agent_memory.journal import Change, Journal
from agent_memory.models import MEMORY, utc_now
from agent_memory.settings import ServiceSettings
from agent_memory.storage import FileStorage, folder_of
from agent_memory.store.segment_builder import seal_up
from agent_memory.store.segment_opener import SegmentOpener
from tests.support import memory_of

if TYPE_CHECKING:
    from pathlib import Path

    from agent_memory.files.layout import AgentFolder

OFFLINE = ServiceSettings(embedder="none")
NEVER, BROKEN = "mem-00000000000a", "mem-00000000000b"
"""Ids of what never was a memory, and of one that a change broke."""


def opened(folder: AgentFolder) -> FileStorage:
    return FileStorage("bob", folder.path.parent, settings=OFFLINE)


def written(folder: AgentFolder, *changes: Change) -> None:
    """Write what no program of ours writes."""
    with Journal(folder.journal, {"memory"}).locked() as writer:
        for change in changes:
            writer.append([change])


@pytest.fixture
async def folder(tmp_path: Path) -> AgentFolder:
    """Return a folder with two memories that are sealed, one of them broken by its last change, and a line of none."""
    folder = folder_of("bob", tmp_path)
    storage = opened(folder)
    await storage.store_many([memory_of("tea"), memory_of("coffee", id=BROKEN)])
    await storage.close()
    written(
        folder,
        Change("put", "memory", NEVER, {"content": "ledger", "pinned": "perhaps"}),
        Change("patch", "memory", BROKEN, {"content": "milk", "pinned": "perhaps"}),
    )
    assert seal_up(folder, MEMORY, None, least=1)
    return folder


async def contents(storage: FileStorage) -> list[str]:
    return sorted([memory.content async for memory in storage.iter_all()])


async def test_all_others_are_sealed_and_what_is_invalid_is_still_reported(folder: AgentFolder) -> None:
    storage = opened(folder)

    assert await contents(storage) == ["coffee", "tea"]
    state = storage.opened.state
    assert state.sealed is not None
    assert len(state.sealed) == 2
    assert state.unsealed_count == 0
    report = await storage.health()
    assert report["problems"] == 2
    assert {problem.partition(":")[0] for problem in report["first_problems"]} == {NEVER, BROKEN}
    await storage.close()


async def test_it_stays_reported_when_more_is_sealed(folder: AgentFolder) -> None:
    storage = opened(folder)
    await storage.store(memory_of("water"))
    assert seal_up(folder, MEMORY, None, least=1)
    await storage.close()

    again = opened(folder)
    assert (await again.health())["problems"] == 2
    assert await contents(again) == ["coffee", "tea", "water"]
    await again.close()


async def test_a_change_that_mends_it_makes_it_what_the_journal_says(folder: AgentFolder) -> None:
    written(folder, *(Change("patch", "memory", one, {"pinned": True}) for one in (NEVER, BROKEN)))
    for _ in range(2):
        storage = opened(folder)
        assert await contents(storage) == ["ledger", "milk", "tea"]
        assert (await storage.health())["status"] == "ok"
        await storage.close()
        seal_up(folder, MEMORY, None, least=1)


async def test_an_update_mends_it(folder: AgentFolder) -> None:
    storage = opened(folder)
    await storage.update(BROKEN, {"content": "tonic"})
    assert (await storage.health())["problems"] == 1
    await storage.delete(BROKEN)
    assert await contents(storage) == ["tea"]
    await storage.close()


async def test_a_storage_that_takes_the_segments_into_use_still_reports_it(tmp_path: Path) -> None:
    folder = folder_of("bob", tmp_path)
    storage = opened(folder)
    await storage.store(memory_of("tea"))
    written(folder, Change("put", "memory", NEVER, {"content": "ledger", "pinned": "perhaps"}))
    assert await contents(storage) == ["tea"]
    assert seal_up(folder, MEMORY, None, least=1)

    opening = SegmentOpener(MEMORY, folder, EmbeddingService(OFFLINE, folder.vectors, DenseIndex), RankingSettings())
    assert opening.adopt(storage.opened)

    assert storage.opened.state.unsealed_count == 0
    assert (await storage.health())["problems"] == 1
    await storage.close()


async def test_a_compaction_moves_it_aside_and_its_text_out_of_the_segments(folder: AgentFolder) -> None:
    storage = opened(folder)
    await storage.compact(timedelta(0))
    assert (await storage.health())["problems"] == 1, "a patch stays"
    await storage.close()

    assert b"ledger" in folder.journal.with_name("memories.rejected.yaml").read_bytes()
    derived = [path.read_bytes() for path in folder.segments("memory").rglob("*") if path.is_file()]
    assert not any(b"ledger" in content or b"milk" in content for content in derived)


async def test_the_doctor_finds_segments_true_that_have_it_as_the_journal_has(folder: AgentFolder) -> None:
    report = examine(folder.path.parent, now=utc_now())

    codes = {found.code for agent in report.agents for found in agent.findings}
    assert {code for code in codes if code.startswith("segments")} == {"segments"}
    assert {"journal_records"} <= codes
