"""What a caller may write against the public names. Not run: mypy checks it, so that a changed type is seen here."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, assert_type

from agent_memory import (
    AgentMemoryError,
    EmbeddingGenerator,
    FileStorage,
    Memory,
    MemorySearchResult,
    MemoryService,
    MemoryStorage,
    Scratchpad,
    ScratchpadManager,
    SearchFilters,
    SearchResults,
    ServiceSettings,
    VectorStorage,
    detect_storage,
)
from agent_memory.embeddings import EmbedderIdentity
from agent_memory.memory import Caller, open_service

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from agent_memory.store.record_storage import RecordStorage


async def with_the_service() -> None:
    """The front door: one write path, one way to ask."""
    service = MemoryService(FileStorage("bob", storage_root="memories"))
    stored = await service.store({"content": "Use PostgreSQL", "category": "decision"})
    assert_type(stored.memory, Memory)
    assert_type(stored.redacted, tuple[str, ...])
    found = await service.search("which database")
    for result in found.results:
        assert_type(result, MemorySearchResult)
        assert_type(result.relevance_score, float)
        assert_type(result.memory.content, str)
    for each in found:
        assert_type(each, MemorySearchResult)
    assert_type(len(found), int)
    assert_type(found.degraded, str | None)
    assert_type((await service.update(stored.memory.id, {"pinned": True})).fields, tuple[str, ...])
    assert_type((await service.forget(stored.memory.id)).memory, Memory)
    assert_type(await service.scratchpad(), Scratchpad)
    await service.close()


async def on_behalf_of_a_model() -> None:
    """A caller says whose words it brings and where events go."""

    async def emit(event: str, data: dict[str, Any]) -> None:
        print(event, data["agent_id"])  # noqa: T201 - what a caller may do

    service = open_service("bob", ServiceSettings(storage_root="memories", embedder="none"))
    await service.store("Tea at four", Caller("session-1", emit, trust="medium"))
    await service.search("tea", 3, SearchFilters(category="note", tags=["home"]), min_answer_confidence=0.5)
    await service.close()


async def with_a_storage() -> None:
    """One interface for all backends."""
    storage = detect_storage("bob", Path("memories"))
    assert_type(storage, MemoryStorage)
    assert_type(await storage.store(Memory(agent_id="bob", content="Use PostgreSQL", tags=["db"])), str)
    results = await storage.search("which database", limit=5, filters={"category": "decision"}, explain=True)
    assert_type(results, SearchResults)
    assert_type(results.mode, Literal["keyword", "hybrid"])
    assert_type(results[0].memory.timestamp, datetime)
    assert_type(results[0].parts, dict[str, float])
    assert_type(len(results), int)
    assert_type(await storage.get("mem-000000000000"), Memory | None)
    assert_type(await storage.list_recent(3), list[Memory])
    assert_type([memory.id async for memory in storage.iter_all()], list[str])
    assert_type(await storage.count(), int)
    await storage.compact(timedelta(0))
    assert_type(await ScratchpadManager("bob", storage=storage).format_for_context(token_budget=500), str)
    await storage.close()


async def with_the_vector_engine() -> None:
    """A `VectorStorage` is a `FileStorage` that can be moved there and back."""
    files, vectors = FileStorage("bob"), VectorStorage("bob", embedding_model="text-embedding-3-small")
    either: list[FileStorage] = [files, vectors]
    progress = await vectors.migrate_from_file(files)
    assert_type(progress.percent_complete, float)
    assert_type(await vectors.rollback(), bool)
    for storage in either:
        await storage.close()


class Lengths:
    """An embedder of one's own: four members, and no class of ours above it."""

    identity = EmbedderIdentity("mine", "lengths", 1)
    dimension = 1
    similarity_threshold = 0.5

    def embed_documents(self, texts: list[str]) -> NDArray[np.float32]:
        """Return a row for each text."""
        raise NotImplementedError(texts)

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """Return the vector of a question."""
        raise NotImplementedError(text)


async def with_vectors_alone() -> None:
    """The generator needs no memory; both take an embedder of one's own."""
    generator = EmbeddingGenerator(embedder=Lengths())
    assert_type(await generator.generate("one"), list[float])
    assert_type(await generator.generate_batch(["one", "two"]), list[list[float]])
    await FileStorage("bob", embedder=Lengths()).close()


async def when_it_fails() -> str:
    """Every error of ours says what to do, to people and to programs."""
    try:
        await FileStorage("bob").count()
    except AgentMemoryError as error:
        assert_type(error.code, str)
        assert_type(error.as_dict(), dict[str, str])
        return error.recovery
    return ""


def what_a_storage_promises(storage: MemoryStorage) -> RecordStorage[Memory]:
    """One class has all methods, whatever the backend."""
    return storage
