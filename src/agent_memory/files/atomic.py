"""Private files, synced and replaced atomically.

Also locks on open files, which a forked child does not hold, and leftovers of killed processes. The only module that
turns an `OSError` into an `AgentMemoryError`, which says what to do.

A lock belongs to the open file, of which a forked child has a copy that would keep the lock when its parent dies: the
child closes it. A process that writes a temporary file holds a lock on it, which ends with the process; where there are
no such locks, an age of an hour decides.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import secrets
import shutil
import stat
import sys
import time
from typing import TYPE_CHECKING, Any, Final

from agent_memory.errors import DiskFullError, ReadOnlyError, StorageError
from agent_memory.files.names import BACKUPS, RESTORING, TOPICS, classify_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

PRIVATE_FILE: Final = 0o600
PRIVATE_FOLDER: Final = 0o700
_ROOT: Final = 0
"""User whose links are trusted, since root may do everything anyway."""
_BLOCK: Final = 1 << 24
_NO_SYNC: Final = frozenset({errno.EINVAL, errno.EBADF, errno.ENOTSUP, errno.ENOTTY, errno.EROFS})
"""Errors of file systems that cannot sync this kind of file (often a folder); PostgreSQL ignores them too."""
_held: Final[set[int]] = set()
DRAFT: Final = ".draft"
"""Prefix of a folder with a text that a person edits."""
_FRESH_SECONDS: Final = 1.0
"""A new file is unlocked for a few microseconds."""
_OLD_SECONDS: Final = 3600.0
_TAIL: Final = len(".01234567.tmp")


def get_signature(status: os.stat_result) -> tuple[int, int, int]:
    """Return inode, size and modification time, to detect changes."""
    return status.st_ino, status.st_size, status.st_mtime_ns


def read_signature(path: Path) -> tuple[int, int, int] | None:
    """Return `get_signature` of a path, links followed, or None."""
    try:
        return get_signature(path.stat())
    except OSError:
        return None


def is_full(error: OSError) -> bool:
    """Return True for a full disk, quota or size limit."""
    return error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


@contextlib.contextmanager
def translated(path: Path, doing: str) -> Iterator[None]:
    """Turn an `OSError` about `path` into the fitting `StorageError`.

    Raises:
        DiskFullError: No space, a quota or a file size limit.
        ReadOnlyError: No permission, or a read-only file system.
        StorageError: Anything else the operating system refuses.
    """
    try:
        yield
    except OSError as error:
        refusal = _translate(error, path, doing)
        refusal.path = path
        raise refusal from error


def _translate(error: OSError, path: Path, doing: str) -> StorageError:
    what = f"Could not {doing} {path.name}: {error.strerror or error}."
    if is_full(error):
        return DiskFullError(f"{what} What was stored before is safe.")
    if error.errno in {errno.EACCES, errno.EPERM, errno.EROFS}:
        return ReadOnlyError(f"{what} Reading still works.", recovery=_advise_owner(path))
    if error.errno == errno.ELOOP:
        return StorageError(
            f"{path.name} is a symbolic link, which is not followed.",
            code="symlink",
            recovery="Replace the link by the file itself.",
        )
    return StorageError(what, **_advice(error, path))


def _advice(error: OSError, path: Path) -> dict[str, Any]:
    """Return code and recovery of any other error."""
    if error.errno == errno.EISDIR:
        return {"code": "not_a_file", "recovery": f"Move what is called {path.name} away."}
    if error.errno in {errno.EMFILE, errno.ENFILE}:
        return {"code": "too_many_files", "recovery": "Close other files, or raise the limit (ulimit -n)."}
    if error.errno == errno.EIO:
        return {"recovery": "The disk may be failing: copy the folder to another one, then try again."}
    return {}


def _advise_owner(path: Path) -> str | None:
    """Return a hint for files of another user, else None."""
    try:
        present = next(parent for parent in (path, *path.parents) if os.path.lexists(parent))
        owner = present.lstat().st_uid
    except (OSError, StopIteration):
        return None
    if not hasattr(os, "geteuid") or owner == os.geteuid():
        return None
    return f"{present.name} belongs to another user (uid {owner}); make the agent's folder and all in it yours (chown)."


def make_private_folder(folder: Path) -> None:
    """Create a folder and its parents, readable by the owner alone.

    Raises:
        StorageError: It cannot be created; or it is a link that another user made, who would choose where things go.
    """
    with translated(folder, "create"):
        if folder.is_symlink() and folder.lstat().st_uid not in {os.geteuid(), _ROOT}:
            raise StorageError(
                f"{folder.name} is a link that another user made; nothing was written behind it.",
                code="symlink",
                recovery="Remove the link. If it is to be there, make it yourself.",
                path=folder,
            )
        missing = [parent for parent in (folder, *folder.parents) if not parent.exists()]
        for parent in reversed(missing):
            with contextlib.suppress(FileExistsError):  # another process was faster, and may die before it syncs
                parent.mkdir(mode=PRIVATE_FOLDER)
            sync_folder(parent.parent)


def open_private(path: Path, flags: int) -> int:
    """Open a regular file with `flags`; a new file is 0600.

    Links are not followed, and child processes do not inherit the descriptor.

    Raises:
        OSError: The file cannot be opened, or is not a regular file: opening a pipe would block.
    """
    descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, PRIVATE_FILE)
    return _check_regular(descriptor)


@contextlib.contextmanager
def opened(path: Path, flags: int) -> Iterator[int]:
    """Open a file like `open_private` for the block."""
    descriptor = open_private(path, flags)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def read_file(path: Path) -> bytes:
    """Return the content of a file, links followed.

    Raises:
        OSError: The path cannot be read, or is not a file.
    """
    with os.fdopen(open_to_read(path), "rb") as file:
        return file.read()


def read_json(path: Path) -> dict[str, Any] | None:
    """Return the object in a JSON file; None if missing or invalid."""
    try:
        value = json.loads(read_file(path))
    except (OSError, ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def open_to_read(path: Path) -> int:
    """Open a file for reading, links followed, without blocking.

    Raises:
        OSError: The path cannot be read, or is not a file.
    """
    return _check_regular(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC))


def _check_regular(descriptor: int) -> int:
    """Return the descriptor of a regular file; close any other."""
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EISDIR, "it is not a file")  # also for a pipe or a device
    return descriptor


def iter_blocks(descriptor: int, start: int, end: int, at_once: int = _BLOCK) -> Iterator[bytes]:
    """Yield an open file from `start` to `end` in blocks.

    One `pread` returns 2,147,479,552 bytes at most (man 2 read), and on some file systems fewer at any time.
    """
    while start < end and (block := os.pread(descriptor, min(at_once, end - start), start)):
        yield block
        start += len(block)


def read_at(descriptor: int, start: int, end: int) -> bytes:
    """Return the content of an open file from `start` to `end`."""
    return b"".join(iter_blocks(descriptor, start, end))


def has_other_names(descriptor: int) -> bool:
    """Return True if an open file has more names, by hard links."""
    return os.fstat(descriptor).st_nlink > 1


def is_in_place(path: Path, descriptor: int) -> bool:
    """Return True if `path` still names the open file.

    Raises:
        OSError: The folder cannot be looked at.
    """
    try:
        status = path.lstat()
    except FileNotFoundError:
        return False
    return os.path.samestat(status, os.fstat(descriptor))


def write_all(descriptor: int, content: bytes) -> None:
    """Write every byte, however many calls that takes."""
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view) :]


def append_lines(path: Path, content: bytes, flags: int = 0) -> None:
    """Append lines in one write, after a torn last line, and sync."""
    descriptor = open_to_append(path, flags)
    try:
        size = os.fstat(descriptor).st_size
        is_torn = size > 0 and read_at(descriptor, size - 1, size) != b"\n"  # a process died while writing
        write_all(descriptor, b"\n" * is_torn + content)
        sync_file(descriptor)
    finally:
        os.close(descriptor)


def open_to_append(path: Path, flags: int = 0) -> int:
    """Open a file like `open_private` to append to it.

    A file with other names is replaced by a copy first, so that they keep its content.
    """
    flags |= os.O_RDWR | os.O_APPEND
    descriptor = open_private(path, flags)
    if not has_other_names(descriptor):
        return descriptor
    os.close(descriptor)
    replace_file(path, read_file(path), durable=True)
    return open_private(path, flags)


def sync_file(descriptor: int) -> None:
    """Sync a file to the disk itself (F_FULLFSYNC on macOS)."""
    if sys.platform == "darwin":
        try:
            fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
        except OSError as error:
            if error.errno not in _NO_SYNC:  # a failure is reported once: the fsync below would succeed
                raise
        else:
            return
    os.fsync(descriptor)


def sync_folder(folder: Path) -> None:
    """Make new names in a folder durable, where that is supported."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        sync_file(descriptor)
    except OSError as error:
        if error.errno not in _NO_SYNC:
            raise
    finally:
        os.close(descriptor)


