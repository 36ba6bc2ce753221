"""Which long texts of an agent are still named by something, and the removal of those that are not."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from agent_memory.files.atomic import translated
from agent_memory.files.blobs import Blobs, Swept

if TYPE_CHECKING:
    from datetime import timedelta
    from pathlib import Path

    from agent_memory.files.layout import AgentFolder


def files_naming(folder: AgentFolder) -> list[Path]:
    """Return the files in which records may stand: journals, what was set aside of them, copies that somebody made.

    Raises:
        StorageError: The folder cannot be listed.
    """
    with translated(folder.path, "list"), os.scandir(folder.path) as entries:
        return [folder.path / each.name for each in entries if ".yaml" in each.name and each.is_file()]


def sweep_blobs(folder: AgentFolder, grace: timedelta) -> Swept:
    """Remove the long texts that no file in an agent's folder names, and that are older than `grace`. Blocking.

    Raises:
        StorageError: A file that may name one cannot be read; nothing more is removed.
    """
    blobs = Blobs(folder.blobs)
    return blobs.sweep(lambda: files_naming(folder), grace) if blobs.folder.is_dir() else Swept()
