"""Private files, synced and replaced atomically, with errors that say what to do.

The only module that turns an `OSError` into an `AgentMemoryError`.
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
from agent_memory.files.names import BACKUPS, RESTORING, TOPICS, sort_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

PRIVATE_FILE: Final = 0o600
PRIVATE_FOLDER: Final = 0o700
_ROOT: Final = 0
"""The user whose links count as one's own: who is that may do everything anyway."""
_BLOCK: Final = 1 << 24
_NO_SYNC: Final = frozenset({errno.EINVAL, errno.EBADF, errno.ENOTSUP, errno.ENOTTY, errno.EROFS})
"""How file systems say that they cannot sync this kind of thing (a folder, often); PostgreSQL passes over them, too."""


def signature_of(status: os.stat_result) -> tuple[int, int, int]:
    """Return inode, size and time of the last change: if they are the same, the file is taken as unchanged."""
    return status.st_ino, status.st_size, status.st_mtime_ns


def signature(path: Path) -> tuple[int, int, int] | None:
    """Return `signature_of` what is at `path`, links followed; None if nothing is, or it cannot be looked at."""
    try:
        return signature_of(path.stat())
    except OSError:
        return None


def is_full(error: OSError) -> bool:
    """Return whether an error means that there is no room: on the disk, in a quota, below a limit on file sizes."""
    return error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


@contextlib.contextmanager
def translated(path: Path, doing: str) -> Iterator[None]:
    """Turn an `OSError` raised while `doing` something to `path` into the fitting `StorageError`.

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
        return ReadOnlyError(f"{what} What can be read still is.", recovery=_advise_owner(path))
    if error.errno == errno.ELOOP:
        return StorageError(
            f"{path.name} is a symbolic link, which is not followed.",
            code="symlink",
            recovery="Replace the link by the file itself.",
        )
    return StorageError(what, **_advice(error, path))


def _advice(error: OSError, path: Path) -> dict[str, Any]:
    """Return code and recovery of an error that is neither a full disk nor a missing permission."""
    if error.errno == errno.EISDIR:
        return {"code": "not_a_file", "recovery": f"Move what is called {path.name} away."}
    if error.errno in {errno.EMFILE, errno.ENFILE}:
        return {"code": "too_many_files", "recovery": "Close other files, or raise the limit (ulimit -n)."}
    if error.errno == errno.EIO:
        return {"recovery": "The disk may be failing: copy the folder to another one, then try again."}
    return {}


def _advise_owner(path: Path) -> str | None:
    """Return what to do about files of another user, such as a command run with sudo leaves; None for one's own."""
    try:
        present = next(each for each in (path, *path.parents) if os.path.lexists(each))
        owner = present.lstat().st_uid
    except (OSError, StopIteration):
        return None
    if not hasattr(os, "geteuid") or owner == os.geteuid():
        return None
    return f"{present.name} belongs to another user (uid {owner}); make the agent's folder and all in it yours (chown)."


