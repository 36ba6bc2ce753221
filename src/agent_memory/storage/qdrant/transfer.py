"""Taking memories from files to a server and back: what is missing there, in which order, and the way up.

Both ways add and never change or delete: what is there stays, what was forgotten there stays forgotten. So both may be
broken off anywhere and done again. What is stored has its secrets taken out, as everywhere.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

from agent_memory.errors import ValidationError
from agent_memory.models import MEMORY
from agent_memory.storage.cleaning import redact_record

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from agent_memory.models import Memory
    from agent_memory.storage.base import MemoryStorage
    from agent_memory.storage.cleaning import Redacted
    from agent_memory.storage.qdrant.storage import QdrantServerStorage

BATCH: Final = 100
"""Memories a change. One is some 100 KB then, 4 MB if all are of the greatest size; a server takes 32 MB."""


@dataclass(frozen=True, slots=True)
class Moved:
    """What became of one memory.

    Attributes:
        memory_id: Which.
        outcome: `stored` or `refused`.
        redacted: Kinds of secrets that were taken out before it was stored.
        error: Why it was refused.
    """

    memory_id: str
    outcome: Literal["stored", "refused"]
    redacted: tuple[str, ...] = ()
    error: ValidationError | None = None


@dataclass(slots=True)
class Selection:
    """What a transfer has to do.

    Attributes:
        missing: To be stored, each after the one it supersedes, otherwise in the order of storing.
        present: Ids that are there.
        differs: Ids that are there with another text, which stays.
        forgotten: Ids whose text was forgotten there, which stays so.
    """

    missing: list[Memory] = field(default_factory=list)
    present: list[str] = field(default_factory=list)
    differs: list[str] = field(default_factory=list)
    forgotten: list[str] = field(default_factory=list)


async def select(source: MemoryStorage, target: MemoryStorage) -> Selection:
    """Compare two storages of one agent.

    Raises:
        StorageError: One of them cannot be read.
    """
    selection = Selection()
    there = {memory.id: memory.content async for memory in target.iter_all()}
    missing = []
    async for memory in source.iter_all():
        if memory.id not in there:
            missing.append(memory)
        elif there[memory.id] == memory.content or there[memory.id] == await asyncio.to_thread(_text, memory):
            selection.present.append(memory.id)
        else:
            selection.differs.append(memory.id)
    forgotten = await _forgotten_among(target, missing)
    selection.forgotten = [memory.id for memory in missing if memory.id in forgotten]
    kept = (memory for memory in missing if memory.id not in forgotten)
    selection.missing = _older_first([memory.model_copy(update={"agent_id": target.agent_id}) for memory in kept])
    return selection


async def push(
    memories: Sequence[Memory],
    target: QdrantServerStorage,
    each: Callable[[Moved], object],
    batch: int = BATCH,
) -> None:
    """Store memories on a server, some at a time, each time all or none.

    Ids, times, counts and what supersedes what are kept; `each` hears of every memory once it is on the server.

    Args:
        memories: `Selection.missing`.
        target: Where to.
        each: Told what became of each.
        batch: Memories in one change.

    Raises:
        StorageError: What `each` was told of before is on the server; doing it all again does the rest.
    """
    for start in range(0, len(memories), batch):
        ready: list[Redacted[Memory]] = []
        moved: list[Moved] = []
        for memory in memories[start : start + batch]:
            try:
                cleaned = await asyncio.to_thread(redact_record, MEMORY, memory)
            except ValidationError as error:
                moved.append(Moved(memory.id, "refused", error=error))
            else:
                ready.append(cleaned)
                moved.append(Moved(memory.id, "stored", cleaned.kinds))
        refused = await _store(ready, target)
        for one in moved:
            why = refused.get(one.memory_id)
            each(Moved(one.memory_id, "refused", error=why) if why is not None else one)


async def _store(memories: list[Redacted[Memory]], target: QdrantServerStorage) -> dict[str, ValidationError]:
    """Store all at once, or one by one if one of them is refused; return those that were."""
    try:
        if memories:
            await target.store_many(memories)
    except ValidationError as error:
        if len(memories) == 1:
            return {memories[0].value.id: error}
        refused: dict[str, ValidationError] = {}
        for memory in memories:
            refused |= await _store([memory], target)
        return refused
    return {}


async def _forgotten_among(target: MemoryStorage, memories: Collection[Memory]) -> set[str]:
    from agent_memory.storage.qdrant.storage import QdrantServerStorage as Server  # only for a transfer

    if isinstance(target, Server):
        texts = await target.forgotten_among([memory.content for memory in memories])
        return {memory.id for memory in memories if memory.content in texts}
    return {memory.id for memory in memories if await target.was_forgotten(memory.content)}


def _text(memory: Memory) -> str | None:
    try:
        return redact_record(MEMORY, memory).value.content
    except ValidationError:
        return None


def _older_first(memories: list[Memory]) -> list[Memory]:
    """Return memories so that each comes after the one it supersedes: a storage takes no link to what is to come."""
    by_id = {memory.id: memory for memory in memories}
    ordered: dict[str, Memory] = {}
    for memory in memories:
        chain: dict[str, Memory] = {}
        step: Memory | None = memory
        while step is not None and step.id not in ordered and step.id not in chain:  # also ends circles
            chain[step.id] = step
            step = by_id.get(step.supersedes or "")
        ordered.update(reversed(chain.items()))
    return list(ordered.values())
