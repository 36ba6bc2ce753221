"""Answers from a state: lists, counts, surroundings of a record, past versions. Pure."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Generic

import pydantic

from agent_memory.errors import UnknownIdError
from agent_memory.journal import Records, apply_change
from agent_memory.language.similarity import find_conflict
from agent_memory.models import (
    SUSPECT,
    LinkedRecord,
    ListPage,
    RecordVersion,
    Surroundings,
    content_mark,
    is_told,
    may_conflict,
    may_stand_for,
    rests_on,
    sees,
)
from agent_memory.models.kind import R
from agent_memory.redaction import quoted
from agent_memory.store.state import MOVED, TRIMMED

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from agent_memory.journal import Change, Entry
    from agent_memory.store.state import State

    _Raw = dict[str, Any] | None

    from agent_memory.models import Listing, RecordCounts


def versions_of(state: State[R], record_id: str, entries: Iterable[Entry]) -> list[RecordVersion[R]]:
    """Return a version for each change of a record, oldest first; accesses are none.

    Args:
        state: Of which kind, and whose.
        record_id: Which one.
        entries: At least all that concern it, in the order of the file.
    """
    return [
        RecordVersion(entry.seq, datetime.fromisoformat(entry.at), _what(change), _loaded(state, record_id, after))
        for entry, change, _, after in _replayed(state, entries)
        if change.id == record_id and change.op != "touch"
    ]


@dataclass(frozen=True, slots=True)
class RecordChange(Generic[R]):
    """One change of one record, with the record before and after it.

    Attributes:
        seq: Number of the change; changes that were made together share it.
        at: Time of the change, by the clock of the process that made it.
        op: As in `RecordVersion`.
        record_id: ID of the record.
        before: Record before the change, None if it did not exist.
        after: Record after the change, None if it was deleted.
    """

    seq: int
    at: datetime
    op: str
    record_id: str
    before: R | None
    after: R | None


def load_changes(state: State[R], record_ids: Collection[str], entries: Iterable[Entry]) -> list[RecordChange[R]]:
    """Return the changes of some records, oldest first; accesses are not changes.

    Args:
        state: State of the kind and agent.
        record_ids: IDs of the records.
        entries: At least all entries that concern them, in the order of the file.
    """
    return [
        RecordChange(
            entry.seq,
            datetime.fromisoformat(entry.at),
            _what(change),
            change.id,
            _loaded(state, change.id, before),
            _loaded(state, change.id, after),
        )
        for entry, change, before, after in _replayed(state, entries)
        if change.id in record_ids and change.op != "touch"
    ]


def _what(change: Change) -> str:
    return "move" if change.op == "delete" and MOVED in change.data else change.op


@dataclass(frozen=True, slots=True)
class Taken(Generic[R]):
    """What one change took, of which a record's last one was a part.

    Attributes:
        gone: The records it forgot that are not there again, as they were: the one asked for first.
        texts: By id, the text of each record of which it took clauses, if it says still what remained.
    """

    gone: tuple[R, ...] = ()
    texts: Mapping[str, str] = field(default_factory=dict)


def forgotten_with(state: State[R], record_id: str, naming: Callable[[Collection[str]], Sequence[Entry]]) -> list[R]:
    """Return what went when a record was last deleted and is not there again, as it was before: itself first.

    Args:
        state: As it is now.
        record_id: Which one.
        naming: Returns at least all entries that concern some ids, in the order of the file.

    Raises:
        UnknownIdError: It was not forgotten, or so long ago that its text is gone for good.
    """
    taken = taken_with(state, record_id, naming).gone if record_id not in state.records else ()
    if not any(each.id == record_id for each in taken):
        raise UnknownIdError(
            f"{quoted(record_id)} is no {state.kind.name} that was forgotten and can be brought back.",
            recovery="What was forgotten can be brought back for a time; after that its text is gone for good.",
        )
    return list(taken)


def taken_with(state: State[R], record_id: str, naming: Callable[[Collection[str]], Sequence[Entry]]) -> Taken[R]:
    """Return what the change took that last forgot a record, or clauses of it; see `forgotten_with`.

    Nothing of a record that was changed in another way since.
    """
    name, gone, trimmed = state.kind.name, list[str](), list[str]()
    for entry in naming([record_id]):
        own = [change for change in entry.changes if change.kind == name and change.op != "touch"]
        if any(change.id == record_id for change in own):
            gone = [change.id for change in own if _what(change) == "delete"]
            trimmed = [change.id for change in own if change.op == "mark" and TRIMMED in change.data]
            gone, trimmed = (gone, trimmed) if record_id in {*gone, *trimmed} else ([], [])
    gone.sort(key=lambda one: one != record_id)
    if not (gone or trimmed):
        return Taken()
    whole: dict[str, R] = {}
    texts: dict[str, tuple[object, object]] = {}
    for entry, change, before, after in _replayed(state, naming([*gone, *trimmed])):
        if change.id in gone and (record := _loaded(state, change.id, after)) is not None:
            whole[change.id] = record
        is_cut = any(each.id == change.id and each.op == "mark" and TRIMMED in each.data for each in entry.changes)
        if change.op == "patch" and is_cut and before and after:
            texts[change.id] = before.get(state.kind.text), after.get(state.kind.text)
    now = {one: state.kind.text_of(record) for one in trimmed if (record := state.records.get(one)) is not None}
    return Taken(
        tuple([whole[each] for each in gone if each in whole and each not in state.records]),
        {one: str(texts[one][0]) for one in trimmed if one in texts and texts[one][1] == now.get(one)},
    )


def forgotten(state: State[R], entries: Iterable[Entry]) -> list[tuple[R, datetime]]:
    """Return what was forgotten and when, as it was before, the last first."""
    gone: dict[str, tuple[R, datetime]] = {}
    for entry, change, before, _ in _replayed(state, entries):
        gone.pop(change.id, None)
        if _what(change) == "delete" and (record := _loaded(state, change.id, before)) is not None:
            gone[change.id] = record, datetime.fromisoformat(entry.at)
    return list(reversed(gone.values()))


def _replayed(state: State[R], entries: Iterable[Entry]) -> Iterator[tuple[Entry, Change, _Raw, _Raw]]:
    """Yield each change that has an effect, with what the journal says of its record before and after it."""
    records: Records = {}
    for entry in entries:
        for change in entry.changes:
            before = records.get(change.id)
            if change.kind == state.kind.name and apply_change(records, change, entry.at):
                yield entry, change, before, records.get(change.id)


def _loaded(state: State[R], record_id: str, raw: _Raw) -> R | None:
    """Return a record; None where there is none, or where it breaks the data model."""
    with contextlib.suppress(pydantic.ValidationError):
        return state.kind.load(state.agent_id, record_id, raw) if raw is not None else None
    return None


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
    from agent_memory.store.sealed_records import order_of

    chosen, total = order_of(state.sealed, listing, now, keys, state.replacements.beside_sealed(now))
    records = (found[one] if isinstance(one, int) else state.get(one) for one in chosen)
    return ListPage([record for record in records if record is not None], total)


def tally_of(state: State[Any], now: datetime) -> RecordCounts:
    """Count the records of a state."""
    tally, own = state.counted.tally(), state.table.records
    replaced = state.replacements.all(now) if state.sealed is None else own
    tally.superseded = sum(
        not own[one].is_item and state.replacements.of(one, now) is not None for one in replaced if one in own
    )
    tally.expired = sum(not own[one].is_item and own[one].is_expired(now) for one in state.expiring if one in own)
    if state.sealed is not None:
        from agent_memory.store.sealed_records import count_sealed

        tally.superseded += state.sealed.replacements.how_many(
            now, state.replacements.beside_sealed(now), state.sealed.notes.alive
        )
        tally.items += len(state.sealed) - len(state.sealed.notes)
        tally.records += len(state.sealed.notes)
        count_sealed(state.sealed.chain, state.sealed.notes, tally, now)
    return tally


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