def sync_parents(folder: Path) -> None:
    """Make the names of a folder and its parents durable."""
    device = folder.stat().st_dev
    for parent in folder.absolute().parents:
        with contextlib.suppress(PermissionError):  # a folder that may not be opened was not created by this process
            if parent.stat().st_dev != device:
                return  # the place where a disk is mounted was there before
            sync_folder(parent)


def sync_tree(folder: Path) -> None:
    """Make everything in a folder durable."""
    for path in folder.iterdir():
        if path.is_dir():
            sync_tree(path)
        else:
            with opened(path, os.O_RDONLY) as descriptor:
                sync_file(descriptor)
    sync_folder(folder)


def replace_file(
    path: Path, content: bytes | Iterable[bytes], *, durable: bool, check: Callable[[], None] | None = None
) -> None:
    """Replace the content of `path` atomically.

    The new file is locked until its name is durable, so that a process that waits for its lock writes after that.

    Args:
        path: The file; its folder exists.
        content: All of it, in one piece or in several.
        durable: Sync file and folder; leave out for what can be derived again.
        check: Called when all is written and only the renaming is left; what it raises stops that.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    descriptor = open_private(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        claim(descriptor)
        for piece in (content,) if isinstance(content, bytes) else content:
            write_all(descriptor, piece)
        if durable:
            sync_file(descriptor)
        if check is not None:
            check()
        temporary.replace(path)
        if durable:
            sync_folder(path.parent)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    finally:
        unlock_and_close(descriptor)


def try_lock(descriptor: int) -> None:
    """Lock an open file until `unlock_and_close` or the process ends.

    Raises:
        OSError: Another process holds it (`BlockingIOError`, or EACCES), or the file system has no locks.
    """
    _held.add(descriptor)
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def wait_for_lock(descriptor: int) -> None:
    """Lock an open file like `try_lock`, waiting as long as needed.

    Raises:
        OSError: The file system has no locks.
    """
    _held.add(descriptor)
    fcntl.flock(descriptor, fcntl.LOCK_EX)


def duplicate(descriptor: int) -> int:
    """Duplicate a descriptor, for after its lock is released.

    Close it with `unlock_and_close`: a child forked before would keep the lock by it.
    """
    copy = os.dup(descriptor)
    _held.add(copy)
    return copy


def hold_folder(folder: Path) -> int | None:
    """Lock a folder itself and return its descriptor.

    None if folders cannot be locked, or it is missing.

    Raises:
        BlockingIOError: Another process holds it.
    """
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY)
    except (AttributeError, OSError):
        return None
    try:
        try_lock(descriptor)
    except OSError as error:
        unlock_and_close(descriptor)
        if isinstance(error, BlockingIOError):
            raise
        return None
    return descriptor


def unlock_and_close(descriptor: int) -> None:
    """Unlock and close a descriptor.

    A child forked before has a copy, and would keep the lock of a file that was only closed.
    """
    _held.discard(descriptor)
    with contextlib.suppress(OSError):
        fcntl.flock(descriptor, fcntl.LOCK_UN)
    with contextlib.suppress(OSError):  # a failure of writing was reported by the sync before
        os.close(descriptor)


def _close_in_child() -> None:
    """Close the parent's locked files in a forked child.

    Unlocking them would release the locks of the parent.
    """
    while _held:
        with contextlib.suppress(OSError):
            os.close(_held.pop())


os.register_at_fork(after_in_child=_close_in_child)


def claim(descriptor: int) -> None:
    """Lock a temporary file until it is closed."""
    with contextlib.suppress(OSError):  # without such locks its age decides
        try_lock(descriptor)


def list_leftovers(folder: Path, at_once: str | None = None, *, of: str | None = None) -> list[Path]:
    """Return temporary files and folders that no process writes any more.

    Args:
        folder: Folder to scan, without other subfolders.
        at_once: Name of a file whose leftovers count at any age, since its writers notice when they are gone.
        of: Only leftovers of the file of this name, for folders of other programs.
    """
    abandoned = []
    with contextlib.suppress(OSError):
        for path in folder.iterdir():
            replaced = path.name[1:-_TAIL]
            if classify_name(path.name) == "temporary" and of in {None, replaced}:
                with contextlib.suppress(OSError):  # deleted since, or not readable
                    if _is_abandoned(path, 0.0 if replaced == at_once else _FRESH_SECONDS):
                        abandoned.append(path)
    return abandoned


def remove_leftovers(folder: Path, at_once: str | None = None, *, of: str | None = None) -> None:
    """Remove leftovers; ignore those that cannot be removed now."""
    for path in list_leftovers(folder, at_once, of=of):
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
        for path in list_leftovers(place):
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
        try_lock(descriptor)
    except BlockingIOError:
        return False
    except OSError:
        return age > _OLD_SECONDS
    finally:
        unlock_and_close(descriptor)
    return True
