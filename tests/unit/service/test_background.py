"""What is done behind an answer: waited for to its end, in this loop, and never for ever."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from agent_memory.errors import StorageError
from agent_memory.service.background import Background

if TYPE_CHECKING:
    import pytest


async def test_settling_waits_for_what_the_work_begins_itself() -> None:
    background, done = Background(), []

    async def later() -> None:
        await asyncio.sleep(0)
        done.append("later")

    async def first() -> None:
        await asyncio.sleep(0)
        background.run(later())
        done.append("first")

    background.run(first())
    await background.settle()
    assert done == ["first", "later"]


async def test_settling_ends_although_what_is_done_has_not_been_taken_off_yet() -> None:
    background = Background()

    class Late(asyncio.Task[None]):
        def add_done_callback(self, callback: Any, **more: Any) -> None:
            if getattr(callback, "__name__", "") != "discard":
                super().add_done_callback(callback, **more)

    loop = asyncio.get_running_loop()
    loop.set_task_factory(lambda loop, work, **more: Late(work, loop=loop, **more))
    background.run(asyncio.sleep(0))
    loop.set_task_factory(None)
    await asyncio.sleep(0.01)
    await asyncio.wait_for(background.settle(), 5)


async def test_a_failure_of_ours_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def fails() -> None:
        raise StorageError("The disk is gone.")

    background = Background()
    background.run(fails())
    await background.settle()
    assert "background_work_failed" in caplog.text
