"""`History`: versions and changes of one agent's memories, and their reversal.

The journal has the changes. `events.jsonl` says which session made them. A reversal is a change like any other: it is
listed, and can be reverted itself.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from itertools import groupby, islice
from typing import TYPE_CHECKING, Any, Final, Literal

from agent_memory.errors import UnsupportedError, ValidationError
from agent_memory.journal.past_records import load_past_records
from agent_memory.memory.caller import NOBODY, Caller
from agent_memory.memory.conflict_review import list_decisions
from agent_memory.memory.events import read_audit, read_latest_audit
from agent_memory.models import ACCESS, IDENTITY, MEMORY, Memory, is_told, to_text
from agent_memory.store.deletion_states import DeletionState, check_transition, get_state_after
from agent_memory.store.queries import RecordChange, RemovedTexts

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence
    from datetime import datetime

    from agent_memory.memory.service_parts import ServiceParts
    from agent_memory.memory.writer import Writer
    from agent_memory.models import RecordVersion

_UNCHANGED: Final = IDENTITY | ACCESS
"""Fields that a change leaves as they are, and so does its reversal."""
_EVENTS_PER_CHANGE: Final = 4
"""Lines of the log to read for one change: a memory that is replaced, promoted or compared has several."""
_SOURCE_FIELDS: Final = {"links", "metadata"}
"""Fields of an item that name its sources; background work sets them."""
UNKNOWN_SESSION: Final = "unknown"
DECISION: Final = "decision"
"""Name, among changed fields, of a decision about a conflict."""


@dataclass(frozen=True, slots=True)
class RestoreResult:
    """Outcome of a restore or an undo.

    Attributes:
        what: `archived`: memories left the archive; `forgotten`: memories were restored; `replaced`: a memory counts
            again, as does the one that had replaced it; `changed`: a memory is as before a change; `stored`: a memory
            was deleted again; `decided`: the decision about a conflict was taken back.
        memories: Memories as they are now, or were before the deletion; the named one first.
        fields: Names of changed fields.
        replaced_by: ID of the memory that had replaced it.
    """

    what: Literal["archived", "forgotten", "replaced", "changed", "stored", "decided"]
    memories: tuple[Memory, ...]
    fields: tuple[str, ...] = ()
    replaced_by: str | None = None


@dataclass(frozen=True, slots=True)
class MemoryChange:
    """Changes that were made together, in one line of the journal.

    Attributes:
        seq: Number of the change, as `undo` takes it.
        at: Time of the change.
        session_id: Session that made it, `unknown` if the log does not say.
        parts: Changes of single memories, in their order.
        is_return: True if forgotten or archived memories are stored again.
    """

    seq: int
    at: datetime
    session_id: str
    parts: tuple[RecordChange[Memory], ...]
    is_return: bool = False

    @property
    def verb(self) -> str:
        """Return a verb: stored, changed, forgotten or archived."""
        part = self.parts[0]
        if part.after is None:
            return get_state_after(part.op)
        return "changed" if part.before is not None else "stored"

    @property
    def label(self) -> str:
        """Return the verb for a list, or `brought back`."""
        return "brought back" if self.is_return and self.verb == "stored" else self.verb

    @property
    def fields(self) -> tuple[str, ...]:
        """Return names of fields that changed in any updated memory."""
        pairs = [(part.before, part.after) for part in self.parts]
        names = {name for before, after in pairs if before and after for name in get_differing_fields(before, after)}
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
        unchanged_ids: Those of `memory_ids` that were so already.
    """

    change: MemoryChange
    memory_ids: tuple[str, ...]
    conflicts: dict[str, str]
    unchanged_ids: tuple[str, ...] = ()

    @property
    def changed_ids(self) -> list[str]:
        """Return the IDs of memories that this undo changed."""
        return [memory_id for memory_id in self.memory_ids if memory_id not in self.unchanged_ids]


