"""What the journal still knows of a memory's past: its versions, and what forgetting it took. Pure: entries in."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import pydantic

from agent_memory.journal import Records, apply_change
from agent_memory.models import Memory, Version
from agent_memory.storage.projection import KIND

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from agent_memory.journal import Entry


def versions_of(agent_id: str, memory_id: str, entries: Iterable[Entry]) -> list[Version[Memory]]:
    """Return a version for each change of a memory, oldest first; accesses are none.

    Args:
        agent_id: Whose memory.
        memory_id: Which one.
        entries: At least all that concern it, in the order of the file.
    """
    records: Records = {}
    versions: list[Version[Memory]] = []
    for entry in entries:
        for change in entry.changes:
            concerns = change.kind == KIND and change.id == memory_id
            if concerns and apply_change(records, change, entry.at) and change.op != "touch":
                memory = _memory(agent_id, memory_id, records)
                versions.append(Version(entry.seq, datetime.fromisoformat(entry.at), change.op, memory))
    return versions


def forgotten_with(agent_id: str, memory_id: str, naming: Callable[[Collection[str]], Sequence[Entry]]) -> list[Memory]:
    """Return what went when a memory was last deleted, as it was before: itself first; empty if it never was.

    Args:
        agent_id: Whose memory.
        memory_id: Which one.
        naming: Returns at least all entries that concern some ids, in the order of the file.
    """
    taken: list[str] = []
    for entry in naming([memory_id]):
        gone = [change.id for change in entry.changes if change.kind == KIND and change.op == "delete"]
        if memory_id in gone:
            taken = [memory_id, *(each for each in gone if each != memory_id)]
    entries = naming(taken) if taken else []
    last = (_last_of(agent_id, each, entries) for each in taken)
    return [memory for memory in last if memory is not None]


def forgotten(agent_id: str, entries: Iterable[Entry]) -> list[tuple[Memory, datetime]]:
    """Return what was forgotten and when, as it was before, the last first."""
    records: Records = {}
    gone: dict[str, tuple[Memory, datetime]] = {}
    for entry in entries:
        for change in entry.changes:
            if change.kind != KIND:
                continue
            before = _memory(agent_id, change.id, records) if change.op == "delete" else None
            if apply_change(records, change, entry.at):
                gone.pop(change.id, None)
                if before is not None:
                    gone[change.id] = (before, datetime.fromisoformat(entry.at))
    return list(reversed(gone.values()))


def _last_of(agent_id: str, memory_id: str, entries: Sequence[Entry]) -> Memory | None:
    """Return a memory as it last was, with its accesses; None if it never was whole."""
    records: Records = {}
    last = None
    for entry in entries:
        for change in entry.changes:
            if change.kind == KIND and change.id == memory_id and apply_change(records, change, entry.at):
                last = _memory(agent_id, memory_id, records) or last
    return last


def _memory(agent_id: str, memory_id: str, records: Records) -> Memory | None:
    try:
        record = records.get(memory_id)
        return Memory.from_record(agent_id, memory_id, record) if record is not None else None
    except pydantic.ValidationError:
        return None
