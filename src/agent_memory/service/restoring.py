"""Bringing exported memories back: redact, validate, keep. Ids, times and counts stay, nothing that is there changes.

The write path for what was stored once already; reads no file and knows no format.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

from agent_memory.errors import ValidationError
from agent_memory.service.drafts import clean, draft

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agent_memory.models import Memory
    from agent_memory.redaction import Redactor
    from agent_memory.service.caller import Caller
    from agent_memory.service.pad import PadKeeper
    from agent_memory.storage import MemoryStorage

_STAND_IN: Final = "Forgotten before the memory that replaces it was exported."
_LONG_AGO: Final = datetime(2000, 1, 1, tzinfo=UTC)


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
    waiting: dict[str, list[str]] = {}
    try:
        for memory in memories:
            restored = await _restore(service.storage, redactor, memory, waiting)
            if restored.outcome == "stored":
                error = await _link(service.storage, waiting.pop(memory.id, []), memory.id)
                restored = replace(restored, error=error)
                await _report(service, memory, restored, caller)
            each(restored)
        for target, holders in waiting.items():
            await _link_to_forgotten(service.storage, target, holders)
    finally:
        pad.schedule()


async def _restore(
    storage: MemoryStorage, redactor: Redactor, memory: Memory, waiting: dict[str, list[str]]
) -> Restored:
    try:
        kept, kinds = await asyncio.to_thread(_without_secrets, memory, redactor)
        known = await storage.get(memory.id)
        if known is not None:
            return Restored(memory.id, "present" if known.content == kept.content else "differs")
        target = kept.supersedes
        if target is not None and await storage.get(target) is None:
            kept = kept.model_copy(update={"supersedes": None})
            await storage.store(kept)
            waiting.setdefault(target, []).append(memory.id)
        else:
            await storage.store(kept)
    except ValidationError as error:
        return Restored(memory.id, "refused", error=error)
    return Restored(memory.id, "stored", kinds)


def _without_secrets(memory: Memory, redactor: Redactor) -> tuple[Memory, tuple[str, ...]]:
    """Return the memory itself if there is no secret in it: an import must not so much as trim a text."""
    cleaned, kinds = clean(memory.model_dump(), redactor)
    return (draft(cleaned) if kinds else memory), kinds


async def _link(storage: MemoryStorage, holders: list[str], target: str) -> ValidationError | None:
    """Let memories supersede one that came after them; return why one of them may not (they go round in a circle)."""
    refused = None
    for holder in holders:
        try:
            await storage.update(holder, {"supersedes": target})
        except ValidationError as error:
            refused = error
    return refused


async def _link_to_forgotten(storage: MemoryStorage, target: str, holders: list[str]) -> None:
    """Let memories supersede one that is no more: storage takes such a link only while there is something to replace.

    The stand-in has expired before it is stored, so that nobody is ever shown it, whatever happens in between.
    """
    stand_in = {"content": _STAND_IN, "timestamp": _LONG_AGO, "expires_at": _LONG_AGO, "trust": "low"}
    await storage.store(draft({"agent_id": storage.agent_id, "id": target, **stand_in}))
    for holder_id in holders:
        await storage.update(holder_id, {"supersedes": target})
    await storage.delete(target)


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
