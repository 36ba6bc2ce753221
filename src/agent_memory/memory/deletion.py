"""`Deletion`: forgets memories with their older versions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agent_memory.errors import UnknownIdError, ValidationError
from agent_memory.memory.caller import NOBODY, check_seen
from agent_memory.memory.drafts import check_reason
from agent_memory.memory.forget_candidates import Preview, is_mostly
from agent_memory.memory.results import Forgotten, ForgottenMany
from agent_memory.memory.similar import MAX_SIMILAR, find_similar
from agent_memory.models import EPISODE, SearchFilters, check_id, may_stand_for
from agent_memory.redaction import quoted
from agent_memory.registry import KNOWLEDGE

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from datetime import datetime

    from agent_memory.memory.caller import Caller
    from agent_memory.memory.monitor import Monitor
    from agent_memory.memory.scratchpad import AgentScratchpad
    from agent_memory.memory.trust import TrustGate
    from agent_memory.models import Clock, Memory
    from agent_memory.store.memory_storage import MemoryStorage

_COMPARED: Final = 3
"""Forgotten memories for which similar ones are listed."""
_MAX_TALK: Final = 20
"""Items of talk compared with a forgotten memory."""


class Deletion:
    """Forgets memories of one agent; part of its `Writer`.

    Args:
        storage: Storage of the memories.
        gate: Decides what a caller may forget.
        scratchpad: Scratchpad that must not show forgotten memories.
        monitor: Receives events, and removes the texts from other files.
        clock: Source of the present.
    """

    def __init__(
        self,
        storage: MemoryStorage,
        gate: TrustGate,
        scratchpad: AgentScratchpad,
        monitor: Monitor,
        clock: Clock,
    ) -> None:
        self._storage, self._gate, self._scratchpad = storage, gate, scratchpad
        self._monitor, self._clock = monitor, clock

    async def forget_one(self, memory_id: str, caller: Caller, reason: str) -> Forgotten:
        """Forget one memory; see `MemoryService.forget`."""
        outcome = await self.forget([memory_id], caller, reason=reason)
        talk = tuple(item.id for item in outcome.talk)
        statements = tuple(statement.id for statement in outcome.statements)
        return Forgotten(
            outcome.memories[0], outcome.older_versions, outcome.kept_until, outcome.reason, talk, statements
        )

    async def forget(
        self, memory_ids: Collection[str] | Preview, caller: Caller = NOBODY, *, reason: str = ""
    ) -> ForgottenMany:
        """Forget memories and their older versions as one change.

        Args:
            memory_ids: IDs of existing memories, or a preview of them.
            caller: Session that asks for it.
            reason: Reason to keep as a trace, at most 200 characters.

        Raises:
            UnknownIdError: One of them does not exist; nothing was forgotten.
            ValidationError: The user has to agree (`needs_user`), or the reason is too long; nothing was forgotten.
            StorageError: Nothing was changed.
        """
        reason = check_reason(reason)
        if isinstance(memory_ids, Preview):
            memory_ids = [memory.id for memory in memory_ids.memories]
        for memory_id in memory_ids:
            check_id(memory_id)
        await check_seen(self._storage, caller, memory_ids, "; nothing was forgotten")
        await self._scratchpad.notice(caller)
        memories = await self._load(memory_ids)
        if unknown := [memory_id for memory_id in memory_ids if memory_id not in memories]:
            raise UnknownIdError(f"There is no memory {quoted(unknown[0])}; nothing was forgotten.")
        older = await self._load_older(memories.values())
        named = [memory for memory in memories.values() if memory not in older]
        talk = await self._find_talk(named, caller)
        statements = await self._find_statements(named)
        await self._gate.check_forgetting(named, (*older, *talk), caller)
        return await self._forget(named, older, caller, reason, talk=talk, statements=statements)

    async def forget_many(self, memory_ids: Collection[str], caller: Caller = NOBODY) -> int:
        """Forget existing memories for upkeep; return their number.

        Their older versions are forgotten, too. Memories that a session deletes with their source do not count as
        forgotten by a model.

        Raises:
            ValidationError: The caller may not forget one of them (`needs_user`); nothing was forgotten.
            StorageError: Nothing was changed.
        """
        await self._scratchpad.notice(caller)
        memories = list((await self._load(memory_ids)).values())
        if memories:
            older = [memory for memory in await self._load_older(memories) if memory not in memories]
            await self._gate.check_forgetting(memories, older, caller, is_upkeep=True)
            await self._forget(memories, older, caller, "")
        return len(memories)

    async def forget_all(self, preview: Preview, caller: Caller = NOBODY, *, reason: str = "") -> ForgottenMany:
        """Forget all memories of a preview as one change.

        Raises:
            UnknownIdError: One of them does not exist any more; nothing was forgotten.
            ValidationError: A model calls and the user has not agreed (`needs_user`), or the reason is too long.
            StorageError: Nothing was changed.
        """
        reason = check_reason(reason)
        if caller.trust != "high" and not caller.proposals.is_agreed(preview.confirm):
            raise ValidationError(
                "Nothing was forgotten: to forget everything needs the user's yes.",
                code="needs_user",
                recovery=f"Show the user how many memories these are, with the id {preview.confirm}.",
            )
        return await self._forget(preview.memories, (), caller, reason)

    def get_restore_end(self) -> datetime | None:
        """Return until when a memory forgotten now can be restored, or None."""
        grace = self._storage.grace
        return None if grace is None else self._clock() + grace

    async def _forget(
        self,
        memories: Sequence[Memory],
        older: Sequence[Memory],
        caller: Caller,
        reason: str,
        *,
        talk: Sequence[Memory] = (),
        statements: Sequence[Memory] = (),
    ) -> ForgottenMany:
        reason = await self._gate.reason(reason, caller)
        ids = [memory.id for memory in (*memories, *talk, *statements)]
        await self._storage.forget_many(ids, reason=reason)
        gone = [*ids, *(memory.id for memory in older)]
        self._scratchpad.drop(gone)
        for memory_id in gone:
            await self._monitor.report("memory:forgotten", caller, memory_id=memory_id)
        self._scratchpad.schedule(caller)
        await self._monitor.notify_watchers(gone, caller)
        similar: dict[str, Memory] = {}
        for memory in memories[:_COMPARED]:
            neighbors = await find_similar(self._storage, memory, caller)
            similar |= {neighbor.id: neighbor for neighbor in neighbors if may_stand_for(neighbor.trust, memory.trust)}
        stays = tuple(similar.values())[:MAX_SIMILAR]
        return ForgottenMany(
            tuple(memories), tuple(older), tuple(talk), stays, self.get_restore_end(), tuple(statements), reason
        )

    async def _load(self, memory_ids: Iterable[str]) -> dict[str, Memory]:
        """Return existing memories by ID."""
        loaded = {memory_id: await self._storage.get(memory_id) for memory_id in dict.fromkeys(memory_ids)}
        return {memory_id: memory for memory_id, memory in loaded.items() if memory is not None}

    async def _load_older(self, memories: Iterable[Memory]) -> tuple[Memory, ...]:
        """Return the older versions of memories."""
        chains = [await self._storage.older_versions(memory.id) for memory in memories]
        return tuple((await self._load(memory_id for chain in chains for memory_id in chain)).values())

    async def _find_talk(self, memories: Sequence[Memory], caller: Caller) -> tuple[Memory, ...]:
        """Return the items of talk that repeat memories.

        A search leaves them out only as long as it finds these.
        """
        notes = [memory for memory in memories if not memory.is_item]
        if not notes or not (await self._storage.tally()).items:
            return ()
        filters = SearchFilters(include_items=True, only_items=True, group=caller.group)
        talk: dict[str, Memory] = {}
        for note in notes:
            hits = await self._storage.search(note.content, _MAX_TALK, filters, patience=0)
            talk |= {hit.memory.id: hit.memory for hit in hits if _repeats(hit.memory, note)}
        return tuple(item for item in talk.values() if item not in memories)

    async def _find_statements(self, memories: Sequence[Memory]) -> tuple[Memory, ...]:
        """Return statements that an agent made of passages among memories."""
        if not KNOWLEDGE.is_installed or not any(memory.is_item for memory in memories):
            return ()
        statements: tuple[Memory, ...] = await KNOWLEDGE.load("statements")(self._storage, memories)
        return statements


def _repeats(item: Memory, note: Memory) -> bool:
    """Return True if an item of talk mostly says the note."""
    is_talk = any(link.id.startswith(EPISODE.prefix) for link in item.links)
    return is_talk and not item.pinned and is_mostly(item.content, [note.content])
