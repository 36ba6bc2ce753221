"""`Past`: what a memory was before, and restoring what forgetting, replacing or changing took."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from agent_memory.errors import UnknownIdError, ValidationError
from agent_memory.memory.caller import NOBODY
from agent_memory.models import ACCESS, IDENTITY, Memory, is_told
from agent_memory.store.past import Taken

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime

    from agent_memory.journal import PurgeList
    from agent_memory.memory.caller import Caller, Writes
    from agent_memory.memory.scratchpad_sync import ScratchpadSync
    from agent_memory.models import RecordVersion
    from agent_memory.store.past import RecordChange
    from agent_memory.store.record_storage import RecordStorage

_STAYS: Final = IDENTITY | ACCESS
"""A change of a memory leaves these fields alone; so does taking one back."""


@dataclass(frozen=True, slots=True)
class Restored:
    """What was restored.

    Attributes:
        what: `forgotten`: memories that were not there; `replaced`: one that counts again, as does what
            had replaced it; `changed`: one that is as it was before a change.
        memories: As they are now, the one that was asked for first.
        fields: With `changed`, which fields.
        replaced_by: With `replaced`, what had replaced it.
    """

    what: Literal["forgotten", "replaced", "changed"]
    memories: tuple[Memory, ...]
    fields: tuple[str, ...] = ()
    replaced_by: str | None = None


class Past:
    """One agent's past, as far as its storage keeps one: 30 days in files.

    What was purged has none, from the moment on at which that was begun.

    Attributes:
        traces: What stays of what was forgotten for a reason. That of `MemoryStorage`.
    """

    def __init__(
        self, storage: RecordStorage[Memory], writes: Writes, pad: ScratchpadSync, purged: PurgeList | None = None
    ) -> None:
        self._storage = storage
        self._writes = writes
        self._pad = pad
        self._purged = purged
        self.traces = storage.traces

    async def history(self, memory_id: str) -> list[RecordVersion[Memory]]:
        """Return the known versions of a memory; see `Versioned.history`."""
        return [] if self._is_purged(memory_id) else await self._storage.history(memory_id)

    async def forgotten(self) -> list[tuple[Memory, datetime]]:
        """Return what can be brought back; see `Versioned.forgotten`."""
        return [each for each in await self._storage.forgotten() if not self._is_purged(each[0].id)]

    async def load_changes(self, memory_ids: Collection[str]) -> list[RecordChange[Memory]]:
        """Return the changes of some memories that were not purged; see `Versioned.load_changes`."""
        return await self._storage.load_changes(
            [memory_id for memory_id in memory_ids if not self._is_purged(memory_id)]
        )

    def _is_purged(self, memory_id: str) -> bool:
        return self._purged is not None and isinstance(memory_id, str) and self._purged.names(memory_id)

    async def restore(self, memory_id: str, caller: Caller = NOBODY, *, seq: int | None = None) -> Restored:
        """Restore a memory.

        One that was forgotten, or of which clauses were, with what went with it; else one that was replaced, which
        counts again; else one that
        was changed, as it was before its last change. Nothing is taken out of the journal for it: this is a change
        like any other, and can be taken back itself.

        Args:
            memory_id: Which.
            caller: The session that asks.
            seq: The version of `history` that is wanted, if it is there.

        Raises:
            UnknownIdError: There is no such memory, and nothing known of one that was forgotten.
            ValidationError: Nothing happened to it that could be taken back, or it has no such version.
            UnsupportedError: The storage keeps no past.
            StorageError: Nothing was changed.
        """
        if self._is_purged(memory_id):
            raise UnknownIdError(
                f"{memory_id} was purged: it cannot be brought back.", recovery="Store it anew, if it is to be known."
            )
        memory = await self._storage.get(memory_id)
        if memory is None:
            return await self._restore_forgotten(memory_id, caller)
        taken = await self._storage.taken_with(memory_id) if seq is None else Taken()
        if memory_id in taken.texts:
            return await self._restore_taken(memory_id, taken, caller)
        newer = (await self._storage.replaced_by([memory_id])).get(memory_id)
        if newer is not None and seq is None:
            await self._writes.update(newer, {"supersedes": None}, caller)
            await self._writes.report("memory:restored", caller, memory_id=memory_id, was="replaced")
            return Restored("replaced", (memory,), replaced_by=newer)
        return await self._as_before(memory, seq, caller)

    bring_back = restore  # its name in programs written for earlier versions

    async def beyond_a_forget(self, memory_id: str) -> RecordVersion[Memory] | None:
        """Return the version with another text that `restore` would lead to, if that is older than a forget.

        A user who brings a memory back twice may mean that forget alone, and not the change of text before it.
        """
        memory = await self._storage.get(memory_id)
        if memory is None or await self._storage.replaced_by([memory_id]):
            return None
        versions = await self._storage.history(memory_id)
        wanted = next((each for each in reversed(versions) if _differing(each, memory)), None)
        if wanted is None or wanted.record is None or wanted.record.content == memory.content:
            return None
        return wanted if any(each.record is None and each.seq > wanted.seq for each in versions) else None

    async def restore_many(self, memory_ids: Collection[str], caller: Caller = NOBODY) -> list[str]:
        """Restore forgotten memories alone as one change; return their IDs.

        Raises:
            StorageError: Nothing was restored.
        """
        wanted = set(memory_ids)
        gone = [memory for memory, _ in (await self.forgotten() if wanted else ()) if memory.id in wanted]
        if gone:
            await self._storage.store_many(gone)
            self._pad.schedule(caller)
        for memory in gone:
            await self._writes.report("memory:restored", caller, memory_id=memory.id, was="forgotten")
        return [memory.id for memory in gone]

    async def _restore_forgotten(self, memory_id: str, caller: Caller) -> Restored:
        await self._storage.forgotten_with(memory_id)  # raises where there is nothing
        return await self._restore_taken(memory_id, await self._storage.taken_with(memory_id), caller)

    async def _restore_taken(self, memory_id: str, taken: Taken[Memory], caller: Caller) -> Restored:
        """Bring back all that one request took: memories, and clauses of others that were not changed since."""
        await self._storage.store_many(taken.gone)
        for each in taken.gone:
            await self._writes.report("memory:restored", caller, memory_id=each.id, was="forgotten")
        whole = []
        for one, text in taken.texts.items():
            whole.append((await self._writes.update(one, {"content": text}, caller, may_have_expired=True)).memory)
            await self._writes.report("memory:restored", caller, memory_id=one, was="changed")
        self._pad.schedule(caller)
        every = sorted([*taken.gone, *whole], key=lambda memory: memory.id != memory_id)
        if taken.gone:
            return Restored("forgotten", tuple(every))
        return Restored("changed", tuple(every), ("content",))

    async def _as_before(self, memory: Memory, seq: int | None, caller: Caller) -> Restored:
        versions = [each for each in await self._storage.history(memory.id) if each.record is not None]
        if seq is None:
            wanted = next((each for each in reversed(versions) if _differing(each, memory)), None)
            why = f"{memory.id} was neither forgotten nor replaced nor changed lately; there is nothing to take back."
        else:
            wanted = next((each for each in versions if each.seq == seq), None)
            why = f"{memory.id} has no version {seq}."
        if wanted is None or wanted.record is None:
            raise ValidationError(
                why,
                code="nothing_to_restore",
                recovery=f"`agent-memory history {memory.id}` shows what is known of it.",
            )
        changes = _differing(wanted, memory)
        if (target := changes.get("supersedes")) and await self._storage.get(target) is None:
            del changes["supersedes"]  # that was forgotten since
        updated = await self._writes.update(memory.id, changes, caller, may_have_expired=True)
        await self._writes.report("memory:restored", caller, memory_id=memory.id, was="changed")
        return Restored("changed", (updated.memory,), updated.fields)


def _differing(version: RecordVersion[Memory], memory: Memory) -> dict[str, Any]:
    """Return the changes that make a memory what it was in a version."""
    return {} if version.record is None else differing_fields(version.record, memory)


def differing_fields(before: Memory, after: Memory) -> dict[str, Any]:
    """Return fields of `before` that differ in `after`.

    Identity and accesses are not compared.
    """
    then, now = _said(before), _said(after)
    return {name: value for name, value in then.items() if name not in _STAYS and now[name] != value}


def _said(memory: Memory) -> dict[str, Any]:
    """Return the fields of a memory, without the links by which suspect pairs are kept: nobody changed those."""
    return {**memory.model_dump(), "links": [link.model_dump() for link in memory.links if is_told(link.rel)]}
