"""Those who store at the same time share a sync, and each is told only after it."""

from __future__ import annotations

import asyncio
import os
import threading
from typing import TYPE_CHECKING

from agent_memory.errors import UnknownIdError
from agent_memory.journal import Journal
from tests.support import lines_of, memory_of

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    import pytest

    from agent_memory.storage import FileStorage

CALLERS = 8


async def test_seven_that_come_during_a_sync_share_the_next_one(
    storage: FileStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    await storage.store(memory_of("the first also makes the files"))
    journal, real = storage.folder.journal, os.fsync
    syncs: list[int] = []
    begun, all_are_there = threading.Event(), threading.Event()

    def sync(descriptor: int) -> None:
        if os.path.samestat(os.fstat(descriptor), journal.stat()):
            syncs.append(len(lines_of(journal)))
            begun.set()
            all_are_there.wait(30)
        real(descriptor)

    monkeypatch.setattr(os, "fsync", sync)
    stores = [asyncio.ensure_future(storage.store(memory_of("fact 0")))]
    await asyncio.to_thread(begun.wait, 30)
    stores += [asyncio.ensure_future(storage.store(memory_of(f"fact {number}"))) for number in range(1, CALLERS)]
    await asyncio.sleep(0)  # each of them asks
    assert not any(store.done() for store in stores), "told before it was on the disk"
    all_are_there.set()
    await asyncio.gather(*stores)
    assert len(syncs) == 2
    assert syncs[-1] == 1 + CALLERS


async def test_a_caller_who_goes_away_leaves_its_line_to_be_synced(
    storage: FileStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    await storage.store(memory_of("the first also makes the files"))
    journal, real = storage.folder.journal, os.fsync
    begun, go_on, done = threading.Event(), threading.Event(), threading.Event()

    def sync(descriptor: int) -> None:
        begun.set()
        go_on.wait(30)
        real(descriptor)
        done.set()

    monkeypatch.setattr(os, "fsync", sync)
    store = asyncio.ensure_future(storage.store(memory_of("left alone")))
    await asyncio.to_thread(begun.wait, 30)
    store.cancel()
    go_on.set()
    assert await asyncio.to_thread(done.wait, 30)
    assert len(lines_of(journal)) == 2


async def test_those_that_wait_for_their_turn_take_the_lock_once_and_share_one_sync(
    storage: FileStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    await storage.store(memory_of("the first also makes the files"))
    journal, real, hold = storage.folder.journal, os.fsync, Journal.hold
    syncs, holds = list[int](), list[Journal]()

    def sync(descriptor: int) -> None:
        if os.path.samestat(os.fstat(descriptor), journal.stat()):
            syncs.append(len(lines_of(journal)))
        real(descriptor)

    def held(mine: Journal, wait: float | None = None) -> AbstractContextManager[None]:
        holds.append(mine)
        return hold(mine, wait)

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(Journal, "hold", held)
    go_on = threading.Event()
    before = asyncio.ensure_future(storage.worker.run(go_on.wait, 30))
    stores = [asyncio.ensure_future(storage.store(memory_of(f"fact {number}"))) for number in range(CALLERS)]
    await asyncio.sleep(0)  # each of them asks
    go_on.set()
    ids = await asyncio.gather(*stores)
    await before
    assert (len(holds), syncs) == (1, [1 + CALLERS])
    assert [memory.id async for memory in storage.iter_all()][1:] == list(ids)


async def test_one_that_is_refused_costs_those_that_are_written_with_it_nothing(storage: FileStorage) -> None:
    await storage.store(memory_of("the first also makes the files"))
    go_on = threading.Event()
    before = asyncio.ensure_future(storage.worker.run(go_on.wait, 30))
    replacing = memory_of("replaces what is not there", supersedes="mem-00000000000f")
    stores = [storage.store(memory_of("good")), storage.store(replacing), storage.store(memory_of("good, too"))]
    asked = asyncio.gather(*stores, storage.update("mem-00000000000f", {"category": "note"}), return_exceptions=True)
    await asyncio.sleep(0)
    go_on.set()
    first, second, third, fourth = await asked
    await before
    assert isinstance(second, UnknownIdError)
    assert isinstance(fourth, UnknownIdError)
    assert [memory.id async for memory in storage.iter_all()][1:] == [first, third]
