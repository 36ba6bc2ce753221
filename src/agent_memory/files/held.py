"""Locks on open files: this process holds them, a child that it forks does not.

Such a lock belongs to the open file, of which a forked child has a copy that would keep the lock when its parent dies.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

_held: Final[set[int]] = set()


def lock_at_once(descriptor: int) -> None:
    """Lock an open file until `unlock_and_close`, or until this process ends in whatever way.

    Raises:
        OSError: Another process holds it (`BlockingIOError`, or EACCES), or the file system has no locks.
    """
    _held.add(descriptor)
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def lock_in_turn(descriptor: int) -> None:
    """Lock an open file like `lock_at_once`, behind those who wait for it already, for however long that takes.

    Raises:
        OSError: The file system has no locks.
    """
    _held.add(descriptor)
    fcntl.flock(descriptor, fcntl.LOCK_EX)


def duplicate(descriptor: int) -> int:
    """Return another descriptor of an open file, for after its lock is given back; close it by `unlock_and_close`.

    A child that is forked meanwhile would keep the lock by it, too.
    """
    copy = os.dup(descriptor)
    _held.add(copy)
    return copy


def hold_folder(folder: Path) -> int | None:
    """Return the descriptor that holds a folder itself; None where folders cannot be held, or where there is none yet.

    Raises:
        BlockingIOError: Another process holds it.
    """
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY)
    except (AttributeError, OSError):
        return None
    try:
        lock_at_once(descriptor)
    except OSError as error:
        unlock_and_close(descriptor)
        if isinstance(error, BlockingIOError):
            raise
        return None
    return descriptor


def unlock_and_close(descriptor: int) -> None:
    """Close a descriptor and, before that, unlock it: a child forked meanwhile has a copy and would keep the lock."""
    _held.discard(descriptor)
    with contextlib.suppress(OSError):
        fcntl.flock(descriptor, fcntl.LOCK_UN)
    with contextlib.suppress(OSError):  # a failure of writing was reported by the sync before
        os.close(descriptor)


def _close_in_child() -> None:
    """Close the parent's locked files in a forked child. To unlock them would release the locks of the parent."""
    while _held:
        with contextlib.suppress(OSError):
            os.close(_held.pop())


os.register_at_fork(after_in_child=_close_in_child)
