"""Records of current journals, and rewrites of those put back."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from agent_memory.errors import StorageError
from agent_memory.files.lock import folder_lock
from agent_memory.journal.agent_file import JournalState, header_at, note_journal, read_states
from agent_memory.journal.journal import Journal
from agent_memory.journal.purge_filter import is_returned
from agent_memory.journal.purge_list import PurgeList
from agent_memory.journal.reader import is_put_back

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


def rewrite_returned(journals: Iterable[Path]) -> list[Path]:
    """Rewrite put-back journals without purged text; return their paths.

    Raises:
        BusyError: Another process compacts or writes one of them.
        StorageError: One cannot be read or written.
    """
    returned = [path for path in journals if is_returned(path)]
    for path in returned:
        journal = Journal(path, ())
        with journal.folded() as new:
            journal.put_in_place(new)
    return returned


def note_current(journal: Journal, count: int | None) -> None:
    """Record a journal as current unless put back; never raises.

    Args:
        journal: The journal, as it was last read.
        count: How many records it has; unknown when None.
    """
    reader, path = journal.reader, journal.path
    _note_purges(path.parent)
    header = reader.header
    if header is None or reader.withheld or (is_put_back(reader) and reader.read.begin):
        return
    state = (read_states(path.parent) or {}).get(path.name)
    if state is not None and not state.follows(header, reader.last_seq):
        return
    if state == JournalState(header.generation, reader.last_seq, count):
        return
    with contextlib.suppress(StorageError), folder_lock(path.parent, 0):
        if (present := header_at(path)) is not None and present.generation == header.generation:
            note_journal(path, header, reader.last_seq, count)


def _note_purges(folder: Path) -> None:
    """Write down how long the purge list is, where an earlier version or a killed process did not."""
    purges = PurgeList(folder)
    with contextlib.suppress(StorageError):
        if purges.read().purges and not purges.is_noted:
            with folder_lock(folder, 0):
                purges.note()
