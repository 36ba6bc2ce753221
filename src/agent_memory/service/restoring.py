"""Bringing exported memories back: redact, validate, keep. Ids and texts stay, nothing that is there changes.

The write path for what was stored once already; reads no file and knows no format. What a file claims beyond its texts
(trust, pins, what it makes untrue) counts only if whoever restores vouches for it: anybody can write a file.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

from agent_memory.errors import ValidationError
from agent_memory.memories import redact_fields, redact_memory
from agent_memory.models import Source
from agent_memory.storage.cleaning import with_fields

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from datetime import datetime

    from agent_memory.models import Memory
    from agent_memory.redaction import Redactor
    from agent_memory.service.caller import Caller
    from agent_memory.service.scratchpad_sync import ScratchpadSync
    from agent_memory.storage import MemoryStorage
    from agent_memory.storage.cleaning import Redacted


@dataclass(frozen=True, slots=True)
class Restored:
    """What became of one memory.

    Attributes:
        memory_id: Which.
        outcome: `stored`; `present`: it was there; `differs`: it is there with another text, which stays; `refused`.
        redacted: Kinds of secrets that were taken out before it was stored.
        lowered: Fields whose claims were not believed.
        error: Why it was refused; with `stored`, why a link to it was.
        raised: With `present`, fields that are now as claimed, and were as a restore that believes nothing leaves them.
    """

    memory_id: str
    outcome: Literal["stored", "present", "differs", "refused"]
    redacted: tuple[str, ...] = ()
    lowered: tuple[str, ...] = ()
    error: ValidationError | None = None
    raised: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Terms:
    """On which terms memories are brought back.

    Attributes:
        now: The present.
        trusted: Whether all that they claim is believed.
        dry_run: Whether to tell what would become of each, and store none.
    """

    now: datetime
    trusted: bool = False
    dry_run: bool = False


class Service(Protocol):
    """What restoring needs of the service."""

    storage: MemoryStorage

    async def report(self, event: str, caller: Caller, **fields: Any) -> None:
        """Emit an event."""


async def restore_all(
    service: Service,
    pad: ScratchpadSync,
    redactor: Redactor,
    memories: Sequence[Memory],
    each: Callable[[Restored], None],
    caller: Caller,
    terms: Terms,
) -> None:
    """Keep what is not there yet, in the given order; `each` hears of every memory, in that order, once it is on disk.

    A memory may supersede one that comes later or one that was forgotten before the export: such links are kept.

    Raises:
        StorageError: What `each` was told of before is on disk; doing it all again does the rest.
    """
    is_synced = False
    before = {memory.id async for memory in service.storage.iter_all()}
    among = {memory.id for memory in memories} - before
    would: dict[str, str] = {}
    try:
        for memory in memories:
            believed, lowered = (memory, ()) if terms.trusted else _lowered(memory, among, terms.now)
            kept, restored = await _restore(
                service.storage, redactor, believed, lowered, would if terms.dry_run else None
            )
            if kept is not None:
                await _report(service, kept, restored, caller)
            elif restored.outcome == "present" and not (is_synced or terms.dry_run):
                await service.storage.touch(())  # counts nothing, and makes durable what a killed import left unsynced
                is_synced = True
            if restored.outcome == "present" and terms.trusted:
                restored = await _raise(service, redactor, memory, caller, terms)
            each(restored)
    finally:
        if not terms.dry_run:
            pad.schedule(caller)


def _lowered(memory: Memory, among: Collection[str], now: datetime) -> tuple[Memory, tuple[str, ...]]:
    """Return a memory without the claims that would put it above others, and the fields that had one.

    Args:
        memory: What a file says.
        among: Ids that come with it and were not there before: what it may replace. Not among them is what was
            forgotten here, which its owner may bring back.
        now: The present; nothing can have been stored after it.
    """
    claims: dict[str, Any] = {}
    if memory.trust == "high":
        claims["trust"] = "medium"
    if memory.source.kind == "user":
        claims["source"] = Source(kind="import", detail=memory.source.detail)
    if memory.pinned:
        claims["pinned"] = False
    if memory.supersedes is not None and memory.supersedes not in among:
        claims["supersedes"] = None
    if memory.access_count:
        claims["access_count"] = 0
    claims |= {name: None for name in ("last_accessed", "promoted_at") if getattr(memory, name) is not None}
    for name in ("timestamp", "observed_at", "evicted_at"):
        moment = getattr(memory, name)
        if moment is not None and moment > now:
            claims[name] = now
    return (memory.model_copy(update=claims) if claims else memory), tuple(claims)


async def _restore(
    storage: MemoryStorage,
    redactor: Redactor,
    memory: Memory,
    lowered: tuple[str, ...],
    would: dict[str, str] | None,
) -> tuple[Memory | None, Restored]:
    """Keep a memory; return it as it was stored, None if it was not, and what became of it.

    One without a secret is not touched: an import must not so much as trim a text. With `would` (id to text) nothing is
    stored, only noted there that it would be.
    """
    try:
        redacted = await asyncio.to_thread(redact_memory, memory, redactor)
        known = await storage.get(memory.id)
        text = known.content if known is not None else (would or {}).get(memory.id)
        if text is not None:
            return None, Restored(memory.id, "present" if text == redacted.value.content else "differs")
        if would is not None:
            would[memory.id] = redacted.value.content
            return None, Restored(memory.id, "stored", redacted.kinds, lowered)
        error = await _keep(storage, redacted)
    except ValidationError as refusal:
        return None, Restored(memory.id, "refused", error=refusal)
    return redacted.value, Restored(memory.id, "stored", redacted.kinds, lowered, error)


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


_RAISED: Final = ("trust", "source", "pinned", "supersedes", "promoted_at")
"""Claims that can still be believed afterwards: how often a memory was used has gone on since, and times stay."""


async def _raise(service: Service, redactor: Redactor, memory: Memory, caller: Caller, terms: Terms) -> Restored:
    """Believe now what an earlier restore of the same memory did not; what was changed since stays as it is."""
    known = await service.storage.get(memory.id)
    lowered, claims = _lowered(memory, (), terms.now)
    claims = tuple(name for name in claims if name in _RAISED)
    if known is None or any(getattr(known, name) != getattr(lowered, name) for name in ("trust", "source", "pinned")):
        return Restored(memory.id, "present")
    fields = {name: getattr(memory, name) for name in claims if getattr(known, name) == getattr(lowered, name)}
    if not fields:
        return Restored(memory.id, "present")
    try:
        cleaned = await asyncio.to_thread(redact_fields, fields, redactor)
        if not terms.dry_run:
            await service.storage.update(memory.id, cleaned)
            noted = {"fields": list(fields), "redacted": list(cleaned.kinds)}
            await service.report("memory:updated", caller, memory_id=memory.id, **noted)
    except ValidationError as error:
        return Restored(memory.id, "present", error=error)
    return Restored(memory.id, "present", cleaned.kinds, raised=tuple(fields))


async def _report(service: Service, memory: Memory, restored: Restored, caller: Caller) -> None:
    await service.report(
        "memory:stored",
        caller,
        memory_id=memory.id,
        category=memory.category,
        tag_count=len(memory.tags),
        backend=service.storage.backend,
        in_scratchpad=None,  # not known until all are there
        supersedes=memory.supersedes,
        redacted=list(restored.redacted),
    )
