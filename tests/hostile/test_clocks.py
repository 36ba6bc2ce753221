"""Clocks that jump back, far ahead, or both: the order of writing decides, and nothing is lost."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from agent_memory.store import change_log
from tests.hostile.trouble import open_storage, reopened
from tests.support import NOON, lines_of, memory_of

if TYPE_CHECKING:
    from pathlib import Path

    from agent_memory.memory import MemoryService
    from agent_memory.storage import FileStorage
    from tests.support import FrozenClock


FAR = datetime(2100, 1, 1, tzinfo=UTC)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LATER = NOON + timedelta(days=1)


async def test_after_a_year_back_the_order_of_writing_decides(
    service: MemoryService, root: Path, clock: FrozenClock
) -> None:
    memory = (await service.store({"content": "likes tea"})).memory
    clock.advance(days=-365)
    await service.update(memory.id, {"content": "likes coffee"})
    newer = (await service.store({"content": "likes milk"})).memory
    await service.forget(newer.id)
    assert await reopened(root, clock) == ["likes coffee"]
    await service.storage.compact()
    assert await reopened(root, clock) == ["likes coffee"]
    assert (await service.capture([])).stored == []


async def test_ages_are_not_negative_and_freshness_is_at_most_one(storage: FileStorage, clock: FrozenClock) -> None:
    await storage.store(memory_of("peppermint tea"))
    clock.advance(days=-400)
    hit = (await storage.search("peppermint"))[0]
    assert hit.parts["freshness"] == 1.0
    assert 0 <= hit.relevance_score <= 1


async def test_what_was_stored_under_a_wrong_clock_is_found_and_listed(
    storage: FileStorage, clock: FrozenClock
) -> None:
    for now in (FAR, EPOCH, LATER):
        clock.now = now
        await storage.store(memory_of(f"in {now.year}", timestamp=now))
    assert {memory.content for memory in await storage.list_recent()} == {"in 2100", "in 1970", "in 2026"}
    for year in ("1970", "2026", "2100"):
        assert [hit.memory.content for hit in await storage.search(year)] == [f"in {year}"]


@pytest.mark.parametrize("wrong", [FAR, EPOCH, NOON.replace(year=2036), NOON.replace(year=9999)])
async def test_a_compaction_under_a_wrong_clock_keeps_what_is_within_grace(
    storage: FileStorage, clock: FrozenClock, wrong: datetime
) -> None:
    for text in ("first", "second"):
        await storage.store(memory_of(text))
    first = (await storage.list_recent())[-1]
    await storage.delete(first.id)
    clock.now = wrong
    await storage.compact()
    await storage.store(memory_of("under the wrong clock"))
    await storage.compact()
    clock.now = LATER
    await storage.compact()
    assert first.id.encode() in storage.folder.journal.read_bytes(), "its grace was not over"
    assert await storage.was_forgotten(first.content)


async def test_what_was_written_under_an_old_clock_has_its_grace_too(storage: FileStorage, clock: FrozenClock) -> None:
    clock.now = EPOCH
    memory_id = await storage.store(memory_of("from 1970"))
    await storage.delete(memory_id)
    clock.now = NOON
    await storage.compact()
    assert memory_id.encode() in storage.folder.journal.read_bytes()


async def test_lines_of_the_future_do_not_keep_a_journal_from_getting_shorter(
    storage: FileStorage, root: Path, clock: FrozenClock
) -> None:
    clock.now = FAR
    memory_id = await storage.store(memory_of("from the future"))
    clock.now = NOON
    for number in range(5):
        await storage.update(memory_id, {"content": f"version {number}"})
    clock.advance(days=31)
    await storage.compact()
    assert len(lines_of(storage.folder.journal)) == 1
    assert await reopened(root, clock) == ["version 4"]


async def test_grace_ends_after_thirty_days_whatever_the_clock_said_before(
    storage: FileStorage, clock: FrozenClock
) -> None:
    memory_id = await storage.store(memory_of("to be forgotten"))
    await storage.delete(memory_id)
    clock.advance(days=-365)
    kept = await storage.store(memory_of("kept"))
    clock.advance(days=31)
    await storage.compact()
    content = storage.folder.journal.read_bytes()
    assert memory_id.encode() not in content
    assert kept.encode() in content


async def test_a_journal_that_a_compaction_cannot_shorten_is_not_compacted_at_each_write(
    storage: FileStorage, root: Path, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(change_log, "_COMPACT_AT", 3)
    memory_id = await storage.store(memory_of("tea"))
    for number in range(8):
        await storage.update(memory_id, {"content": f"version {number}"})
    clock.now = FAR
    await storage.store(memory_of("one"))
    await storage.folds()
    generation = storage.folder.journal.read_bytes().splitlines()[0]
    for number in range(3):
        await storage.store(memory_of(f"more {number}"))
        await storage.folds()
    assert storage.folder.journal.read_bytes().splitlines()[0] == generation
    fresh = open_storage(root, clock)
    assert len(await fresh.list_recent()) == 5
    await fresh.close()
