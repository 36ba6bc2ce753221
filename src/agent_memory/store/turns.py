"""`Turns`: one at a time, for work of one object that several event loops use.

An `asyncio.Lock` belongs to the first loop that waits for it, and stays locked if that loop stops in between.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from agent_memory.errors import BusyError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@dataclass(slots=True, eq=False)
class _OfLoop:
    loop: asyncio.AbstractEventLoop
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    users: int = 0


class Turns:
    """Lets tasks of one event loop take turns, and refuses those of another loop meanwhile.

    Args:
        doing: What is done in a turn; named in the error.
    """

    def __init__(self, doing: str) -> None:
        self._doing = doing
        self._mutex = threading.Lock()
        self._now: _OfLoop | None = None

    @property
    def is_taken(self) -> bool:
        """Whether a task has its turn or waits for it; one of a loop that does not run any more does not count."""
        now = self._now
        return now is not None and now.users > 0 and now.loop.is_running()

    @contextlib.asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait for tasks of this loop that came before, and hold the turn for the block.

        Raises:
            BusyError: A task of another loop that runs has it.
        """
        mine = self._enter()
        try:
            async with mine.lock:
                yield
        finally:
            with self._mutex:
                mine.users -= 1

    def _enter(self) -> _OfLoop:
        loop = asyncio.get_running_loop()
        with self._mutex:
            now = self._now
            if now is None or now.loop is not loop:
                if self.is_taken:
                    raise BusyError(f"Another thread of this process is {self._doing}.")
                now = self._now = _OfLoop(loop)
            now.users += 1
            return now
