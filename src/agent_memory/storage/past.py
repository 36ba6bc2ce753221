"""What the journal still has of a record's past: its versions, and what forgetting it took. Pure: entries in."""

from __future__ import annotations

import contextlib
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pydantic

from agent_memory.errors import UnknownIdError
from agent_memory.journal import Records, apply_change
from agent_memory.models import Version
from agent_memory.redaction import quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from agent_memory.journal import Change, Entry
    from agent_memory.models.kind import R
    from agent_memory.storage.state import State

    _Raw = dict[str, Any] | None


def versions_of(state: State[R], record_id: str, entries: Iterable[Entry]) -> list[Version[R]]:
    """Return a version for each change of a record, oldest first; accesses are none.

    Args:
        state: Of which kind, and whose.
        record_id: Which one.
        entries: At least all that concern it, in the order of the file.
    """
    return [
        Version(entry.seq, datetime.fromisoformat(entry.at), change.op, _loaded(state, record_id, after))
        for entry, change, _, after in _replayed(state, entries)
        if change.id == record_id and change.op != "touch"
    ]


def forgotten_with(state: State[R], record_id: str, naming: Callable[[Collection[str]], Sequence[Entry]]) -> list[R]:
    """Return what went when a record was last deleted and is not there again, as it was before: itself first.

    Args:
        state: As it is now.
        record_id: Which one.
        naming: Returns at least all entries that concern some ids, in the order of the file.

    Raises:
        UnknownIdError: It was not forgotten, or so long ago that its text is gone for good.
    """
    taken: list[str] = []
    for entry in naming([record_id]) if record_id not in state.records else ():
        gone = [change.id for change in entry.changes if change.kind == state.kind.name and change.op == "delete"]
        if record_id in gone:
            taken = [record_id, *(each for each in gone if each != record_id)]
    whole: dict[str, R] = {}
    for _, change, _, after in _replayed(state, naming(taken) if taken else ()):
        if change.id in taken and (record := _loaded(state, change.id, after)) is not None:
            whole[change.id] = record
    if not whole:
        raise UnknownIdError(
            f"{quoted(record_id)} is no {state.kind.name} that was forgotten and can be brought back.",
            recovery="What was forgotten can be brought back for a time; after that its text is gone for good.",
        )
    return [whole[each] for each in taken if each in whole and each not in state.records]


def forgotten(state: State[R], entries: Iterable[Entry]) -> list[tuple[R, datetime]]:
    """Return what was forgotten and when, as it was before, the last first."""
    gone: dict[str, tuple[R, datetime]] = {}
    for entry, change, before, _ in _replayed(state, entries):
        gone.pop(change.id, None)
        if change.op == "delete" and (record := _loaded(state, change.id, before)) is not None:
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
