"""One thread per storage, so that synchronous code below never blocks the event loop and never runs twice at once.

What wants the folder's lock waits for it in a second thread: searches go on meanwhile, whoever holds it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final, TypeVar

from agent_memory.errors import AgentMemoryError, BusyError
from agent_memory.files.lock import WAIT_SECONDS, held_by_another, seems_free
from agent_memory.logs import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

S = TypeVar("S")
T = TypeVar("T")
log = get_logger(__name__)

TURN_SECONDS: Final = 0.2
"""How long the thread itself may wait for a lock that was free a moment ago: what a search may have to wait behind it.
With much less, a process that gets little of the processor loses every race."""
_BETWEEN_TRIES: Final = 0.002


class Worker:
    """A thread that is started by the first call and runs calls in their order.

    A forked child starts a thread of its own: threads do not survive a fork, and waiting for the parent's would hang.

    Args:
        name: Of the thread.
        lock: The file whose lock those functions take that are run by `write`.
        patience: Seconds to wait for that lock; `WAIT_SECONDS` when omitted.
    """

    def __init__(self, name: str, lock: Path | None = None, patience: float | None = None) -> None:
        self._name = name
        self._lock = lock
        self._patience = patience
        self._went = 0.0
        self._executor: ThreadPoolExecutor | None = None
        self._waiting: ThreadPoolExecutor | None = None
        self._pid = 0

    async def run(self, function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """Run `function` in the thread and return its result; cancelling the wait does not stop the call."""
        future = self._pool().submit(function, *args, **kwargs)
        # Shielded, or cancelling the wait would take back a call that stands in the queue behind another.
        return await asyncio.shield(asyncio.wrap_future(future))

    async def write(self, prepare: Callable[[], S], function: Callable[[S], T]) -> T:
        """Run `function`, which takes the folder's lock, in the thread; again and again while that lock is not free.

        It gets what `prepare` returns, which runs once, where writes wait: no search waits for it.

        Others get in between. Writes keep their order. A write waits from when it is its turn, not from when it got
        in line: writes of this process before it are no reason to give up. Where none gets the lock, all that wait by
        then give up together.

        Raises:
            BusyError: No write of this process got the lock for the length of its patience.
        """
        self._pool()
        assert self._waiting is not None
        asked = time.monotonic()
        future = self._waiting.submit(lambda: self._patiently(asked, function, prepare()))
        return await asyncio.shield(asyncio.wrap_future(future))

    def _patiently(self, asked: float, function: Callable[[S], T], prepared: S) -> T:
        patience = WAIT_SECONDS if self._patience is None else self._patience
        deadline = max(asked, self._went) + patience
        while True:
            while not seems_free(self._lock):
                if time.monotonic() >= deadline:
                    raise held_by_another(patience)
                time.sleep(_BETWEEN_TRIES)
            work = self._pool().submit(function, prepared)
            if not isinstance(work.exception(), BusyError):
                self._went = time.monotonic()
                return work.result()
            if time.monotonic() >= deadline:
                raise held_by_another(patience)

    def submit(self, function: Callable[..., object], *args: Any) -> None:
        """Run `function` after what is queued, without waiting for it; an error of the library is logged.

        While another thread closes the worker, nothing is run: the next start does what is left to do.
        """
        with contextlib.suppress(RuntimeError):  # what `submit` raises once the executor shuts down
            self._pool().submit(_logged, function, *args)

    def close(self) -> None:
        """Wait for what is under way and end the thread; a later call starts a new one."""
        waiting, executor = self._waiting, self._executor
        if self._pid == os.getpid():
            for each in (waiting, executor):  # in this order: what waits still needs the other
                if each is not None:
                    each.shutdown(wait=True)
        self._waiting = self._executor = None

    def _pool(self) -> ThreadPoolExecutor:
        if self._executor is None or self._pid != os.getpid():
            self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix=self._name)
            self._waiting = ThreadPoolExecutor(max_workers=1, thread_name_prefix=f"{self._name}-writing")
            self._pid = os.getpid()
        return self._executor


def _logged(function: Callable[..., object], *args: Any) -> None:
    try:
        function(*args)
    except AgentMemoryError as error:
        log.warning("background_work_failed", code=error.code, error=error.message)
