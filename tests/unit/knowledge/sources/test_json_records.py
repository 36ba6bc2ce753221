"""Records of JSON files, one at a time."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_memory.knowledge.sources import json_records
from agent_memory.knowledge.sources.json_records import iter_elements, iter_lines
from agent_memory.knowledge.sources.source_files import SourceFile

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


def source(content: str | bytes) -> SourceFile:
    data = content.encode() if isinstance(content, str) else content
    return SourceFile("file", len(data), lambda: io.BytesIO(data))


def values(content: str | bytes) -> list[Any]:
    return ["broken" if record.is_broken else record.value for record in iter_elements(source(content))]


@given(st.lists(JSON, max_size=5), st.sampled_from([None, 1]), st.integers(1, 40))
def test_iter_elements_any_list_gives_its_elements(elements: list[Any], indent: int | None, chunk: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_records, "_CHUNK", chunk)
        assert values(json.dumps(elements, indent=indent)) == elements


def test_iter_elements_object_is_one_element() -> None:
    assert values('\ufeff {"a": [1, 2]}') == [{"a": [1, 2]}]


def test_iter_elements_broken_element_costs_itself() -> None:
    assert values('[{"id": 1}, {"id": nope}, {"id": 3}]') == [{"id": 1}, "broken", {"id": 3}]


def test_iter_elements_unclosed_element_finds_the_next() -> None:
    assert values('[{"id": 1}, {"id": 2, "text": ["a, {"id": 3}]')[-1] == {"id": 3}


def test_iter_elements_cut_file_gives_complete_elements() -> None:
    assert values('[{"id": 1}, {"id": 2}, {"id": 3, "te') == [{"id": 1}, {"id": 2}, "broken"]


def test_iter_elements_larger_than_limit_is_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_records, "MAX_RECORD_BYTES", 1000)
    monkeypatch.setattr(json_records, "_CHUNK", 100)
    large = {"id": 2, "text": "x" * 5000}
    assert values(json.dumps([{"id": 1}, large, {"id": 3}])) == [{"id": 1}, "broken", {"id": 3}]


def test_iter_elements_deep_nesting_is_broken() -> None:
    assert values('[{"id": 1}, ' + "[" * 100_000 + "]" * 100_000 + ', {"id": 3}]') == [{"id": 1}, "broken", {"id": 3}]


def test_iter_lines_broken_lines_cost_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_records, "MAX_RECORD_BYTES", 40)
    content = b'\xef\xbb\xbf{"a": 1}\n\n\0\0\0\n' + b'{"b": "' + b"x" * 100 + b'"}\n{"c": 3}\n{"d"'
    records = [(record.number, record.value, record.is_broken) for record in iter_lines(source(content))]
    assert records == [
        (1, {"a": 1}, False), (3, None, True), (4, None, True), (5, {"c": 3}, False), (6, None, True),
    ]  # fmt: skip
