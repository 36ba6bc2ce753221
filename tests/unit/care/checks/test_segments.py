"""The doctor compares segments with the journal, and makes those anew that cannot be used."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_memory.care.checks.examination import examine
from agent_memory.care.checks.repairs import repair_all
from agent_memory.index.columns import finish_columns
from agent_memory.models import MEMORY, utc_now
from agent_memory.settings import ServiceSettings
from agent_memory.storage import FileStorage, folder_of
from agent_memory.store.segment_builder import seal_up
from tests.support import memory_of

if TYPE_CHECKING:
    from pathlib import Path

    from agent_memory.files.layout import AgentFolder


@pytest.fixture
async def folder(tmp_path: Path) -> AgentFolder:
    folder = folder_of("bob", tmp_path)
    storage = FileStorage("bob", tmp_path, settings=ServiceSettings(embedder="none"))
    await storage.store(memory_of("tea"))
    seal_up(folder, MEMORY, None, least=1)
    await storage.store(memory_of("coffee"))
    await storage.close()
    return folder


def codes(folder: AgentFolder) -> set[str]:
    report = examine(folder.path.parent, now=utc_now())
    return {found.code for agent in report.agents for found in agent.findings if found.code.startswith("segments")}


async def test_segments_that_agree_with_the_journal_are_whole(folder: AgentFolder) -> None:
    assert codes(folder) == {"segments"}


async def test_an_agent_without_segments_has_no_word_about_them(tmp_path: Path) -> None:
    storage = FileStorage("bob", tmp_path, settings=ServiceSettings(embedder="none"))
    await storage.store(memory_of("tea"))
    await storage.close()

    assert codes(folder_of("bob", tmp_path)) == set()


async def test_damaged_segments_are_made_anew(folder: AgentFolder) -> None:
    (segment,) = [path for path in folder.segments("memory").iterdir() if path.is_dir()]
    (segment / "seq.npy").write_bytes(b"")
    assert codes(folder) == {"segments_broken"}

    repair_all(folder.path.parent, ["bob"], now=utc_now())

    assert codes(folder) == {"segments"}
    assert not segment.exists()


async def test_segments_that_say_otherwise_than_the_journal_are_made_anew(folder: AgentFolder) -> None:
    (segment,) = [path for path in folder.segments("memory").iterdir() if path.is_dir()]
    data = segment / "data.npy"
    data.write_bytes(data.read_bytes().replace(b"tea", b"tee"))
    finish_columns(segment)  # it was written like that
    assert codes(folder) == {"segments_untrue"}

    repair_all(folder.path.parent, ["bob"], now=utc_now())

    assert codes(folder) == {"segments"}


async def test_segments_of_another_journal_are_stale(folder: AgentFolder) -> None:
    lines = folder.journal.read_bytes().splitlines(keepends=True)
    folder.journal.write_bytes(lines[0])

    assert codes(folder) == {"segments_stale"}
