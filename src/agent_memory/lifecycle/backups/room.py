"""Whether there is room for what a backup has."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Final

from agent_memory.errors import StorageError
from agent_memory.files.atomic import make_private_folder, translated
from agent_memory.lifecycle.backups.reading import damaged

if TYPE_CHECKING:
    from pathlib import Path

    from agent_memory.lifecycle.backups.reading import Archive

_MARGIN: Final = 64 << 20
"""Bytes that stay free on the disk beside what is restored."""
_MOST_FOLDED: Final = 1 << 28
"""Bytes of a long text or a page, which is read in one go."""


def check_room(archive: Archive, root: Path) -> None:
    """Refuse what would fill the disk, as an archive that was made to do so.

    Raises:
        StorageError: It has a file that is longer than any of ours, or takes more room than is free (`disk_full`).
    """
    large = [each.name for each in archive.manifest.files if each.size > _MOST_FOLDED]
    if large:
        raise damaged(archive.path, [f"{large[0]} is longer than any text of ours"])
    with translated(root, "look at"):
        make_private_folder(root)
        free = shutil.disk_usage(root).free
    if archive.manifest.size + _MARGIN > free:
        raise StorageError(
            f"{archive.path.name} takes {archive.manifest.size:,} bytes unpacked, and {free:,} are free. "
            "Nothing was changed.",
            code="disk_full",
            recovery="Free some disk space and try again.",
            path=archive.path,
        )
