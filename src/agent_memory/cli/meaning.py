"""Waiting for search by meaning: a process that lives for one question cannot leave the model to the background."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from agent_memory.cli.running import Run

PATIENCE: Final = 60.0
"""Seconds a search waits at most: some 10,000 new memories of a local model. What is read once is kept."""
_LOOK_EVERY: Final = 0.2
_WORTH_SHOWING: Final = 64
"""Fewer are read before anybody wonders."""


async def wait_for_meaning(run: Run, patience: float = PATIENCE) -> None:
    """Wait until memories are found by meaning, too, with a progress bar if that takes a while.

    Returns when that is so, when it will not be (no embedder, or one that fails), or after `patience` seconds.

    Raises:
        StorageError: The memories cannot be read.
    """
    admin = run.service.admin
    loop = asyncio.get_running_loop()
    deadline, most = loop.time() + patience, 0
    preparing = asyncio.ensure_future(admin.prepare(None))
    try:
        with run.screen.progress() as progress:
            bar = progress.add_task("Reading memories by meaning", total=None, visible=False)
            while not preparing.done() and loop.time() < deadline:
                await asyncio.wait({preparing}, timeout=min(_LOOK_EVERY, max(0.0, deadline - loop.time())))
                pending = int(admin.embedding().get("pending", 0))
                most = max(most, pending)
                progress.update(bar, total=most, completed=most - pending, visible=most > _WORTH_SHOWING)
        if preparing.done():
            preparing.result()
    finally:
        preparing.cancel()  # its thread ends when the storage is closed
        await asyncio.gather(preparing, return_exceptions=True)
