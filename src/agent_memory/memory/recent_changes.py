"""`RecentChanges`: the last changes of an agent's memories, and their reversal.

`events.jsonl` says which session changed which memory; the journal has the change itself. A reversal is a change like
any other: it is listed, and can be reverted itself.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from itertools import groupby, islice
from typing import TYPE_CHECKING, Any, Final

from agent_memory.memory.audit import latest_audit, read_audit
from agent_memory.memory.disputes import list_decisions
from agent_memory.memory.past import differing_fields
from agent_memory.models import to_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime
    from pathlib import Path

    from agent_memory.memory.caller import Caller
    from agent_memory.memory.service import MemoryService
    from agent_memory.models import Memory
    from agent_memory.store.past import RecordChange

_EVENTS_PER_CHANGE: Final = 4
"""Lines of the log that are read for one change: a memory that is replaced, promoted or compared has several."""
UNKNOWN_SESSION: Final = "unknown"
DECISION: Final = "decision"
"""Name, among changed fields, of a decision about a conflict."""

_SOURCE_FIELDS: Final = {"links", "metadata"}
"""Fields of an item that name its sources; the background work sets them."""


@dataclass(frozen=True, slots=True)
class MemoryChange:
    """Changes that were made together, in one line of the journal.

    Attributes:
        seq: Number of the change, as `undo` takes it.
        at: Time of the change.
        session_id: Session that made it, `unknown` if the log does not say.
        parts: Changes of single memories, in their order.
    """

    seq: int
    at: datetime
    session_id: str
    parts: tuple[RecordChange[Memory], ...]

    @property
    def verb(self) -> str:
        """Return a verb: stored, changed, forgotten or archived."""
        part = self.parts[0]
        if part.after is None:
            return "archived" if part.op == "move" else "forgotten"
        return "changed" if part.before is not None else "stored"

    @property
    def fields(self) -> tuple[str, ...]:
        """Return names of fields that changed in any updated memory."""
        pairs = [(part.before, part.after) for part in self.parts]
        names = {name for before, after in pairs if before and after for name in differing_fields(before, after)}
        if any(before and after and list_decisions(before) != list_decisions(after) for before, after in pairs):
            names.add(DECISION)
        return tuple(sorted(names))


@dataclass(frozen=True, slots=True)
class UndoneChange:
    """Outcome of taking one change back.

    Attributes:
        change: Change that was asked for.
        memory_ids: Memories that are now as they were before it.
        conflicts: By memory ID, why that memory was left as it is.
    """

    change: MemoryChange
    memory_ids: tuple[str, ...]
    conflicts: dict[str, str]


class RecentChanges:
    """The last changes of one agent's memories.

    Args:
        service: Service of the agent.
        audit_file: Path of its `events.jsonl`.
    """

    def __init__(self, service: MemoryService, audit_file: Path) -> None:
        self._service = service
        self._audit_file = audit_file

    async def list_changes(self, limit: int = 20) -> list[MemoryChange]:
        """Return the last changes, newest first.

        Raises:
            UnsupportedError: The storage keeps no versions.
            StorageError: The journal cannot be read.
        """
        events = await asyncio.to_thread(
            lambda: list(islice(_with_memory(latest_audit(self._audit_file, "")), limit * _EVENTS_PER_CHANGE))
        )
        return (await self._changes(events))[:limit]

    async def list_session(self, session_id: str) -> list[MemoryChange]:
        """Return all logged changes of a session, newest first.

        Raises:
            UnsupportedError: The storage keeps no versions.
            StorageError: The journal cannot be read.
        """
        events = await asyncio.to_thread(lambda: list(_with_memory(read_audit(self._audit_file))))
        ids = {event["memory_id"] for event in events if event.get("session_id") == session_id}
        changes = await self._changes([event for event in events if event["memory_id"] in ids])
        return [change for change in changes if change.session_id == session_id]

    async def find_last(self, memory_id: str) -> MemoryChange | None:
        """Return the last journaled change of a memory, or None.

        Raises:
            UnsupportedError: The storage keeps no versions.
            StorageError: The journal cannot be read.
        """
        changes = await self._changes([{"memory_id": memory_id, "at": ""}])
        return changes[0] if changes else None

    async def is_replaced(self, memory_id: str) -> bool:
        """Return True if another memory supersedes this one."""
        return bool(await self._service.storage.replaced_by([memory_id]))

    async def find(self, seq: int) -> MemoryChange | None:
        """Return the change with a number; None if no longer recorded."""
        events = await asyncio.to_thread(lambda: list(_with_memory(read_audit(self._audit_file))))
        return next((change for change in await self._changes(events) if change.seq == seq), None)

    async def take_back(self, change: MemoryChange, caller: Caller) -> UndoneChange:
        """Make the memories of a change what they were before it.

        A memory that was changed again since is left as it is and reported as a conflict.

        Raises:
            StorageError: What was taken back before the failure stays so.
        """
        done: list[str] = []
        conflicts: dict[str, str] = {}
        for part in reversed(change.parts):
            reason = await self._take_part_back(part, caller)
            if reason:
                conflicts[part.record_id] = reason
            else:
                done.append(part.record_id)
        return UndoneChange(change, tuple(reversed(done)), conflicts)

    async def _take_part_back(self, part: RecordChange[Memory], caller: Caller) -> str:
        """Take one memory's change back; return why not, or an empty string."""
        memory = await self._service.storage.get(part.record_id)
        if part.after is None:
            return await self._restore_deleted(part, memory, caller)
        if part.before is None:
            return await self._delete_stored(part.after, memory, caller)
        if memory is None:
            return "it was forgotten since"
        return await self._restore_fields(part.before, part.after, memory, caller)

    async def _restore_deleted(self, part: RecordChange[Memory], memory: Memory | None, caller: Caller) -> str:
        if part.op == "move":
            return f"it is in the archive: run agent-memory archive restore {part.record_id}"
        if memory is None:
            await self._service.past.restore(part.record_id, caller)
        return ""

    async def _delete_stored(self, stored: Memory, memory: Memory | None, caller: Caller) -> str:
        if memory is None:
            return ""
        if memory.content != stored.content:
            return "its text was changed since; take that back first"
        if memory.supersedes:  # forgetting would take the replaced memory with it
            await self._service.update(memory.id, {"supersedes": None}, caller, may_have_expired=True)
        await self._service.requests.many([memory.id], caller)
        return ""

    async def _restore_fields(self, before: Memory, after: Memory, memory: Memory, caller: Caller) -> str:
        changes = differing_fields(before, after)
        if changes.keys() & differing_fields(after, memory).keys():
            return "it was changed again since; take that back first"
        if list_decisions(before) != list_decisions(after):
            reason = await self._service.disputes.restore_decisions(before, after, caller)
            if reason or not changes:
                return reason
        await self._service.update(memory.id, changes, caller, may_have_expired=True)
        await self._service.report("memory:restored", caller, memory_id=memory.id, was="changed")
        return ""

    async def _changes(self, events: Sequence[dict[str, Any]]) -> list[MemoryChange]:
        """Return changes of the memories in logged events, newest first."""
        sessions: dict[str, list[tuple[str, str]]] = {}
        for event in events:
            named = str(event.get("at")), str(event.get("session_id") or UNKNOWN_SESSION)
            sessions.setdefault(event["memory_id"], []).append(named)
        if not sessions:
            return []
        parts = [part for part in await self._service.past.load_changes(sessions.keys()) if _is_visible(part)]
        parts.sort(key=lambda part: part.seq)
        changes = []
        for seq, together in groupby(parts, key=lambda part: part.seq):
            same = tuple(together)
            changes.append(MemoryChange(seq, same[0].at, _find_session(same, sessions), same))
        return changes[::-1]


def _with_memory(events: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    return (event for event in events if isinstance(event.get("memory_id"), str))


def _is_visible(part: RecordChange[Memory]) -> bool:
    """Return True if a change affects fields that a user sets.

    A user does not set access counts, links of pairs in doubt, or sources of items, but decides about such pairs.
    """
    if part.before is None or part.after is None:
        return part.before is not part.after
    is_decided = list_decisions(part.before) != list_decisions(part.after)
    hidden = _SOURCE_FIELDS if part.after.is_item else set()
    return is_decided or not differing_fields(part.before, part.after).keys() <= hidden


def _find_session(parts: Sequence[RecordChange[Memory]], sessions: dict[str, list[tuple[str, str]]]) -> str:
    """Return the session of the first event at or after a change.

    An event is logged after its change.
    """
    for part in parts:
        made_at = to_text(part.at)
        later = [named for named in sessions.get(part.record_id, ()) if named[0] >= made_at]
        if later:
            return min(later)[1]
    return UNKNOWN_SESSION
