"""What is decided about a change before it is written: which lines it takes, or why it is refused. Pure.

Each decision looks at a state and returns the changes to append and what to answer. Whoever holds the log asks: behind
a lock, or again after a lost race.
"""

from __future__ import annotations

import copy
from datetime import datetime
from typing import TYPE_CHECKING, Any

from agent_memory.errors import ConflictError, UnknownIdError, ValidationError
from agent_memory.journal import Change
from agent_memory.models import IDENTITY, Record, Trace, encode_datetimes
from agent_memory.redaction import quoted, shortened
from agent_memory.store.lookups import circle
from agent_memory.store.record_redaction import validated
from agent_memory.store.state import MOVED, RELEASED, seq_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from agent_memory.models.kind import R
    from agent_memory.store.state import State


def to_store(state: State[R], record: R, now: datetime, *, unique: bool) -> tuple[list[Change], str]:
    """Return what stores a record, and the id under which its text is known then.

    Raises:
        UnknownIdError: It supersedes a record that is not known.
        ValidationError: It is another agent's, or its id is taken.
    """
    kind = state.kind
    _check_owner(state, record)
    text, group = kind.text_of(record), record.belongs_to
    if unique and (same := state.same_text(text, now, items=record.is_item, group=group)) is not None:
        return [], same.id
    known = state.records.get(record.id)
    if known == record:
        return [], record.id
    if known is not None:
        raise _taken(record)
    if record.supersedes and record.supersedes not in state.records:
        raise UnknownIdError(f"There is no {kind.name} {record.supersedes} to supersede; nothing was stored.")
    return _stored_again(state, [record]), record.id


def to_store_many(state: State[R], records: Sequence[R]) -> tuple[list[Change], None]:
    """Return what stores those of an agent's records that are not known.

    Raises:
        ValidationError: One of them cannot be kept.
    """
    text, known = state.kind.text_of, state.records
    new: dict[str, R] = {}

    def found(record_id: str) -> R | None:  # one by one: all that are known would have to be loaded
        return new.get(record_id) or known.get(record_id)

    def replaces(record_id: str) -> str | None:
        record = found(record_id)
        return record.supersedes if record is not None else None

    for record in records:
        _check_owner(state, record)
        before = found(record.id)
        if before is not None and text(before) != text(record):
            raise _taken(record)
        if before is None:
            new[record.id] = record
    for record_id in new:
        if circle(record_id, replaces):
            raise ValidationError(f"{record_id} cannot replace itself; nothing was stored.")
    return _stored_again(state, new.values()), None


def to_update(
    state: State[R], record_id: str, changes: Mapping[str, Any], expect_seq: int | None = None
) -> tuple[list[Change], None]:
    """Return what changes fields of a record; None gives a field its default again.

    Args:
        state: As it is now.
        record_id: Which.
        changes: The new values.
        expect_seq: The number that the record's last change must have, if that matters.

    Raises:
        UnknownIdError: There is no such record, or it is to supersede one that is not known.
        ConflictError: Its last change is another one.
        ValidationError: A field is unknown, cannot be changed, or its value is wrong.
    """
    wrong = (changes.keys() - state.kind.model.model_fields.keys()) | (changes.keys() & IDENTITY)
    if wrong:
        names = ", ".join(sorted(map(shortened, wrong)))
        raise ValidationError(f"These fields cannot be changed: {names}.")
    before = _required(state, record_id)
    if expect_seq is not None and (last := seq_of(state, record_id)) != expect_seq:
        raise ConflictError(f"{record_id} was last changed by number {last}, not {expect_seq}; nothing was changed.")
    after = overlaid(before, changes)
    if after == before:
        return [], None
    target = after.supersedes
    if target != before.supersedes and target and target not in state.records:
        raise UnknownIdError(f"There is no {state.kind.name} {target} to supersede; nothing was changed.")
    if target and record_id in {target, *state.replacements.older(target)}:
        raise ValidationError(f"{record_id} cannot replace itself; nothing was changed.")
    if record_id in state.table.invalid:  # a patch upon a record that is wrong would be without effect
        return [_put(state, after)], None
    return [Change("patch", state.kind.name, record_id, _difference(before, after), after)], None


def to_update_many(state: State[R], changes: Mapping[str, Mapping[str, Any]]) -> tuple[list[Change], None]:
    """Return what changes fields of several records as one change; see `to_update`."""
    return [change for record_id, fields in changes.items() for change in to_update(state, record_id, fields)[0]], None


def to_forget(state: State[R], gone: Collection[str], reason: str, now: datetime) -> tuple[list[Change], list[R]]:
    """Return the changes that forget records and the older versions they replaced.

    Args:
        state: State before the change.
        gone: IDs of records to forget.
        reason: Why; it leaves a trace of each record. Empty leaves none.
        now: Time of the change.

    Returns:
        The changes, and the forgotten records in the given order, each with its older versions after it.

    Raises:
        UnknownIdError: There is no such record.
    """
    name = state.kind.name
    chains = [(record_id, *state.replacements.older(record_id)) for record_id in gone]
    chain = [_required(state, each) for each in dict.fromkeys(one for ids in chains for one in ids)]
    changes = [Change("delete", name, record.id) for record in chain]
    if reason and chain:
        salt = next((trace.salt for trace in state.table.traces.values()), None) or Trace.new_salt()
        traces = (Trace.of(each.id, state.kind.text_of(each), now, reason, salt) for each in chain)
        changes += [Change("mark", name, trace.id, {RELEASED: trace.to_json()}) for trace in traces]
    return changes, chain


