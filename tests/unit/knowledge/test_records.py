"""The storages of what an agent was given: one place for all kinds, long texts in files of their own."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from agent_memory.care.checks.examination import examine_agent
from agent_memory.embeddings.testing import HashEmbedder
from agent_memory.encryption.blobs import SweepResult
from agent_memory.errors import ConfigurationError, StorageError
from agent_memory.files.layout import folder_of
from agent_memory.knowledge.records import Knowledge
from agent_memory.models import MAX_LINE_CHARS, Resource, Topic
from agent_memory.settings import ServiceSettings
from agent_memory.storage import copy_agent

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import FrozenClock

LONG = "What is known of the network at home. " * 400


async def stored(knowledge: Knowledge, text: str = LONG) -> Resource:
    with knowledge.blobs.keeping([text]) as (name,):
        resource = Resource(agent_id="bob", content=text[:MAX_LINE_CHARS], blob=name, chars=len(text))
        await knowledge.resources.store(resource)
    return resource


def codes(root: Path, clock: FrozenClock) -> set[str]:
    report = examine_agent(root, "bob", now=clock(), settings=ServiceSettings())
    return {finding.code for finding in report.findings if finding.code.startswith("blobs")}


async def test_a_long_text_is_whole_and_goes_with_its_record(
    knowledge: Knowledge, root: Path, clock: FrozenClock
) -> None:
    resource = await stored(knowledge)
    assert await knowledge.text_of(resource) == LONG
    assert codes(root, clock) == {"blobs"}
    await knowledge.resources.delete(resource.id)
    assert await knowledge.compact() == SweepResult(), "it can be brought back for a time"
    assert await knowledge.text_of(resource) == LONG
    assert codes(root, clock) == set(), "what was forgotten names it still"
    assert await knowledge.compact(timedelta(0)) == SweepResult(1, len(LONG))
    assert not list((root / "bob" / "blobs").iterdir())


async def test_the_doctor_says_which_long_texts_are_gone_or_damaged(
    knowledge: Knowledge, root: Path, clock: FrozenClock
) -> None:
    resource, other = await stored(knowledge), await stored(knowledge, LONG + "!")
    with knowledge.blobs.keeping(["of nobody"]) as (lonely,):
        pass
    assert codes(root, clock) == {"blobs"}
    (root / "bob" / "blobs" / resource.blob).unlink()
    (root / "bob" / "blobs" / other.blob).write_text("something else")
    assert codes(root, clock) == {"blobs_missing", "blobs_damaged"}
    with pytest.raises(StorageError, match="beginning is in the journal"):
        await knowledge.text_of(resource)
    os.utime(root / "bob" / "blobs" / lonely, (0, 0))
    assert (await knowledge.sweep()).count == 1


async def test_a_copied_agent_has_its_long_texts(knowledge: Knowledge, root: Path, clock: FrozenClock) -> None:
    resource = await stored(knowledge)
    copy_agent(folder_of("bob", root), "eve", root)
    copied = Knowledge("eve", ServiceSettings(storage_root=str(root), embedder="none"), clock=clock)
    found = await copied.resources.get(resource.id)
    assert found is not None
    assert await copied.text_of(found) == LONG
    await copied.close()


async def test_nothing_is_created_before_something_is_stored(knowledge: Knowledge, root: Path) -> None:
    assert await knowledge.resources.count() == 0
    assert await knowledge.compact(timedelta(0)) == SweepResult()
    assert not (root / "bob").exists()


async def test_a_page_of_a_topic_lies_beside_the_resources(knowledge: Knowledge) -> None:
    await stored(knowledge)
    page = Topic(agent_id="bob", name="home_network", description="What is known of it", body="# Home network")
    await knowledge.of("topic").store(page)
    assert await knowledge.topics.get(page.id) == page
    assert await knowledge.resources.count() == 1


def test_a_server_keeps_memories_alone(root: Path) -> None:
    with pytest.raises(ConfigurationError, match="files"):
        Knowledge("bob", ServiceSettings(storage_root=str(root), backend="server", qdrant_url="http://127.0.0.1:1"))


async def test_knowledge_turns_have_vectors_only_with_own_embedder(tmp_path: Path) -> None:
    for embedder, expected in ((None, False), (HashEmbedder(), True)):
        knowledge = Knowledge("bob", ServiceSettings(storage_root=str(tmp_path)), embedder=embedder)
        has_vectors = []
        for storage in (knowledge.episodes, knowledge.summaries):
            await storage.valid()
            has_vectors.append(storage.embedding_status()["status"] != "off")
        assert has_vectors == [expected, expected]
        await knowledge.close()
