"""Spans that do not overlap."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agent_memory.knowledge.entities.name_finder import SpanSet


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 8))))
def test_span_set_any_order_keeps_spans_apart(pairs: list[tuple[int, int]]) -> None:
    spans, taken = SpanSet(), set[int]()
    for start, size in pairs:
        places = set(range(start, start + size))
        assert spans.add(start, start + size) is taken.isdisjoint(places)
        taken |= places if taken.isdisjoint(places) else set()
