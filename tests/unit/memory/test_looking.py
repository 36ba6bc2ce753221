"""Comparisons in the background: one memory after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_memory.errors import StorageError
from agent_memory.memory import NOBODY, MemoryService
from tests.support import memory_of

if TYPE_CHECKING:
    import pytest

    from tests.support import FrozenClock
    from tests.unit.memory.conftest import Services


async def pairs(service: MemoryService) -> list[tuple[str, str]]:
    await service.settle()
    return [(each.newer.content, each.older.content) for each in await service.suspects()]


async def test_of_one_moment_a_pair_is_raised_once(make_service: Services) -> None:
    service = make_service()
    there = (await service.store("The daily backup keeps 14 copies.")).memory
    brought = memory_of("The daily backup keeps 30 copies.", timestamp=there.timestamp)
    await service.writer.import_memories([brought], lambda _: None, NOBODY, trusted=True)
    assert len(await pairs(service)) == 1


async def test_look_behind_import_burst_compares_all(make_service: Services, clock: FrozenClock) -> None:
    service = make_service()
    brought = [memory_of(f"The port of host {name} is {port}.", timestamp=clock()) for name in "xyz" for port in (1, 2)]
    await service.writer.import_memories(brought, lambda _: None, NOBODY, trusted=True)
    assert len(await pairs(service)) == 3


async def test_look_behind_storage_error_compares_next(make_service: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    service = make_service()

    async def fails(*_: object, **__: object) -> None:
        raise StorageError("The disk is gone.")

    with monkeypatch.context() as broken:
        broken.setattr(service.storage, "compare_neighbors", fails)
        broken.setattr(service.storage, "alike", fails)
        await service.store("The port is 1.")
        await service.settle()
    await service.store("The port is 2.")
    assert await pairs(service) == [("The port is 2.", "The port is 1.")]
