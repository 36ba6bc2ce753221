"""List the records of a state; sealed ones are chosen and ordered in columns, and only those that are shown loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_memory.models import ListPage

if TYPE_CHECKING:
    from datetime import datetime

    from agent_memory.models import Listing
    from agent_memory.store.state import State


def list_records(state: State[Any], listing: Listing, now: datetime) -> ListPage[Any]:
    """Return a part of the list of records."""
    replaced, few = state.replacements.of, state.counted.having(listing.filters.facets)
    found = [
        record
        for record in (state.table.records.values() if few is None else few)
        if listing.admits(record, expired=record.is_expired(now), superseded=replaced(record.id, now) is not None)
    ]
    keys = [listing.key(record) for record in found]
    if state.sealed is None:
        is_oldest = listing.order == "oldest"
        order = sorted(range(len(found)), key=lambda place: (keys[place], place), reverse=not is_oldest)
        return ListPage([found[place] for place in order[listing.offset : listing.end]], len(found))
    from agent_memory.store.sealed_lists import order_of

    chosen, total = order_of(state.sealed, listing, now, keys, state.replacements.beside_sealed(now))
    records = (found[one] if isinstance(one, int) else state.get(one) for one in chosen)
    return ListPage([record for record in records if record is not None], total)
