"""Temporary files that a killed process left, as opposed to those that a process is writing now.

A process that writes one holds a lock on it, which the system releases when the process ends. Where there are no such
locks, an age of an hour decides. Only names that `replace_file` gives are considered.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import stat
import time
from typing import TYPE_CHECKING, Final

from agent_memory.files.held import lock_at_once, unlock_and_close
from agent_memory.files.names import BACKUPS, RESTORING, TOPICS, sort_of

if TYPE_CHECKING:
    from pathlib import Path

DRAFT: Final = ".draft"
"""Beginning of the name of a folder with a text that a person edits."""
_FRESH_SECONDS: Final = 1.0
"""A file may be created and not locked yet for a few microseconds."""
_OLD_SECONDS: Final = 3600.0
_TAIL: Final = len(".01234567.tmp")


def claim(descriptor: int) -> None:
    """Lock the open temporary file until it is closed or this process ends."""
    with contextlib.suppress(OSError):  # without such locks its age decides
        lock_at_once(descriptor)


def leftovers(folder: Path, at_once: str | None = None, *, of: str | None = None) -> list[Path]:
    """Return the temporary files in `folder` that no process is writing any more, folders of restorings included.

    Args:
        folder: Where to look; other subfolders are left alone.
        at_once: Name of a file of which no process makes a new version without noticing when that is gone: what was
            left of it counts whatever its age.
        of: Only what was left of the file of this name; for folders that are not ours.
    """
    found = []
    with contextlib.suppress(OSError):
        for path in folder.iterdir():
            replaced = path.name[1:-_TAIL]
            if sort_of(path.name) == "temporary" and of in {None, replaced}:
                with contextlib.suppress(OSError):  # gone meanwhile, or not to be looked at
                    if _is_abandoned(path, 0.0 if replaced == at_once else _FRESH_SECONDS):
                        found.append(path)
    return found


def remove_leftovers(folder: Path, at_once: str | None = None, *, of: str | None = None) -> None:
    """Remove what `leftovers` returns; what cannot be removed now may be the next time."""
    for path in leftovers(folder, at_once, of=of):
        with contextlib.suppress(OSError):
            remove_leftover(path)


def sweep_leftovers(folder: Path) -> list[Path]:
    """Remove files that killed processes left of an agent.

    Scans its folder, the folder of its pages, and its backups.

    Args:
        folder: Folder of one agent.

    Returns:
        Removed paths; a whole backup or a decrypted draft may be among them.
    """
    places = ((folder, None), (folder / TOPICS, None), (folder.parent / BACKUPS, f".{folder.name}-"))
    swept = []
    for place, beginning in places:
        for path in leftovers(place):
            if beginning is None or path.name.startswith(beginning):
                with contextlib.suppress(OSError):
                    remove_leftover(path)
                    swept.append(path)
    return swept


def make_draft_folder(folder: Path) -> tuple[Path, int]:
    """Create a folder for a draft in an agent's folder.

    If the process is killed, the next open of the agent removes it.

    Returns:
        The folder, and a descriptor that holds its lock until it is closed.

    Raises:
        OSError: It cannot be made.
    """
    draft = folder / f"{DRAFT}.{secrets.token_hex(4)}.tmp"
    draft.mkdir(mode=0o700)
    descriptor = os.open(draft, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    claim(descriptor)
    return draft, descriptor


def remove_leftover(path: Path) -> None:
    """Remove a leftover file, or the folder of a draft or restore.

    Raises:
        OSError: It is still there.
    """
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _is_abandoned(path: Path, fresh_seconds: float) -> bool:
    status = path.lstat()
    age = time.time() - status.st_mtime
    is_folder = stat.S_ISDIR(status.st_mode) and path.name.startswith((RESTORING, DRAFT))
    is_ours = stat.S_ISREG(status.st_mode) or is_folder
    if age < fresh_seconds or not is_ours:
        return False
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        lock_at_once(descriptor)
    except BlockingIOError:
        return False
    except OSError:
        return age > _OLD_SECONDS
    finally:
        unlock_and_close(descriptor)
    return True
