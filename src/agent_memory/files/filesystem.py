"""The kind of file system that a folder is on, where the system reports it (Linux). Reads no file of a memory."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

_SHARED: Final = frozenset(
    {"9p", "afs", "ceph", "cifs", "drvfs", "fuse.gcsfuse", "fuse.glusterfs", "fuse.rclone", "fuse.s3fs", "fuse.sshfs"}
    | {"glusterfs", "lustre", "nfs", "nfs4", "prl_fs", "smb3", "smbfs", "vboxsf", "virtiofs", "vmhgfs", "webdav"}
)
"""File systems of other machines, or shared with them: locks may work on one machine alone, which it cannot test."""
_MANDATORY: Final = frozenset({"cifs", "smb3", "smbfs"})
"""There a lock on a file keeps readers out, too."""
MOUNTS: Final = Path("/proc/self/mountinfo")  # man 5 proc


def shared_file_system(folder: Path, mounts: Path = MOUNTS) -> str | None:
    """Return the kind of file system if it is one that other machines may use at the same time, else None."""
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
    """Return whether a lock on a file keeps other processes from reading it here."""
    return shared_file_system(folder) in _MANDATORY
