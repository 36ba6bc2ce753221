"""Choose and order records for a list by the columns of their segments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from agent_memory.index.facets import meeting
from agent_memory.index.row import PINNED, TRUSTS
from agent_memory.index.turns import session_number

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from numpy.typing import NDArray

    from agent_memory.index.chain import Chain
    from agent_memory.index.segment import Segment
    from agent_memory.models import Listing
    from agent_memory.store.sealed_records import SealedRecords


def order_of(
    sealed: SealedRecords[Any],
    listing: Listing,
    now: datetime,
    keys: Sequence[tuple[float, float]],
    replaced: Mapping[str, bool],
) -> tuple[list[int | str], int]:
    """Return what is to be shown, in order, and how many records there are in all.

    Args:
        sealed: The records.
        listing: Which of them.
        now: The present.
        keys: Those of the records that are not sealed and are listed, in the order of storing.
        replaced: By id, whether a record is replaced, where that does not follow from what is sealed alone.

    Returns:
        The ids of sealed records, and the places in `keys` of others.
    """
    numbers = _admitted(sealed, listing, now, replaced)
    first, second = _keys(sealed.chain, listing, numbers)
    first = np.concatenate([first, [key[0] for key in keys]])
    second = np.concatenate([second, [key[1] for key in keys]])
    # Among equals the one stored last is the last here: all is read backwards but for the oldest first.
    order = np.lexsort((second, first))
    if listing.order != "oldest":
        order = order[::-1]
    shown = order[listing.offset : listing.end].tolist()
    chain, count = sealed.chain, len(numbers)

    def named(place: int) -> int | str:
        if place >= count:
            return place - count
        at, row = chain.place_of(int(numbers[place]))
        return chain.segments[at].id(row)

    return [named(place) for place in shown], len(order)


def _admitted(
    sealed: SealedRecords[Any], listing: Listing, now: datetime, replaced: Mapping[str, bool]
) -> NDArray[np.int64]:
    """Return the numbers of the rows that are listed."""
    chain = sealed.chain
    superseded = sealed.replacements.replaced_rows(now, replaced)
    found = []
    for at, (segment, alive) in enumerate(zip(chain.segments, chain.alive, strict=True)):
        mask = alive & _in_state(segment, superseded[at], listing, now)
        if not listing.filters.admits_all:
            mask &= meeting(segment, listing.filters)
        if listing.trust is not None:
            mask &= segment.columns["trust"] == TRUSTS.index(listing.trust)
        if listing.pinned:
            mask &= segment.columns["flags"] & PINNED > 0
        if listing.beginning:
            mask &= segment.strings("ids").beginning(listing.beginning.encode("utf-8", "surrogatepass"))
        if listing.session is not None:
            mask &= segment.columns["session"] == np.uint64(session_number(listing.session) if listing.session else 0)
        found.append(np.flatnonzero(mask) + chain.firsts[at])
    return np.concatenate([np.empty(0, np.int64), *found])


def _in_state(segment: Segment, superseded: NDArray[np.bool_], listing: Listing, now: datetime) -> NDArray[np.bool_]:
    expired = segment.columns["expires"] <= now.timestamp()
    states = {"expired": expired, "superseded": superseded, "valid": ~(expired | superseded)}
    found = np.zeros(len(segment), bool)
    for one in listing.states:
        found |= states[one]
    return found


def _keys(chain: Chain, listing: Listing, numbers: NDArray[np.int64]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return `Listing.key` of some rows, as two columns."""
    if not len(numbers):
        return np.empty(0), np.empty(0)
    stored = chain.column("timestamp")[numbers]
    if listing.order == "used":
        accessed = chain.column("accessed")[numbers]
        was = accessed > -np.inf
        return was.astype(np.float64), np.where(was, accessed, stored)
    if listing.order == "accessed":
        return chain.column("access_count")[numbers].astype(np.float64), stored
    return stored, np.zeros(len(numbers))
