"""What a caller may write against the public names. Not run: mypy checks it, so that a changed type is seen here."""

from __future__ import annotations

from typing import assert_type

from agent_memory import (
    FileStorage,
    Memory,
    MemorySearchResult,
    MemoryService,
    MemoryStorage,
    ScratchpadManager,
    SearchResults,
    detect_storage,
)


async def with_the_service() -> None:
    """The front door: one write path, one way to ask."""
    service = MemoryService(FileStorage("bob", storage_root="memories"))
    stored = await service.store({"content": "Use PostgreSQL", "category": "decision"})
    assert_type(stored.memory, Memory)
    found = await service.search("which database")
    for result in found.results:
        assert_type(result, MemorySearchResult)
        assert_type(result.relevance_score, float)
        assert_type(result.memory.content, str)
    await service.close()


async def with_a_storage() -> None:
    """One interface for all backends."""
    storage = detect_storage("bob", "memories")
    assert_type(storage, MemoryStorage)
    results = await storage.search("which database", limit=5, filters={"category": "decision"})
    assert_type(results, SearchResults)
    assert_type(len(results), int)
    assert_type(await storage.count(), int)
    assert_type(await ScratchpadManager("bob", storage=storage).format_for_context(token_budget=500), str)
    await storage.close()
