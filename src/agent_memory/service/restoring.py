"""Bringing exported memories back: redact, validate, keep. Ids, times and counts stay, nothing that is there changes.

The write path for what was stored once already; reads no file and knows no format.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

from agent_memory.errors import ValidationError
from agent_memory.service.drafts import clean, draft

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agent_memory.models import Memory
    from agent_memory.redaction import Redactor
    from agent_memory.service.caller import Caller
    from agent_memory.service.pad import PadKeeper
    from agent_memory.storage import MemoryStorage


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
            restored = await _restore(service.storage, redactor, memory)
            if restored.outcome == "stored":
                await _report(service, memory, restored, caller)
            elif restored.outcome == "present" and not is_synced:
                await service.storage.touch(())  # counts nothing, and makes durable what a killed import left unsynced
                is_synced = True
            each(restored)
    finally:
        pad.schedule()


async def _restore(storage: MemoryStorage, redactor: Redactor, memory: Memory) -> Restored:
    try:
        kept, kinds = await asyncio.to_thread(_without_secrets, memory, redactor)
        known = await storage.get(memory.id)
        if known is not None:
            return Restored(memory.id, "present" if known.content == kept.content else "differs")
        error = await _keep(storage, kept)
    except ValidationError as refusal:
        return Restored(memory.id, "refused", error=refusal)
    return Restored(memory.id, "stored", kinds, error)


async def _keep(storage: MemoryStorage, memory: Memory) -> ValidationError | None:
    """Store a memory whole, in one line of the journal: an import broken off leaves none without its link.

    Returns:
        Why its link was left out, when memories would go round in a circle.
    """
    try:
        await storage.store_many([memory])
    except ValidationError as error:
        if memory.supersedes is None:
            raise
        await storage.store_many([memory.model_copy(update={"supersedes": None})])
        return error
    return None


def _without_secrets(memory: Memory, redactor: Redactor) -> tuple[Memory, tuple[str, ...]]:
    """Return the memory itself if there is no secret in it: an import must not so much as trim a text."""
    cleaned, kinds = clean(memory.model_dump(), redactor)
    return (draft(cleaned) if kinds else memory), kinds


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
