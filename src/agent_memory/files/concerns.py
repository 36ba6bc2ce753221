"""Checks of an agent's folder: owner, permissions, room, lock.

The package that owns a file reports on it by a `Concern`; severity and repair are in the doctor's table. Nothing is
changed.
"""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from agent_memory.files.atomic import PRIVATE_FILE, PRIVATE_FOLDER, list_leftovers
from agent_memory.files.entries import (
    describe_path_type,
    get_disk_size,
    get_lock_state,
    get_path_type,
    names_in,
    shared_file_system,
)
from agent_memory.files.exchange import is_settled
from agent_memory.files.lock import locks_work
from agent_memory.files.names import classify_name
from agent_memory.files.wording import counted, format_size
from agent_memory.late import compile_late

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from agent_memory.files.layout import AgentFolder

_FULL: Final = 1_000_000
_LOW: Final = 100_000_000
"""Bytes. Below `_FULL` a journal of some thousand memories cannot be compacted, below `_LOW` laptops stall."""
_OTHERS: Final = 0o077
_OTHERS_WRITE: Final = 0o022
_SYNCED: Final = compile_late(
    r"dropbox( \(.+\))?|onedrive( - .+)?|google ?drive|my drive|icloud drive|mobile documents|cloudstorage|nextcloud|"
    r"owncloud|pcloud ?drive|box( sync)?|mega( ?sync)?|seafile|syncthing|sync",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Concern:
    """One observation about a file or a folder.

    Attributes:
        code: Stable word for programs.
        sentence: Observation in one sentence.
        advice: What to do; empty if nothing.
        size: Size on disk in bytes, if known.
        details: A few examples, such as line numbers with reasons.
    """

    code: str
    sentence: str
    advice: str = ""
    size: int | None = None
    details: tuple[str, ...] = ()


def check_agent_folder(folder: AgentFolder) -> Iterator[Concern]:
    """Report the state of an agent's folder."""
    path = folder.path
    concerns = [
        *_check_permissions(folder),
        *_check_room(path, get_disk_size(folder.journal)),
        *_check_file_system(folder),
    ]
    yield from concerns or [Concern("folder", "Private to this user, and writable.")]
    if is_settled(path):
        yield Concern(
            "restore_unfinished",
            "Restoring a backup was interrupted when it was settled: some journals are those of the backup by now.",
            "The next session finishes that; so does --repair.",
        )
    if temporary := list_leftovers(path):
        sentence = f"{counted(len(temporary), 'temporary file')} of processes that were killed."
        remedy = "A compaction removes them; so does --repair."
        yield Concern("leftovers", sentence, remedy, sum(map(get_disk_size, temporary)))


def check_lock(folder: AgentFolder) -> Iterator[Concern]:
    """Report the state of the lock."""
    lock = get_lock_state(folder.lock)
    if lock.state == "held":
        yield Concern("lock_held", f"The lock is held by {lock}, which is writing; others wait for it.")
    elif lock.state == "unusable":
        lock_type = get_path_type(folder.lock)
        sentence = f"The lock cannot be used: .lock is {describe_path_type(lock_type)}. Nothing can be written."
        remedy = "Close all sessions and move it away; `agent-memory doctor --repair` does that with a folder."
        yield Concern("lock_unusable", sentence, remedy)
    elif lock.state == "missing" and is_begun(folder):
        yield Concern(
            "lock_missing",
            "The lock file was deleted. The next write makes it again; deleted while sessions run, it lets two of them "
            "write at once.",
            "Leave .lock alone, also when it looks stale: a lock ends with its process.",
        )
    else:
        yield Concern("lock", "The lock is free." if lock.state == "free" else "There is none before the first write.")


def is_begun(folder: AgentFolder) -> bool:
    """Return True if there is a journal that is not empty."""
    return get_path_type(folder.journal) == "file" and get_disk_size(folder.journal) > 0


def list_too_open(folder: AgentFolder) -> list[Path]:
    """Return our paths that other users of this machine may access."""
    top = folder.path
    paths = [top, *(top / name for name in names_in(top) if classify_name(name) != "other")]
    paths += [folder.index / name for name in names_in(folder.index)] if get_path_type(folder.index) == "folder" else []
    modes = {path: _mode(path) for path in paths if _is_own(path)}
    if (mode := modes.get(top)) and not mode & _OTHERS:
        return []  # a folder that other users may not enter protects what is in it, whatever the modes there
    return [path for path, mode in modes.items() if mode & _OTHERS]


def make_private(path: Path) -> None:
    """Make a path readable by its owner alone.

    Raises:
        OSError: It has those that it had.
    """
    path.chmod(PRIVATE_FOLDER if path.is_dir() else PRIVATE_FILE)


def _check_permissions(folder: AgentFolder) -> Iterator[Concern]:
    path = folder.path
    if open_paths := list_too_open(folder):
        writable = any(_mode(open_path) & _OTHERS_WRITE for open_path in open_paths)
        names = [open_path.name for open_path in open_paths if open_path != path]
        what = "the folder" + (f" and {counted(len(names), 'file')} in it" if names else "")
        yield Concern(
            "permissions_open",
            f"Other users of this machine may {'change' if writable else 'read'} {what}.",
            f"chmod 700 {path}; `agent-memory doctor --repair` does it.",
            details=tuple(f"{open_path.name} {_mode(open_path):04o}" for open_path in open_paths[:3]),
        )
    if foreign := [name for name in ("", *names_in(path)) if not _is_own(path / name)]:
        yield Concern(
            "foreign_owner",
            f"{'The folder belongs' if foreign == [''] else counted(len(foreign), 'file belongs', 'files belong')} to "
            "another user, so writing may fail.",
            f"chown -R {os.getuid()} {path}, as the one who may.",
            details=tuple(name or path.name for name in foreign[:3]),
        )
    if not os.access(path, os.W_OK | os.X_OK):
        yield Concern(
            "not_writable",
            "Nothing can be stored here: the folder, or the whole file system, may only be read. Searching works.",
            f"chmod 700 {path}, or move the memory to where it can be written (--root, storage_root).",
        )


def _check_room(folder: Path, journal: int) -> Iterator[Concern]:
    try:
        system = os.statvfs(folder)
    except OSError:
        return
    free = system.f_bavail * system.f_frsize
    if system.f_files and not system.f_favail:
        free = 0  # room, and no free inode
    if free < _FULL:
        yield Concern("disk_full", f"The disk is full ({format_size(free)} free): nothing can be stored.", "Make room.")
    elif free < _LOW or free < 2 * journal:
        yield Concern("disk_low", f"Only {format_size(free)} are free on this disk.", "Make room before storing fails.")


def _check_file_system(folder: AgentFolder) -> Iterator[Concern]:
    path = folder.path
    reason = locks_work(path) if get_path_type(folder.lock) == "file" else None
    if reason is not None:
        sentence = f"{reason} Sessions refuse to write, since two of them would overwrite each other; searching works."
        yield Concern("locks_fail", sentence, "Move the memory to a local disk (--root, storage_root).")
    if (kind := shared_file_system(path)) is not None:
        yield Concern(
            "network_folder",
            f"The files lie on a shared file system ({kind}). That works if its locks reach across machines, which "
            "cannot be seen from here.",
            "Use it from one machine at a time, or see docs/how-to/server.md.",
        )
    by = next((part for part in path.parts if _SYNCED.fullmatch(part)), None)
    if by is None and any((parent / ".stfolder").exists() for parent in path.parents):
        by = "Syncthing"
    if by is not None:
        yield Concern(
            "synced_folder",
            f"The files lie in a synchronised folder ({by}). When two machines write at once, it keeps both versions, "
            "and only one of them is the journal.",
            "Use it from one machine at a time, or `agent-memory export` and `import`, or a server "
            "(docs/how-to/server.md).",
        )


def _mode(path: Path) -> int:
    """Return a path's permission bits; 0 for a link or an error."""
    try:
        status = path.lstat()
    except OSError:
        return 0
    return 0 if stat.S_ISLNK(status.st_mode) else stat.S_IMODE(status.st_mode)


def _is_own(path: Path) -> bool:
    try:
        return path.lstat().st_uid == os.geteuid()
    except OSError:
        return True  # gone, or hidden, which another check reports
