"""What a record is linked with, in both directions, and whether what it rests on still holds. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agent_memory.language.similarity import find_conflict
from agent_memory.models import (
    SUSPECT,
    LinkedRecord,
    Surroundings,
    content_mark,
    is_told,
    may_conflict,
    may_stand_for,
    rests_on,
    sees,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from agent_memory.models.kind import R
    from agent_memory.store.state import State

UNTRUSTED: Final = "(from an untrusted source)"
"""Stands for a stranger's words where a record of others is linked to them."""
MOST: Final = 8
"""Links of one record that are told, in each direction: many notes may point at one, and a reader takes in few."""


def surroundings_of(state: State[R], record: R, now: datetime, group: str | None = None) -> Surroundings:
    """Return what is told of a record besides itself, to a group; None for all that there is."""
    doubts = _doubts(state, record, now)
    incoming, disputed = _incoming(state, record, now, group)
    outgoing = _outgoing(state, record, now, group)
    return Surroundings((*outgoing, *incoming), next(doubts, None), disputed)


def _outgoing(state: State[R], record: R, now: datetime, group: str | None) -> Iterator[LinkedRecord]:
    """Yield what a record is linked to; what was replaced since by what replaced it."""
    told: dict[tuple[str, str], None] = {}
    for link in record.links:
        target = current_of(state, link.id, now)
        if target is None or not is_told(link.rel) or target.id == record.id or (link.rel, target.id) in told:
            continue
        if not sees(group, target.facets):
            continue
        told[link.rel, target.id] = None
        is_strange = not may_stand_for(target.trust, record.trust)
        yield LinkedRecord(link.rel, target.id, UNTRUSTED if is_strange else state.kind.text_of(target))
        if len(told) == MOST:
            return


def _incoming(state: State[R], record: R, now: datetime, group: str | None) -> tuple[list[LinkedRecord], str | None]:
    """Return the valid records that are linked to one, and the id of a newer one that disputes it.

    What has replaced one that disputes it disputes it, too. A stranger's words are not put beside those of others.
    """
    found: list[LinkedRecord] = []
    disputed: str | None = None
    for each in state.links.leading_to(record.id):
        other = current_of(state, each.id, now)
        if other is None or other.id == record.id or not may_stand_for(other.trust, record.trust):
            continue
        if not sees(group, other.facets):
            continue
        is_undecided = any(link.rel == SUSPECT and link.id == record.id for link in each.links)
        if is_undecided and disputed is None and may_conflict(other, record):
            newer_texts = {state.kind.text_of(state.records[each.id]), state.kind.text_of(other)}
            text = state.kind.text_of(record)
            disputed = other.id if any(find_conflict(newer, text) for newer in newer_texts) else None
        if other.id != each.id:
            continue  # replaced, so nobody is told its links
        rels = [link.rel for link in other.links if link.id == record.id and is_told(link.rel)]
        found += [
            LinkedRecord(rel, other.id, state.kind.text_of(other), is_incoming=True) for rel in dict.fromkeys(rels)
        ]
        if len(found) >= MOST:
            break
    return found[:MOST], disputed


def current_of(state: State[R], record_id: str, now: datetime) -> R | None:
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
