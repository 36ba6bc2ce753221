"""Bringing exported memories back: redact, validate, keep. Ids, times and counts stay, nothing that is there changes.

The write path for what was stored once already; reads no file and knows no format.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

from agent_memory.errors import ValidationError
from agent_memory.storage.cleaning import redact_memory, with_fields

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agent_memory.models import Memory
    from agent_memory.redaction import Redactor
    from agent_memory.service.caller import Caller
    from agent_memory.service.pad import PadKeeper
    from agent_memory.storage import MemoryStorage
    from agent_memory.storage.cleaning import Redacted


@dataclass(frozen=True, slots=True)
class Restored:
    """What became of one memory.

    Attributes:
        memory_id: Which.
        outcome: `stored`; `present`: it was there; `differs`: it is there with another text, which stays; `refused`.
        redacted: Kinds of secrets that were taken out before it was stored.
        error: Why it was refused; with `stored`, why a link to it was.
    """

    memory_id: str
    outcome: Literal["stored", "present", "differs", "refused"]
    redacted: tuple[str, ...] = ()
    error: ValidationError | None = None


class Service(Protocol):
    """What restoring needs of the service."""

    storage: MemoryStorage

    async def report(self, event: str, caller: Caller, **fields: Any) -> None:
        """Emit an event."""


async def restore_all(
    service: Service,
    pad: PadKeeper,
    redactor: Redactor,
    memories: Sequence[Memory],
    each: Callable[[Restored], None],
    caller: Caller,
) -> None:
    """Keep what is not there yet, in the given order; `each` hears of every memory, in that order, once it is on disk.

    A memory may supersede one that comes later or one that was forgotten before the export: such links are kept.

    Raises:
        StorageError: What `each` was told of before is on disk; doing it all again does the rest.
    """
    is_synced = False
    try:
        for memory in memories:
            kept, restored = await _restore(service.storage, redactor, memory)
            if kept is not None:
                await _report(service, kept, restored, caller)
            elif restored.outcome == "present" and not is_synced:
                await service.storage.touch(())  # counts nothing, and makes durable what a killed import left unsynced
                is_synced = True
            each(restored)
    finally:
        pad.schedule()


async def _restore(storage: MemoryStorage, redactor: Redactor, memory: Memory) -> tuple[Memory | None, Restored]:
    """Keep a memory; return it as it was stored, None if it was not, and what became of it.

    One without a secret is not touched: an import must not so much as trim a text.
    """
    try:
        redacted = await asyncio.to_thread(redact_memory, memory, redactor)
        known = await storage.get(memory.id)
        if known is not None:
            is_same = known.content == redacted.value.content
            return None, Restored(memory.id, "present" if is_same else "differs")
        error = await _keep(storage, redacted)
    except ValidationError as refusal:
        return None, Restored(memory.id, "refused", error=refusal)
    return redacted.value, Restored(memory.id, "stored", redacted.kinds, error)


async def _keep(storage: MemoryStorage, memory: Redacted[Memory]) -> ValidationError | None:
    """Store a memory whole, in one line of the journal: an import broken off leaves none without its link.

    Returns:
        Why its link was left out, when memories would go round in a circle.
    """
    try:
        await storage.store_many([memory])
    except ValidationError as error:
        if memory.value.supersedes is None:
            raise
        await storage.store_many([with_fields(memory, supersedes=None)])
        return error
    return None


async def _report(service: Service, memory: Memory, restored: Restored, caller: Caller) -> None:
    await service.report(
        "memory:stored",
        caller,
        memory_id=memory.id,
        category=memory.category,
        tags=memory.tags,
        backend=service.storage.backend,
        in_scratchpad=None,  # not known until all are there
        supersedes=memory.supersedes,
        redacted=list(restored.redacted),
    )
