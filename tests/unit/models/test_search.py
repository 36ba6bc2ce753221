"""Filters and date ranges of a search."""

from __future__ import annotations

from datetime import timedelta

import pytest

from agent_memory.models import DateRange, SearchFilters
from tests.support import NOON, memory_of


def test_copy_of_used_filters_has_facets_of_its_own() -> None:
    filters = SearchFilters(include_items=True)
    assert not filters.facets
    assert not filters.any_facets
    copied = filters.model_copy(update={"only_items": True, "category": "decision", "tags": ["tea"]})
    same = SearchFilters(include_items=True, only_items=True, category="decision", tags=["tea"])
    assert copied.facets == same.facets
    assert copied.any_facets == same.any_facets


def test_a_range_may_be_open_and_must_be_in_order() -> None:
    assert DateRange().covers(NOON)
    assert DateRange(start=NOON, end=NOON).covers(NOON)
    assert not DateRange(end=NOON - timedelta(microseconds=1)).covers(NOON)
    with pytest.raises(ValueError, match="after"):
        DateRange(start="2026-02-02", end="2026-02-01")


def test_filters_hold_together() -> None:
    memory = memory_of("x", category="decision", tags=["a", "b"], access_count=2)
    assert SearchFilters().admits(memory)
    assert SearchFilters(category="decision", tags=["A"], min_access_count=2, date_range=DateRange(end=NOON)).admits(
        memory
    )
    assert SearchFilters(tags=["c", "A"], all_tags=["b", "a"]).admits(memory)
    for miss in (
        {"category": "note"},
        {"tags": ["c", "d"]},
        {"all_tags": ["a", "c"]},
        {"tags": ["a"], "all_tags": ["c"]},
        {"min_access_count": 3},
        {"date_range": {"start": "2026-03-02T00:00:00Z"}},
    ):
        assert not SearchFilters.model_validate(miss).admits(memory)
