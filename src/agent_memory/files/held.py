"""Locks on open files themselves: held by this process alone, and never by a child that it forks.

Such a lock belongs to the open file, of which a forked child has a copy: it would keep the lock when its parent dies.
"""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

_held: Final[set[int]] = set()


def lock_at_once(descriptor: int) -> None:
    """Lock an open file until `unlock_and_close`, or until this process ends in whatever way.

    Raises:
        ImportError: There are no such locks here.
        OSError: Somebody else has it (`BlockingIOError`, or EACCES), or the file system knows no locks.
    """
    import fcntl  # exists on Unix alone

    _held.add(descriptor)
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def hold_folder(folder: Path) -> int | None:
    """Return the descriptor that holds a folder itself; None where folders cannot be held, or where there is none yet.

    Raises:
        BlockingIOError: Somebody else holds it.
    """
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY)
    except (AttributeError, OSError):
        return None
    try:
        lock_at_once(descriptor)
    except BlockingIOError:
        unlock_and_close(descriptor)
        raise
    except (ImportError, OSError):
        unlock_and_close(descriptor)
        return None
    return descriptor


def unlock_and_close(descriptor: int) -> None:
    """Close a descriptor and, before that, unlock it: a child forked meanwhile has a copy and would keep the lock."""
    _held.discard(descriptor)
    with contextlib.suppress(ImportError, OSError):
        import fcntl  # exists on Unix alone

        fcntl.flock(descriptor, fcntl.LOCK_UN)
    with contextlib.suppress(OSError):  # whether what was written is on the disk, its sync has told
        os.close(descriptor)


def _let_go() -> None:
    """In a forked child: close what is the parent's; unlocking it would take it from the parent, too."""
    while _held:
        with contextlib.suppress(OSError):
            os.close(_held.pop())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go)
