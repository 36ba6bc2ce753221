"""Files the careful way: private, synced, replaced whole, with errors people understand.

The only module that turns an `OSError` into an error of ours.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import sys
from typing import TYPE_CHECKING, Final

from agent_memory.errors import DiskFullError, ReadOnlyError, StorageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PRIVATE_FILE: Final = 0o600
PRIVATE_FOLDER: Final = 0o700


@contextlib.contextmanager
def translated(path: Path, doing: str) -> Iterator[None]:
    """Turn an `OSError` raised while `doing` something to `path` into the fitting error of ours.

    Raises:
        DiskFullError: No space, a quota or a file size limit.
        ReadOnlyError: No permission, or a read-only file system.
        StorageError: Anything else the operating system refuses.
    """
    try:
        yield
    except OSError as error:
        raise _translate(error, path, doing) from error


def _translate(error: OSError, path: Path, doing: str) -> StorageError:
    what = f"Could not {doing} {path.name}: {error.strerror or error}."
    if error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}:
        return DiskFullError(f"{what} What was stored before is safe.")
    if error.errno in {errno.EACCES, errno.EPERM, errno.EROFS}:
        return ReadOnlyError(f"{what} What can be read still is.")
    if error.errno == errno.ELOOP:
        return StorageError(
            f"{path.name} is a symbolic link, which is not followed.",
            code="symlink",
            recovery="Replace the link by the file itself.",
        )
    return StorageError(what)


def make_private_folder(folder: Path) -> None:
    """Create `folder` and what is missing above it, readable by its owner alone."""
    with translated(folder, "create"):
        missing = [parent for parent in (folder, *folder.parents) if not parent.exists()]
        for parent in reversed(missing):
            with contextlib.suppress(FileExistsError):  # another process was faster
                parent.mkdir(mode=PRIVATE_FOLDER)
                sync_folder(parent.parent)


def open_private(path: Path, flags: int) -> int:
    """Open `path` with `flags`, not following a link, not inherited by children; a new file is 0600."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, PRIVATE_FILE)


def write_all(descriptor: int, content: bytes) -> None:
    """Write every byte, however many calls that takes."""
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view) :]


def sync_file(descriptor: int) -> None:
    """Ask the disk, not only the kernel, to keep what was written (F_FULLFSYNC on macOS)."""
    if sys.platform == "darwin":
        import fcntl  # noqa: PLC0415 - exists on Unix alone

        with contextlib.suppress(OSError):  # not every file system offers it; fsync below does
            fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
            return
    os.fsync(descriptor)


def sync_folder(folder: Path) -> None:
    """Make a created or renamed name in `folder` durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def replace_file(path: Path, content: bytes, *, durable: bool) -> None:
    """Give `path` new content at once: readers see the old or the new, never a mix.

    Args:
        path: The file; its folder exists.
        content: All of it.
        durable: Sync file and folder; leave out for what can be derived again.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    descriptor = open_private(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        try:
            write_all(descriptor, content)
            if durable:
                sync_file(descriptor)
        finally:
            os.close(descriptor)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    if durable:
        sync_folder(path.parent)
