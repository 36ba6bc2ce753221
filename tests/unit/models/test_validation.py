"""Findings of pydantic become sentences that a person understands, without the value that was refused."""

from __future__ import annotations

from typing import Any

import pydantic
import pytest

from agent_memory.models import DateRange, Memory, SearchFilters, describe
from tests.rows import check_rows

SECRET = "top" + "-secret"


@check_rows(
    ("fields", "words"),
    [
        ({"content": ""}, "content is empty"),
        ({"content": "   "}, "content: content is only white space"),
        ({"content": "x" * 10_001}, "content has more than 10000 characters"),
        ({"content": None}, "content is not a text"),
        ({"supersedes": SECRET}, "supersedes is not the id of a memory, such as mem-a3f2c1b4e5d6"),
        ({"category": SECRET}, "category is not a name of lower-case letters"),
        ({"trust": SECRET}, "trust is not one of: 'high', 'medium' or 'low'"),
        ({"confidence": 2}, "confidence is above 1.0"),
        ({"confidence": float("nan")}, "confidence is not a finite number"),
        ({"access_count": -1}, "access_count is below 0"),
        ({"access_count": SECRET}, "access_count is not a whole number"),
        ({"pinned": SECRET}, "pinned is neither true nor false"),
        ({"tags": SECRET}, "tags is not a list"),
        ({"tags": [1]}, "tags.0 is not a text"),
        ({"metadata": SECRET}, "metadata is not a mapping"),
        ({"links": [{}]}, "links.0.rel is missing"),
        ({"links": [{"rel": "a", "id": "mem-000000000001"}] * 101}, "links has more than 100 items"),
        ({SECRET: 1}, f"{SECRET} is not known"),
    ],
)
def test_a_finding_names_the_field_and_the_rule_and_not_the_value(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(pydantic.ValidationError) as refused:
        Memory.model_validate({"agent_id": "bob", "content": "tea", **fields})
    said = describe(refused.value)
    assert said.startswith(words)
    assert SECRET not in said or SECRET in fields


def test_a_finding_about_the_whole_names_no_field() -> None:
    with pytest.raises(pydantic.ValidationError) as refused:
        DateRange.model_validate({"start": "2026-03-02", "end": "2026-03-01"})
    assert "argument" not in describe(refused.value, field="argument {!r}")
    with pytest.raises(pydantic.ValidationError) as refused:
        SearchFilters.model_validate({"category": 5})
    assert describe(refused.value, field="argument {!r}") == "argument 'category' is not a text"


def test_what_is_said_of_a_wrong_name_does_not_end_the_sentence_twice() -> None:
    with pytest.raises(pydantic.ValidationError) as refused:
        Memory.model_validate({"agent_id": "a/b", "content": "x"})
    assert "agent's name" in describe(refused.value)
    assert not describe(refused.value).endswith(".")
