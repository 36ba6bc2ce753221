"""Queries of a state: lists, counts, surroundings, past versions. Pure."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Generic

import pydantic

from agent_memory.errors import UnknownIdError
from agent_memory.journal import Change, Entry, Records, apply_change
from agent_memory.language.similarity import find_conflict
from agent_memory.models import (
    SUSPECT,
    LinkedRecord,
    ListPage,
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
from agent_memory.store.state import MOVED, TRIMMED, State

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from agent_memory.models import Listing, RecordCounts

    _Raw = dict[str, Any] | None

UNTRUSTED: Final = "(from an untrusted source)"
"""Replaces the text of an untrusted source where a trusted record is linked to it."""
MOST_LINKS: Final = 8
"""Links of one record that are shown, in each direction: many notes may link to one record."""


# -- lists and counts -------------------------------------------------------------------------------------------------


def list_records(state: State[Any], listing: Listing, now: datetime) -> ListPage[Any]:
    """Return a page of a list of records.

    Loads no sealed records of other pages.
    """
    indexed = state.counter.find_having(listing.filters.facets)
    unsealed = [
        record
        for record in (state.table.records.values() if indexed is None else indexed)
        if listing.admits(
            record,
            expired=record.is_expired(now),
            superseded=state.replacements.get_newer(record.id, now) is not None,
        )
    ]
    keys = [listing.key(record) for record in unsealed]
    if state.sealed is None:
        is_oldest = listing.order == "oldest"
        order = sorted(range(len(keys)), key=lambda place: (keys[place], place), reverse=not is_oldest)
        return ListPage([unsealed[place] for place in order[listing.offset : listing.end]], len(keys))
    chosen, total = state.sealed.list_ids(listing, now, keys, state.replacements.list_overrides(now))
    records = (unsealed[place] if isinstance(place, int) else state.get(place) for place in chosen)
    return ListPage([record for record in records if record is not None], total)


def count_records(state: State[Any], now: datetime) -> RecordCounts:
    """Count the records of a state; loads no sealed records."""
    tally, unsealed = state.counter.copy_tally(), state.table.records
    candidates = state.replacements.map_all(now) if state.sealed is None else unsealed
    tally.superseded = sum(
        not unsealed[record_id].is_item and state.replacements.get_newer(record_id, now) is not None
        for record_id in candidates
        if record_id in unsealed
    )
    expiring = [unsealed[record_id] for record_id in state.expiring if record_id in unsealed]
    tally.expired = sum(not record.is_item and record.is_expired(now) for record in expiring)
    if state.sealed is not None:
        state.sealed.add_counts(tally, now, state.replacements.list_overrides(now))
    return tally


# -- links ------------------------------------------------------------------------------------------------------------


def get_surroundings(state: State[R], record: R, now: datetime, group: str | None = None) -> Surroundings:
    """Return the links and doubts of a record.

    Args:
        state: State that has the record.
        record: Record that is shown.
        now: Time at which records are expired or replaced.
        group: Group whose records may be named, None for all.
    """
    doubts = _iter_doubts(state, record, now)
    incoming, disputed = _find_incoming(state, record, now, group)
    outgoing = _iter_outgoing(state, record, now, group)
    return Surroundings((*outgoing, *incoming), next(doubts, None), disputed)


def _iter_outgoing(state: State[R], record: R, now: datetime, group: str | None) -> Iterator[LinkedRecord]:
    """Yield the links of a record, to the current targets."""
    shown: dict[tuple[str, str], None] = {}
    for link in record.links:
        target = find_current_record(state, link.id, now)
        if target is None or not is_told(link.rel) or target.id == record.id or (link.rel, target.id) in shown:
            continue
        if not sees(group, target.facets):
            continue
        shown[link.rel, target.id] = None
        is_trusted = may_stand_for(target.trust, record.trust)
        yield LinkedRecord(link.rel, target.id, state.kind.text_of(target) if is_trusted else UNTRUSTED)
        if len(shown) == MOST_LINKS:
            return


def _find_incoming(
    state: State[R], record: R, now: datetime, group: str | None
) -> tuple[list[LinkedRecord], str | None]:
    """Return records linked to a record, and a conflicting newer ID.

    A record that replaced a conflicting one conflicts, too. Texts of untrusted sources are left out.
    """
    links: list[LinkedRecord] = []
    disputed: str | None = None
    for source in state.links.iter_linked(record.id):
        current = find_current_record(state, source.id, now)
        if current is None or current.id == record.id or not may_stand_for(current.trust, record.trust):
            continue
        if not sees(group, current.facets):
            continue
        is_undecided = any(link.rel == SUSPECT and link.id == record.id for link in source.links)
        if is_undecided and disputed is None and may_conflict(current, record):
            newer_texts = {state.kind.text_of(state.records[source.id]), state.kind.text_of(current)}
            text = state.kind.text_of(record)
            disputed = current.id if any(find_conflict(newer, text) for newer in newer_texts) else None
        if current.id != source.id:
            continue  # links of a replaced record are not shown
        rels = [link.rel for link in current.links if link.id == record.id and is_told(link.rel)]
        links += [
            LinkedRecord(rel, current.id, state.kind.text_of(current), is_incoming=True) for rel in dict.fromkeys(rels)
        ]
        if len(links) >= MOST_LINKS:
            break
    return links[:MOST_LINKS], disputed


def find_current_record(state: State[R], record_id: str, now: datetime) -> R | None:
    """Return a record or the last that replaced it.

    None if that is deleted or expired.
    """
    visited = {record_id}
    while (newer := state.replacements.get_newer(record_id, now)) is not None and newer not in visited:
        visited.add(record_id := newer)
    record = state.get(record_id)
    return None if record is None or record.is_expired(now) else record


def _iter_doubts(state: State[R], record: R, now: datetime) -> Iterator[str]:
    """Yield changes of a record's sources that make it doubtful."""
    for link in record.links:
        if not (rests_on(link.rel) and link.id.startswith(state.kind.prefix)):
            continue
        source = state.get(link.id)
        if source is None:
            yield f"it is derived from {link.id}, which was forgotten"
        elif (newer := state.replacements.get_newer(link.id, now)) is not None:
            yield f"it is derived from {link.id}, which {newer} has replaced"
        elif source.is_expired(now):
            yield f"it is derived from {link.id}, which has expired"
        elif link.said and link.said != content_mark(state.kind.text_of(source)):
            yield f"it is derived from {link.id}, which was changed since"


