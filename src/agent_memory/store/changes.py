"""Decisions about changes before they are written. Pure.

Each decision reads a state and returns the changes with the answer. The owner of the log asks for it behind a lock, or
again after a lost race.
"""

from __future__ import annotations

import copy
from datetime import datetime
from typing import TYPE_CHECKING, Any

from agent_memory.errors import ConflictError, UnknownIdError, ValidationError
from agent_memory.journal import Change
from agent_memory.models import IDENTITY, Record, Trace, encode_datetimes
from agent_memory.models.search import EVERYTHING
from agent_memory.redaction import quoted, shortened
from agent_memory.store.lookups import find_circle
from agent_memory.store.record_redaction import validate_record
from agent_memory.store.state import MOVED, RELEASED, State

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from agent_memory.models import SearchFilters
    from agent_memory.models.kind import R


def to_store(
    state: State[R], record: R, now: datetime, *, unique: bool, among: SearchFilters = EVERYTHING
) -> tuple[list[Change], str]:
    """Return the changes that store a record, and its ID.

    With `unique`, the ID may be that of a record with the same text that meets the conditions of `among`.

    Raises:
        UnknownIdError: It supersedes an unknown record.
        ValidationError: It is another agent's, or its ID is taken.
    """
    kind = state.kind
    _check_owner(state, record)
    text, group = kind.text_of(record), record.belongs_to
    same = state.find_same_text(text, now, items=record.is_item, group=group, among=among) if unique else None
    if same is not None:
        return [], same.id
    existing = state.records.get(record.id)
    if existing == record:
        return [], record.id
    if existing is not None:
        raise _get_taken_error(record)
    if record.supersedes and record.supersedes not in state.records:
        raise UnknownIdError(f"No {kind.name} {record.supersedes} to supersede; nothing was stored.")
    return _put_all(state, [record]), record.id


def to_store_many(state: State[R], records: Sequence[R]) -> tuple[list[Change], None]:
    """Return the changes that store the unknown records among some.

    Raises:
        ValidationError: One of them cannot be stored.
    """
    text_of, existing = state.kind.text_of, state.records
    new: dict[str, R] = {}

    def find(record_id: str) -> R | None:  # one at a time: a mapping of all would load the sealed ones
        return new.get(record_id) or existing.get(record_id)

    def get_older(record_id: str) -> str | None:
        record = find(record_id)
        return record.supersedes if record is not None else None

    for record in records:
        _check_owner(state, record)
        before = find(record.id)
        if before is not None and text_of(before) != text_of(record):
            raise _get_taken_error(record)
        if before is None:
            new[record.id] = record
    for record_id in new:
        if find_circle(record_id, get_older):
            raise ValidationError(f"{record_id} cannot replace itself; nothing was stored.")
    return _put_all(state, new.values()), None


def to_replace(state: State[R], records: Sequence[R], removed: Iterable[str] = ()) -> list[Change]:
    """Return the changes that store or replace records.

    Args:
        state: State before the change.
        records: Records to store.
        removed: IDs of records to delete before; unknown ones are skipped.

    Raises:
        ValidationError: A record is another agent's.
    """
    for record in records:
        _check_owner(state, record)
    deletions = [Change("delete", state.kind.name, record_id) for record_id in removed if record_id in state.records]
    return [*deletions, *_put_all(state, records)]


def to_update(
    state: State[R], record_id: str, changes: Mapping[str, Any], expect_seq: int | None = None
) -> tuple[list[Change], R]:
    """Return the changes that update fields of a record, and the record.

    None gives a field its default again.

    Args:
        state: State before the change.
        record_id: ID of the record.
        changes: New values by field.
        expect_seq: Required number of the record's last change, None for any.

    Raises:
        UnknownIdError: No such record, or it would supersede an unknown one.
        ConflictError: Its last change is another one.
        ValidationError: A field is unknown, cannot be changed, or its value is wrong.
    """
    wrong = (changes.keys() - state.kind.model.model_fields.keys()) | (changes.keys() & IDENTITY)
    if wrong:
        names = ", ".join(sorted(map(shortened, wrong)))
        raise ValidationError(f"These fields cannot be changed: {names}.")
    before = _get_required(state, record_id)
    if expect_seq is not None and (last := state.get_seq(record_id)) != expect_seq:
        raise ConflictError(f"{record_id} was last changed by number {last}, not {expect_seq}; nothing was changed.")
    after = overlay_fields(before, changes)
    if after == before:
        return [], before
    target = after.supersedes
    if target != before.supersedes and target and target not in state.records:
        raise UnknownIdError(f"No {state.kind.name} {target} to supersede; nothing was changed.")
    if target and record_id in {target, *state.replacements.list_older(target)}:
        raise ValidationError(f"{record_id} cannot replace itself; nothing was changed.")
    if record_id in state.table.invalid:  # a patch of an invalid record would be without effect
        return [_put(state, after)], after
    old, new = before.to_record(), after.to_record()
    patch = encode_datetimes({key: new.get(key) for key in old.keys() | new.keys() if old.get(key) != new.get(key)})
    return [Change("patch", state.kind.name, record_id, patch, after)], after


def to_update_many(state: State[R], changes: Mapping[str, Mapping[str, Any]]) -> tuple[list[Change], None]:
    """Return the changes that update several records; see `to_update`."""
    return [change for record_id, fields in changes.items() for change in to_update(state, record_id, fields)[0]], None