def to_move_out(
    state: State[R], records: Sequence[R], to: str, now: datetime, *, whole: bool
) -> tuple[list[Change], list[str]]:
    """Return what takes out records that another journal of the folder has, and the ids of these, in their order.

    One that is not there exactly as it is given stays.

    Args:
        state: As it is now.
        records: As the other journal has them.
        to: Its name.
        now: The present.
        whole: One also stays without which an older record would count again that is not to go, or that is replaced by
            one that is not to go.
    """
    going = {record.id: record for record in records if state.records.get(record.id) == record}

    while whole and (held := [each for each in going.values() if _is_parted(state, each, going, now)]):
        for each in held:
            del going[each.id]
    return [Change("delete", state.kind.name, each, {MOVED: to}) for each in going], list(going)


def _is_parted(state: State[R], record: R, going: Collection[str], now: datetime) -> bool:
    """Tell whether a record would be parted from the one that replaces it, or from one that it replaces."""
    older, newer = record.supersedes, state.replacements.of(record.id, now)
    if newer is not None and newer not in going:
        return True
    stays = older is not None and older in state.records and older not in going
    return stays and state.replacements.of(str(older), now) == record.id


def to_add_traces(state: State[R], traces: Iterable[Trace]) -> tuple[list[Change], int]:
    """Return what adds traces of records that are neither there nor have one, and how many these are."""
    new = {trace.id: trace for trace in traces if trace.id not in state.table.traces}
    changes = [
        Change("mark", state.kind.name, trace.id, {RELEASED: trace.to_json()})
        for trace in new.values()
        if trace.id not in state.records
    ]
    return changes, len(changes)


def to_touch(state: State[R], record_ids: Collection[str]) -> tuple[list[Change], None]:
    """Return what counts an access of each record that is known."""
    return [Change("touch", state.kind.name, each) for each in dict.fromkeys(record_ids) if each in state.records], None


def _put(state: State[R], record: R) -> Change:
    return Change("put", state.kind.name, record.id, record.to_record(), _detach(record))


def _detach(record: R) -> R:
    """Return a record that shares no list and no dictionary with its caller."""
    containers = {name: value for name, value in vars(record).items() if value and isinstance(value, list | dict)}
    if not containers:
        return record
    detached = copy.copy(record)
    vars(detached).update(copy.deepcopy(containers))
    return detached


def _stored_again(state: State[R], records: Iterable[R]) -> list[Change]:
    """Return what stores records; one that had left a trace has none any more."""
    known = list(records)
    ended = [
        Change("mark", state.kind.name, each.id, {RELEASED: None}) for each in known if each.id in state.table.traces
    ]
    return [*(_put(state, record) for record in known), *ended]


def _required(state: State[R], record_id: str) -> R:
    record = state.records.get(record_id)
    if record is None:
        raise UnknownIdError(f"There is no {state.kind.name} {quoted(record_id)}; nothing was changed.")
    return record


def _check_owner(state: State[R], record: R) -> None:
    if record.agent_id != state.agent_id:
        name = state.kind.name
        raise ValidationError(f"A {name} of agent {record.agent_id!r} cannot be stored for {state.agent_id!r}.")


def _taken(record: Record) -> ValidationError:
    return ValidationError(f"The id {record.id} is taken.", code="id_taken")


def _same_but_for_accesses(record: R, other: R | None) -> bool:
    """Tell whether two versions differ in nothing but how often they were found."""
    return other is not None and record == other.model_copy(
        update={"access_count": record.access_count, "last_accessed": record.last_accessed}
    )


def lost_since(known: Iterable[R], now: Mapping[str, R]) -> dict[str, dict[str, Any]]:
    """Return what the journal should say of records that are not there any more as they were."""
    return {record.id: record.to_record() for record in known if not _same_but_for_accesses(record, now.get(record.id))}


def expired_before(record: Mapping[str, Any], moment: datetime) -> bool:
    """Tell whether what the journal says of a record is that it expired before `moment`."""
    try:
        return datetime.fromisoformat(record["expires_at"]) < moment
    except (KeyError, TypeError, ValueError):  # it never expires, or another program wrote what is no time
        return False


def overlaid(record: R, changes: Mapping[str, Any]) -> R:
    """Return a record with some fields changed; None gives a field its default again.

    Raises:
        ValidationError: A value is wrong.
    """
    values = record.model_dump()
    for field, value in changes.items():
        if value is None:
            values.pop(field)
        else:
            values[field] = value
    return validated(type(record), values, "changed")


def _difference(before: R, after: R) -> dict[str, Any]:
    """Return the patch that leads from one to the other: None removes a field, which then has its default."""
    old, new = before.to_record(), after.to_record()
    return encode_datetimes({key: new.get(key) for key in old.keys() | new.keys() if old.get(key) != new.get(key)})
