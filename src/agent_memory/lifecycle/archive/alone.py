"""`alone`: moving memories into an archive and out of it, one process and one session after the other."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from agent_memory.files.lock import archive_lock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


@contextlib.asynccontextmanager
async def alone(folder: Path, wait: float) -> AsyncIterator[None]:
    """Hold the archive's lock for the length of the block; a process that dies gives it back.

    Waits in a thread.

    Raises:
        BusyError: Another one held it for `wait` seconds; nothing was moved.
        StorageError: The lock file cannot be opened.
    """
    held = contextlib.ExitStack()
    entering = asyncio.ensure_future(asyncio.to_thread(held.enter_context, archive_lock(folder, wait)))
    try:
        await asyncio.shield(entering)
    except asyncio.CancelledError:
        entering.add_done_callback(lambda done: _give_back(done, held))  # the thread may get it still
        raise
    with held:
        yield


def _give_back(entered: asyncio.Future[None], held: contextlib.ExitStack) -> None:
    entered.exception()  # nobody is left to hear of it
    held.close()
