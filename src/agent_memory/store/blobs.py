"""Which long texts of an agent are still named by something, and the removal of those that are not."""

from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING, Final

from agent_memory.encryption import AgentBlobs, state_of
from agent_memory.files.atomic import translated
from agent_memory.files.blobs import Swept
from agent_memory.files.names import is_aside
from agent_memory.journal import Journal

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import timedelta
    from pathlib import Path

    from agent_memory.files.layout import AgentFolder

_NAME: Final = re.compile(r"[0-9a-f]{64}")


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
    blobs = AgentBlobs(folder)
    if not blobs.folder.is_dir():
        return Swept()
    if state_of(folder.path) is None:
        return blobs.sweep(lambda: files_naming(folder), grace)
    journals = set(folder.journals())
    # What was kept aside is encrypted in other ways, and may name any text.
    if any(is_aside(path) for path in files_naming(folder) if path not in journals):
        return Swept()
    return blobs.sweep(lambda: journals, grace, _named_in_journal)


def _named_in_journal(path: Path) -> Iterator[str]:
    """Yield what has the form of a name in the fields of a journal that may be encrypted."""
    for entry in Journal(path, ()).poll().entries:
        for change in entry.changes:
            yield from _NAME.findall(json.dumps(change.data))
