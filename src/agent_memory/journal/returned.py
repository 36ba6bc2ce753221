"""Rewrite journals that were put back and may have what was purged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_memory.journal.journal import Journal
from agent_memory.journal.purge_filter import is_returned

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


def rewrite_returned(journals: Iterable[Path]) -> list[Path]:
    """Rewrite the journals that may have what was purged, without it; return which these were.

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
