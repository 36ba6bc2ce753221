"""The names, arguments and fields that programs written for the contract of `MemoryStore` use."""

from __future__ import annotations

import dataclasses
import inspect
from typing import TYPE_CHECKING, Any

import pytest

from agent_memory import lifecycle
from agent_memory.lifecycle import MemoryEntry

if TYPE_CHECKING:
    from agent_memory.lifecycle import MemoryStore

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


@pytest.mark.parametrize(
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
