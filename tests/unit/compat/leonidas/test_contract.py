"""What programs written for the contract of `MemoryStore` rely on: names, arguments, fields, and the way through it."""

from __future__ import annotations

import dataclasses
import inspect
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from agent_memory import lifecycle
from agent_memory.lifecycle import (
    ArchivalConfig,
    CleanupConfig,
    EmbeddingConfig,
    ImportanceLevel,
    MemoryEntry,
    MemoryStore,
    MemoryStoreConfig,
    RAGIntegration,
)
from agent_memory.settings import ServiceSettings
from tests.rows import check_rows

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from tests.support import FrozenClock

METHODS = {
    "store_entry": ("entry",),
    "retrieve_relevant": ("query", "max_results", "relevance_threshold", "entry_types", "time_range"),
    "get_conversation_history": ("session_id", "max_entries", "time_range"),
    "get_learning_patterns": ("pattern_type",),
    "update_entry": ("entry_id", "updates"),
    "delete_entry": ("entry_id",),
    "cleanup_old_entries": (),
    "archive_entries": ("archive_criteria",),
    "get_memory_statistics": (),
}
OTHERS = {
    "ImportanceCalculator": {"calculate_importance": ("entry",)},
    "RAGIntegration": {
        "get_context_for_query": ("user_query", "max_context_length", "max_entries"),
        "get_conversation_context": ("session_id", "max_context_length"),
        "get_learning_context": ("topic",),
    },
    "ContextBuilder": {
        "build_context": ("entries", "max_length"),
        "build_conversation_context": ("entries", "max_length"),
        "build_learning_context": ("entries", "max_length"),
    },
    "RelevanceFilter": {"filter_entries": ("entries", "query", "max_entries")},
    "CleanupManager": {"perform_cleanup": ()},
    "ArchivalManager": {"archive_entries": ("criteria",)},
    "MemoryStoreSignalBusIntegration": {
        "handle_interaction_signal": ("signal",),
        "handle_insight_signal": ("signal",),
        "handle_correction_signal": ("signal",),
    },
    "MemoryStoreWorldModelIntegration": {
        "sync_world_model_updates": (),
        "provide_historical_context": ("context_type",),
    },
}
FIELDS = (
    "entry_id entry_type timestamp session_id content summary keywords importance_score access_count last_accessed "
    "source related_entries parent_entry child_entries text_embedding semantic_tags temporal_context created_at "
    "updated_at expires_at archived"
)


def entry(text: str, entry_type: str = "knowledge", **fields: Any) -> MemoryEntry:
    return MemoryEntry(entry_type=entry_type, content={"text": text}, **fields)


@check_rows(
    ("owner", "name", "arguments"),
    [("MemoryStore", name, given) for name, given in METHODS.items()]
    + [(owner, name, given) for owner, methods in OTHERS.items() for name, given in methods.items()],
)
def test_each_method_is_there_and_takes_what_it_took(owner: str, name: str, arguments: tuple[str, ...]) -> None:
    method = getattr(getattr(lifecycle, owner), name)
    assert inspect.iscoroutinefunction(method)
    taken = [each for each in inspect.signature(method).parameters.values() if each.kind is each.POSITIONAL_OR_KEYWORD]
    assert tuple(each.name for each in taken[1:]) == arguments


def test_an_entry_has_the_fields_it_had_in_their_order() -> None:
    assert " ".join(each.name for each in dataclasses.fields(MemoryEntry))[: len(FIELDS)] == FIELDS


def test_types_and_levels_have_their_values() -> None:
    types = {name: value for name, value in vars(lifecycle.MemoryEntryType).items() if name.isupper()}
    assert types == {name: name.lower() for name in types}
    assert len(types) == 10
    levels = {name: value for name, value in vars(lifecycle.ImportanceLevel).items() if name.isupper()}
    assert levels == {"CRITICAL": 1.0, "HIGH": 0.8, "MEDIUM": 0.6, "LOW": 0.4, "MINIMAL": 0.2}


async def test_statistics_have_the_figures_they_had(store: MemoryStore) -> None:
    told: dict[str, Any] = await store.get_memory_statistics()
    assert told.keys() >= {
        "total_entries",
        "entries_by_type",
        "storage_size_mb",
        "index_size_mb",
        "cache_hit_rate",
        "query_cache_hit_rate",
        "performance_metrics",
    }


def test_the_importance_of_an_entry_is_made_of_the_factors_that_are_printed() -> None:
    factors = dict(lifecycle.ImportanceCalculator.IMPORTANCE_FACTORS)
    assert factors.pop("entry_type_weights") == {
        "critical": 1.0, "correction": 0.9, "insight": 0.8, "learning": 0.7, "interaction": 0.6, "context": 0.5,
        "pattern": 0.7, "preference": 0.6, "knowledge": 0.8,
    }  # fmt: skip
    assert factors == {
        "recency_decay_days": 30,
        "access_frequency_weight": 0.2,
        "content_length_weight": 0.1,
        "relationship_weight": 0.15,
    }