# -- past versions ----------------------------------------------------------------------------------------------------


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
            _get_op(change),
            change.id,
            _load(state, change.id, before),
            _load(state, change.id, after),
        )
        for entry, change, before, after in _replay(state, entries)
        if change.id in record_ids and change.op != "touch"
    ]


@dataclass(frozen=True, slots=True)
class RemovedTexts(Generic[R]):
    """Records and clauses that one change removed.

    Attributes:
        gone: Forgotten records that do not exist again, as they were: the requested one first.
        texts: By ID, the former text of each trimmed record that still has the text left by the trimming.
    """

    gone: tuple[R, ...] = ()
    texts: Mapping[str, str] = field(default_factory=dict)


def load_forgotten_with(
    state: State[R], record_id: str, naming: Callable[[Collection[str]], Sequence[Entry]]
) -> list[R]:
    """Return the records of a record's last deletion, itself first.

    Args:
        state: State as it is now.
        record_id: ID of the deleted record.
        naming: Returns at least all entries that concern some IDs, in the order of the file.

    Raises:
        UnknownIdError: It was not forgotten, or so long ago that its text is deleted for good.
    """
    removed = load_removed_with(state, record_id, naming).gone if record_id not in state.records else ()
    if not any(record.id == record_id for record in removed):
        raise UnknownIdError(
            f"{quoted(record_id)} is not a forgotten {state.kind.name} that can be restored.",
            recovery="A forgotten text can be restored for a limited time; later it is deleted.",
        )
    return list(removed)


def load_removed_with(
    state: State[R], record_id: str, naming: Callable[[Collection[str]], Sequence[Entry]]
) -> RemovedTexts[R]:
    """Return the texts removed when a record was last forgotten or trimmed.

    Nothing if the record was changed in another way since. See `load_forgotten_with`.
    """
    name, gone, trimmed = state.kind.name, list[str](), list[str]()
    for entry in naming([record_id]):
        changes = [change for change in entry.changes if change.kind == name and change.op != "touch"]
        if any(change.id == record_id for change in changes):
            gone = [change.id for change in changes if _get_op(change) == "delete"]
            trimmed = [change.id for change in changes if change.op == "mark" and TRIMMED in change.data]
            gone, trimmed = (gone, trimmed) if record_id in {*gone, *trimmed} else ([], [])
    gone.sort(key=lambda gone_id: gone_id != record_id)
    if not (gone or trimmed):
        return RemovedTexts()
    records: dict[str, R] = {}
    texts: dict[str, tuple[object, object]] = {}
    for entry, change, before, after in _replay(state, naming([*gone, *trimmed])):
        if change.id in gone and (record := _load(state, change.id, after)) is not None:
            records[change.id] = record
        is_cut = any(mark.id == change.id and mark.op == "mark" and TRIMMED in mark.data for mark in entry.changes)
        if change.op == "patch" and is_cut and before and after:
            texts[change.id] = before.get(state.kind.text), after.get(state.kind.text)
    current = (state.records.get(trimmed_id) for trimmed_id in trimmed)
    unchanged = [record for record in current if record is not None and record.id in texts]
    return RemovedTexts(
        tuple([records[gone_id] for gone_id in gone if gone_id in records and gone_id not in state.records]),
        {
            record.id: str(texts[record.id][0])
            for record in unchanged
            if texts[record.id][1] == state.kind.text_of(record)
        },
    )


def load_forgotten(state: State[R], entries: Iterable[Entry]) -> list[tuple[R, datetime]]:
    """Return forgotten records, as they were, with their times, the last first."""
    gone: dict[str, tuple[R, datetime]] = {}
    for entry, change, before, _ in _replay(state, entries):
        gone.pop(change.id, None)
        if _get_op(change) == "delete" and (record := _load(state, change.id, before)) is not None:
            gone[change.id] = record, datetime.fromisoformat(entry.at)
    return list(reversed(gone.values()))


def _get_op(change: Change) -> str:
    return "move" if change.op == "delete" and MOVED in change.data else change.op


def _replay(state: State[R], entries: Iterable[Entry]) -> Iterator[tuple[Entry, Change, _Raw, _Raw]]:
    """Yield each effective change with the raw record before and after it."""
    records: Records = {}
    for entry in entries:
        for change in entry.changes:
            before = records.get(change.id)
            if change.kind == state.kind.name and apply_change(records, change, entry.at):
                yield entry, change, before, records.get(change.id)


def _load(state: State[R], record_id: str, raw: _Raw) -> R | None:
    """Return a record, None for missing or invalid data."""
    with contextlib.suppress(pydantic.ValidationError):
        return state.kind.load(state.agent_id, record_id, raw) if raw is not None else None
    return None
