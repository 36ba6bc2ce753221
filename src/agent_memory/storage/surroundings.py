"""What a record is linked with, in both directions, and whether what it rests on still holds. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agent_memory.models import Linked, Surroundings, content_mark, is_told, may_stand_for, rests_on

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from agent_memory.models.kind import R
    from agent_memory.storage.state import State

MOST: Final = 8
"""Links of one record that are told, in each direction: many notes may point at one, and a reader takes in few."""


def surroundings_of(state: State[R], record: R, now: datetime) -> Surroundings:
    """Return what is told of a record besides itself."""
    doubts = _doubts(state, record, now)
    return Surroundings((*_outgoing(state, record, now), *_incoming(state, record, now)), next(doubts, None))


def _outgoing(state: State[R], record: R, now: datetime) -> Iterator[Linked]:
    """Yield what a record is linked to; what was replaced since by what replaced it."""
    told: dict[tuple[str, str], None] = {}
    for link in record.links:
        target = _current(state, link.id, now)
        if target is None or not is_told(link.rel) or target.id == record.id or (link.rel, target.id) in told:
            continue
        told[link.rel, target.id] = None
        yield Linked(link.rel, target.id, state.kind.text_of(target))
        if len(told) == MOST:
            return


def _incoming(state: State[R], record: R, now: datetime) -> list[Linked]:
    """Return the valid records that are linked to one; a stranger's words are not put beside those of others."""
    found: list[Linked] = []
    for each in state.links.leading_to(record.id):
        other = state.get(each.id)
        if other is None or not state.is_valid(other, now) or not may_stand_for(other.trust, record.trust):
            continue
        rels = [link.rel for link in other.links if link.id == record.id and is_told(link.rel)]
        found += [Linked(rel, other.id, state.kind.text_of(other), is_incoming=True) for rel in dict.fromkeys(rels)]
        if len(found) >= MOST:
            break
    return found[:MOST]


def _current(state: State[R], record_id: str, now: datetime) -> R | None:
    """Return what a link leads to now: the record, or the last that replaced it; None if that is gone or expired."""
    met = {record_id}
    while (newer := state.replacements.of(record_id, now)) is not None and newer not in met:
        met.add(record_id := newer)
    record = state.get(record_id)
    return None if record is None or record.is_expired(now) else record


def _doubts(state: State[R], record: R, now: datetime) -> Iterator[str]:
    """Yield why a record may no longer hold: what it is derived from does not say any more what it said then."""
    for link in record.links:
        if not (rests_on(link.rel) and link.id.startswith(state.kind.prefix)):
            continue
        source = state.get(link.id)
        if source is None:
            yield f"it is derived from {link.id}, which was forgotten"
        elif (newer := state.replacements.of(link.id, now)) is not None:
            yield f"it is derived from {link.id}, which {newer} has replaced"
        elif source.is_expired(now):
            yield f"it is derived from {link.id}, which has expired"
        elif link.said and link.said != content_mark(state.kind.text_of(source)):
            yield f"it is derived from {link.id}, which was changed since"
