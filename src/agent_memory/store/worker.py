"""`Worker`: the threads of one storage.

No event loop blocks, and calls of the store run one at a time, FIFO.

All calls of the store run one at a time, the syncs of what they wrote included. Two more lanes of calls are used only
where they are needed: one that waits for another process's lock, so that searches continue, and one that compacts. The
lanes of all storages share their threads.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import time
from collections import deque
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeVar

from agent_memory.errors import AgentMemoryError, BusyError
from agent_memory.files.lock import WAIT_SECONDS
from agent_memory.logs import get_logger
from agent_memory.store.shared_threads import THREADS, SerialLane, ThreadName

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence
    from contextlib import AbstractContextManager

    from agent_memory.store.protocols import Settle

    Hold = Callable[[float], AbstractContextManager[object]]
    """Returns a context manager that holds the lock; its argument is the number of seconds to wait at most."""

S = TypeVar("S")
T = TypeVar("T")
log = get_logger(__name__)

_TOGETHER: Final = 16
"""Writes under one lock: searches, and other processes that write, wait for some 3 ms."""


@dataclass(slots=True, eq=False)
class QueuedWrite:
    """A change in the queue.

    Attributes:
        asked: Time of the request, on the monotonic clock.
        prepare: As in `Worker.write`.
        get_hold: As in `Worker.write`.
        function: As in `Worker.write`.
        outcome: Receives the answer or the error.
        look: As in `Worker.write`.
        prepared: Result of `prepare`.
        answer: First result of `function`.
        settle: Second result of `function`.
    """

    asked: float
    prepare: Callable[[], Any] | None
    get_hold: Callable[[], Hold]
    function: Callable[[Any], tuple[Any, Settle]]
    outcome: Future[Any]
    look: Callable[[], object] | None = None
    prepared: Any = None
    answer: Any = None
    settle: Settle = None

    def try_prepare(self) -> bool:
        """Prepare the write; return False if the caller got an error."""
        try:
            self.prepared = self.prepare() if self.prepare is not None else None
        except BaseException as error:  # noqa: BLE001 - as an executor does: the caller receives it
            self.outcome.set_exception(error)
            return False
        return True

    def try_write(self) -> bool:
        """Write; return False if the caller got an error."""
        try:
            self.answer, self.settle = self.function(self.prepared)
        except BaseException as error:  # noqa: BLE001 - as above
            self.outcome.set_exception(error)
            return False
        return True


class Worker:
    """Calls of one storage, in order, in shared threads.

    A forked child starts threads of its own: threads do not survive a fork, and waiting for the parent's would hang.

    Args:
        patience: Seconds to wait for a lock.
        follow_up: Called in the thread of the store after writes, once for all that are queued.
    """

    def __init__(self, patience: float = WAIT_SECONDS, follow_up: Callable[[], object] = lambda: None) -> None:
        self._patience = patience
        self._follow_up = follow_up
        self._has_follow_up = False
        self._last_write = 0.0
        self._lanes: dict[ThreadName, SerialLane] = {}
        self._pid = 0
        self._writes: deque[QueuedWrite] = deque()
        self._is_parked = False

    async def run(self, function: Callable[..., T], *args: Any) -> T:
        """Run `function` in the thread of the store.

        Cancelling the wait does not stop it.
        """
        return await asyncio.shield(asyncio.wrap_future(self._start("store", function, *args)))

    async def write(
        self,
        function: Callable[[S], tuple[T, Settle]],
        get_hold: Callable[[], Hold],
        prepare: Callable[[], S] | None = None,
        look: Callable[[], object] | None = None,
    ) -> T:
        """Change the store durably under the folder's lock, FIFO.

        Writes that are queued when the lock is taken are written under it one after the other, and share a sync. If
        another process has the lock, they wait for it in a thread of their own. The patience of a write begins when the
        write before it ends, so that earlier writes of this process do not use it up. Writes whose patience is used up
        fail together.

        Args:
            function: Changes the store with the result of `prepare`; returns the answer and its sync.
            get_hold: Returns the function that takes the lock; called in the thread of the store.
            prepare: Work of milliseconds that no search waits for; None for nothing to do.
            look: Reads the store, in its thread and before the lock is taken; raises nothing.

        Raises:
            BusyError: No write of this process got the lock for the length of its patience.
        """
        if self._pid != os.getpid():
            self._start_again_in_child()
        write = QueuedWrite(time.monotonic(), prepare, get_hold, function, _make_promise(), look)
        self._writes.append(write)
        # The sync is begun by the thread, not by the caller, who may be cancelled by then.
        try:
            self._start("store", self._write_queued)
        except RuntimeError:  # it is being closed
            if write in self._writes:
                self._writes.remove(write)
                raise
        return await _wait_for(write.outcome)

    async def run_aside(self, function: Callable[..., T], *args: Any) -> T:
        """Run a long call that needs no store, one at a time."""
        return await _wait_for(self._start("compacting", function, *args))

    def ask(self, function: Callable[[], T]) -> T:
        """Run as `run`; for calls of `run_aside`."""
        return self._start("store", function).result()

    def change(self, get_hold: Callable[[], Hold], function: Callable[[], T]) -> T:
        """Write as `write`, without others; for calls of `run_aside`."""
        write = QueuedWrite(time.monotonic(), None, get_hold, lambda _: (function(), None), _make_promise())
        self._start("waiting", self._write_after_waiting, [write])
        answer: T = write.outcome.result()
        return answer

    def submit(self, function: Callable[..., object], *args: Any, thread: ThreadName = "store") -> None:
        """Queue `function` without waiting for it; an error is logged.

        While another thread closes the worker nothing is run: the next start does the remaining work.
        """
        with contextlib.suppress(RuntimeError):  # the executor is shutting down
            self._start(thread, _run_logged, function, *args)

    def close(self) -> None:
        """Wait for queued calls and release the threads.

        A later call starts new ones.
        """
        lanes = self._lanes
        if self._pid == os.getpid() and lanes:
            lanes["compacting"].shutdown()
            with contextlib.suppress(RuntimeError):  # another thread closes it, too
                is_busy = True
                while is_busy:
                    lanes["store"].submit(bool).result()
                    lanes["waiting"].submit(bool).result()
                    is_busy = self._is_parked or bool(self._writes)
            lanes["store"].shutdown()
            lanes["waiting"].shutdown()
            THREADS.release(lanes)
        self._lanes = {}
        self._has_follow_up = False

    def _write_queued(self) -> None:
        """Write queued changes, unless another call has them."""
        group: list[QueuedWrite] = []
        with contextlib.suppress(IndexError):  # the queue is empty
            while not self._is_parked and len(group) < _TOGETHER:
                group.append(self._writes.popleft())
        if not group:
            return
        if any(write.prepare is not None for write in group):
            self._park(group)
            return
        try:
            hold = _look_all(group)
            with hold(0.0):
                written = self._write_all(group)
        except BusyError:
            self._park(group)
        except BaseException as error:  # noqa: BLE001 - none was written; the callers receive it
            _fail(group, error)
        else:
            if not self._lanes["store"].has_waiting:  # else another call would wait for the sync
                _acknowledge(written)
                self._run_follow_up()
            else:
                self._start("waiting", self._acknowledge_aside, written)

    def _park(self, group: list[QueuedWrite]) -> None:
        """Hand a group to the waiting thread; later writes stay queued."""
        self._is_parked = True
        try:
            self._start("waiting", self._write_parked, group)
        except RuntimeError as error:  # it is being closed
            self._is_parked = False
            _fail(group, error)

    def _write_parked(self, group: list[QueuedWrite]) -> None:
        try:
            self._write_after_waiting([write for write in group if write.try_prepare()])
        finally:
            self._is_parked = False
            with contextlib.suppress(RuntimeError):  # as in `submit`
                self._start("store", self._write_queued)

    def _write_after_waiting(self, group: Sequence[QueuedWrite]) -> None:
        """Wait for the lock, then write, sync and acknowledge a group."""
        while group:
            deadlines = [max(write.asked, self._last_write) + self._patience for write in group]
            until = min(deadlines)
            try:
                hold = self._start("store", _look_all, group).result()
                with hold(max(0.0, until - time.monotonic())):
                    written = self._start("store", self._write_all, group).result()
            except BusyError as error:
                _fail([write for write, deadline in zip(group, deadlines, strict=True) if deadline <= until], error)
                group = [write for write, deadline in zip(group, deadlines, strict=True) if deadline > until]
                continue
            except BaseException as error:  # noqa: BLE001 - none was written; the callers receive it
                _fail(group, error)
                return
            self._acknowledge_aside(written)
            return

    def _acknowledge_aside(self, written: Sequence[QueuedWrite]) -> None:
        """Queue the follow-up of writes, then acknowledge them.

        In this order, since the callers queue more once they have their answers.
        """
        if not self._has_follow_up:
            self._has_follow_up = True
            with contextlib.suppress(RuntimeError):  # as in `submit`
                self._start("store", self._run_follow_up)
        _acknowledge(written)

    def _run_follow_up(self) -> None:
        self._has_follow_up = False
        _run_logged(self._follow_up)

    def _write_all(self, group: Sequence[QueuedWrite]) -> list[QueuedWrite]:
        try:
            return [write for write in group if write.try_write()]
        finally:
            self._last_write = time.monotonic()

    def _start_again_in_child(self) -> None:
        self._lanes, self._writes = {}, deque()
        self._is_parked = self._has_follow_up = False
        self._pid = os.getpid()

    def _start(self, thread: ThreadName, function: Callable[..., T], *args: Any) -> Future[T]:
        if self._pid != os.getpid():
            self._start_again_in_child()
        if not self._lanes:
            self._lanes = THREADS.acquire()
        return self._lanes[thread].submit(function, *args)


async def _wait_for(work: Future[T]) -> T:
    # Without the shield, cancelling the wait would cancel a queued call.
    return await asyncio.shield(asyncio.wrap_future(work))


def _look_all(group: Sequence[QueuedWrite]) -> Hold:
    """Call `look` of each write; return the function that locks."""
    for write in group:
        if write.look is not None:
            write.look()
            write.look = None  # a group may wait for the lock several times
    return group[0].get_hold()


def _acknowledge(written: Sequence[QueuedWrite]) -> None:
    """Sync writes and answer their callers."""
    for write in written:
        try:
            if write.settle is not None:
                write.settle()
        except BaseException as error:  # noqa: BLE001 - as above
            write.outcome.set_exception(error)
        else:
            write.outcome.set_result(write.answer)


def _fail(group: Sequence[QueuedWrite], error: BaseException) -> None:
    for write in group:
        if not write.outcome.done():
            write.outcome.set_exception(error)


def _make_promise() -> Future[Any]:
    """Return a future that no cancelled caller can cancel."""
    promise: Future[Any] = Future()
    promise.set_running_or_notify_cancel()
    return promise


def _run_logged(function: Callable[..., object], *args: Any) -> None:
    try:
        function(*args)
    except AgentMemoryError as error:
        log.warning("background_work_failed", code=error.code, error=error.message)
    except Exception as error:  # noqa: BLE001 - no caller waits for it; a text may be in its words
        log.warning("background_work_broke", error=type(error).__name__)


@dataclass(slots=True, eq=False)
class _LoopQueue:
    loop: asyncio.AbstractEventLoop
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    users: int = 0


class LoopLock:
    """Lock for tasks of one event loop.

    A task of another loop fails while it is held.

    An `asyncio.Lock` belongs to the first loop that waits for it, and stays locked if that loop stops in between.

    Args:
        doing: Activity under the lock, named in the error.
    """

    def __init__(self, doing: str) -> None:
        self._doing = doing
        self._mutex = threading.Lock()
        self._now: _LoopQueue | None = None

    @property
    def is_taken(self) -> bool:
        """True if a running loop's task holds or awaits the lock."""
        now = self._now
        return now is not None and now.users > 0 and now.loop.is_running()

    @contextlib.asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Hold the lock for the block, after earlier tasks of this loop.

        Raises:
            BusyError: A task of another running loop has it.
        """
        mine = self._enter()
        try:
            async with mine.lock:
                yield
        finally:
            with self._mutex:
                mine.users -= 1

    def _enter(self) -> _LoopQueue:
        loop = asyncio.get_running_loop()
        with self._mutex:
            now = self._now
            if now is None or now.loop is not loop:
                if self.is_taken:
                    raise BusyError(f"Another thread of this process is {self._doing}.")
                now = self._now = _LoopQueue(loop)
            now.users += 1
            return now
