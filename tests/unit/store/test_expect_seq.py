"""Compare-and-set: a change that is made only if nobody changed the record since it was read."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from agent_memory.errors import ConflictError
from agent_memory.memory import MemoryService
from agent_memory.models import MEMORY
from agent_memory.settings import ServiceSettings
from agent_memory.storage import FileStorage
from agent_memory.store.segment_builder import seal_up
from tests.support import FrozenClock, memory_of

if TYPE_CHECKING:
    from pathlib import Path


async def last_change(storage: FileStorage, memory_id: str) -> int:
    return (await storage.history(memory_id))[-1].seq


async def test_a_change_upon_what_was_read_is_made_and_one_upon_what_is_past_is_not(
    storage: FileStorage, root: Path, clock: FrozenClock
) -> None:
    memory_id = await storage.store(memory_of("tea"))
    other = FileStorage("bob", root, settings=ServiceSettings(embedder="none"), clock=clock)
    seq = await last_change(other, memory_id)
    await storage.update(memory_id, {"content": "green tea"}, expect_seq=seq)
    with pytest.raises(ConflictError) as refused:
        await other.update(memory_id, {"content": "black tea"}, expect_seq=seq)
    assert refused.value.code == "conflict"
    assert "Read it again" in refused.value.recovery
    assert (await other.get(memory_id)).content == "green tea"  # type: ignore[union-attr]
    await other.update(memory_id, {"content": "black tea"}, expect_seq=await last_change(other, memory_id))
    assert (await storage.get(memory_id)).content == "black tea"  # type: ignore[union-attr]
    await other.close()


async def test_of_many_who_read_the_same_one_wins(storage: FileStorage) -> None:
    memory_id = await storage.store(memory_of("0"))
    seq = await last_change(storage, memory_id)
    tries = (storage.update(memory_id, {"content": str(number)}, expect_seq=seq) for number in range(1, 9))
    done = await asyncio.gather(*tries, return_exceptions=True)
    assert sum(isinstance(each, ConflictError) for each in done) == 7


async def test_accesses_are_no_changes(storage: FileStorage) -> None:
    memory_id = await storage.store(memory_of("tea"))
    seq = await last_change(storage, memory_id)
    await storage.touch([memory_id])
    assert (await storage.update(memory_id, {"pinned": True}, expect_seq=seq)).pinned


async def test_a_change_of_what_is_sealed_has_its_number_too(storage: FileStorage, root: Path) -> None:
    memory_id = await storage.store(memory_of("tea"))
    seq = await last_change(storage, memory_id)
    seal_up(storage.folder, MEMORY, None, least=1)
    other = FileStorage("bob", root, settings=ServiceSettings(embedder="none"))
    with pytest.raises(ConflictError):
        await other.update(memory_id, {"pinned": True}, expect_seq=seq + 1)
    assert (await other.update(memory_id, {"pinned": True}, expect_seq=seq)).pinned
    await other.close()


async def test_a_service_passes_it_on(storage: FileStorage) -> None:
    service = MemoryService(storage, ServiceSettings(embedder="none"))
    memory_id = (await service.store({"content": "tea"})).memory.id
    seq = await last_change(storage, memory_id)
    await service.update(memory_id, {"content": "green tea"}, expect_seq=seq)
    with pytest.raises(ConflictError):
        await service.update(memory_id, {"content": "black tea"}, expect_seq=seq)
    await service.close()
