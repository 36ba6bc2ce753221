"""Turns of one object that several event loops use."""

from __future__ import annotations

import asyncio
import threading

import pytest

from agent_memory.errors import BusyError
from agent_memory.store.worker import LoopLock


async def test_tasks_of_one_loop_take_turns() -> None:
    turns, order = LoopLock("counting"), []

    async def count(name: str) -> None:
        async with turns.turn():
            order.append(name)
            await asyncio.sleep(0)
            order.append(name)

    await asyncio.gather(count("a"), count("b"))
    assert order == ["a", "a", "b", "b"]
    assert not turns.is_taken


async def test_a_task_of_another_loop_is_refused_until_the_turn_is_over() -> None:
    turns = LoopLock("counting")
    taken, done = threading.Event(), threading.Event()

    async def hold() -> None:
        async with turns.turn():
            taken.set()
            await asyncio.to_thread(done.wait)

    other = threading.Thread(target=lambda: asyncio.run(hold()))
    other.start()
    await asyncio.to_thread(taken.wait)
    try:
        assert turns.is_taken
        with pytest.raises(BusyError, match="counting"):
            async with turns.turn():
                pass
    finally:
        done.set()
        await asyncio.to_thread(other.join)
    async with turns.turn():
        assert turns.is_taken


def test_the_turn_of_a_task_whose_loop_stopped_is_over() -> None:
    turns = LoopLock("counting")
    stopped = asyncio.new_event_loop()

    async def hold() -> None:
        async with turns.turn():
            await asyncio.sleep(3600)

    async def begin() -> asyncio.Task[None]:
        task = stopped.create_task(hold())
        await asyncio.sleep(0)
        return task

    async def take() -> bool:
        async with turns.turn():
            return turns.is_taken

    task = stopped.run_until_complete(begin())
    assert not turns.is_taken
    assert asyncio.run(take())
    task.cancel()
    stopped.run_until_complete(asyncio.gather(task, return_exceptions=True))
    stopped.close()
    assert asyncio.run(take())
