"""What the journal still has of a record's past: its versions, and what forgetting it took. Pure: entries in."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Generic

import pydantic

from agent_memory.errors import UnknownIdError
from agent_memory.journal import Records, apply_change
from agent_memory.models import RecordVersion
from agent_memory.models.kind import R
from agent_memory.redaction import quoted
from agent_memory.store.table import MOVED, TRIMMED

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from agent_memory.journal import Change, Entry
    from agent_memory.store.state import State

    _Raw = dict[str, Any] | None


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
