"""Encryption and decryption of journals and long texts, one file after the other.

The header of each journal says how its lines stand, so that whoever has the key reads and writes all the while.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Final

from agent_memory.encryption import AgentBlobs, key_for
from agent_memory.errors import BusyError
from agent_memory.files.atomic import opened, translated
from agent_memory.journal import AS_IT_STANDS, IDENTITY, Journal
from agent_memory.journal.reader import JournalReader, read_header
from agent_memory.journal.rewrite import open_recoding

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from agent_memory.files.layout import AgentFolder

_TRIES: Final = 50
_PAUSE: Final = 0.2
"""Seconds between tries: another process is compacting, which takes some."""


def recode(folder: AgentFolder, progress: Callable[[str], None] = lambda _: None) -> None:
    """Encrypt or decrypt all journals and long texts to the agent's state.

    Args:
        folder: Folder of the agent.
        progress: Called with the name of the next file.

    Raises:
        BusyError: A process has been writing for too long; doing it again goes on.
        UnsupportedError: A newer version wrote something; that journal is as it was.
        StorageError: One cannot be read or written; doing it again goes on.
    """
    while paths := unlike(folder):
        for path in paths:
            progress(path.name)
            _recode(path, folder)
    if folder.blobs.is_dir():
        progress(folder.blobs.name)
        AgentBlobs(folder).recode()


def unlike(folder: AgentFolder) -> list[Path]:
    """Return journals that do not match the agent's state.

    Raises:
        StorageError: One cannot be read.
    """
    key = key_for(folder.path)
    name = None if key is None else key.key
    return [path for path in folder.journals() if path.stat().st_size and _key_named_in(path) != name]


def _key_named_in(path: Path) -> str | None:
    reader = JournalReader(path, codec=AS_IT_STANDS)
    with translated(path, "read"), opened(path, os.O_RDONLY) as descriptor:
        header = read_header(reader, descriptor)
    return None if header is None else header.key


def _recode(path: Path, folder: AgentFolder) -> None:
    journal = Journal(path, ())
    for _ in range(_TRIES):
        try:
            with open_recoding(path, key_for(folder.path) or IDENTITY) as new:
                journal.put_in_place(new)
        except BusyError:
            time.sleep(_PAUSE)
        else:
            return
    raise BusyError(f"{path.name} is being written all the time; it stands as it did. Try again.")
