"""Changes of an archive wait for each other."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from agent_memory.care.archive import alone
from agent_memory.errors import BusyError
from agent_memory.files.lock import archive_lock

if TYPE_CHECKING:
    from pathlib import Path


async def test_a_second_one_is_refused_after_its_time_and_let_in_once_the_first_is_done(tmp_path: Path) -> None:
    async with alone(tmp_path, 0):
        with pytest.raises(BusyError):
            async with alone(tmp_path, 0):
                pytest.fail("two at once")
    async with alone(tmp_path, 0):
        pass


async def test_one_that_is_cancelled_while_it_waits_keeps_nobody_out(tmp_path: Path) -> None:
    async def move() -> None:
        async with alone(tmp_path, 30):
            pytest.fail("it was cancelled")

    with archive_lock(tmp_path, 0):
        waiting = asyncio.create_task(move())
        await asyncio.sleep(0.05)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    async with alone(tmp_path, 30):
        pass


async def test_nothing_is_made_where_there_is_no_folder(tmp_path: Path) -> None:
    folder = tmp_path / "bob"
    async with alone(folder, 0):
        pass
    assert not await asyncio.to_thread(folder.exists)