async def test_a_store_opens_with_every_value_of_the_contract_said_aloud(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    config = MemoryStoreConfig(
        storage_path="memory_store",
        index_path="memory_store/indexes",
        backup_path="memory_store/backups",
        cache_size=1000,
        query_cache_size=500,
        max_file_size_mb=100,
        embedding_config=EmbeddingConfig(
            model_name="text-embedding-ada-002",
            embedding_dimension=1536,
            batch_size=100,
            similarity_threshold=0.7,
            max_similarity_results=50,
        ),
        cleanup_config=CleanupConfig(
            cleanup_interval_hours=24,
            min_importance_threshold=0.3,
            max_age_days=90,
            max_entries=10_000,
            delete_unaccessed_days=30,
            archive_old_entries_days=60,
        ),
        archival_config=ArchivalConfig(),
        max_context_length=2000,
        max_retrieval_results=10,
        relevance_threshold=0.6,
    )
    assert config == MemoryStoreConfig()
    async with MemoryStore(config, settings=ServiceSettings(embedder="none")) as opened:
        stored = await opened.store_entry(entry("The crane is repaired."))
        assert [each.entry_id for each in await opened.retrieve_relevant("crane repaired")] == [stored]
        assert opened.config is config
    assert (tmp_path / "memory_store" / "default" / "memories.yaml").is_file()


async def test_an_entry_with_every_field_is_kept_and_comes_back(store: MemoryStore, clock: FrozenClock) -> None:
    """But for the vector, which lies in the index, and what the store itself counts and dates."""
    full = MemoryEntry(
        entry_id="entry_042",
        entry_type="insight",
        timestamp=clock(),
        session_id="session-9",
        content={"text": "Night builds fail when the cache is cold.", "confidence": "high"},
        summary="Cold caches break night builds",
        keywords=["builds", "cache"],
        importance_score=0.8,
        access_count=0,
        last_accessed=clock(),
        source="cognitive_agent",
        related_entries=["entry_007"],
        parent_entry="entry_001",
        child_entries=["entry_043"],
        text_embedding=[0.1, 0.2],
        semantic_tags=["ci"],
        temporal_context={"period": "night"},
        created_at=clock(),
        updated_at=clock(),
        expires_at=None,
        archived=False,
    )
    assert await store.store_entry(full) == "entry_042"
    found = await store.get_entry_by_id("entry_042")
    assert found is not None
    same = set(FIELDS.split()) - {"text_embedding", "last_accessed"}
    assert {name: getattr(found, name) for name in same} == {name: getattr(full, name) for name in same}
    assert found.text_embedding is None


async def test_a_program_stores_asks_changes_and_tidies(store: MemoryStore, clock: FrozenClock) -> None:
    learned = {
        kind: await store.store_entry(entry(text, kind, semantic_tags=["deploys"], importance_score=level))
        for kind, text, level in (
            ("pattern", "Deploys on a Friday are rolled back.", ImportanceLevel.MEDIUM),
            ("learning", "Deploys need the signing key of the week.", ImportanceLevel.HIGH),
            ("insight", "Deploys are slow because images are large.", ImportanceLevel.LOW),
        )
    }
    said = []
    for text in ("When do we deploy next?", "On Monday, not on a Friday."):
        clock.advance(minutes=1)
        said.append(await store.store_entry(entry(text, "interaction", session_id="s-1", timestamp=clock())))

    day = (clock() - timedelta(days=1), clock())
    found = await store.retrieve_relevant("deploys rolled back on Friday", 5, 0.5, ["pattern", "insight"], day)
    assert found[0].entry_id == learned["pattern"]
    assert {each.entry_type for each in found} <= {"pattern", "insight"}
    assert [each.entry_id for each in await store.get_conversation_history("s-1", 50, day)] == said[::-1]
    assert [each.entry_type for each in await store.get_learning_patterns("deploys")] == [
        "learning", "pattern", "insight"
    ]  # fmt: skip

    rag = RAGIntegration(store, clock=clock)
    assert "rolled back" in await rag.get_context_for_query("deploys rolled back on Friday", 2000, 5)
    assert "On Monday" in await rag.get_conversation_context("s-1", 1500)
    assert "signing key" in await rag.get_learning_context("deploys")

    clock.advance(hours=1)
    assert await store.update_entry(learned["insight"], {"importance_score": ImportanceLevel.CRITICAL})
    changed = await store.get_entry_by_id(learned["insight"])
    assert changed is not None
    assert (changed.importance_score, changed.updated_at) == (1.0, clock())
    assert not await store.update_entry("entry_404", {"summary": "none"})
    assert await store.delete_entry(learned["pattern"])
    assert not await store.delete_entry(learned["pattern"])

    clock.advance(days=365)
    assert await store.archive_entries({"older_than_days": 90, "max_importance": ImportanceLevel.HIGH}) == 1
    assert await store.cleanup_old_entries() == 0, "what was given an importance of .3 or more stays"
    told = await store.get_memory_statistics()
    assert told["entries_by_type"] == {"learning": 1, "insight": 1, "interaction": 2}
    assert told["performance_metrics"]["store"]["count"] == 5
    assert told["performance_metrics"]["retrieve"]["count"] == 2


async def test_managers_and_measures_of_a_store_are_its_attributes(store: MemoryStore) -> None:
    assert isinstance(store.importance_calculator, lifecycle.ImportanceCalculator)
    assert isinstance(store.cleanup_manager, lifecycle.CleanupManager)
    assert isinstance(store.archival_manager, lifecycle.ArchivalManager)
    assert isinstance(store.performance_metrics, lifecycle.MemoryPerformanceMetrics)
    rag = RAGIntegration(store)
    assert rag.memory_store is store
    assert isinstance(rag.context_builder, lifecycle.ContextBuilder)
    assert isinstance(rag.relevance_filter, lifecycle.RelevanceFilter)
