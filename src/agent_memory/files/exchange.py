"""Replace a file without overwriting what another program saves there at the same moment.

The kernel swaps the two names in one step where it can (Linux and macOS); elsewhere what is there is moved away and the
new one takes a place that is free, so that there is no file for a moment, and never one that is lost. On Linux the
kernel also reports whether a program still has a file open for writing.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import signal
import sys
from typing import TYPE_CHECKING, Any, Final

from agent_memory.files.atomic import opened, read_file, write_all

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_AT_FDCWD: Final = -100  # linux/fcntl.h
_LINUX_FREE, _LINUX_SWAP = 1, 2  # linux/fs.h: RENAME_NOREPLACE, RENAME_EXCHANGE
_MACOS_FREE, _MACOS_SWAP = 4, 2  # sys/stdio.h: RENAME_EXCL, RENAME_SWAP
_NOT_OFFERED: Final = frozenset({errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP})
_NO_LINKS: Final = _NOT_OFFERED | {errno.EPERM, errno.EMLINK, errno.EXDEV}
_QUIET_SIGNAL: Final = getattr(signal, "SIGURG", None)
"""What the kernel sends when a leased file is opened for writing: by default it is ignored."""


def put_in_place(new: Path, place: Path, spare: Callable[[], Path]) -> None:
    """Put `new` where `place` is; what is there at that moment lies under the name of `new` or under a spare one.

    Args:
        new: The whole new file; in the same folder.
        place: Where it is to be; nothing needs to be there.
        spare: Returns a free name for what has to be moved away.

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
    """Rename a file to a name that must be free; return whether it was.

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
def undisturbed(descriptor: int) -> Iterator[bool | None]:
    """Keep other programs from opening a file for writing for the length of the block.

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
    """Write it a second time, where a file has one name only; a reader may see the beginning of it."""
    content = read_file(new)
    try:
        with opened(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL) as descriptor:
            write_all(descriptor, content)
    except FileExistsError:
        return False
    new.unlink()
    return True
