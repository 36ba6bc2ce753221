"""`Queue`: how whoever works learns that there is work. What there is to do stands in the journal, never here."""

from __future__ import annotations

import asyncio
from typing import Protocol


class Queue(Protocol):
    """Tells of work. A call that is lost costs a pause, and no work: whoever works looks again after a while."""

    async def tell(self) -> None:
        """Say that there is work; never raises what keeps it from being heard."""

    async def wait(self, seconds: float) -> bool:
        """Return True when somebody told since the last call, False after so many seconds."""

    async def close(self) -> None:
        """End it. May be called more than once."""


class InMemoryQueue:
    """A queue within one object of one process."""

    def __init__(self) -> None:
        self._told = asyncio.Event()

    async def tell(self) -> None:
        """See `Queue.tell`."""
        self._told.set()

    async def wait(self, seconds: float) -> bool:
        """See `Queue.wait`."""
        try:
            async with asyncio.timeout(seconds):
                await self._told.wait()
        except TimeoutError:
            return False
        self._told.clear()
        return True

    async def close(self) -> None:
        """See `Queue.close`."""
