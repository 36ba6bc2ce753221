"""What a language model sends as arguments, and what a tool reads of it."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import ConfigDict, Field

from agent_memory.errors import ValidationError
from agent_memory.tools.argument_reader import ToolArguments, read_arguments
from tests.rows import check_rows
from tests.support import raises


class Condition(ToolArguments):
    """A strict part of a lenient call."""

    model_config = ConfigDict(extra="forbid")
    kind: Literal["tea", "coffee_beans"] | None = None
    least: int | None = Field(None, ge=0)


class Place(ToolArguments):
    """An item of a list."""

    name: str
    row: int = Field(1, ge=1)


class Order(ToolArguments):
    """A lenient call."""

    text: str = Field(json_schema_extra={"x-aliases": ["content"]})
    kind: Literal["tea", "coffee_beans"] = Field("tea", json_schema_extra={"x-fallback": "tea"})
    count: int = Field(5, ge=1, le=10)
    ratio: float | None = Field(None, ge=0, le=1)
    is_hot: bool = False
    tags: list[str] = Field(default_factory=list, max_length=3)
    places: list[Place] | None = None
    filters: Condition | None = None
    note: str | None = None


class Removal(ToolArguments):
    """A strict call."""

    model_config = ConfigDict(extra="forbid")
    name: str | None = None
    count: int = Field(1, ge=1, le=10)
    until: str | None = Field(None, json_schema_extra={"x-empty": True})


READ: list[tuple[dict[str, Any], dict[str, Any], bool]] = [
    ({"count": None, "tags": None, "places": None, "filters": None, "note": None}, {}, False),
    ({"count": "", "tags": "", "note": " ", "filters": ""}, {}, False),
    ({"tags": "null", "filters": "None", "note": "undefined"}, {}, False),
    ({"count": "7"}, {"count": 7}, False),
    ({"count": 7.0}, {"count": 7}, False),
    ({"count": 7.6}, {"count": 8}, True),
    ({"count": 0}, {"count": 1}, True),
    ({"count": "1000"}, {"count": 10}, True),
    ({"count": "some"}, {}, True),
    ({"count": True}, {}, True),
    ({"count": []}, {}, True),
    ({"ratio": "0.5"}, {"ratio": 0.5}, False),
    ({"ratio": 7}, {"ratio": 1.0}, True),
    ({"is_hot": "True"}, {"is_hot": True}, False),
    ({"is_hot": "NO"}, {"is_hot": False}, False),
    ({"is_hot": "hot"}, {}, True),
    ({"kind": "Tea"}, {"kind": "tea"}, True),
    ({"kind": "Coffee beans"}, {"kind": "coffee_beans"}, True),
    ({"kind": "teas"}, {"kind": "tea"}, True),
    ({"kind": "milk"}, {"kind": "tea"}, True),
    ({"kind": None}, {"kind": "tea"}, True),
    ({"tags": "a, b"}, {"tags": ["a", "b"]}, True),
    ({"tags": '["a", "b,c"]'}, {"tags": ["a", "b,c"]}, True),
    ({"tags": 7}, {"tags": ["7"]}, True),
    ({"tags": ["a", None, "", 7]}, {"tags": ["a", "7"]}, True),
    ({"tags": ["a", {}, "b"]}, {"tags": ["a", "b"]}, True),
    ({"tags": list("abcdef")}, {"tags": ["a", "b", "c"]}, True),
    ({"places": {"name": "roof"}}, {"places": [{"name": "roof", "row": 1}]}, True),
    ({"places": '[{"name": "roof"}]'}, {"places": [{"name": "roof", "row": 1}]}, True),
    ({"places": [{"row": 2}, {"name": "roof", "colour": "red"}]}, {"places": [{"name": "roof", "row": 1}]}, True),
    ({"places": ["roof"]}, {"places": None}, True),
    ({"filters": '{"kind": "Tea"}'}, {"filters": {"kind": "tea", "least": None}}, True),
    ({"filters": []}, {"filters": {"kind": None, "least": None}}, False),
    ({"filters": {"author": None}}, {"filters": {"kind": None, "least": None}}, False),
    ({"least": 3}, {"filters": {"kind": None, "least": 3}}, True),
    ({"least": 3, "filters": {"kind": "tea"}}, {"filters": {"kind": "tea", "least": 3}}, True),
    ({"Count": 3}, {"count": 3}, True),
    ({"is-hot": True}, {"is_hot": True}, True),
    ({"importance": "high"}, {}, True),
    ({"note": 42}, {"note": "42"}, True),
    ({"note": ["a", "b"]}, {"note": "a\nb"}, True),
    ({"note": {"a": 1}}, {"note": '{"a": 1}'}, True),
]


@check_rows(("given", "expected", "is_reported"), READ, ids=[str(given) for given, *_ in READ])
def test_arguments_in_odd_forms_are_read(given: dict[str, Any], expected: dict[str, Any], is_reported: bool) -> None:
    arguments = read_arguments("order", Order, {"text": "x", "kind": "tea", **given})
    assert arguments.model_dump() == {**Order(text="x").model_dump(), **expected}
    assert bool(arguments.warnings) is is_reported


def test_arguments_of_another_name_are_read() -> None:
    arguments = read_arguments("order", Order, '{"content": 42}')
    assert arguments.text == "42"
    assert arguments.warnings == ["content: read as text", "text: read as text", "kind: missing; tea was used"]


@check_rows(
    ("given", "reason"),
    [
        ({}, "text is missing"),
        ({"text": ""}, "text is missing"),
        ({"text": "x", "filters": {"kind": "milk"}}, "kind is not one of: 'tea' or 'coffee_beans'"),
        ({"text": "x", "filters": {"least": -1}}, "least is below 0"),
        ({"text": "x", "filters": {"author": "bob"}}, "filters has no argument 'author'; it takes kind, least"),
        ({"text": "x", "filters": "tea"}, "filters: it is not a mapping"),
        ([], "it is not a mapping"),
        ("text", "it is not a mapping"),
        (None, "it is not a mapping"),
    ],
)
def test_arguments_without_a_reading_are_refused(given: Any, reason: str) -> None:
    with raises(ValidationError, "invalid") as caught:
        read_arguments("order", Order, given)
    assert reason in caught.value.message


def test_strict_arguments_accept_null_and_numbers_in_text() -> None:
    arguments = read_arguments("remove", Removal, {"name": None, "count": "3", "until": "", "other": None})
    assert arguments.model_dump() == {"name": None, "count": 3, "until": ""}


@check_rows("given", [{"names": ["a"]}, {"Name": "a"}, {"count": 11}, {"count": "some"}, {"name": ["a"]}])
def test_strict_arguments_lose_nothing_silently(given: dict[str, Any]) -> None:
    with raises(ValidationError, "invalid"):
        read_arguments("remove", Removal, given)
