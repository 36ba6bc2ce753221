"""One thread per storage, so that synchronous code below never blocks the event loop and never runs twice at once."""

from __future__ import annotations

import asyncio
import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

from agent_memory.errors import AgentMemoryError
from agent_memory.logs import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")
log = get_logger(__name__)


class Worker:
    """A thread that is started by the first call and runs calls in their order.

    A forked child starts a thread of its own: threads do not survive a fork, and waiting for the parent's would hang.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._executor: ThreadPoolExecutor | None = None
        self._pid = 0

    async def run(self, function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """Run `function` in the thread and return its result; cancelling the wait does not stop the call."""
        future = self._pool().submit(function, *args, **kwargs)
        # Shielded, or cancelling the wait would take back a call that stands in the queue behind another.
        return await asyncio.shield(asyncio.wrap_future(future))

    def submit(self, function: Callable[..., object], *args: Any) -> None:
        """Have `function` run after what is queued, with nobody waiting; an error of ours is logged."""
        self._pool().submit(_logged, function, *args)

    def close(self) -> None:
        """Wait for what is under way and end the thread; a later call starts a new one."""
        executor, self._executor = self._executor, None
        if executor is not None and self._pid == os.getpid():
            executor.shutdown(wait=True)

    def _pool(self) -> ThreadPoolExecutor:
        if self._executor is None or self._pid != os.getpid():
            self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix=self._name)
            self._pid = os.getpid()
        return self._executor


def _logged(function: Callable[..., object], *args: Any) -> None:
    try:
        function(*args)
    except AgentMemoryError as error:
        log.warning("background_work_failed", code=error.code, error=error.message)
