"""The configuration of a store: defaults of its contract, and each key read, or checked against the settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pydantic
import pytest

from agent_memory.compat.leonidas_management import build_service_settings
from agent_memory.embeddings.testing import HashEmbedder
from agent_memory.errors import ConfigurationError
from agent_memory.lifecycle import (
    ArchivalConfig,
    CleanupConfig,
    EmbeddingConfig,
    MemoryEntry,
    MemoryStore,
    MemoryStoreConfig,
)
from agent_memory.settings import ServiceSettings
from tests.rows import check_rows
from tests.support import raises

if TYPE_CHECKING:
    from pathlib import Path


def test_has_the_names_and_defaults_of_its_contract() -> None:
    config = MemoryStoreConfig()
    assert config.model_dump(exclude={"archival_config"}) == {
        "storage_path": "memory_store",
        "index_path": "memory_store/indexes",
        "backup_path": "memory_store/backups",
        "cache_size": 1000,
        "query_cache_size": 500,
        "max_file_size_mb": 100,
        "embedding_config": {
            "model_name": "text-embedding-ada-002",
            "embedding_dimension": 1536,
            "batch_size": 100,
            "similarity_threshold": 0.7,
            "max_similarity_results": 50,
        },
        "cleanup_config": {
            "cleanup_interval_hours": 24,
            "min_importance_threshold": 0.3,
            "max_age_days": 90,
            "max_entries": 10000,
            "delete_unaccessed_days": 30,
            "archive_old_entries_days": 60,
        },
        "max_context_length": 2000,
        "max_retrieval_results": 10,
        "relevance_threshold": 0.6,
    }
    assert isinstance(config.archival_config, ArchivalConfig)


@check_rows(
    ("kind", "values"),
    [
        (MemoryStoreConfig, {"relevance_threshold": 1.1}),
        (MemoryStoreConfig, {"max_retrieval_results": 0}),
        (MemoryStoreConfig, {"cache_sise": 1}),
        (CleanupConfig, {"max_age_days": 0}),
        (EmbeddingConfig, {"max_similarity_results": 500}),
    ],
)
def test_refuses_wrong_values_and_unknown_keys(kind: type[pydantic.BaseModel], values: dict[str, Any]) -> None:
    with pytest.raises(pydantic.ValidationError):
        kind(**values)


def test_the_defaults_of_embedding_ask_no_network() -> None:
    assert build_service_settings(MemoryStoreConfig(), None) == ServiceSettings(storage_root="memory_store")
    own = ServiceSettings(storage_root="elsewhere", embedder="none", similarity_threshold=0.4)
    assert build_service_settings(MemoryStoreConfig(), own) == own


def test_a_value_that_was_chosen_is_taken_over() -> None:
    chosen = EmbeddingConfig(model_name="text-embedding-3-small", similarity_threshold=0.5)
    settings = build_service_settings(MemoryStoreConfig(storage_path="here", embedding_config=chosen), None)
    assert (settings.storage_root, settings.embedder, settings.embedding_model) == (
        "here",
        "openai",
        "text-embedding-3-small",
    )
    assert settings.similarity_threshold == 0.5


def test_two_values_of_one_setting_are_refused() -> None:
    with raises(ConfigurationError, "conflicting_settings", match="storage_path='here' and storage_root='there'"):
        build_service_settings(MemoryStoreConfig(storage_path="here"), ServiceSettings(storage_root="there"))
    threshold = EmbeddingConfig(similarity_threshold=0.5)
    with raises(ConfigurationError, "conflicting_settings"):
        build_service_settings(MemoryStoreConfig(embedding_config=threshold), ServiceSettings(similarity_threshold=0.4))


def test_a_dimension_has_to_be_that_of_the_vectors() -> None:
    embedder = HashEmbedder()
    wrong = EmbeddingConfig(embedding_dimension=embedder.identity.dimension + 1)
    with pytest.raises(ConfigurationError, match="embedding_dimension is"):
        build_service_settings(MemoryStoreConfig(embedding_config=wrong), None, embedder)
    right = EmbeddingConfig(embedding_dimension=embedder.identity.dimension)
    assert build_service_settings(MemoryStoreConfig(embedding_config=right), None, embedder)
    large = EmbeddingConfig(model_name="text-embedding-3-large")
    with pytest.raises(ConfigurationError, match="have 3072"):
        build_service_settings(MemoryStoreConfig(embedding_config=large), None)


@check_rows("key", ["index_path", "backup_path"])
def test_paths_lie_within_the_storage(key: str) -> None:
    with raises(ConfigurationError, "path_outside"):
        build_service_settings(MemoryStoreConfig(**{"storage_path": "here", key: "there/x"}), None)
    assert build_service_settings(MemoryStoreConfig(**{"storage_path": "here", key: "here/x"}), None)


async def test_the_store_reads_how_many_how_relevant_and_how_large(root: Path) -> None:
    config = MemoryStoreConfig(storage_path=str(root), max_retrieval_results=2, relevance_threshold=0.0)
    async with MemoryStore(config, agent_id="bob", settings=ServiceSettings(embedder="none")) as store:
        for number in range(4):
            await store.store_entry(MemoryEntry(content={"text": f"The ferry has the number {number}."}))
        assert len(await store.retrieve_relevant("ferry")) == 2
        assert (root / "bob" / "memories.yaml").exists()
    strict = config.model_copy(update={"relevance_threshold": 1.0, "max_file_size_mb": 0})
    async with MemoryStore(strict, agent_id="bob", settings=ServiceSettings(embedder="none")) as store:
        assert await store.retrieve_relevant("ferry") == []
        assert "memories.yaml" in (await store.get_memory_statistics())["large_files"]
