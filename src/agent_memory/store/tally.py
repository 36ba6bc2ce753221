"""Count the records of a state; sealed ones in columns, without loading them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from datetime import datetime

    from agent_memory.models import RecordCounts
    from agent_memory.store.state import State


def tally_of(state: State[Any], now: datetime) -> RecordCounts:
    """Count the records of a state."""
    tally, own = state.counted.tally(), state.table.records
    replaced = state.replacements.all(now) if state.sealed is None else own
    tally.superseded = sum(
        not own[one].is_item and state.replacements.of(one, now) is not None for one in replaced if one in own
    )
    tally.expired = sum(not own[one].is_item and own[one].is_expired(now) for one in state.expiring if one in own)
    if state.sealed is not None:
        from agent_memory.store.sealed_counts import count_sealed

        tally.superseded += state.sealed.replacements.how_many(
            now, state.replacements.beside_sealed(now), state.sealed.notes.alive
        )
        tally.items += len(state.sealed) - len(state.sealed.notes)
        tally.records += len(state.sealed.notes)
        count_sealed(state.sealed.chain, state.sealed.notes, tally, now)
    return tally
