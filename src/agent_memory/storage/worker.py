"""Threads of one storage, so that synchronous code below never blocks the event loop and never runs twice at once.

One thread has the state: all that looks at it or changes it runs there, in the order of the calls. What waits does so
elsewhere, so that searches go on meanwhile: for the folder's lock, for a sync, for the folding of a journal.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from agent_memory.errors import AgentMemoryError
from agent_memory.files.lock import WAIT_SECONDS
from agent_memory.logs import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    Hold = Callable[[float], AbstractContextManager[object]]
    """Returns what holds the lock for the length of a block, after so many seconds of waiting at most."""
    Settle = Callable[[], object] | None
    """Returns when what was written is on the disk."""

S = TypeVar("S")
T = TypeVar("T")
log = get_logger(__name__)

Thread = Literal["folding", "writing", "state", "settling"]
_THREADS: Final[tuple[Thread, ...]] = ("folding", "writing", "state", "settling")
"""Each may wait for those behind it."""


class Worker:
    """Threads that are started by the first call for them, and run calls in their order.

    A forked child starts threads of its own: threads do not survive a fork, and waiting for the parent's would hang.

    Args:
        name: Of the threads.
        patience: Seconds to wait for a lock.
    """

    def __init__(self, name: str, patience: float = WAIT_SECONDS) -> None:
        self._name = name
        self._patience = patience
        self._went = 0.0
        self._pools: dict[Thread, ThreadPoolExecutor] = {}
        self._pid = 0

    async def run(self, function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """Run `function` in the thread of the state; cancelling the wait does not stop the call."""
        return await _result(self._start("state", function, *args, **kwargs))

    async def write(
        self, prepare: Callable[[], S], look: Callable[[], Hold], function: Callable[[S], tuple[T, Settle]]
    ) -> T:
        """Change the state with the folder's lock held, and wait until that is on the disk; writes keep their order.

        A write waits for the lock from when it is its turn, not from when it got in line: writes of this process before
        it are no reason to give up. Where none gets the lock, all that wait by then give up together.

        Args:
            prepare: Runs where writes wait: no search waits for it.
            look: Catches up before the lock is taken, in the thread of the state; returns what takes it.
            function: Changes what `prepare` returned; returns the answer, and what makes it durable.

        Raises:
            BusyError: No write of this process got the lock for the length of its patience.
        """
        asked = time.monotonic()
        # The sync is begun by the thread, not by the caller, who may be gone by then.
        settling = await _result(self._start("writing", self._write, asked, prepare, look, function))
        return await _result(settling)

    async def aside(self, function: Callable[..., T], *args: Any) -> T:
        """Run what takes seconds and needs no state, one at a time."""
        return await _result(self._start("folding", function, *args))

    def ask(self, function: Callable[[], T]) -> T:
        """Do as `run`, in a thread that `aside` runs in."""
        return self._start("state", function).result()

    def change(self, look: Callable[[], Hold], function: Callable[[], T]) -> T:
        """Do as `write`, in a thread that `aside` runs in."""
        work = self._start("writing", self._write, time.monotonic(), bool, look, lambda _: (function(), None))
        settling: Future[T] = work.result()
        return settling.result()

    def submit(self, function: Callable[..., object], *args: Any, thread: Thread = "state") -> None:
        """Run `function` after what is queued, without waiting for it; an error of the library is logged.

        While another thread closes the worker, nothing is run: the next start does what is left to do.
        """
        with contextlib.suppress(RuntimeError):  # what `submit` raises once the executor shuts down
            self._start(thread, _logged, function, *args)

    def close(self) -> None:
        """Wait for what is under way and end the threads; a later call starts new ones."""
        if self._pid == os.getpid():
            for pool in self._pools.values():
                pool.shutdown(wait=True)
        self._pools = {}

    def _write(
        self,
        asked: float,
        prepare: Callable[[], S],
        look: Callable[[], Hold],
        function: Callable[[S], tuple[T, Settle]],
    ) -> Future[T]:
        prepared = prepare()
        hold = self._start("state", look).result()
        with hold(max(0.0, max(asked, self._went) + self._patience - time.monotonic())):
            try:
                answer, settle = self._start("state", function, prepared).result()
            finally:
                self._went = time.monotonic()
        return self._start("settling", _settled, answer, settle)

    def _start(self, thread: Thread, function: Callable[..., T], *args: Any, **kwargs: Any) -> Future[T]:
        if not self._pools or self._pid != os.getpid():
            self._pools = {each: ThreadPoolExecutor(1, f"{self._name}-{each}") for each in _THREADS}
            self._pid = os.getpid()
        return self._pools[thread].submit(function, *args, **kwargs)


async def _result(work: Future[T]) -> T:
    # Shielded, or cancelling the wait would take back a call that stands in the queue behind another.
    return await asyncio.shield(asyncio.wrap_future(work))


def _settled(answer: T, settle: Settle) -> T:
    if settle is not None:
        settle()
    return answer


def _logged(function: Callable[..., object], *args: Any) -> None:
    try:
        function(*args)
    except AgentMemoryError as error:
        log.warning("background_work_failed", code=error.code, error=error.message)