@dataclass(frozen=True, slots=True)
class PastMemories:
    """Page of the memories that existed after a change.

    Attributes:
        seq: Number of the change.
        at: Time of the change as text; empty before the first.
        first, last: Numbers of the first and the last change that the journal has.
        total: Number of all memories that existed then.
        memories: Memories of the page as they were, the last created first.
        replaced_by: IDs of the memories that had replaced some of them.
    """

    seq: int
    at: str
    first: int
    last: int
    total: int
    memories: tuple[Memory, ...]
    replaced_by: dict[str, str]


class History:
    """Past of one agent's memories: 30 days in files.

    Purged memories have none.

    Args:
        parts: Parts of the agent's service.
        writer: Writer of restored memories.

    Attributes:
        traces: Method of the same name of `MemoryStorage`.
    """

    def __init__(self, parts: ServiceParts, writer: Writer) -> None:
        self._storage, self._writer, self._scratchpad = parts.storage, writer, parts.scratchpad
        self._monitor = parts.monitor
        self._audit_file = None if parts.folder is None else parts.folder.audit
        self._journal = None if parts.folder is None else parts.folder.path / MEMORY.journal
        self.traces = parts.storage.traces

    # -- versions -----------------------------------------------------------------------------------------------------

    async def history(self, memory_id: str) -> list[RecordVersion[Memory]]:
        """Return the known versions of a memory; see `RecordStorage.history`."""
        return [] if self._is_purged(memory_id) else await self._storage.history(memory_id)

    async def forgotten(self) -> list[tuple[Memory, datetime]]:
        """Return memories that can be restored; see `RecordStorage.forgotten`."""
        return [pair for pair in await self._storage.forgotten() if not self._is_purged(pair[0].id)]

    async def load_changes(self, memory_ids: Collection[str]) -> list[RecordChange[Memory]]:
        """Return the changes of memories that were not purged; see `RecordStorage.load_changes`."""
        return await self._storage.load_changes(
            [memory_id for memory_id in memory_ids if not self._is_purged(memory_id)]
        )

    async def restore(self, memory_id: str, caller: Caller = NOBODY, *, seq: int | None = None) -> RestoreResult:
        """Restore a memory.

        A forgotten one is restored with all that the same request forgot. Otherwise a replaced one counts again.
        Otherwise the last change of its fields is taken back.

        Args:
            memory_id: ID of the memory.
            caller: Session that asks for it.
            seq: Number of the version to restore; see `history`.

        Raises:
            UnknownIdError: No such memory, now or in the known past.
            ValidationError: There is nothing to take back, or no such version.
            UnsupportedError: The storage keeps no past.
            StorageError: Nothing was changed.
        """
        if self._is_purged(memory_id):
            check_transition("restore", DeletionState.PURGED, memory_id)
        memory = await self._storage.get(memory_id)
        if memory is None and (recalled := await self._monitor.recall_archived([memory_id], caller)):
            restored = await self._storage.get_many(recalled)
            return RestoreResult("archived", tuple(restored[recalled_id] for recalled_id in recalled))
        if memory is None:
            await self._storage.forgotten_with(memory_id)  # raises if there is nothing
            return await self._restore_request(memory_id, await self._storage.taken_with(memory_id), caller)
        taken = await self._storage.taken_with(memory_id) if seq is None else RemovedTexts()
        if memory_id in taken.texts:
            return await self._restore_request(memory_id, taken, caller)
        newer_id = (await self._storage.replaced_by([memory_id])).get(memory_id)
        if newer_id is not None and seq is None:
            await self._writer.update(newer_id, {"supersedes": None}, caller)
            await self._monitor.report("memory:restored", caller, memory_id=memory_id, was="replaced")
            return RestoreResult("replaced", (memory,), replaced_by=newer_id)
        return await self._restore_version(memory, seq, caller)

    bring_back = restore  # its name in programs written for earlier versions

    async def restore_many(self, memory_ids: Collection[str], caller: Caller = NOBODY) -> list[str]:
        """Restore forgotten memories alone as one change; return their IDs.

        Raises:
            StorageError: Nothing was restored.
        """
        forgotten = await self.forgotten() if memory_ids else []
        memories = [memory for memory, _ in forgotten if memory.id in set(memory_ids)]
        if memories:
            await self._writer.put_back(memories, caller, was="forgotten")
        return [memory.id for memory in memories]

    async def undo(self, memory_id: str, caller: Caller = NOBODY) -> RestoreResult:
        """Take back the last change of a memory, also a store.

        Raises:
            UnknownIdError: No such memory, now or in the known past.
            ValidationError: There is nothing to take back, or it was changed again since.
            UnsupportedError: The storage keeps no past.
            StorageError: Nothing was changed.
        """
        last = await self.find_last(memory_id)
        is_restorable = last is None or not (last.verb == "stored" or DECISION in last.fields)
        if last is None or is_restorable or await self.is_replaced(memory_id):
            return await self.restore(memory_id, caller)
        single = replace(last, parts=tuple(part for part in last.parts if part.record_id == memory_id))
        memory = await self._storage.get(memory_id)
        undone = await self.take_back(single, caller)
        if reason := undone.conflicts.get(memory_id):
            raise ValidationError(f"{memory_id} was left as it is: {reason}.", code="nothing_to_restore")
        after = await self._storage.get(memory_id) or memory
        memories = () if after is None else (after,)
        return RestoreResult("stored" if last.verb == "stored" else "decided", memories, last.fields)

    async def find_version_before_forget(self, memory_id: str) -> RecordVersion[Memory] | None:
        """Return the version for `restore` if it is older than a forget.

        A user who restores a memory twice may mean that forget alone, and not the change of text before it.
        """
        memory = await self._storage.get(memory_id)
        if memory is None or await self._storage.replaced_by([memory_id]):
            return None
        versions = await self._storage.history(memory_id)
        version = _find_differing(versions, memory)
        if version is None or version.record is None or version.record.content == memory.content:
            return None
        return version if any(later.record is None and later.seq > version.seq for later in versions) else None

    async def list_past(
        self, seq: int | None = None, moment: datetime | None = None, *, offset: int = 0, limit: int = 50
    ) -> PastMemories:
        """Return memories as they were after a change.

        A compaction folds edits and deletions after 30 days. An older state shows the later text of these.

        Args:
            seq: Number of the change; None for the last one.
            moment: Time of the state, instead of a number.
            offset: Number of memories to leave out at the start.
            limit: Most memories to return.

        Raises:
            UnsupportedError: The storage keeps no versions.
            StorageError: The journal cannot be read.
        """
        if self._journal is None:
            raise UnsupportedError("This storage keeps no earlier states.")
        text = None if moment is None else to_text(moment)
        past = await asyncio.to_thread(load_past_records, self._journal, MEMORY.name, seq, text)
        ids = past.ids[::-1][offset : offset + limit]
        newer = await self._storage.replaced_by(ids)
        states: dict[str, Memory | None] = {}
        for change in await self.load_changes({*ids, *newer.values()}):
            if change.seq <= past.seq:
                states[change.record_id] = change.after
        memories = tuple(memory for record_id in ids if (memory := states.get(record_id)) is not None)
        replaced_by = {
            older_id: newer_id
            for older_id, newer_id in newer.items()
            if (state := states.get(newer_id)) is not None and state.supersedes == older_id
        }
        return PastMemories(past.seq, past.at, past.first, past.last, len(past.ids), memories, replaced_by)

    # -- changes ------------------------------------------------------------------------------------------------------

    async def list_changes(self, limit: int = 20, since: datetime | None = None) -> list[MemoryChange]:
        """Return the last changes, newest first.

        Args:
            limit: Most changes to return.
            since: Moment of the earliest change to return; None for all.

        Raises:
            UnsupportedError: The storage keeps no versions.
            StorageError: The journal cannot be read.
        """
        await self._monitor.flush_log()
        latest = self._read_latest("" if since is None else to_text(since))
        events = await asyncio.to_thread(lambda: list(islice(latest, limit * _EVENTS_PER_CHANGE)))
        changes = (await self._load_changes(events))[:limit]
        return [change for change in changes if since is None or change.at >= since]

    async def list_session(self, session_id: str) -> list[MemoryChange]:
        """Return all logged changes of a session, newest first.

        Raises:
            UnsupportedError: The storage keeps no versions.
            StorageError: The journal cannot be read.
        """
        events = await self._read_events()
        ids = {event["memory_id"] for event in events if event.get("session_id") == session_id}
        changes = await self._load_changes([event for event in events if event["memory_id"] in ids])
        return [change for change in changes if change.session_id == session_id]

    async def find_last(self, memory_id: str) -> MemoryChange | None:
        """Return the last journaled change of a memory, or None.

        Raises:
            UnsupportedError: The storage keeps no versions.
            StorageError: The journal cannot be read.
        """
        changes = await self.find_last_changes([memory_id])
        return changes[0] if changes else None

    async def find_last_changes(self, memory_ids: Collection[str]) -> list[MemoryChange]:
        """Return the last journaled changes of memories, newest first, in one reading.

        Raises:
            UnsupportedError: The storage keeps no versions.
            StorageError: The journal cannot be read.
        """
        due, last = set(memory_ids), list[MemoryChange]()
        for change in await self._load_changes([{"memory_id": memory_id, "at": ""} for memory_id in due]):
            ids = {part.record_id for part in change.parts}
            if due & ids:
                last.append(change)
                due -= ids
        return last

    async def find_change(self, seq: int) -> MemoryChange | None:
        """Return the change with a number; None if no longer recorded."""
        events = await self._read_events()
        return next((change for change in await self._load_changes(events) if change.seq == seq), None)

    async def is_replaced(self, memory_id: str) -> bool:
        """Return True if another memory supersedes this one."""
        return bool(await self._storage.replaced_by([memory_id]))

    async def is_taken_back(self, change: MemoryChange) -> bool:
        """Return True if all memories of a change are as before it."""
        return len(await self._list_taken_back(change)) == len(change.parts)

    async def take_back(self, change: MemoryChange, caller: Caller) -> UndoneChange:
        """Make the memories of a change what they were before it.

        A memory that was changed again since is left as it is and reported as a conflict.

        Raises:
            StorageError: What was taken back before the failure stays so.
        """
        done, stored = list[str](), list[str]()
        conflicts: dict[str, str] = {}
        unchanged = set(await self._list_taken_back(change))
        for part in reversed(change.parts):
            reason = "" if part.record_id in unchanged else await self._take_part_back(part, caller, stored)
            if reason:
                conflicts[part.record_id] = reason
            else:
                done.append(part.record_id)
        if stored:
            await self._writer.deletion.forget_many(stored, caller)
        ids = tuple(reversed(done))
        return UndoneChange(change, ids, conflicts, tuple(memory_id for memory_id in ids if memory_id in unchanged))

    # -- steps --------------------------------------------------------------------------------------------------------

    def _is_purged(self, memory_id: str) -> bool:
        return isinstance(memory_id, str) and self._writer.is_purged_id(memory_id)

    def _read_latest(self, since: str) -> Iterator[dict[str, Any]]:
        return iter(()) if self._audit_file is None else _filter_named(read_latest_audit(self._audit_file, since))

    async def _read_events(self) -> list[dict[str, Any]]:
        """Return all logged events of memories, after pending writes of this process."""
        if self._audit_file is None:
            return []
        await self._monitor.flush_log()
        entries = await asyncio.to_thread(lambda path: list(read_audit(path)), self._audit_file)
        return list(_filter_named(entries))

    async def _restore_request(self, memory_id: str, taken: RemovedTexts[Memory], caller: Caller) -> RestoreResult:
        """Restore everything that one request to forget took."""
        await self._storage.store_many(taken.gone)
        for memory in taken.gone:
            await self._monitor.report("memory:restored", caller, memory_id=memory.id, was="forgotten")
        changed = []
        for changed_id, text in taken.texts.items():
            updated = await self._writer.update(changed_id, {"content": text}, caller, may_have_expired=True)
            changed.append(updated.memory)
            await self._monitor.report("memory:restored", caller, memory_id=changed_id, was="changed")
        self._scratchpad.schedule(caller)
        memories = tuple(sorted([*taken.gone, *changed], key=lambda memory: memory.id != memory_id))
        return RestoreResult("forgotten", memories) if taken.gone else RestoreResult("changed", memories, ("content",))

    async def _restore_version(self, memory: Memory, seq: int | None, caller: Caller) -> RestoreResult:
        versions = [version for version in await self._storage.history(memory.id) if version.record is not None]
        if seq is None:
            version = _find_differing(versions, memory)
            why = f"{memory.id} was neither forgotten nor replaced nor changed lately; there is nothing to take back."
        else:
            version = next((version for version in versions if version.seq == seq), None)
            why = f"{memory.id} has no version {seq}."
        if version is None or version.record is None:
            raise ValidationError(
                why,
                code="nothing_to_restore",
                recovery=f"`agent-memory show --history {memory.id}` shows what is known of it.",
            )
        changes = get_differing_fields(version.record, memory)
        if (target := changes.get("supersedes")) and await self._storage.get(target) is None:
            del changes["supersedes"]  # that one was forgotten since
        updated = await self._writer.update(memory.id, changes, caller, may_have_expired=True)
        await self._monitor.report("memory:restored", caller, memory_id=memory.id, was="changed")
        return RestoreResult("changed", (updated.memory,), updated.fields)

    async def _list_taken_back(self, change: MemoryChange) -> list[str]:
        """Return the IDs of memories that are as before a change."""
        memories = await self._storage.get_many([part.record_id for part in change.parts])
        return [part.record_id for part in change.parts if _is_taken_back(part, memories.get(part.record_id))]

    async def _take_part_back(self, part: RecordChange[Memory], caller: Caller, stored: list[str]) -> str:
        """Undo one memory's change; return the problem, or an empty string.

        Args:
            part: Change of the memory.
            caller: Session that asks for it.
            stored: Receives the ID if the memory is to be forgotten.
        """
        memory = await self._storage.get(part.record_id)
        if part.after is None:
            if part.op == "move":
                return f"it is in the archive: run agent-memory archive restore {part.record_id}"
            if memory is None:
                await self.restore(part.record_id, caller)
            return ""
        if memory is None:
            return "it was forgotten since"
        if part.before is not None:
            return await self._restore_fields(part.before, part.after, memory, caller)
        if memory.content != part.after.content:
            return "its text was changed since; take that back first"
        if memory.supersedes:  # forgetting would take the replaced memory with it
            await self._writer.update(memory.id, {"supersedes": None}, caller, may_have_expired=True)
        stored.append(memory.id)
        return ""

    async def _restore_fields(self, before: Memory, after: Memory, memory: Memory, caller: Caller) -> str:
        changes = get_differing_fields(before, after)
        if changes.keys() & get_differing_fields(after, memory).keys():
            return "it was changed again since; take that back first"
        if list_decisions(before) != list_decisions(after):
            reason = await self._writer.conflicts.restore_decisions(before, after, caller)
            if reason or not changes:
                return reason
        await self._writer.update(memory.id, changes, caller, may_have_expired=True)
        await self._monitor.report("memory:restored", caller, memory_id=memory.id, was="changed")
        return ""

    async def _load_changes(self, events: Sequence[dict[str, Any]]) -> list[MemoryChange]:
        """Return changes of the memories in logged events, newest first."""
        sessions: dict[str, list[tuple[str, str]]] = {}
        for event in events:
            named = str(event.get("at")), str(event.get("session_id") or UNKNOWN_SESSION)
            sessions.setdefault(event["memory_id"], []).append(named)
        if not sessions:
            return []
        parts = [part for part in await self.load_changes(sessions.keys()) if _is_visible(part)]
        parts.sort(key=lambda part: part.seq)
        ends = _find_ends(parts)
        changes, removed = list[MemoryChange](), set[str]()
        for seq, together in groupby(parts, key=lambda part: part.seq):
            same = tuple(together)
            is_return = all(part.record_id in removed for part in same)
            changes.append(MemoryChange(seq, same[0].at, _find_session(same, sessions, ends), same, is_return))
            removed.update(part.record_id for part in same if part.after is None)
        return changes[::-1]


