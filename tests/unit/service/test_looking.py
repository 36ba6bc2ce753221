"""What is compared behind the answers: by words and by vectors, one memory after the other, and for how long."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from agent_memory.embeddings.testing import HashEmbedder
from agent_memory.errors import StorageError
from agent_memory.memories import FileStorage
from agent_memory.models import Observation
from agent_memory.service import NOBODY, MemoryService
from agent_memory.settings import ServiceSettings
from tests.support import memory_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from tests.support import FrozenClock
    from tests.unit.service.conftest import Services

    Opened = Callable[..., MemoryService]

OLD, NEW = "Payments are handled by Stripe.", "Adyen processes our payments now."
"""They have one word in common, and the same vector."""


@pytest.fixture
def embedder() -> HashEmbedder:
    return HashEmbedder(synonyms={"adyen": "stripe", "processes": "handled", "our": "are", "now": "by"})


@pytest.fixture
async def opened(root: Path, clock: FrozenClock, embedder: HashEmbedder) -> AsyncIterator[Opened]:
    """Return a function that opens bob's memory with vectors by that embedder; all are closed at the end."""
    services: list[MemoryService] = []

    def make(**settings: Any) -> MemoryService:
        chosen = ServiceSettings(storage_root=str(root), **settings)
        storage = FileStorage("bob", settings=chosen, clock=clock, embedder=embedder)
        services.append(MemoryService(storage, chosen, clock=clock))
        return services[-1]

    yield make
    embedder.gate.set()
    for service in services:
        await service.close()


async def pairs(service: MemoryService) -> list[tuple[str, str]]:
    await service.settle()
    return [(each.newer.content, each.older.content) for each in await service.suspects()]


async def test_a_burst_of_stores_is_compared_by_meaning_to_its_last(
    opened: Opened, clock: FrozenClock, embedder: HashEmbedder
) -> None:
    service = opened()
    embedder.gate.clear()
    for number in range(80):
        await service.store(f"Crate {number} holds {number * 7} bolts of make {number:x}.")
    await service.store(OLD)
    clock.advance(minutes=1)
    await service.store(NEW)
    asyncio.get_running_loop().call_later(0.05, embedder.gate.set)
    assert (NEW, OLD) in await pairs(service)


async def test_an_import_is_compared_by_meaning_too(opened: Opened, clock: FrozenClock) -> None:
    brought = [memory_of(OLD, timestamp=clock()), memory_of(NEW, timestamp=clock())]
    service = opened()
    await service.admin.import_memories(brought, lambda _: None, NOBODY)
    assert await pairs(service) == [(NEW, OLD)]


async def test_what_is_captured_is_compared_by_meaning_too(opened: Opened, clock: FrozenClock) -> None:
    service = opened()
    await service.store(OLD)
    clock.advance(minutes=1)
    await service.capture([Observation(content=NEW, category="decision", confidence=0.9)])
    assert await pairs(service) == [(NEW, OLD)]


async def test_new_words_of_a_memory_are_compared_by_meaning_too(opened: Opened, clock: FrozenClock) -> None:
    service = opened()
    await service.store(OLD)
    clock.advance(minutes=1)
    other = (await service.store("The archive has nine rooms.")).memory
    await service.settle()
    await service.update(other.id, {"content": NEW})
    assert await pairs(service) == [(NEW, OLD)]


async def test_looking_at_all_compares_by_meaning_unless_vectors_may_cost(opened: Opened, clock: FrozenClock) -> None:
    off = opened(suspects=False)
    await off.store(OLD)
    clock.advance(minutes=1)
    await off.store(NEW)
    assert await opened(embedder="openai").disputes.look() == 0
    assert await opened().disputes.look() == 1
    assert await pairs(off) == [(NEW, OLD)]


async def test_of_one_moment_a_pair_is_raised_once(make_service: Services) -> None:
    service = make_service()
    there = (await service.store("The daily backup runs at 2:30.")).memory
    brought = memory_of("The daily backup runs at 4:00.", timestamp=there.timestamp)
    await service.admin.import_memories([brought], lambda _: None, NOBODY)
    assert len(await pairs(service)) == 1


async def test_the_end_of_the_service_waits_for_no_vectors(
    opened: Opened, clock: FrozenClock, embedder: HashEmbedder
) -> None:
    service = opened()
    embedder.gate.clear()
    await service.store(OLD)
    clock.advance(minutes=1)
    await service.store(NEW)
    looking = asyncio.create_task(service.settle())
    await asyncio.sleep(0.05)
    assert not looking.done()
    service.disputes.give_up()
    await asyncio.wait_for(looking, 15)
    assert await service.suspects() == []


async def test_after_a_failure_the_next_memory_is_compared(
    opened: Opened, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = opened()
    await service.store(OLD)

    async def fails(*_: object, **__: object) -> None:
        raise StorageError("The disk is gone.")

    with monkeypatch.context() as broken:
        broken.setattr(service.storage, "get", fails)
        await service.settle()
    clock.advance(minutes=1)
    await service.store(NEW)
    assert await pairs(service) == [(NEW, OLD)]
