"""Replacement of files that other programs may be writing.

The kernel swaps two names in one step where it can (Linux and macOS). Elsewhere the present file is moved away and the
new one takes the free name: for a moment the file is missing, but none is lost. On Linux the kernel also reports if a
program has a file open for writing.

To replace several files together, the new ones are written to a folder next to the old ones. Renaming that folder
settles the change; then each file is renamed to its place. The next holder of the folder's lock finishes what a killed
process had settled.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import secrets
import shutil
import signal
import sys
import time
from typing import TYPE_CHECKING, Any, Final

from agent_memory.errors import BusyError, StorageError
from agent_memory.files.atomic import (
    PRIVATE_FOLDER,
    hold_folder,
    open_private,
    open_to_read,
    opened,
    read_file,
    replace_file,
    sync_folder,
    sync_tree,
    translated,
    unlock_and_close,
    write_all,
)
from agent_memory.files.names import RESTORING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

_AT_FDCWD: Final = -100  # linux/fcntl.h
_LINUX_FREE, _LINUX_SWAP = 1, 2  # linux/fs.h: RENAME_NOREPLACE, RENAME_EXCHANGE
_MACOS_FREE, _MACOS_SWAP = 4, 2  # sys/stdio.h: RENAME_EXCL, RENAME_SWAP
_NOT_OFFERED: Final = frozenset({errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP})
_NO_LINKS: Final = _NOT_OFFERED | {errno.EPERM, errno.EMLINK, errno.EXDEV}
_QUIET_SIGNAL: Final = getattr(signal, "SIGURG", None)
"""Signal when a leased file is opened for writing; ignored by default."""
_BETWEEN_LOOKS: Final = 0.005
_MIB: Final = 1024 * 1024
_OLD: Final = ".old-"
"""Prefix of a replaced folder until it is removed."""


def put_file_in_place(new: Path, place: Path, spare: Callable[[], Path]) -> None:
    """Put `new` in place of `place`.

    The file that was there is then at the path of `new` or at a spare path.

    Args:
        new: Path of the complete new file, in the same folder.
        place: Path to replace, which may be free.
        spare: Returns a free path for what has to be moved away.

    Raises:
        OSError: The new file is where it was.
    """
    while True:
        try:
            swap(new, place)
        except FileNotFoundError:
            if move_if_free(new, place):
                return
        except OSError as error:
            if error.errno not in _NOT_OFFERED:
                raise
            with contextlib.suppress(FileNotFoundError):
                place.rename(spare())
            if move_if_free(new, place):
                return
        else:
            return


def swap(first: Path, second: Path) -> None:
    """Swap the names of two files in one step.

    Raises:
        OSError: Nothing was changed; ENOSYS, EINVAL or ENOTSUP where kernel or file system cannot.
    """
    _rename(first, second, _LINUX_SWAP, _MACOS_SWAP)


def move_if_free(new: Path, place: Path) -> bool:
    """Rename a file; return False if the new name is taken.

    Raises:
        OSError: Nothing was changed.
    """
    try:
        _rename(new, place, _LINUX_FREE, _MACOS_FREE)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in _NOT_OFFERED:
            raise
        return _link_if_free(new, place)
    return True


@contextlib.contextmanager
def block_writers(descriptor: int) -> Iterator[bool | None]:
    """Keep other programs from opening a file for writing.

    Yields:
        True if no program can write now; False if one has it open for writing; None where the system cannot report it.
    """
    taken = _lease(descriptor, "F_RDLCK")
    try:
        yield taken
    finally:
        if taken:
            _lease(descriptor, "F_UNLCK")


def _lease(descriptor: int, kind: str) -> bool | None:
    if not hasattr(fcntl, "F_SETLEASE") or _QUIET_SIGNAL is None:
        return None
    try:
        fcntl.fcntl(descriptor, fcntl.F_SETSIG, _QUIET_SIGNAL)
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, getattr(fcntl, kind))
    except OSError as error:
        return False if error.errno == errno.EAGAIN else None
    return True


def _rename(old: Path, new: Path, linux: int, macos: int) -> None:
    function = _system_call()
    if function is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    names = (os.fsencode(old), os.fsencode(new))
    if sys.platform == "darwin":
        failed = function(*names, macos)
    else:
        failed = function(_AT_FDCWD, names[0], _AT_FDCWD, names[1], linux)
    if failed:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(old), None, str(new))


def _system_call() -> Any:
    name = {"linux": "renameat2", "darwin": "renamex_np"}.get(sys.platform)
    if name is None:
        return None
    return getattr(ctypes.CDLL(None, use_errno=True), name, None)  # an old C library has neither


def _link_if_free(new: Path, place: Path) -> bool:
    try:
        os.link(new, place)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        return _copy_if_free(new, place)
    new.unlink()
    return True


def _copy_if_free(new: Path, place: Path) -> bool:
    """Copy a file where hard links do not exist.

    A reader may see only the beginning of it.
    """
    content = read_file(new)
    try:
        with opened(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL) as descriptor:
            write_all(descriptor, content)
    except FileExistsError:
        return False
    new.unlink()
    return True


def set_aside(path: Path, place: Path, content: bytes | Iterable[bytes] | None = None, *, durable: bool = True) -> Path:
    """Move `path`, or write `content`, to a free name like `place`.

    Returns:
        Path that was used.

    Args:
        path: File, folder or other path to quarantine.
        place: Wanted path; `…-2` and so on if taken. See `get_aside_path`.
        content: Content to write instead of moving `path`.
        durable: Sync what is written.

    Raises:
        OSError: Nothing was moved or written.
        StorageError: No name is free.
    """
    for free in _names_like(place):
        if move_if_free(path, free) if content is None else _write_new(free, content, durable=durable):
            return free
    raise StorageError(f"No free name for {place.name}.")


def _write_new(place: Path, content: bytes | Iterable[bytes], *, durable: bool) -> bool:
    try:
        os.close(open_private(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    try:
        replace_file(place, content, durable=durable)
    except BaseException:
        place.unlink(missing_ok=True)
        raise
    return True


def _names_like(place: Path) -> Iterator[Path]:
    tail = ".yaml" if place.suffix == ".yaml" else ""
    yield place
    for number in range(2, 1000):
        yield place.with_name(f"{place.name.removesuffix(tail)}-{number}{tail}")


def read_settled(path: Path, patience: float, max_bytes: int) -> tuple[bytes, float]:
    """Read a file once no program is writing it.

    Args:
        path: Path of a file that people edit.
        patience: Seconds to wait for a program that is writing it.
        max_bytes: Size limit; a larger file is not read.

    Returns:
        Content, and the time of the last change in seconds since 1970.

    Raises:
        BusyError: A program has it open for writing all the time.
        StorageError: It is larger (`too_long`).
        OSError: It is missing, or cannot be read.
    """
    deadline = time.monotonic() + patience
    with os.fdopen(open_to_read(path), "rb") as file:
        while True:
            with block_writers(file.fileno()) as quiet:
                if quiet is not False:
                    status = os.fstat(file.fileno())
                    content = file.read(max_bytes + 1) if status.st_size <= max_bytes else None
                    break
            if time.monotonic() > deadline:
                raise BusyError(
                    f"Another program has {path.name} open for writing.", recovery="Save and close it there."
                )
            time.sleep(_BETWEEN_LOOKS)
    # It may have grown since, where programs cannot be kept from writing.
    if content is None or len(content) > max_bytes:
        raise StorageError(
            f"{path.name} has more than {max_bytes // _MIB} MiB, so it is neither read nor rendered again.",
            code="too_long",
            recovery="Move it out of the agent's folder, or make it shorter. Memories are kept and found all the same.",
            path=path,
        )
    return content, max(status.st_mtime, status.st_ctime)


@contextlib.contextmanager
def open_staging(folder: Path) -> Iterator[Path]:
    """Yield an empty folder for files that replace those in `folder`.

    It is removed after the block unless they were settled.

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