def get_differing_fields(before: Memory, after: Memory) -> dict[str, Any]:
    """Return fields of `before` that differ in `after`.

    Identity and accesses are not compared.
    """
    old, new = _get_visible_fields(before), _get_visible_fields(after)
    return {name: value for name, value in old.items() if name not in _UNCHANGED and new[name] != value}


def _is_taken_back(part: RecordChange[Memory], memory: Memory | None) -> bool:
    """Return True if a memory is as it was before a change."""
    if part.after is None or part.before is None or memory is None:
        return (part.before is None) == (memory is None)
    changes = get_differing_fields(part.before, part.after)
    is_decided = list_decisions(part.before) != list_decisions(memory)
    return not is_decided and not changes.keys() & get_differing_fields(part.before, memory).keys()


def _get_visible_fields(memory: Memory) -> dict[str, Any]:
    """Return the fields of a memory without links of conflicts."""
    return {**memory.model_dump(), "links": [link.model_dump() for link in memory.links if is_told(link.rel)]}


def _find_differing(versions: Sequence[RecordVersion[Memory]], memory: Memory) -> RecordVersion[Memory] | None:
    """Return the last version with other fields than a memory, or None."""
    for version in reversed(versions):
        if version.record is not None and get_differing_fields(version.record, memory):
            return version
    return None