def make_private_folder(folder: Path) -> None:
    """Create `folder` and what is missing above it, readable by its owner alone.

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
    """Open `path` with `flags`, not following a link, not inherited by children; a new file is 0600.

    Raises:
        OSError: Also when it is no regular file: opening a pipe would block.
    """
    descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, PRIVATE_FILE)
    return _check_regular(descriptor)


@contextlib.contextmanager
def opened(path: Path, flags: int) -> Iterator[int]:
    """Open a file like `open_private` for the length of the block, and yield its descriptor."""
    descriptor = open_private(path, flags)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def read_file(path: Path) -> bytes:
    """Return what is in `path`, which may be a link, in one go.

    Raises:
        OSError: It cannot be read, or is no file.
    """
    with os.fdopen(open_to_read(path), "rb") as file:
        return file.read()


def read_json(path: Path) -> dict[str, Any] | None:
    """Return the object in a JSON file of ours; None if there is no such file, or it holds anything else."""
    try:
        value = json.loads(read_file(path))
    except (OSError, ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def open_to_read(path: Path) -> int:
    """Open what is in `path`, which may be a link, without blocking.

    Raises:
        OSError: It cannot be read, or is no file.
    """
    return _check_regular(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC))


def _check_regular(descriptor: int) -> int:
    """Return the descriptor of a file; anything else is closed."""
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EISDIR, "it is no file")  # also for a pipe or a device
    return descriptor


def iter_blocks(descriptor: int, start: int, end: int, at_once: int = _BLOCK) -> Iterator[bytes]:
    """Yield what an open file holds from `start` up to `end`, in blocks; stops early only where the file ends.

    One `pread` returns 2,147,479,552 bytes at most (man 2 read), and on some file systems fewer at any time.
    """
    while start < end and (block := os.pread(descriptor, min(at_once, end - start), start)):
        yield block
        start += len(block)


def read_at(descriptor: int, start: int, end: int) -> bytes:
    """Return what an open file holds from `start` up to `end`; fewer bytes only where the file ends."""
    return b"".join(iter_blocks(descriptor, start, end))


def is_in_place(path: Path, descriptor: int) -> bool:
    """Return whether the open file is still the one that `path` names.

    Raises:
        OSError: The folder cannot be looked at.
    """
    try:
        there = path.lstat()
    except FileNotFoundError:
        return False
    return os.path.samestat(there, os.fstat(descriptor))


def write_all(descriptor: int, content: bytes) -> None:
    """Write every byte, however many calls that takes."""
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view) :]


def sync_file(descriptor: int) -> None:
    """Ask the disk, not only the kernel, to keep what was written (F_FULLFSYNC on macOS)."""
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
    """Make a created or renamed name in `folder` durable; nothing to do where the file system has no such thing."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        sync_file(descriptor)
    except OSError as error:
        if error.errno not in _NO_SYNC:
            raise
    finally:
        os.close(descriptor)


def sync_parents(folder: Path) -> None:
    """Make the names of `folder` and of everything above it on the same disk durable."""
    device = folder.stat().st_dev
    for parent in folder.absolute().parents:
        with contextlib.suppress(PermissionError):  # a folder that may not be opened was not created by this process
            if parent.stat().st_dev != device:
                return  # the place where a disk is mounted was there before
            sync_folder(parent)


def sync_tree(folder: Path) -> None:
    """Make everything in `folder` durable, also what other code wrote there without a sync."""
    for each in folder.iterdir():
        if each.is_dir():
            sync_tree(each)
        else:
            with opened(each, os.O_RDONLY) as descriptor:
                sync_file(descriptor)
    sync_folder(folder)


def replace_file(
    path: Path, content: bytes | Iterable[bytes], *, durable: bool, check: Callable[[], None] | None = None
) -> None:
    """Give `path` new content at once: readers see the old or the new, never a mix.

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


_held: Final[set[int]] = set()


def try_lock(descriptor: int) -> None:
    """Lock an open file until `unlock_and_close`, or until this process ends in whatever way.

    Raises:
        OSError: Another process holds it (`BlockingIOError`, or EACCES), or the file system has no locks.
    """
    _held.add(descriptor)
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def wait_for_lock(descriptor: int) -> None:
    """Lock an open file like `try_lock`, behind those who wait for it already, for however long that takes.

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
        try_lock(descriptor)
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


DRAFT: Final = ".draft"
"""Beginning of the name of a folder with a text that a person edits."""
_FRESH_SECONDS: Final = 1.0
"""A file may be created and not locked yet for a few microseconds."""
_OLD_SECONDS: Final = 3600.0
_TAIL: Final = len(".01234567.tmp")


def claim(descriptor: int) -> None:
    """Lock the open temporary file until it is closed or this process ends."""
    with contextlib.suppress(OSError):  # without such locks its age decides
        try_lock(descriptor)


def list_leftovers(folder: Path, at_once: str | None = None, *, of: str | None = None) -> list[Path]:
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
    """Remove what `list_leftovers` returns; what cannot be removed now may be the next time."""
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
