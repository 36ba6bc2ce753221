"""`MemoryStoreWorldModelIntegration`: keeps what a program's model of the world learned, and tells it what was."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from agent_memory.care.importance import ENTRY_TYPES, MemoryEntryType
from agent_memory.compat.memory_store.entries import TEXT, MemoryEntry
from agent_memory.models import to_text, utc_now

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from agent_memory.compat.memory_store.store import MemoryStore

_MOST = 50


class WorldModel(Protocol):
    """What a program believes of the world around it."""

    async def get_updates(self) -> Sequence[Mapping[str, Any]]:
        """Return what changed and is not acknowledged yet: `id`, `text`; if known `timestamp`, `tags`, `importance`."""

    async def acknowledge(self, update_ids: Sequence[str]) -> None:
        """Take note that these are kept."""


class MemoryStoreWorldModelIntegration:
    """Keeps what a world model learns, and gives it what is known of the past.

    Args:
        memory_store: Where entries are.
        world_model: The model.
    """

    def __init__(self, memory_store: MemoryStore, world_model: WorldModel) -> None:
        self.memory_store, self.world_model = memory_store, world_model

    async def sync_world_model_updates(self) -> list[str]:
        """Keep each update as knowledge, acknowledge those that are on the disk, and return the ids of their entries.

        An update that comes again, since it could not be acknowledged, changes the entry it has.

        Raises:
            ValidationError: An update has no words; those before it are kept and acknowledged.
            StorageError: Likewise.
        """
        kept: list[str] = []
        done: list[str] = []
        try:
            for update in await self.world_model.get_updates():
                kept.append(await self.memory_store.store_entry(_entry(update)))
                done.append(str(update.get("id", "")))
        finally:
            if done:
                await self.world_model.acknowledge(done)
        return kept

    async def provide_historical_context(self, context_type: str) -> dict[str, Any]:
        """Return what is known of a kind of context, as plain JSON.

        Args:
            context_type: A `MemoryEntryType`, of which the newest 50 entries are told; anything else is asked as a
                question.

        Returns:
            `context_type`, `count` and `entries`: id, type, text, timestamp and importance of each.

        Raises:
            StorageError: The memories cannot be read.
        """
        if context_type in ENTRY_TYPES:
            entries = await self.memory_store.list_entries([context_type], _MOST)
        else:
            entries = await self.memory_store.retrieve_relevant(context_type)
        told = [
            {
                "id": each.entry_id,
                "type": each.entry_type,
                "text": each.text,
                "timestamp": to_text(each.timestamp),
                "importance": each.importance_score,
            }
            for each in entries
        ]
        return {"context_type": context_type, "count": len(told), "entries": told}


def _entry(update: Mapping[str, Any]) -> MemoryEntry:
    moment: datetime = update.get("timestamp") or utc_now()
    known = update.get("id")
    return MemoryEntry(
        entry_id=f"world_model:{known}" if known else "",
        entry_type=MemoryEntryType.KNOWLEDGE,
        content={TEXT: update.get("text", "")},
        timestamp=moment,
        semantic_tags=list(update.get("tags") or []),
        importance_score=update.get("importance"),
        source="world_model",
    )
