"""Names and import paths that the specifications print, and their examples as they are printed."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

import pytest

from agent_memory.embeddings.testing import HashEmbedder
from agent_memory.settings import ServiceSettings

if TYPE_CHECKING:
    from pathlib import Path

NAMES = {
    "agent_memory": "FileStorage VectorStorage MemoryStorage detect_storage ScratchpadManager Memory",
    "agent_memory.storage": (
        "MemoryStorage FileStorage VectorStorage detect_storage MigrationProgress should_migrate rollback_migration"
    ),
    "agent_memory.scratchpad": "ScratchpadManager",
    "agent_memory.embeddings": "EmbeddingGenerator",
    "agent_memory.models": "Memory MemorySearchResult Scratchpad",
    "agent_memory.knowledge": (
        "MemoryManager RetrievalMode RAGRetriever LLMRetriever HybridRetriever ConfidenceScorer RetrievalResult "
        "ResourceLayer ItemLayer CategoryLayer Resource MemoryItem MemoryCategory MemoryStats MemoryConfig "
        "MemoryRetryConfig MemoryEventType MemoryEvent ResourceStoredPayload ItemsExtractedPayload "
        "CategoryCreatedPayload CategoryConsolidatedPayload RetrievalPerformedPayload"
    ),
    "agent_memory.ingestion": (
        "MemoryIngestor EntityExtractor EntityDeduplicator ConversationSummarizer MemoryIngestionConfig "
        "EntityExtractionConfig EntityDeduplicationConfig SummarizationConfig IngestionError ExtractionError "
        "SummarizationError Turn Session Episode Entity ExtractedEntity ExtractedRelationship EntityExtractionResult"
    ),
    "agent_memory.lifecycle": (
        "MemoryStore MemoryEntry MemoryEntryType ImportanceLevel ImportanceCalculator RAGIntegration ContextBuilder "
        "RelevanceFilter CleanupManager ArchivalManager MemoryStoreConfig CleanupConfig EmbeddingConfig "
        "MemoryStoreSignalBusIntegration MemoryStoreWorldModelIntegration UnifiedSignalBus Signal WorldModel"
    ),
    "agent_memory.errors": (
        "StorageError ValidationError EmbeddingError ExtractionError ConsolidationError RetrievalError "
        "VectorIndexError ResourceNotFoundError CategoryNotFoundError CategoryExistsError IngestionError "
        "SummarizationError"
    ),
}


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(("path", "names"), NAMES.items())
def test_printed_names_import(path: str, names: str) -> None:
    module = import_module(path)
    assert [name for name in names.split() if not hasattr(module, name)] == []


async def test_file_storage_example_runs() -> None:
    from agent_memory.models import Memory
    from agent_memory.storage import FileStorage, detect_storage

    storage = FileStorage(agent_id="bob")
    memory = Memory(
        agent_id="bob",
        content="Prefer PostgreSQL for new projects",
        category="preference",
        tags=["database", "postgresql"],
        created_by_session="session-abc-123",
    )
    memory_id = await storage.store(memory)
    results = await storage.search(query="database preferences", limit=5)
    lines = [f"[{result.relevance_score:.2f}] {result.memory.content}" for result in results]
    assert [line.partition(" ")[2] for line in lines] == [memory.content]
    assert memory_id == memory.id
    await storage.close()

    detected = detect_storage(agent_id="bob")
    assert [result.memory.id for result in await detected.search(query="postgresql work")] == [memory_id]
    await detected.close()


async def test_vector_storage_example_runs() -> None:
    from agent_memory.models import Memory
    from agent_memory.storage import VectorStorage

    storage = VectorStorage(agent_id="bob", settings=ServiceSettings(), embedder=HashEmbedder())
    await storage.store(Memory(agent_id="bob", content="We chose Postgres databases", category="decision"))
    results = await storage.search(
        query="What did we decide about databases?", limit=5, filters={"category": "decision"}
    )
    assert [result.memory.content for result in results] == ["We chose Postgres databases"]
    await storage.close()


async def test_scratchpad_example_runs() -> None:
    from agent_memory.models import Memory
    from agent_memory.scratchpad import ScratchpadManager

    manager = ScratchpadManager(agent_id="bob", max_size=50)
    await manager.load()
    memory = Memory(agent_id="bob", content="PostgreSQL for new projects", category="preference")
    await manager.add_memory(memory)
    assert "PostgreSQL for new projects" in await manager.format_for_context(token_budget=2000)


async def test_memory_store_contract_runs() -> None:
    from agent_memory.lifecycle import ImportanceCalculator, MemoryEntry, MemoryStore, MemoryStoreConfig, RAGIntegration

    store = MemoryStore(MemoryStoreConfig(), settings=ServiceSettings(embedder="none"))
    entry = MemoryEntry(entry_type="insight", content={"text": "Checkout loses users at step four."})
    entry_id = await store.store_entry(entry)
    assert 0 <= await ImportanceCalculator().calculate_importance(entry) <= 1
    found = await store.retrieve_relevant("where does checkout lose users", relevance_threshold=0.1)
    assert [hit.entry_id for hit in found] == [entry_id]
    integration = RAGIntegration(store)
    store.config = store.config.model_copy(update={"relevance_threshold": 0.1})
    assert "step four" in await integration.get_context_for_query("where does checkout lose users")
    assert "step four" in await integration.get_learning_context("")
    assert await integration.get_conversation_context("s-1") == ""
    assert (await store.get_memory_statistics())["total_entries"] == 1
    assert await store.update_entry(entry_id, {"semantic_tags": ["checkout"]})
    assert await store.delete_entry(entry_id)
    await store.close()
