"""Those who store at the same time share a sync, and each is told only after it."""

from __future__ import annotations

import asyncio
import os
import threading
from typing import TYPE_CHECKING

from tests.support import lines_of, memory_of

if TYPE_CHECKING:
    import pytest

    from agent_memory.storage import FileStorage

CALLERS = 8


async def test_seven_that_come_during_a_sync_share_the_next_one(
    storage: FileStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    await storage.store(memory_of("the first also makes the files"))
    journal, real = storage.folder.journal, os.fsync
    syncs: list[int] = []
    all_are_there = threading.Event()

    def sync(descriptor: int) -> None:
        if os.path.samestat(os.fstat(descriptor), journal.stat()):
            syncs.append(len(lines_of(journal)))
            all_are_there.wait(30)
        real(descriptor)

    monkeypatch.setattr(os, "fsync", sync)
    stores = [asyncio.ensure_future(storage.store(memory_of(f"fact {number}"))) for number in range(CALLERS)]
    while len(lines_of(journal)) < 1 + CALLERS:
        await storage.count()
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
