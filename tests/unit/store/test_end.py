"""Forgotten, replaced and expired texts have an end in ordinary use, without anybody asking for a compaction."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from tests.support import FrozenClock, header_of, memory_of

if TYPE_CHECKING:
    from pathlib import Path

    from agent_memory.storage import FileStorage

SECRET = b"purple elephant"


def files_with(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir() if path.is_file() and SECRET in path.read_bytes()]


async def use(storage: FileStorage, clock: FrozenClock, days: int) -> None:
    """Store a little each day, as people do."""
    for day in range(days):
        clock.advance(days=1)
        await storage.store(memory_of(f"fact {clock.now} {day}"))
        await storage.folds()  # what was left to do behind the answer is done, as it is after a day


async def test_a_forgotten_text_is_gone_a_day_after_its_grace_time(storage: FileStorage, clock: FrozenClock) -> None:
    await storage.delete(await storage.store(memory_of("purple elephant plan")))
    await use(storage, clock, 29)
    assert files_with(storage.folder.path) == ["memories.yaml"]
    await use(storage, clock, 3)
    assert files_with(storage.folder.path) == []
    assert await storage.count() == 32


async def test_a_replaced_text_is_gone_too(storage: FileStorage, clock: FrozenClock) -> None:
    memory_id = await storage.store(memory_of("purple elephant plan"))
    await storage.update(memory_id, {"content": "no plan"})
    await use(storage, clock, 32)
    assert files_with(storage.folder.path) == []
    assert (await storage.get(memory_id)).content == "no plan"  # type: ignore[union-attr]


async def test_what_is_only_moved_about_pays_no_compaction(storage: FileStorage, clock: FrozenClock) -> None:
    memory_id = await storage.store(memory_of("tea"))
    await storage.update(memory_id, {"pinned": True})
    header = header_of(storage.folder.journal)
    await use(storage, clock, 40)
    assert header_of(storage.folder.journal) == header


async def test_it_is_compacted_at_most_once_a_day(storage: FileStorage, clock: FrozenClock) -> None:
    await storage.delete(await storage.store(memory_of("purple elephant plan")))
    clock.advance(days=20)
    await storage.delete(await storage.store(memory_of("another plan")))
    clock.advance(days=12)
    headers = set()
    for number in range(5):
        await storage.store(memory_of(f"fact {number}"))
        await storage.folds()
        headers.add(header_of(storage.folder.journal))
    assert len(headers) == 1
    assert files_with(storage.folder.path) == []


async def test_an_expired_memory_is_removed_after_its_grace_time(storage: FileStorage, clock: FrozenClock) -> None:
    memory_id = await storage.store(memory_of("purple elephant plan", expires_at=clock.now + timedelta(days=5)))
    kept = await storage.store(memory_of("tea until summer", expires_at=clock.now + timedelta(days=90)))
    await use(storage, clock, 34)
    assert await storage.get(memory_id) is not None
    await use(storage, clock, 3)
    assert await storage.get(memory_id) is None
    assert await storage.get(kept) is not None
    assert files_with(storage.folder.path) == []


async def test_an_expired_memory_that_was_given_more_time_stays(storage: FileStorage, clock: FrozenClock) -> None:
    memory_id = await storage.store(memory_of("purple elephant plan", expires_at=clock.now + timedelta(days=5)))
    await use(storage, clock, 32)
    await storage.update(memory_id, {"expires_at": clock.now + timedelta(days=90)})
    await storage.compact()
    await use(storage, clock, 5)
    await storage.compact()
    assert await storage.get(memory_id) is not None


async def test_what_replaced_a_memory_and_expired_brings_no_other_one_down(
    storage: FileStorage, clock: FrozenClock
) -> None:
    first = await storage.store(memory_of("tea in the morning"))
    await storage.store(memory_of("purple elephant", supersedes=first, expires_at=clock.now + timedelta(days=1)))
    await use(storage, clock, 2)
    assert first in [memory.id for memory in await storage.valid()]
    await use(storage, clock, 33)
    assert first in [memory.id for memory in await storage.valid()]
    assert files_with(storage.folder.path) == []
