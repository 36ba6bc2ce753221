"""A lock file that one process holds for as long as it does something, tried without waiting."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

from agent_memory.files.atomic import open_private, translated
from agent_memory.files.held import lock_at_once, unlock_and_close

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextlib.contextmanager
def only_one(lock: Path) -> Iterator[bool]:
    """Hold a lock file for the block; yields False where another process holds it. One that dies gives it back.

    Where the file system has no locks, or there is no such folder yet, nobody is kept out.

    Raises:
        StorageError: The file cannot be opened.
    """
    if not lock.parent.is_dir():
        yield True
        return
    with translated(lock, "open"):
        descriptor = open_private(lock, os.O_RDWR | os.O_CREAT)
    try:
        is_ours = True
        try:
            lock_at_once(descriptor)
        except BlockingIOError:
            is_ours = False
        except OSError:
            is_ours = True  # no locks here
        yield is_ours
    finally:
        unlock_and_close(descriptor)
