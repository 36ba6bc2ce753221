"""What the other records of an agent's folder hold: one cache of vectors serves them all."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from agent_memory.embeddings import text_hash
from agent_memory.errors import StorageError
from agent_memory.index import embedded_texts
from agent_memory.journal import Journal, Records, apply_change

if TYPE_CHECKING:
    from pathlib import Path

    from agent_memory.files.layout import AgentFolder
    from agent_memory.models import Kind


def records_in(journal: Path, without: str = "") -> Records:
    """Return the records of a journal by id as they stand there, of whatever kind but the one named.

    Raises:
        StorageError: It cannot be read.
    """
    records: Records = {}
    for entry in Journal(journal, ()).poll().entries:
        for change in entry.changes:
            if change.kind != without:
                apply_change(records, change, entry.at)
    return records


def hashes_elsewhere(folder: AgentFolder, kind: Kind[Any]) -> set[bytes]:
    """Return the hashes of all texts in the folder's journals but those of a kind, whichever field holds them.

    A journal that cannot be read gives none: its vectors can be computed again, and a vector that is kept without need
    tells something of a text that was forgotten.
    """
    found: set[bytes] = set()
    with contextlib.suppress(OSError):
        for path in folder.journals():
            if path.name != kind.journal or kind.beside():
                with contextlib.suppress(StorageError):
                    found |= {
                        text_hash(piece)
                        for record in records_in(path, kind.name).values()
                        for text in record.values()
                        if isinstance(text, str)
                        for piece in embedded_texts(text)
                    }
    return found
