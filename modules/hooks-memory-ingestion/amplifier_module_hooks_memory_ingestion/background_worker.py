"""Background work of a session, one run at a time."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Final

from agent_memory.errors import AgentMemoryError
from agent_memory.logs import get_logger

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from agent_memory.integrations.amplifier import MemorySession
    from agent_memory.knowledge.pipeline.stage import Ran

log = get_logger(__name__)

PAUSE_SECONDS: Final = 0.05
"""Pause before work that an event starts: the event finishes first."""


class _StoppedError(Exception):
    """The session ends; the next one continues the work."""


class BackgroundWorker:
    """Worker that no answer waits for, and that the end of the session cuts short.

    Args:
        session: Memory of the session, which reports failures.
        work: Does a part of the work; calls its argument after each batch that is stored.

    Attributes:
        done: Counts of processed records by step, of `failed` ones, and of runs with `trouble`.
    """

    def __init__(self, session: MemorySession, work: Callable[[Callable[[Ran], None]], Awaitable[Ran]]) -> None:
        self._session, self._work = session, work
        self._is_ending = self._is_due = self._is_failing = False
        self._task: asyncio.Task[None] | None = None
        self.done: Counter[str] = Counter()

    def start(self) -> None:
        """Run the work that is due; a run under way checks again at its end."""
        self._is_due, self._is_ending = True, False
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def settle(self, seconds: float) -> None:
        """Wait until the work is done, then stop it.

        Args:
            seconds: Longest wait for the work, and again for the batch under way.
        """
        task, self._task = self._task, None
        if task is None:
            return
        await asyncio.wait([task], timeout=seconds)
        if not task.done():
            self._is_ending = True
            await asyncio.wait([task], timeout=seconds)
        task.cancel()  # a batch that is cut short is done again: nothing is lost by it, and nothing is stored twice
        await asyncio.gather(task, return_exceptions=True)

    def _check_end(self, _progress: Ran) -> None:
        if self._is_ending:
            raise _StoppedError

    async def _run(self) -> None:
        await asyncio.sleep(PAUSE_SECONDS)
        while self._is_due:
            self._is_due = False
            try:
                ran = await self._work(self._check_end)
            except _StoppedError:
                return
            except AgentMemoryError as error:
                if not self._is_failing:
                    await self._session.conversation.report_degraded("background", error)
                self._is_failing = True
                self.done["trouble"] += 1
            except Exception as error:  # noqa: BLE001 - a defect of ours must not end the session
                log.warning("background_failed", error=type(error).__name__)
                self.done["trouble"] += 1
            else:
                self._is_failing = False
                self.done.update({**ran.done, "failed": ran.failed})
