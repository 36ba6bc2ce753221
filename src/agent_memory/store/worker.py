"""Threads of one storage, so that synchronous code below never blocks the event loop and never runs twice at once.

One thread has the state: all that looks at it or changes it runs there, in the order of the calls. What waits does so
elsewhere, so that searches go on meanwhile: for the folder's lock, for a sync, for the compaction of a journal.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from agent_memory.errors import AgentMemoryError, BusyError
from agent_memory.files.lock import WAIT_SECONDS
from agent_memory.logs import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence
    from contextlib import AbstractContextManager

    Hold = Callable[[float], AbstractContextManager[object]]
    """Returns what holds the lock for the length of a block, after so many seconds of waiting at most."""
    Settle = Callable[[], object] | None
    """Returns when what was written is on the disk."""

S = TypeVar("S")
T = TypeVar("T")
log = get_logger(__name__)

Thread = Literal["compacting", "writing", "state", "settling"]
_THREADS: Final[tuple[Thread, ...]] = ("compacting", "writing", "state", "settling")
"""Each may wait for those behind it."""
_TOGETHER: Final = 16
"""Writes that take the lock once: searches, and other processes that write, wait for some 3 ms."""


@dataclass(slots=True, eq=False)
class _Write:
    """A change that waits for its turn.

    Attributes:
        asked: When it was asked for.
        prepare, look, function: See `Worker.write`.
        told: Gets the answer.
        prepared, answer, settle: What they returned.
    """

    asked: float
    prepare: Callable[[], Any]
    look: Callable[[], Hold]
    function: Callable[[Any], tuple[Any, Settle]]
    told: Future[Any]
    prepared: Any = None
    answer: Any = None
    settle: Settle = None

    def is_ready(self) -> bool:
        """Prepare it; tell whether there is anything left to be written."""
        return self._goes_well(self._prepare)

    def is_written(self) -> bool:
        """Write it; tell whether it is to be acknowledged."""
        return self._goes_well(self._write)

    def acknowledge(self) -> None:
        """Make it durable, and answer."""
        if self._goes_well(self.settle or bool):
            self.told.set_result(self.answer)

    def _prepare(self) -> None:
        self.prepared = self.prepare()

    def _write(self) -> None:
        self.answer, self.settle = self.function(self.prepared)

    def _goes_well(self, function: Callable[[], object]) -> bool:
        try:
            function()
        except BaseException as error:  # noqa: BLE001 - as an executor does: whoever asked is told
            self.told.set_exception(error)
            return False
        return True


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
        self._writes: deque[_Write] = deque()
        self._shared: dict[Hashable, Future[Any]] = {}

    async def run(self, function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """Run `function` in the thread of the state; cancelling the wait does not stop the call."""
        return await _result(self._start("state", function, *args, **kwargs))

    async def run_shared(self, key: Hashable, function: Callable[[], T]) -> T:
        """Do as `run`, once for all who ask before it begins; they have asked for the same if the key is the same."""
        self._begin_anew_in_a_child()
        mine: Future[T] = _promise()
        shared = self._shared.setdefault(key, mine)
        if shared is mine:
            try:
                self._start("state", _run_once, self._shared, key, function, mine)
            except RuntimeError:
                self._shared.pop(key, None)
                raise
        return await _result(shared)

    def submit_shared(self, key: Hashable, function: Callable[[], object]) -> None:
        """Do as `submit`, unless the same is queued already and has not begun."""
        self._begin_anew_in_a_child()
        mine: Future[object] = _promise()
        if self._shared.setdefault(key, mine) is mine:
            try:
                self._start("state", _run_once, self._shared, key, lambda: _logged(function), mine)
            except RuntimeError:  # see `submit`
                self._shared.pop(key, None)

    async def write(
        self, prepare: Callable[[], S], look: Callable[[], Hold], function: Callable[[S], tuple[T, Settle]]
    ) -> T:
        """Change the state with the folder's lock held, and wait until that is on the disk; writes keep their order.

        A write waits for the lock from when it is its turn, not from when it got in line: writes of this process before
        it are no reason to give up. Where none gets the lock, all that wait by then give up together. Those that wait
        when it is had are written under it one after the other, and are told after the sync that all of them share.

        Args:
            prepare: Runs where writes wait: no search waits for it.
            look: Catches up before the lock is taken, in the thread of the state; returns what takes it.
            function: Changes what `prepare` returned; returns the answer, and what makes it durable.

        Raises:
            BusyError: No write of this process got the lock for the length of its patience.
        """
        self._begin_anew_in_a_child()
        one = _Write(time.monotonic(), prepare, look, function, _promise())
        self._writes.append(one)
        # The sync is begun by the thread, not by the caller, who may be gone by then.
        try:
            self._start("writing", self._write_waiting)
        except RuntimeError:  # it is being closed
            if one in self._writes:
                self._writes.remove(one)
                raise
        return await _result(one.told)

    async def aside(self, function: Callable[..., T], *args: Any) -> T:
        """Run what takes seconds and needs no state, one at a time."""
        return await _result(self._start("compacting", function, *args))

    def ask(self, function: Callable[[], T]) -> T:
        """Do as `run`, in a thread that `aside` runs in."""
        return self._start("state", function).result()

    def change(self, look: Callable[[], Hold], function: Callable[[], T]) -> T:
        """Do as `write`, by itself, in a thread that `aside` runs in."""
        one = _Write(time.monotonic(), bool, look, lambda _: (function(), None), _promise())
        self._start("writing", self._write_together, [one])
        answer: T = one.told.result()
        return answer

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

    def _write_waiting(self) -> None:
        """Write what waits, up to so much; nothing if an earlier call has done so."""
        group: list[_Write] = []
        while self._writes and len(group) < _TOGETHER:
            group.append(self._writes.popleft())
        self._write_together([one for one in group if one.is_ready()])

    def _write_together(self, group: Sequence[_Write]) -> None:
        while group:
            deadlines = [max(one.asked, self._went) + self._patience for one in group]
            until = min(deadlines)
            try:
                hold = self._start("state", group[0].look).result()
                with hold(max(0.0, until - time.monotonic())):
                    written = self._start("state", self._write_all, group).result()
            except BusyError as error:
                _fail([one for one, deadline in zip(group, deadlines, strict=True) if deadline <= until], error)
                group = [one for one, deadline in zip(group, deadlines, strict=True) if deadline > until]
                continue
            except BaseException as error:  # noqa: BLE001 - none of them was written; whoever asked is told
                _fail(group, error)
                return
            self._start("settling", _acknowledge, written)
            return

    def _write_all(self, group: Sequence[_Write]) -> list[_Write]:
        try:
            return [one for one in group if one.is_written()]
        finally:
            self._went = time.monotonic()

    def _begin_anew_in_a_child(self) -> None:
        if self._pid != os.getpid():
            self._pools, self._writes, self._shared = {}, deque(), {}
            self._pid = os.getpid()

    def _start(self, thread: Thread, function: Callable[..., T], *args: Any, **kwargs: Any) -> Future[T]:
        self._begin_anew_in_a_child()
        if not self._pools:
            self._pools = {each: ThreadPoolExecutor(1, f"{self._name}-{each}") for each in _THREADS}
        return self._pools[thread].submit(function, *args, **kwargs)


async def _result(work: Future[T]) -> T:
    # Shielded, or cancelling the wait would take back a call that stands in the queue behind another.
    return await asyncio.shield(asyncio.wrap_future(work))


def _run_once(shared: dict[Hashable, Future[Any]], key: Hashable, function: Callable[[], T], told: Future[T]) -> None:
    shared.pop(key, None)  # who asks from now on may know of a change that this one does not see
    try:
        told.set_result(function())
    except BaseException as error:  # noqa: BLE001 - as an executor does: whoever asked is told
        told.set_exception(error)


def _acknowledge(written: Sequence[_Write]) -> None:
    for one in written:
        one.acknowledge()


def _fail(group: Sequence[_Write], error: BaseException) -> None:
    for one in group:
        if not one.told.done():
            one.told.set_exception(error)


def _promise() -> Future[Any]:
    """Return a future that no caller who goes away can cancel."""
    promise: Future[Any] = Future()
    promise.set_running_or_notify_cancel()
    return promise


def _logged(function: Callable[..., object], *args: Any) -> None:
    try:
        function(*args)
    except AgentMemoryError as error:
        log.warning("background_work_failed", code=error.code, error=error.message)
    except Exception as error:  # noqa: BLE001 - nobody waits for it, so this is the last to tell; a text may be in its words
        log.warning("background_work_broke", error=type(error).__name__)
