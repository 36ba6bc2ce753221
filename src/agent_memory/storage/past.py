"""What the journal still knows of a record's past: its versions, and what forgetting it took. Pure: entries in."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import pydantic

from agent_memory.errors import UnknownIdError
from agent_memory.journal import Records, apply_change
from agent_memory.models import Version
from agent_memory.redaction import quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from agent_memory.journal import Entry
    from agent_memory.models.kind import R
    from agent_memory.storage.state import State


def versions_of(state: State[R], record_id: str, entries: Iterable[Entry]) -> list[Version[R]]:
    """Return a version for each change of a record, oldest first; accesses are none.

    Args:
        state: Of which kind, and whose.
        record_id: Which one.
        entries: At least all that concern it, in the order of the file.
    """
    records: Records = {}
    versions: list[Version[R]] = []
    for entry in entries:
        for change in entry.changes:
            concerns = change.kind == state.kind.name and change.id == record_id
            if concerns and apply_change(records, change, entry.at) and change.op != "touch":
                record = _record(state, record_id, records)
                versions.append(Version(entry.seq, datetime.fromisoformat(entry.at), change.op, record))
    return versions


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
    entries = naming(taken) if taken else []
    last = [record for each in taken if (record := _last_of(state, each, entries)) is not None]
    if not last:
        raise UnknownIdError(
            f"{quoted(record_id)} is no {state.kind.name} that was forgotten and can be brought back.",
            recovery="What was forgotten can be brought back for a time; after that its text is gone for good.",
        )
    return [record for record in last if record.id not in state.records]


def forgotten(state: State[R], entries: Iterable[Entry]) -> list[tuple[R, datetime]]:
    """Return what was forgotten and when, as it was before, the last first."""
    records: Records = {}
    gone: dict[str, tuple[R, datetime]] = {}
    for entry in entries:
        for change in entry.changes:
            if change.kind != state.kind.name:
                continue
            before = _record(state, change.id, records) if change.op == "delete" else None
            if apply_change(records, change, entry.at):
                gone.pop(change.id, None)
                if before is not None:
                    gone[change.id] = (before, datetime.fromisoformat(entry.at))
    return list(reversed(gone.values()))


def _last_of(state: State[R], record_id: str, entries: Sequence[Entry]) -> R | None:
    """Return a record as it last was, with its accesses; None if it never was whole."""
    records: Records = {}
    last = None
    for entry in entries:
        for change in entry.changes:
            if change.kind == state.kind.name and change.id == record_id and apply_change(records, change, entry.at):
                last = _record(state, record_id, records) or last
    return last


def _record(state: State[R], record_id: str, records: Records) -> R | None:
    try:
        record = records.get(record_id)
        return state.kind.load(state.agent_id, record_id, record) if record is not None else None
    except pydantic.ValidationError:
        return None
