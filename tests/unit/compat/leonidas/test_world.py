"""What a model of the world learns is kept once, and what was is told to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agent_memory.errors import ValidationError
from agent_memory.lifecycle import MemoryEntry, MemoryStoreWorldModelIntegration

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_memory.lifecycle import MemoryStore


class World:
    """A model with updates that stay until they are acknowledged."""

    def __init__(self, *updates: dict[str, Any]) -> None:
        self.updates = list(updates)
        self.fails = False

    async def get_updates(self) -> list[dict[str, Any]]:
        return list(self.updates)

    async def acknowledge(self, update_ids: Sequence[str]) -> None:
        if self.fails:
            raise ConnectionError
        self.updates = [each for each in self.updates if each.get("id") not in update_ids]


async def test_keeps_each_update_and_acknowledges_it(store: MemoryStore) -> None:
    world = World(
        {"id": "u1", "text": "The crane is repaired.", "tags": ["harbour"], "importance": 0.7},
        {"id": "u2", "text": "It rains."},
    )
    kept = await MemoryStoreWorldModelIntegration(store, world).sync_world_model_updates()
    assert kept == ["world_model:u1", "world_model:u2"]
    assert world.updates == []
    found = await store.get_entry_by_id("world_model:u1")
    assert found is not None
    assert (found.text, found.semantic_tags, found.importance_score) == ("The crane is repaired.", ["harbour"], 0.7)


async def test_an_update_that_comes_again_is_kept_once(store: MemoryStore) -> None:
    world = World({"id": "u1", "text": "The crane is broken."})
    world.fails = True
    integration = MemoryStoreWorldModelIntegration(store, world)
    with pytest.raises(ConnectionError):
        await integration.sync_world_model_updates()
    world.fails = False
    world.updates = [{"id": "u1", "text": "The crane is repaired."}]
    await integration.sync_world_model_updates()
    assert [each.text for each in await store.list_entries()] == ["The crane is repaired."]


async def test_what_was_kept_before_a_failure_is_acknowledged(store: MemoryStore) -> None:
    world = World({"id": "u1", "text": "It rains."}, {"id": "u2", "text": " "})
    with pytest.raises(ValidationError):
        await MemoryStoreWorldModelIntegration(store, world).sync_world_model_updates()
    assert [each["id"] for each in world.updates] == ["u2"]


async def test_tells_what_was_of_a_type_or_of_a_question(store: MemoryStore) -> None:
    await store.store_entry(MemoryEntry(entry_type="pattern", content={"text": "Cranes fail in March."}))
    await store.store_entry(MemoryEntry(entry_type="preference", content={"text": "Ann prefers ferries."}))
    integration = MemoryStoreWorldModelIntegration(store, World())
    told = await integration.provide_historical_context("pattern")
    assert (told["context_type"], told["count"]) == ("pattern", 1)
    assert told["entries"][0]["text"] == "Cranes fail in March."
    asked = await integration.provide_historical_context("what does Ann prefer")
    assert [each["text"] for each in asked["entries"]] == ["Ann prefers ferries."]
