"""`RenderLock`: lock of scratchpad.yaml for threads, event loops and processes.

It makes sure that an edit is applied once. Waits are bounded, because a stopped process may hold it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import time
from typing import TYPE_CHECKING, Final

from agent_memory.files.held import hold_folder, unlock_and_close

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

_BETWEEN_TRIES: Final = 0.005


class RenderLock:
    """Lock of one folder's scratchpad.

    Args:
        folder: Agent folder; it is locked itself, so no lock file is left over.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._begin()

    def _begin(self) -> None:
        self._pid = os.getpid()
        self._mutex = threading.Lock()
        self._descriptor: int | None = None

    @contextlib.asynccontextmanager
    async def taken(self, patience: float) -> AsyncIterator[bool]:
        """Hold the lock in a `with` block; yield False if it was not free in time.

        Args:
            patience: Seconds to wait.
        """
        deadline = time.monotonic() + patience
        # Polling takes 20 µs and no thread: a thread could get the lock after its waiter was cancelled. Another process
        # cannot set an event.
        while not (is_held := self._acquire()) and time.monotonic() < deadline:  # noqa: ASYNC110
            await asyncio.sleep(_BETWEEN_TRIES)
        try:
            yield is_held
        finally:
            if is_held:
                self._release()

    def _acquire(self) -> bool:
        if self._pid != os.getpid():
            self._begin()  # a forked child: its parent's lock was closed
        if not self._mutex.acquire(blocking=False):
            return False
        try:
            self._descriptor = hold_folder(self._folder)
        except BlockingIOError:
            self._mutex.release()
            return False
        return True

    def _release(self) -> None:
        if self._descriptor is not None:
            unlock_and_close(self._descriptor)
        self._mutex.release()
