"""What `recall` prints of an answer, from the answer alone."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from agent_memory.knowledge import MemoryItem, MemoryManager, RetrievalMode, RetrievalResult, tools
from agent_memory.settings import ServiceSettings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from agent_memory.models import Trust

ORDER = "The best result comes first"


@pytest.fixture
async def manager(tmp_path: Path) -> AsyncIterator[MemoryManager]:
    opened = MemoryManager(tmp_path, settings=ServiceSettings(embedder="none"))
    yield opened
    await opened.close()


def item(content: str, speaker: str = "", trust: Trust = "medium") -> MemoryItem:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    return MemoryItem("mem-0", content, None, "res-000000000000", None, 1, now, "normal", speaker, trust)


@pytest.mark.parametrize(("scores", "is_told"), [([0.4, 0.9], True), ([0.9, 0.4], False), ([0.5, 0.5], False)])
async def test_an_order_that_is_not_that_of_the_numbers_is_told(
    manager: MemoryManager, scores: list[float], *, is_told: bool
) -> None:
    found = RetrievalResult([item("One."), item("Two.")], RetrievalMode.RAG, 2, 1.0, scores)
    assert (ORDER in await tools.render_recall(manager, found, "one", "rag")) == is_told


@pytest.mark.parametrize(
    ("content", "speaker", "source"),
    [
        ("The boat is in Bergen.", "the user", "deleted, said by the user |"),
        ("The boat is in Bergen.", "assistant", "deleted, said by the assistant |"),
        ("Ann: The boat is in Bergen.", "Ann", "deleted |"),
        ("The boat is in Bergen.", "", "deleted |"),
    ],
)
async def test_who_spoke_is_told_where_the_words_do_not(
    manager: MemoryManager, content: str, speaker: str, source: str
) -> None:
    found = RetrievalResult([item(content, speaker)], RetrievalMode.RAG, 1, 1.0, [0.5])
    assert f"Source: {source}" in await tools.render_recall(manager, found, "boat", "rag")


async def test_an_item_that_rests_on_a_strangers_words_says_so_whatever_its_source_is(manager: MemoryManager) -> None:
    found = RetrievalResult([item("The boat is in Bergen.", "Ann", "low")], RetrievalMode.RAG, 1, 1.0, [0.5])
    assert "Source: deleted, said by Ann, untrusted |" in await tools.render_recall(manager, found, "boat", "rag")
