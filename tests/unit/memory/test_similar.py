"""Existing memories to compare with a stored one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agent_memory.embeddings.testing import HashEmbedder
from agent_memory.errors import StorageError
from agent_memory.memories import FileStorage
from agent_memory.memory import MemoryService, views
from agent_memory.memory.similarity import MAX_SIMILAR
from agent_memory.settings import ServiceSettings
from agent_memory.store.store import Store

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import FrozenClock


async def store(service: MemoryService, content: str, **fields: Any) -> Any:
    return await service.store({"content": content, **fields})


def contents(stored: Any) -> list[str]:
    return [memory.content for memory in stored.similar]


async def test_store_with_contradicting_text_lists_old_memory(service: MemoryService) -> None:
    await store(service, "The staging server listens on port 8443.")
    await store(service, "Lunch is at noon.")
    stored = await store(service, "The staging server listens on port 9443.")
    assert contents(stored) == ["The staging server listens on port 8443."]


async def test_store_without_shared_words_lists_nothing(service: MemoryService) -> None:
    await store(service, "Lunch is at noon.")
    assert contents(await store(service, "Maria leads payments.")) == []


async def test_store_of_known_text_lists_nothing(service: MemoryService) -> None:
    await store(service, "Lunch is at noon.")
    stored = await store(service, "Lunch is at noon.")
    assert (stored.duplicate, stored.similar) == (True, ())


async def test_store_that_supersedes_does_not_list_replaced(service: MemoryService) -> None:
    old = await store(service, "Lunch is at noon.")
    assert contents(await store(service, "Lunch is at one.", supersedes=old.memory.id)) == []


async def test_store_lists_at_most_three(service: MemoryService) -> None:
    for number in range(9):
        await store(service, f"The server of team {number} listens on port 80{number}0.")
    stored = await store(service, "The server of team nine listens on port 9000.")
    assert len(stored.similar) == MAX_SIMILAR


async def test_store_leaves_out_other_projects(service: MemoryService) -> None:
    await store(service, "The port of staging is 8443.", project="atlas")
    assert contents(await store(service, "The port of staging is 9443.", project="kestrel")) == []


async def test_store_failed_search_lists_none(service: MemoryService, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise StorageError("A segment cannot be read.")

    await store(service, "The port of staging is 8443.")
    monkeypatch.setattr(Store, "find_neighbors", fail)
    stored = await service.store("The port of staging is 9443.")
    assert (stored.in_scratchpad, stored.similar, stored.degraded) == (True, (), None)


async def test_update_with_new_text_lists_similar(service: MemoryService) -> None:
    await store(service, "The port of staging is 8443.")
    other = await store(service, "Lunch is at noon.")
    updated = await service.update(other.memory.id, {"content": "The port of staging is 9443."})
    assert contents(updated) == ["The port of staging is 8443."]
    assert (await service.update(other.memory.id, {"pinned": True})).similar == ()


async def test_store_with_loaded_model_lists_near_in_meaning(tmp_path: Path, clock: FrozenClock) -> None:
    settings = ServiceSettings(storage_root=str(tmp_path))
    storage = FileStorage("bob", settings=settings, clock=clock, embedder=HashEmbedder())
    service = MemoryService(storage, settings, clock=clock)
    try:
        old = await store(service, "The staging server listens on port 8443.")
        await storage.prepare(None)
        stored = await store(service, "Staging listens on 9443.")
        assert [memory.id for memory in stored.similar] == [old.memory.id]
    finally:
        await service.close()


@pytest.mark.parametrize(("scale", "count"), [(1.0, 0), (1.25, 1)])
async def test_store_measures_nearness_on_the_scale_of_the_model(tmp_path: Path, scale: float, count: int) -> None:
    embedder = HashEmbedder(384, {"wharf": "harbour", "vessel": "ship"})
    embedder.cosine_scale = scale  # type: ignore[attr-defined]
    storage = FileStorage("bob", tmp_path, embedder=embedder)
    service = MemoryService(storage, ServiceSettings(storage_root=str(tmp_path)))
    try:
        await store(service, "Bright harbour cranes lift ship crates")
        await storage.prepare(None)
        assert len((await store(service, "Old vessel near northern wharf sank")).similar) == count
    finally:
        await service.close()


async def test_similar_view_stays_short(service: MemoryService) -> None:
    for number in range(3):
        await store(service, f"The server of team {number} listens on port 80{number}0, " + "which is known " * 60)
    view = views.view_similar((await store(service, "The server of team nine listens on port 9000.")).similar)
    assert [memory.keys() for memory in view] == [{"id", "content", "timestamp"}] * 3
    assert sum(len(memory["content"]) for memory in view) <= 150


async def test_store_crosses_the_thread_once_for_its_answer(
    service: MemoryService, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store(service, "The port of staging is 8443.")
    calls: list[str] = []
    for name in ("run", "write"):
        real = getattr(service.storage.worker, name)

        def call(*arguments: Any, name: str = name, real: Any = real, **choices: Any) -> Any:
            calls.append(name)
            return real(*arguments, **choices)

        monkeypatch.setattr(service.storage.worker, name, call)
    stored = await service.store("The port of staging is 9443.")
    assert calls.count("run") == 0
    assert calls.count("write") == 1
    assert [memory.content for memory in stored.similar] == ["The port of staging is 8443."]
    assert stored.in_scratchpad
