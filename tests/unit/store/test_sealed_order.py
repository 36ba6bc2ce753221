"""The order of storing, which orders turns of one moment, stays when some of them change behind what is sealed."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("numpy")

from agent_memory.memories import FileStorage
from agent_memory.models import MEMORY, Memory
from agent_memory.settings import ServiceSettings
from agent_memory.store.segment_builder import seal_up

if TYPE_CHECKING:
    from pathlib import Path

MOMENT = datetime(2026, 1, 30, 12, tzinfo=UTC)
IDS = [f"mem-{at:012x}" for at in range(9)]


def opened(root: Path) -> FileStorage:
    return FileStorage("bob", root, settings=ServiceSettings(embedder="none"))


def neighbours(storage: FileStorage) -> list[tuple[str, ...]]:
    """Return what stands beside each turn."""
    corpus = storage.opened.index.corpus
    numbers = [corpus.parts[one].number for one in IDS]
    places = corpus.talks.places(numbers)
    return [tuple(map(corpus.parts.get_id, places[number].neighbours)) for number in numbers]


async def order(root: Path) -> list[tuple[str, ...]]:
    """Return the neighbours of each turn, as a process finds them that begins now."""
    storage = opened(root)
    await storage.prepare()
    found = neighbours(storage)
    await storage.close()
    return found


async def test_turns_of_one_moment_stay_in_order_when_one_changes_and_when_it_is_sealed_again(tmp_path: Path) -> None:
    storage = opened(tmp_path)
    for at, one in enumerate(IDS):
        text = f"{('Ann', 'Ben')[at % 2]}: part {at} of what happened"
        await storage.store(Memory(agent_id="bob", id=one, content=text, timestamp=MOMENT, created_by_session="talk"))
    expected = [(*IDS[max(0, at - 1) : at], *IDS[at + 1 : at + 2]) for at in range(len(IDS))]
    folder = storage.folder
    await storage.close()
    assert seal_up(folder, MEMORY, None, least=1)
    assert await order(tmp_path) == expected

    storage = opened(tmp_path)
    await storage.touch([IDS[2]])
    await storage.update(IDS[5], {"content": "Ben: part 5, as it was in truth"})
    await storage.prepare()
    assert neighbours(storage) == expected
    await storage.close()
    assert await order(tmp_path) == expected

    assert seal_up(folder, MEMORY, None, least=1)  # two segments are merged
    assert await order(tmp_path) == expected
