"""Saved positions of journal readers, from which another can continue."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from agent_memory.files.atomic import opened, translated
from agent_memory.journal.place import Place

if TYPE_CHECKING:
    from agent_memory.journal.reader import JournalReader


def place_of(reader: JournalReader) -> Place | None:
    """Return where a reader stands, None where there is no file.

    Raises:
        StorageError: The file cannot be read.
    """
    if reader.header is None:
        return None
    with translated(reader.path, "read"), opened(reader.path, os.O_RDONLY) as descriptor:
        return Place.of(descriptor, reader.header, reader.read_seq, reader.offset, reader.lines)


def go_on(reader: JournalReader, place: Place) -> bool:
    """Let a reader that has read nothing go on from a place; tell whether the file still has it."""
    try:
        with opened(reader.path, os.O_RDONLY) as descriptor:
            found = place.in_file(descriptor, os.fstat(descriptor).st_size)
    except OSError:
        return False
    if found is not None:
        reader.begin_at(found)
    return found is not None
