"""Count sealed records in their columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from agent_memory.index.row import PINNED, TRUSTS
from agent_memory.models import from_seconds

if TYPE_CHECKING:
    from datetime import datetime

    from agent_memory.index.chain import Chain
    from agent_memory.index.part import Part
    from agent_memory.models import RecordCounts


def count_sealed(chain: Chain, notes: Part, tally: RecordCounts, now: datetime) -> None:
    """Add sealed records to a tally, but for what is superseded."""
    for segment, alive in zip(notes.segments, notes.alive, strict=True):
        tally.expired += int((alive & (segment.columns["expires"] <= now.timestamp())).sum())
        tally.pinned += int((alive & (segment.columns["flags"] & PINNED > 0)).sum())
        trusts = np.bincount(segment.columns["trust"][alive], minlength=len(TRUSTS)).tolist()
        tally.by_trust.update({trust: count for trust, count in zip(TRUSTS, trusts, strict=True) if count})
    for segment, alive, every in zip(notes.segments, notes.alive, chain.alive, strict=True):
        times = segment.columns["timestamp"][every & ~alive]
        if len(times):
            last = from_seconds(float(times.max()))
            tally.last_item = last if tally.last_item is None else max(last, tally.last_item)
    for segment, alive, every in zip(notes.segments, notes.alive, chain.alive, strict=True):
        facets = segment.lists("facets")
        for number, key in enumerate(facets.keys.every()):
            name, _, value = key.decode().partition("\0")
            rows = facets.at(number).rows
            tally.add_facet(name, value, int(alive[rows].sum()), int(every[rows].sum()))