def settle_files(folder: Path, staged: Path) -> None:
    """Replace files in `folder` by those in `staged`; needs the lock.

    Once this has begun, another process may finish the change.

    Raises:
        StorageError: Nothing was changed; or, if `is_settled`, the next holder of the lock continues.
    """
    with translated(folder, "change files of"):
        sync_tree(staged)
        staged.rename(folder / RESTORING)
        sync_folder(folder)
    finish_settled_files(folder)


def is_settled(folder: Path) -> bool:
    """Return True if a change is settled and not finished."""
    return os.access(folder / RESTORING, os.F_OK)


def finish_settled_files(folder: Path) -> None:
    """Move all settled files to their places; needs the lock.

    Raises:
        StorageError: Some files could not be moved; the next holder of the lock tries again.
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
        # All names must be on disk before the next write: finishing later would undo that write.
        sync_folder(folder)
        sync_folder(settled)
        shutil.rmtree(settled)
        sync_folder(folder)


def _sweep(folder: Path) -> None:
    """Remove unsettled folders of killed processes."""
    for staged in folder.glob(f"{RESTORING}.*.tmp"):
        with contextlib.suppress(OSError):
            held = hold_folder(staged)
            shutil.rmtree(staged, ignore_errors=True)
            if held is not None:
                unlock_and_close(held)
