"""`Behind`: background work of a session, one run at a time, which no answer waits for and the end cuts short."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Final

from agent_memory.errors import AgentMemoryError
from agent_memory.logs import get_logger

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from agent_memory.integrations.amplifier import MemorySession
    from agent_memory.tasks.stage import Ran

log = get_logger(__name__)

PAUSE_SECONDS: Final = 0.05
"""Before anything is done behind an answer: the event that brought the words finishes first."""


class _StoppedError(Exception):
    """The session ends: what is left is left to the next one."""


class Behind:
    """Runs background work when it is told that there is some.

    Args:
        session: Gets to know what does not work.
        work: Does a part of it, and calls what it is given after each portion that is on the disk.

    Attributes:
        done: How many records were worked on, by step; how many `failed`; and in how many runs there was `trouble`.
    """

    def __init__(self, session: MemorySession, work: Callable[[Callable[[Ran], None]], Awaitable[Ran]]) -> None:
        self._session, self._work = session, work
        self._is_ending = False
        self._task: asyncio.Task[None] | None = None
        self._is_due = self._is_troubled = False
        self.done: Counter[str] = Counter()

    def begin(self) -> None:
        """Have what is due worked on; what is under way looks again when it is done."""
        self._is_due, self._is_ending = True, False
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def settle(self, seconds: float) -> None:
        """Wait until nothing is under way, at most so long, and as long again for the portion that is under way then.

        What is left is left to the next session.
        """
        task, self._task = self._task, None
        if task is None:
            return
        await asyncio.wait([task], timeout=seconds)
        if not task.done():
            self._is_ending = True
            await asyncio.wait([task], timeout=seconds)
        task.cancel()  # a portion that is cut short is done again: nothing is lost by it, and nothing is there twice
        await asyncio.gather(task, return_exceptions=True)

    def _go_on(self, _so_far: Ran) -> None:
        if self._is_ending:
            raise _StoppedError

    async def _run(self) -> None:
        await asyncio.sleep(PAUSE_SECONDS)
        while self._is_due:
            self._is_due = False
            try:
                ran = await self._work(self._go_on)
            except _StoppedError:
                return
            except AgentMemoryError as error:
                if not self._is_troubled:
                    await self._session.conversation.report_degraded("background", error)
                self._is_troubled = True
                self.done["trouble"] += 1
            except Exception as error:  # noqa: BLE001 - a defect of ours must not end the session
                log.warning("background_failed", error=type(error).__name__)
                self.done["trouble"] += 1
            else:
                self._is_troubled = False
                self.done.update({**ran.done, "failed": ran.failed})
