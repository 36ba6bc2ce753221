"""Examining where the files lie: owners and permissions, room, kind of file system, what killed processes left."""

from __future__ import annotations

import os
import re
import stat
from typing import TYPE_CHECKING, Final

from agent_memory.doctor.findings import Finding, human, number
from agent_memory.files.atomic import PRIVATE_FILE, PRIVATE_FOLDER
from agent_memory.files.entries import kind_of, names_in, size_of
from agent_memory.files.filesystem import shared_file_system
from agent_memory.files.lock import locks_work
from agent_memory.files.names import INDEX, sort_of
from agent_memory.files.temporary import leftovers

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from agent_memory.doctor.context import Case

_FULL: Final = 1_000_000
_LOW: Final = 100_000_000
"""Bytes: below the first not even a journal of thousands can be compacted, below the second laptops stall."""
_OTHERS: Final = 0o077
_OTHERS_WRITE: Final = 0o022
_SYNCED: Final = re.compile(
    r"dropbox( \(.+\))?|onedrive( - .+)?|google ?drive|my drive|icloud drive|mobile documents|cloudstorage|nextcloud|"
    r"owncloud|pcloud ?drive|box( sync)?|mega( ?sync)?|seafile|syncthing|sync",
    re.IGNORECASE,
)


def examine_place(case: Case) -> Iterator[Finding]:
    """Look at the folder of an agent as such."""
    found = [*_permissions(case.path), *_room(case.path, size_of(case.folder.journal)), *_file_system(case)]
    yield from found
    if not found:
        yield Finding("folder", "Private to this user, and writable.")
    left = leftovers(case.path)
    if left:
        yield Finding(
            "leftovers",
            f"{number(len(left), 'temporary file')} of processes that were killed.",
            "A compaction removes them; so does --repair.",
            sum(map(size_of, left)),
        )


def too_open(folder: Path) -> list[Path]:
    """Return what of ours in an agent's folder, and the folder itself, others on this machine may read or change."""
    paths = [folder, *(folder / name for name in names_in(folder) if sort_of(name) != "other")]
    index = folder / INDEX
    paths += [index / name for name in names_in(index)] if kind_of(index) == "folder" else []
    found = []
    closed = _mode(folder) is not None and not (_mode(folder) or 0) & _OTHERS
    for path in paths:
        mode = _mode(path)
        # What lies in a folder that nobody else may enter is safe, whatever its own mode says.
        if mode is not None and mode & _OTHERS and (path == folder or not closed) and _is_own(path):
            found.append(path)
    return found


def private_mode(path: Path) -> int:
    """Return the permissions that a path of ours should have."""
    return PRIVATE_FOLDER if path.is_dir() else PRIVATE_FILE


def _permissions(folder: Path) -> Iterator[Finding]:
    found = too_open(folder)
    if found:
        writable = any((_mode(path) or 0) & _OTHERS_WRITE for path in found)
        names = [path.name for path in found if path != folder]
        what = "the folder" + (f" and {number(len(names), 'file')} in it" if names else "")
        yield Finding(
            "permissions_open",
            f"Other users of this machine may {'change' if writable else 'read'} {what}.",
            f"chmod 700 {folder}; `agent-memory doctor --repair` does it.",
            details=tuple(f"{path.name} {_mode(path) or 0:04o}" for path in found[:3]),
        )
    foreign = [name for name in ("", *names_in(folder)) if not _is_own(folder / name)]
    if foreign:
        yield Finding(
            "foreign_owner",
            f"{'The folder belongs' if foreign == [''] else number(len(foreign), 'file belongs', 'files belong')} to "
            "another user, so writing may fail.",
            f"chown -R {os.getuid()} {folder}, as the one who may.",
            details=tuple(name or folder.name for name in foreign[:3]),
        )
    if not os.access(folder, os.W_OK | os.X_OK):
        yield Finding(
            "not_writable",
            "Nothing can be stored here: the folder, or the whole file system, may only be read. Searching works.",
            f"chmod 700 {folder}, or move the memory to where it can be written (--root, storage_root).",
        )


def _room(folder: Path, journal: int) -> Iterator[Finding]:
    try:
        system = os.statvfs(folder)
    except OSError:
        return
    free = system.f_bavail * system.f_frsize
    if system.f_files and not system.f_favail:
        free = 0  # room, but for no further file
    if free < _FULL:
        yield Finding("disk_full", f"The disk is full ({human(free)} free): nothing can be stored.", "Make room.")
    elif free < _LOW or free < 2 * journal:
        yield Finding("disk_low", f"Only {human(free)} are free on this disk.", "Make room before storing fails.")


def _file_system(case: Case) -> Iterator[Finding]:
    reason = locks_work(case.path) if kind_of(case.lock_path) == "file" else None
    if reason is not None:
        yield Finding(
            "locks_fail",
            f"{reason} Sessions refuse to write, since two of them would overwrite each other; searching works.",
            "Move the memory to a local disk (--root, storage_root).",
        )
    kind = shared_file_system(case.path)
    if kind is not None:
        yield Finding(
            "network_folder",
            f"The files lie on a shared file system ({kind}). That works if its locks reach across machines, which "
            "cannot be seen from here.",
            "Use it from one machine at a time, or see docs/server.md.",
        )
    by = next((part for part in case.path.parts if _SYNCED.fullmatch(part)), None)
    if by is None and any((parent / ".stfolder").exists() for parent in case.path.parents):
        by = "Syncthing"
    if by is not None:
        yield Finding(
            "synced_folder",
            f"The files lie in a synchronised folder ({by}). When two machines write at once, it keeps both versions, "
            "and only one of them is the journal.",
            "Use it from one machine at a time, or `agent-memory export` and `import`, or a server (docs/server.md).",
        )


def _mode(path: Path) -> int | None:
    try:
        status = path.lstat()
    except OSError:
        return None
    return None if stat.S_ISLNK(status.st_mode) else stat.S_IMODE(status.st_mode)


def _is_own(path: Path) -> bool:
    try:
        return path.lstat().st_uid == os.geteuid()
    except OSError:
        return True  # gone, or hidden, which is told elsewhere
