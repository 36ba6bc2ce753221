"""Work that is done behind an answer: nobody waits for it but the end of the service."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from agent_memory.errors import AgentMemoryError
from agent_memory.logs import get_logger

if TYPE_CHECKING:
    from collections.abc import Coroutine

log = get_logger(__name__)


class Background:
    """Tasks of one service, of any number of event loops."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def run(self, work: Coroutine[Any, Any, object]) -> None:
        """Do something after the answer; a failure of ours is logged, since nobody waits for it."""
        task = asyncio.get_running_loop().create_task(_guarded(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def settle(self) -> None:
        """Wait for what is under way in this loop, and for what that begins.

        Tasks of another loop belong to the process that this one was forked from, or ended with their loop.
        """
        loop = asyncio.get_running_loop()
        while mine := {task for task in self._tasks if task.get_loop() is loop}:
            await asyncio.gather(*mine, return_exceptions=True)
            # Their callbacks may not have run: since Python 3.12 waiting for what is done does not yield.
            self._tasks -= mine


async def _guarded(work: Coroutine[Any, Any, object]) -> None:
    try:
        await work
    except AgentMemoryError as error:
        log.warning("background_work_failed", code=error.code, error=error.message)
