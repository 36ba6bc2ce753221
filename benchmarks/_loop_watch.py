"""How long the event loop stood still: a task that wants to run every two milliseconds notes how late it was."""

from __future__ import annotations

import asyncio
import contextlib
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

_EVERY: Final = 0.002


@dataclass
class Held:
    """The longest hold so far, in seconds of processor time of the loop's own thread, and of the clock.

    Attributes:
        seconds: Processor time: what other programs took of it is not counted.
        wall: By the clock.
        process: Processor time of the process: also of a thread that keeps the interpreter to itself.
    """

    seconds: float = 0.0
    wall: float = 0.0
    process: float = 0.0


@contextlib.asynccontextmanager
async def longest_hold() -> AsyncIterator[Held]:
    """Watch the loop while the body runs."""
    held, is_over = Held(), asyncio.Event()

    async def watch() -> None:
        while not is_over.is_set():
            cpu, wall, process = time.thread_time(), time.perf_counter(), time.process_time()
            await asyncio.sleep(_EVERY)
            held.seconds = max(held.seconds, time.thread_time() - cpu)
            held.process = max(held.process, time.process_time() - process)
            held.wall = max(held.wall, time.perf_counter() - wall - _EVERY)

    watching = asyncio.create_task(watch())
    await asyncio.sleep(0)
    try:
        yield held
    finally:
        is_over.set()
        await watching
