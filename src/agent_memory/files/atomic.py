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
import stat
import sys
from typing import TYPE_CHECKING, Any, Final

from agent_memory.errors import DiskFullError, ReadOnlyError, StorageError
from agent_memory.files.held import unlock_and_close
from agent_memory.files.temporary import claim

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

PRIVATE_FILE: Final = 0o600
PRIVATE_FOLDER: Final = 0o700
_ROOT: Final = 0
"""The user whose links count as one's own: who is that may do everything anyway."""
_BLOCK: Final = 1 << 24
_NOT_OFFERED: Final = frozenset({errno.EINVAL, errno.EBADF, errno.ENOTSUP, errno.ENOTTY, errno.EROFS})
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
        return ReadOnlyError(f"{what} What can be read still is.", recovery=_give_back(path))
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


def _give_back(path: Path) -> str | None:
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
    return _checked(descriptor)


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
    return _checked(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC))


def _checked(descriptor: int) -> int:
    """Return the descriptor of a file; anything else is closed."""
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EISDIR, "it is no file")  # also for a pipe or a device
    return descriptor


def blocks_of(descriptor: int, start: int, end: int, at_once: int = _BLOCK) -> Iterator[bytes]:
    """Yield what an open file holds from `start` up to `end`, in blocks; stops early only where the file ends.

    One `pread` returns 2,147,479,552 bytes at most (man 2 read), and on some file systems fewer at any time.
    """
    while start < end and (block := os.pread(descriptor, min(at_once, end - start), start)):
        yield block
        start += len(block)


def read_at(descriptor: int, start: int, end: int) -> bytes:
    """Return what an open file holds from `start` up to `end`; fewer bytes only where the file ends."""
    return b"".join(blocks_of(descriptor, start, end))


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
            if error.errno not in _NOT_OFFERED:  # a failure is reported once: the fsync below would succeed
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
        if error.errno not in _NOT_OFFERED:
            raise
    finally:
        os.close(descriptor)


def sync_way_to(folder: Path) -> None:
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
