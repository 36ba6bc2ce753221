"""Event loop in its own thread, for programs without asyncio."""

from __future__ import annotations

import asyncio
import os
import threading
from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Coroutine

T = TypeVar("T")


class LoopThread:
    """Runs coroutines in a thread that starts at the first one.

    Any thread may call it. A forked process gets a thread of its own.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._process = 0

    @property
    def is_current(self) -> bool:
        """True in the thread itself."""
        return self._thread is threading.current_thread()

    def wait_for(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine and return its result."""
        result = asyncio.run_coroutine_threadsafe(work, self._start())
        try:
            return result.result()
        except BaseException:
            result.cancel()
            raise

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in this thread from another event loop.

        A cancelled call still finishes; its result is dropped.
        """
        return await asyncio.shield(asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._start())))

    def stop(self) -> None:
        """End the thread. Can be called more than once."""
        with self._lock:
            loop, thread, self._loop, self._thread = self._loop, self._thread, None, None
        if loop is not None and thread is not None:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()

    def _start(self) -> asyncio.AbstractEventLoop:
        """Return the running event loop of this process."""
        with self._lock:
            if self._loop is None or self._process != os.getpid():
                self._loop, self._process = asyncio.new_event_loop(), os.getpid()
                self._thread = threading.Thread(target=self._loop.run_forever, name="agent-memory", daemon=True)
                self._thread.start()
            return self._loop


class SharedLoopThread:
    """Thread of all blocking clients, ended by the last one."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget all clients: a forked child has no thread."""
        self._lock = threading.Lock()
        self._clients: set[int] = set()
        self._loop = LoopThread()

    def wait_for(self, client: object, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine of a client and return its result.

        A client that is called within a coroutine of another one would wait for itself: it gets a thread of its own.
        """
        with self._lock:
            self._clients.add(id(client))
            loop = self._loop
        if not loop.is_current:
            return loop.wait_for(work)
        own_loop = LoopThread()
        try:
            return own_loop.wait_for(work)
        finally:
            own_loop.stop()

    def stop(self, client: object) -> None:
        """Release the thread. Can be called more than once."""
        with self._lock:
            self._clients.discard(id(client))
            if self._clients:
                return
            loop, self._loop = self._loop, LoopThread()
        loop.stop()


SHARED_LOOP: Final = SharedLoopThread()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=SHARED_LOOP.reset)
