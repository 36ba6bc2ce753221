"""One at a time looks after the file, whichever thread, loop or process it is; nobody waits for ever."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

import pytest

from agent_memory.memory.scratchpad_manager import RenderLock

if TYPE_CHECKING:
    from pathlib import Path


async def test_a_second_one_waits_and_gives_up(tmp_path: Path) -> None:
    first, second = RenderLock(tmp_path), RenderLock(tmp_path)
    async with first.taken(0) as is_mine, second.taken(0.02) as is_theirs, first.taken(0.02) as again:
        assert (is_mine, is_theirs, again) == (True, False, False)
    async with second.taken(0) as is_mine:
        assert is_mine


async def test_a_wait_that_is_cancelled_takes_nothing(tmp_path: Path) -> None:
    turn = RenderLock(tmp_path)

    async def wait() -> None:
        async with turn.taken(60):
            pytest.fail("it was held")

    async with turn.taken(0):
        waiting = asyncio.create_task(wait())
        await asyncio.sleep(0.02)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    async with turn.taken(0) as is_mine:
        assert is_mine


async def test_without_a_folder_there_is_nothing_to_lock_and_threads_still_take_turns(tmp_path: Path) -> None:
    turn = RenderLock(tmp_path / "none")
    async with turn.taken(0) as is_mine, turn.taken(0) as again:
        assert (is_mine, again) == (True, False)
    assert not (tmp_path / "none").exists()


def test_loops_in_many_threads_never_hold_it_together(tmp_path: Path) -> None:
    turn, holding, most = RenderLock(tmp_path), [0], [0]

    async def use() -> None:
        for _ in range(5):
            async with turn.taken(60) as is_mine:
                assert is_mine
                holding[0] += 1
                most[0] = max(most[0], holding[0])
                await asyncio.sleep(0.001)
                holding[0] -= 1

    threads = [threading.Thread(target=lambda: asyncio.run(use())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1]
