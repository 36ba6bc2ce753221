"""Several files of a folder replaced together: all of them or none, wherever a process dies.

The new ones lie in a folder of their own beside the old ones. Renaming that folder settles the matter; then each file
is renamed to its place. Whoever takes the lock of the folder next finishes what a process that died had settled.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from typing import TYPE_CHECKING, Final

from agent_memory.files.atomic import PRIVATE_FOLDER, sync_folder, sync_tree, translated
from agent_memory.files.held import hold_folder, unlock_and_close
from agent_memory.files.names import RESTORING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_OLD: Final = ".old-"
"""How a folder is called that was in the way, until it is removed."""


@contextlib.contextmanager
def staging(folder: Path) -> Iterator[Path]:
    """Yield an empty folder for what is to take the place of files in `folder`; removed unless that was settled.

    Raises:
        OSError: It cannot be made.
    """
    _sweep(folder)
    staged = folder / f"{RESTORING}.{secrets.token_hex(4)}.tmp"
    staged.mkdir(mode=PRIVATE_FOLDER)
    with contextlib.ExitStack() as ending:
        ending.callback(shutil.rmtree, staged, ignore_errors=True)
        if (held := hold_folder(staged)) is not None:
            ending.callback(unlock_and_close, held)
        yield staged


def settle(folder: Path, staged: Path) -> None:
    """Settle that what is in `staged` takes the place of what is in `folder`, and put it there.

    To be called with the lock of the folder held. Once this has begun, the change may be finished by another process.

    Raises:
        StorageError: Nothing was changed; or, if `is_settled`, the next to take the lock goes on.
    """
    with translated(folder, "change files of"):
        sync_tree(staged)
        staged.rename(folder / RESTORING)
        sync_folder(folder)
    finish(folder)


def is_settled(folder: Path) -> bool:
    """Tell whether a change is settled and not finished; takes a microsecond or two."""
    return os.access(folder / RESTORING, os.F_OK)


def finish(folder: Path) -> None:
    """Put everything that was settled in its place. To be called with the lock of the folder held.

    Raises:
        StorageError: Not all of it could be; what is left is tried again by the next to take the lock.
    """
    settled = folder / RESTORING
    with translated(folder, "finish the restoring of"):
        for new in sorted(settled.iterdir()):
            if new.name.startswith(_OLD):
                continue
            place = folder / new.name
            if new.is_dir() and place.exists():
                place.rename(settled / f"{_OLD}{secrets.token_hex(4)}")
            new.replace(place)
        # All names must be on the disk before somebody writes behind them: a later finishing would undo that.
        sync_folder(folder)
        sync_folder(settled)
        shutil.rmtree(settled)
        sync_folder(folder)


def _sweep(folder: Path) -> None:
    """Remove what processes that died had not settled."""
    for left in folder.glob(f"{RESTORING}.*.tmp"):
        with contextlib.suppress(OSError):
            held = hold_folder(left)
            shutil.rmtree(left, ignore_errors=True)
            if held is not None:
                unlock_and_close(held)
