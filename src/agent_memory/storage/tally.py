"""Count the records of a state; sealed ones in columns, without loading them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_memory.models import Tally

if TYPE_CHECKING:
    from datetime import datetime

    from agent_memory.storage.state import State


def tally_of(state: State[Any], now: datetime) -> Tally:
    """Count the records of a state."""
    tally = Tally()
    for record in state.table.records.values():
        for name, value in record.facets:
            tally.add_facet(name, value, int(not record.is_item), 1)
        if record.is_item:
            tally.items += 1
            continue
        tally.records += 1
        tally.expired += record.is_expired(now)
        tally.pinned += record.pinned
        tally.superseded += state.replacements.of(record.id, now) is not None
        tally.by_trust[record.trust] += 1
    if state.sealed is not None:
        from agent_memory.storage.sealed.counting import count_sealed

        tally.superseded += state.sealed.replacements.how_many(
            now, state.replacements.beside_sealed(now), state.sealed.notes.alive
        )
        tally.items += len(state.sealed) - len(state.sealed.notes)
        tally.records += len(state.sealed.notes)
        count_sealed(state.sealed.chain, state.sealed.notes, tally, now)
    return tally
