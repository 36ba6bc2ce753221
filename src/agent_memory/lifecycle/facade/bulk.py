"""Many entries at once: memories and turns in as few changes as they fit in, all others one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_memory.lifecycle.entry_types import MemoryEntryType
from agent_memory.lifecycle.facade.entries import external_id_of, fields_of, said_besides
from agent_memory.models import Memory, get_duplicate_key

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from agent_memory.lifecycle.facade.entries import MemoryEntry
    from agent_memory.lifecycle.facade.keeping import Kept
    from agent_memory.models import Clock
    from agent_memory.service import Caller
    from agent_memory.service.writing import Imported

_ONE_BY_ONE = frozenset({MemoryEntryType.CONTEXT, MemoryEntryType.CORRECTION})


async def store_all(
    kept: Kept,
    entries: Sequence[MemoryEntry],
    store: Callable[[MemoryEntry], Awaitable[str]],
    clock: Clock,
    caller: Caller,
) -> list[str]:
    """Store checked entries and return their ids, in their order.

    An entry with an id of its own, a correction, a context, one whose text is known or was forgotten, and what a caller
    of low trust brings is stored by itself: each of these asks for more than to be written.

    Args:
        kept: Where records are.
        entries: What to store.
        store: Stores one entry.
        clock: Source of the present.
        caller: The session that asks.

    Raises:
        ValidationError: An entry is refused; those that were written before it are on the disk.
        StorageError: Likewise.
    """
    ids: dict[int, str] = {}
    memories, turns = await _sorted(kept, entries, caller)
    for session in {entries[at].session_id for at in turns}:
        of_session = [at for at in turns if entries[at].session_id == session]
        taken = await kept.taking.turns([entries[at] for at in of_session])
        for at, record in zip(of_session, taken, strict=True):
            if not isinstance(record, str):
                besides = said_besides(entries[at], record)
                ids[at] = external_id_of(await kept.update(record, besides) if besides else record)
    ids |= await _imported(kept, {at: entries[at] for at in memories}, clock, caller)
    for at, entry in enumerate(entries):
        if at not in ids:
            ids[at] = await store(entry)
    return [ids[at] for at in range(len(entries))]


async def _sorted(kept: Kept, entries: Sequence[MemoryEntry], caller: Caller) -> tuple[list[int], list[int]]:
    """Return which entries are memories and turns that need nothing but to be written."""
    if caller.trust == "low":
        return [], []
    plain = [index for index, entry in enumerate(entries) if not entry.entry_id and entry.entry_type not in _ONE_BY_ONE]
    turns = [index for index in plain if entries[index].entry_type == MemoryEntryType.INTERACTION]
    duplicate_keys = {get_duplicate_key(str(getattr(memory, "content", ""))) for memory in await kept.memories()}
    memories = []
    for index in plain:
        duplicate_key = get_duplicate_key(entries[index].text)
        if entries[index].entry_type != MemoryEntryType.INTERACTION and duplicate_key not in duplicate_keys:
            duplicate_keys.add(duplicate_key)
            memories.append(index)
    return memories, turns


async def _imported(kept: Kept, entries: dict[int, MemoryEntry], clock: Clock, caller: Caller) -> dict[int, str]:
    """Store new memories in portions, and return the ids of those that are."""
    drafts: dict[int, Memory] = {}
    for at, entry in entries.items():
        fields = fields_of(entry, clock(), caller.group or "")
        fields.setdefault("created_by_session", caller.session_id)
        drafts[at] = Memory(agent_id=kept.service.agent_id, **fields)
    stored: set[str] = set()

    def noted(imported: Imported) -> None:
        if imported.outcome == "stored":
            stored.add(imported.memory_id)

    if drafts:
        await kept.service.admin.import_memories(list(drafts.values()), noted, caller, trusted=True)
    return {at: draft.id for at, draft in drafts.items() if draft.id in stored}