def _filter_named(events: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    return (event for event in events if isinstance(event.get("memory_id"), str))


def _is_visible(part: RecordChange[Memory]) -> bool:
    """Return True if a change affects fields that a user sets.

    A user does not set access counts, links of pairs in doubt, or sources of items, but decides about such pairs.
    """
    if part.before is None or part.after is None:
        return part.before is not part.after
    is_decided = list_decisions(part.before) != list_decisions(part.after)
    hidden = _SOURCE_FIELDS if part.after.is_item else set()
    return is_decided or not get_differing_fields(part.before, part.after).keys() <= hidden


def _find_ends(parts: Sequence[RecordChange[Memory]]) -> dict[tuple[str, int], str]:
    """Return times of next changes, by memory and number of a change."""
    ends, next_times = dict[tuple[str, int], str](), dict[str, str]()
    for part in reversed(parts):
        if part.record_id in next_times:
            ends[part.record_id, part.seq] = next_times[part.record_id]
        next_times[part.record_id] = to_text(part.at)
    return ends


def _find_session(
    parts: Sequence[RecordChange[Memory]],
    sessions: dict[str, list[tuple[str, str]]],
    ends: dict[tuple[str, int], str],
) -> str:
    """Return the session of the first event before the next change.

    An event is logged after its change. Items of documents are stored without an event.
    """
    for part in parts:
        made_at, end = to_text(part.at), ends.get((part.record_id, part.seq), "")
        later = [named for named in sessions.get(part.record_id, ()) if named[0] >= made_at]
        if later and (not end or min(later)[0] < end):
            return min(later)[1]
    return UNKNOWN_SESSION
