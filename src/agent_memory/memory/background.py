"""Background work after an answer; the end of the service waits for it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from agent_memory.errors import AgentMemoryError
from agent_memory.logs import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    Begin = Callable[[], Coroutine[Any, Any, object]]

log = get_logger(__name__)

_FIRST_ANSWER: Final = 0.25
"""Seconds within which a session is shown its scratchpad; reading everything would take the processor from it."""


class Background:
    """Tasks of one service, of any number of event loops."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()
        self._waiting: set[asyncio.TimerHandle] = set()  # one for each session that shares the service

    def after_first_answer(self, begin: Begin) -> None:
        """Run work soon after a session has seen its scratchpad."""

        def begin_now() -> None:
            self._waiting.discard(handle)
            self.run(begin())

        handle = asyncio.get_running_loop().call_later(_FIRST_ANSWER, begin_now)
        self._waiting.add(handle)

    def give_up(self) -> None:
        """Leave what has not begun."""
        for handle in self._waiting:
            handle.cancel()
        self._waiting.clear()

    def run(self, work: Coroutine[Any, Any, object]) -> None:
        """Run work after the answer; log its failure."""
        task = asyncio.get_running_loop().create_task(_guarded(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda _: work.close())  # a loop may end before its first step

    async def settle(self) -> None:
        """Wait for the work in this loop.

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
