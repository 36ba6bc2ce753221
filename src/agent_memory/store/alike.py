"""Which records say something like a text, by their words: what a new one is compared with."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final

from agent_memory.store.store import shown_rows

if TYPE_CHECKING:
    from agent_memory.models.kind import R
    from agent_memory.store.store import Store

_SPARE: Final = 2
"""How many times as many records are looked up as are wanted: some are replaced or have expired."""


def alike(store: Store[R], text: str, count: int, *, most_unread: int | None = None) -> list[R] | None:
    """Return valid records that share most words with a text.

    Best first.

    Args:
        store: Records to compare with.
        text: What they are compared with.
        count: How many.
        most_unread: Return None rather than read the words of more records than these; None reads all.
    """
    state, now = store.refresh(), store.clock()
    if most_unread is not None and store.index.unread > most_unread:
        return None
    found = store.index.alike(text, _SPARE * count, among=shown_rows(state, now, superseded=False))
    return list(islice((record for one in found if state.is_valid(record := state.records[one], now)), count))
