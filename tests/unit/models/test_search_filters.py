"""Filters of a search."""

from __future__ import annotations

from agent_memory.models import SearchFilters


def test_copy_of_used_filters_has_facets_of_its_own() -> None:
    filters = SearchFilters(include_items=True)
    assert not filters.facets
    assert not filters.any_facets
    copied = filters.model_copy(update={"only_items": True, "category": "decision", "tags": ["tea"]})
    same = SearchFilters(include_items=True, only_items=True, category="decision", tags=["tea"])
    assert copied.facets == same.facets
    assert copied.any_facets == same.any_facets