def to_forget(
    state: State[R], gone: Collection[str], reason: str, now: datetime, archived: Iterable[R] = ()
) -> tuple[list[Change], list[R]]:
    """Return the changes that forget records and the older versions they replaced.

    Args:
        state: State before the change.
        gone: IDs of records to forget.
        reason: Why; it leaves a trace of each record. Empty leaves none.
        now: Time of the change.
        archived: Records that only another journal has; they are stored and forgotten as one change.

    Returns:
        The changes, and the forgotten records in the given order, each with its older versions after it.

    Raises:
        UnknownIdError: No such record.
    """
    name = state.kind.name
    absent = {record.id: record for record in archived if record.id not in state.records}
    chains = [(record_id, *state.replacements.list_older(record_id)) for record_id in gone]
    ids = dict.fromkeys(record_id for chain in chains for record_id in chain)
    records = [absent.get(record_id) or _get_required(state, record_id) for record_id in ids]
    changes = [_put(state, record) for record in absent.values()]
    changes += [Change("delete", name, record.id) for record in records]
    if reason and records:
        salt = next((trace.salt for trace in state.table.traces.values()), None) or Trace.new_salt()
        traces = (Trace.of(record.id, state.kind.text_of(record), now, reason, salt) for record in records)
        changes += [_mark_released(state, trace.id, trace) for trace in traces]
    return changes, records


def to_move_out(
    state: State[R], records: Sequence[R], to: str, now: datetime, *, whole: bool
) -> tuple[list[Change], list[str]]:
    """Return the changes that move records out, and their IDs.

    A record that differs from the state stays.

    Args:
        state: State before the change.
        records: Records as the other journal has them.
        to: Name of the other journal.
        now: Time of the change.
        whole: True to keep a record, too, if an older record that stays would become valid without it, or if a record
            that stays replaces it.
    """
    going = {record.id: record for record in records if state.records.get(record.id) == record}
    while whole and (parted := [record for record in going.values() if _is_parted(state, record, going, now)]):
        for record in parted:
            del going[record.id]
    return [Change("delete", state.kind.name, record_id, {MOVED: to}) for record_id in going], list(going)


def _is_parted(state: State[R], record: R, going: Collection[str], now: datetime) -> bool:
    """Return True if a record would lose its replacement or older version."""
    older, newer = record.supersedes, state.replacements.get_newer(record.id, now)
    if newer is not None and newer not in going:
        return True
    stays = older is not None and older in state.records and older not in going
    return stays and state.replacements.get_newer(str(older), now) == record.id


def to_add_traces(state: State[R], traces: Iterable[Trace]) -> tuple[list[Change], int]:
    """Return the changes that add traces of unknown records, and their number.

    A record that exists or has a trace gets none.
    """
    new = {trace.id: trace for trace in traces if trace.id not in state.table.traces}
    changes = [_mark_released(state, trace.id, trace) for trace in new.values() if trace.id not in state.records]
    return changes, len(changes)


def to_touch(state: State[R], record_ids: Collection[str]) -> tuple[list[Change], None]:
    """Return the changes that count an access of each known record."""
    known_ids = [record_id for record_id in dict.fromkeys(record_ids) if record_id in state.records]
    return [Change("touch", state.kind.name, record_id) for record_id in known_ids], None


def _put(state: State[R], record: R) -> Change:
    return Change("put", state.kind.name, record.id, record.to_record(), _detach(record))


def _put_all(state: State[R], records: Iterable[R]) -> list[Change]:
    """Return the changes that store records and end their traces."""
    stored = list(records)
    ended = [_mark_released(state, record.id, None) for record in stored if record.id in state.table.traces]
    return [*(_put(state, record) for record in stored), *ended]


def _mark_released(state: State[Any], record_id: str, trace: Trace | None) -> Change:
    return Change("mark", state.kind.name, record_id, {RELEASED: None if trace is None else trace.to_json()})


def _detach(record: R) -> R:
    """Return a record that shares no container with its caller."""
    containers = {name: value for name, value in vars(record).items() if value and isinstance(value, list | dict)}
    if not containers:
        return record
    detached = copy.copy(record)
    vars(detached).update(copy.deepcopy(containers))
    return detached


def _get_required(state: State[R], record_id: str) -> R:
    record = state.records.get(record_id)
    if record is None:
        raise UnknownIdError(f"No {state.kind.name} {quoted(record_id)}; nothing was changed.")
    return record


def _check_owner(state: State[R], record: R) -> None:
    if record.agent_id != state.agent_id:
        name = state.kind.name
        raise ValidationError(f"A {name} of agent {record.agent_id!r} cannot be stored for {state.agent_id!r}.")


def _get_taken_error(record: Record) -> ValidationError:
    return ValidationError(f"The id {record.id} is taken.", code="id_taken")


def find_lost(before: Iterable[R], now: Mapping[str, R]) -> dict[str, dict[str, Any]]:
    """Return, by ID, the data of deleted or changed records.

    A record with other accesses is not changed.
    """
    lost: dict[str, dict[str, Any]] = {}
    for record in before:
        accesses = {"access_count": record.access_count, "last_accessed": record.last_accessed}
        current = now.get(record.id)
        if current is None or record != current.model_copy(update=accesses):
            lost[record.id] = record.to_record()
    return lost


def is_expired_before(record: Mapping[str, Any], moment: datetime) -> bool:
    """Return True if a raw record expired before a time."""
    try:
        return datetime.fromisoformat(record["expires_at"]) < moment
    except (KeyError, TypeError, ValueError):  # it never expires, or another program wrote an invalid time
        return False


def overlay_fields(record: R, changes: Mapping[str, Any]) -> R:
    """Return a record with some fields changed.

    None gives a field its default again.

    Raises:
        ValidationError: A value is wrong.
    """
    values = record.model_dump()
    for field, value in changes.items():
        if value is None:
            values.pop(field)
        else:
            values[field] = value
    return validate_record(type(record), values, "changed")
