"""Threads that the storages of a process share.

A thousand agents need no more threads than a few that are busy.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

ThreadName = Literal["compacting", "waiting", "store"]
_THREADS: Final[dict[ThreadName, int]] = {"compacting": 2, "waiting": 16, "store": 16}
"""Most threads of each kind. A thread may wait for those of the kinds after it, so that none waits in a circle."""
_CALLS_AT_ONCE: Final = 16
"""Calls of one lane before those of another one."""


class SharedThreads:
    """Pools of threads; the last of their users ends them."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget all threads: a forked child has none of its parent's."""
        self._lock = threading.Lock()
        self._users: dict[int, dict[ThreadName, SerialLane]] = {}
        self._pools: dict[ThreadName, ThreadPoolExecutor] = {}

    def acquire(self) -> dict[ThreadName, SerialLane]:
        """Return new lanes of a user, by the kind of their threads."""
        with self._lock:
            if not self._pools:
                self._pools = {
                    name: ThreadPoolExecutor(count, f"agent-memory-{name}") for name, count in _THREADS.items()
                }
            lanes = {name: SerialLane(pool) for name, pool in self._pools.items()}
            self._users[id(lanes)] = lanes
            return lanes

    def release(self, lanes: dict[ThreadName, SerialLane]) -> None:
        """End the threads after the last user.

        Args:
            lanes: Lanes that were shut down; released ones are ignored.
        """
        with self._lock:
            self._users.pop(id(lanes), None)
            unused, self._pools = ({}, self._pools) if self._users else (self._pools, {})
        for pool in unused.values():
            pool.shutdown()


class SerialLane:
    """Calls that run one at a time, FIFO, in a pool.

    Args:
        pool: Threads that other lanes use, too.
    """

    def __init__(self, pool: ThreadPoolExecutor) -> None:
        self._pool = pool
        self._calls: deque[tuple[Future[Any], Callable[..., Any], tuple[Any, ...]]] = deque()
        self._change = threading.Condition()
        self._is_running = self._is_closed = False

    @property
    def has_waiting(self) -> bool:
        """True if a call waits for the running one."""
        return bool(self._calls)

    def submit(self, function: Callable[..., T], *args: Any) -> Future[T]:
        """Queue a call.

        Raises:
            RuntimeError: The lane is closed, or the interpreter ends.
        """
        future: Future[T] = Future()
        with self._change:
            if self._is_closed:
                raise RuntimeError("The storage is being closed.")
            if not self._is_running:
                self._pool.submit(self._run)
                self._is_running = True
            self._calls.append((future, function, args))
        return future

    def shutdown(self) -> None:
        """Wait for all calls; admit no more."""
        with self._change:
            self._is_closed = True
            self._change.wait_for(lambda: not self._is_running)

    def _run(self) -> None:
        for _ in range(_CALLS_AT_ONCE):
            with self._change:
                if not self._calls:
                    self._is_running = False
                    self._change.notify_all()
                    return
                future, function, args = self._calls.popleft()
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(function(*args))
                except BaseException as error:  # noqa: BLE001 - as an executor does: the caller receives it
                    future.set_exception(error)
            del future, function, args  # or the thread would keep the result until its next call
        self._pool.submit(self._run)


THREADS: Final = SharedThreads()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=THREADS.reset)
