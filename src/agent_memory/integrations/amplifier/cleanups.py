"""Cleanup functions of modules."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine


def callable_anyhow(work: Callable[[], Coroutine[object, object, None]]) -> Callable[[], Awaitable[None]]:
    """Return a cleanup that can be called and awaited in any way.

    The kernel calls it in a thread without a loop and awaits the coroutine. On a running loop it returns a task, which
    runs whether awaited or not.
    """
    tasks: set[asyncio.Task[None]] = set()

    def cleanup() -> Awaitable[None]:
        try:
            task = asyncio.get_running_loop().create_task(work())
        except RuntimeError:
            return work()
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        return task

    return cleanup
