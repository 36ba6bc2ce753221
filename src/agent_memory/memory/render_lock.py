"""The lock under which scratchpad.yaml is looked at and rendered: held by one thread of one process at a time.

So an edit is taken over once. What a person saves is safe without it, and it is not waited for without end: a process
that was stopped may hold it.
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
    """The right to handle one folder's scratchpad. For any number of threads, event loops and processes.

    Args:
        folder: The agent's folder; it is locked itself, so there is no file to be left over.
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
        """Hold the lock for the length of the block; yields False if it was not to be had within so many seconds."""
        deadline = time.monotonic() + patience
        # Asked for without a thread, some 20 µs each time: a wait that is cancelled cannot be given it afterwards.
        # Another process, which may hold it, could set no event.
        while not (is_held := self._acquire()) and time.monotonic() < deadline:  # noqa: ASYNC110
            await asyncio.sleep(_BETWEEN_TRIES)
        try:
            yield is_held
        finally:
            if is_held:
                self._release()

    def _acquire(self) -> bool:
        if self._pid != os.getpid():
            self._begin()  # in a forked child: what its parent holds is not ours, and was closed
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
