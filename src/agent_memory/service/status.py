"""What `memory_status` tells: counts, health, the last write, and what could be done better."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from agent_memory.errors import StorageError
from agent_memory.models import to_text
from agent_memory.service.results import Status

if TYPE_CHECKING:
    from agent_memory.models import Memory
    from agent_memory.scratchpad import ScratchpadManager
    from agent_memory.settings import ServiceSettings
    from agent_memory.storage import MemoryStorage


async def describe_status(storage: MemoryStorage, manager: ScratchpadManager, settings: ServiceSettings) -> Status:
    """Return the state of one agent's memory; what cannot be read is reported in `health`."""
    try:
        memories = [memory async for memory in storage.iter_all()]
        superseded = await storage.superseded()
        pad = await manager.load()
        health = await storage.health()
    except StorageError as error:
        unreadable = {"status": "unreadable", "message": error.message, "recovery": error.recovery}
        return Status(
            storage.agent_id, storage.backend, {}, _embedder(storage, settings), unreadable, None, [error.recovery]
        )
    counts = {
        "memories": len(memories),
        "superseded": len(superseded),
        "scratchpad": len(pad),
        "pinned": sum(memory.pinned for memory in memories),
        "by_category": dict(Counter(memory.category for memory in memories).most_common()),
        "by_trust": dict(Counter(memory.trust for memory in memories).most_common()),
    }
    last = max((memory.timestamp for memory in memories), default=None)
    return Status(
        storage.agent_id,
        storage.backend,
        counts,
        _embedder(storage, settings),
        health,
        to_text(last) if last else None,
        _suggestions(memories, health, settings, storage.backend),
    )


def _embedder(storage: MemoryStorage, settings: ServiceSettings) -> dict[str, Any]:
    return {"kind": settings.embedder, **storage.embedding()}


def _suggestions(
    memories: list[Memory], health: dict[str, object], settings: ServiceSettings, backend: str
) -> list[str]:
    found = []
    if health.get("status") != "ok":
        found.append("Some lines of the journal are damaged; they are kept, and everything else works.")
    if backend == "file" and len(memories) >= settings.migration_threshold and settings.backend == "auto":
        found.append(
            f"More than {settings.migration_threshold} memories: `agent-memory migrate` builds an index, "
            "which makes searches faster from some 20,000 on."
        )
    return found
