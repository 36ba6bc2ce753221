"""Inspection of paths: type, size, file system, holder of the lock.

Opens nothing that could block (a pipe, a device) and follows no link where the product does not.
"""

from __future__ import annotations

import fcntl
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from agent_memory.files.atomic import translated
from agent_memory.files.names import Sort, classify_name

if TYPE_CHECKING:
    from collections.abc import Iterator


PathType = Literal["missing", "file", "folder", "link", "other", "hidden"]

_LARGE: Final = 1 << 20
_FIELDS_OF_A_LOCK: Final = 6
_SHARED: Final = frozenset(
    {"9p", "afs", "ceph", "cifs", "drvfs", "fuse.gcsfuse", "fuse.glusterfs", "fuse.rclone", "fuse.s3fs", "fuse.sshfs"}
    | {"glusterfs", "lustre", "nfs", "nfs4", "prl_fs", "smb3", "smbfs", "vboxsf", "virtiofs", "vmhgfs", "webdav"}
)
"""File systems shared with other machines: locks may work on one machine only, which it cannot test."""
_MANDATORY: Final = frozenset({"cifs", "smb3", "smbfs"})
"""File systems on which a file lock keeps readers out too."""
MOUNTS: Final = Path("/proc/self/mountinfo")  # man 5 proc


def get_path_type(path: Path, *, follow: bool = False) -> PathType:
    """Return the type of a path; `hidden` if it cannot be read.

    Args:
        path: Path to check.
        follow: Follow links; `link` then means a broken link.
    """
    try:
        mode = path.stat().st_mode if follow else path.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return "link" if follow and path.is_symlink() else "missing"
    except OSError:
        return "link" if follow and path.is_symlink() else "hidden"
    if stat.S_ISLNK(mode):
        return "link"
    if stat.S_ISREG(mode):
        return "file"
    return "folder" if stat.S_ISDIR(mode) else "other"


def describe_path_type(kind: PathType) -> str:
    """Return the phrase for a path type, to follow 'is'."""
    return {
        "missing": "missing",
        "file": "a file",
        "folder": "a folder",
        "link": "a symbolic link",
        "other": "no regular file",
        "hidden": "hidden from this user",
    }[kind]


def read_regular(path: Path, *, follow: bool = True) -> bytes:
    """Return the content of a regular file, links followed.

    Raises:
        OSError: No such file, or it cannot be read.
    """
    if get_path_type(path, follow=follow) not in {"file", "missing"}:
        raise OSError(f"it is {describe_path_type(get_path_type(path))}")
    return path.read_bytes()


def list_names(folder: Path, *sorts: Sort) -> list[str]:
    """Return the sorted names in a folder with one of these meanings.

    Raises:
        StorageError: It cannot be listed.
    """
    with translated(folder, "list"):
        names = sorted(entry.name for entry in folder.iterdir()) if folder.is_dir() else []
    return [name for name in names if classify_name(name) in sorts]


def names_in(folder: Path) -> list[str]:
    """Return the sorted names in a folder; none on an error."""
    try:
        return sorted(path.name for path in folder.iterdir())
    except OSError:
        return []


def get_disk_size(path: Path) -> int:
    """Return the disk size of a file or folder, else 0."""
    try:
        status = path.lstat()
    except OSError:
        return 0
    if not stat.S_ISDIR(status.st_mode):
        return _get_taken_bytes(status)
    total = 0
    for top, _, files in os.walk(path):
        for name in files:
            try:
                total += _get_taken_bytes(os.lstat(os.path.join(top, name)))  # noqa: PTH118 - os.walk gives strings
            except OSError:
                continue
    return total


def _get_taken_bytes(status: os.stat_result) -> int:
    """Return a file's size, without holes if it is large."""
    blocks: int | None = getattr(status, "st_blocks", None)
    if blocks is None or status.st_size < _LARGE:
        return status.st_size
    return min(status.st_size, blocks * 512)


# -- locks ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LockState:
    """State of a lock file, with PID and program of its holder."""

    state: Literal["missing", "free", "held", "unusable"]
    pid: int | None = None
    name: str = ""

    @property
    def is_stopped(self) -> bool:
        """True if the holder was stopped (Ctrl-Z, SIGSTOP, a debugger)."""
        about = next(_iter_lines(f"/proc/{self.pid}/stat"), "") if self.pid else ""
        return about.rpartition(")")[2].strip()[:1] in {"T", "t"}

    def __str__(self) -> str:
        if self.pid is None:
            return "another process"
        return f"process {self.pid}" + (f" ({self.name})" if self.name else "")


def get_lock_state(path: Path) -> LockState:
    """Return the present state of a lock file.

    Takes a shared lock for an instant; writes nothing.
    """
    kind = get_path_type(path)
    if kind == "missing":
        return LockState("missing")
    if kind != "file":
        return LockState("unusable")
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return LockState("unusable")
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        fcntl.flock(descriptor, fcntl.LOCK_UN)
    except BlockingIOError:
        return find_holder(os.fstat(descriptor))
    except OSError:
        return LockState("unusable")
    finally:
        os.close(descriptor)
    return LockState("free")


def find_holder(status: os.stat_result) -> LockState:
    """Find the holder of a locked file in /proc/locks.

    Locks held in another container are not listed.
    """
    device = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    for line in _iter_lines("/proc/locks"):
        fields = line.split()
        if len(fields) >= _FIELDS_OF_A_LOCK and fields[1] == "FLOCK" and fields[5] == device and fields[4].isdigit():
            pid = int(fields[4])
            if pid:
                return LockState("held", pid, next(_iter_lines(f"/proc/{pid}/comm"), ""))
    return LockState("held")


def _iter_lines(path: str) -> Iterator[str]:
    try:
        with Path(path).open(encoding="utf-8", errors="replace") as lines:
            yield from (line.rstrip("\n") for line in lines)
    except OSError:
        return


def shared_file_system(folder: Path, mounts: Path = MOUNTS) -> str | None:
    """Return the type of a shared file system, else None."""
    try:
        device = folder.stat().st_dev
        lines = mounts.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    number = f"{os.major(device)}:{os.minor(device)}"
    for line in lines:
        about, _, kind = line.partition(" - ")
        if about.split()[2:3] == [number]:
            name = kind.partition(" ")[0]
            return name if name in _SHARED or name.startswith("fuse.ssh") else None
    return None


def locks_keep_readers_out(folder: Path) -> bool:
    """Return True if a file lock keeps other processes from reading."""
    return shared_file_system(folder) in _MANDATORY
