"""JSON Schemas of columns: patterns are matched in linear time, and all else as jsonschema does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from agent_memory.errors import DeclarationError, ValidationError
from agent_memory.workspace import Workspace, core, parse_declaration
from agent_memory.workspace.declaration.json_schemas import (
    PatternError,
    find_fault,
    find_refused_patterns,
    make_validator,
)
from tests.rows import check_rows

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support import FrozenClock

LOOK_AHEAD = "^(?!tmp)[a-z]+$"
NEVER_ENDS = "^(?=(a+)+$)"
UNEVALUATED: dict[str, Any] = {"unevaluatedProperties": False}
SCHEMAS: tuple[dict[str, Any], ...] = (
    {"pattern": r"^[a-z]{2}\d+$"},
    {"pattern": "b"},
    {"items": {"pattern": "^a"}},
    {"propertyNames": {"pattern": "^[a-m]"}},
    {"patternProperties": {"^a": {"type": "integer"}, "b$": {"type": "string"}}},
    {"patternProperties": {"^a": {}}, "additionalProperties": False},
    {"patternProperties": {"^a": {}}, "additionalProperties": {"type": "string"}},
    {"properties": {"b": {}}, "patternProperties": {"^a": {}}, "additionalProperties": False},
    {"additionalProperties": False},
    {"patternProperties": {"^a": {}}, **UNEVALUATED},
    {"patternProperties": {"^a": {}}, "unevaluatedProperties": {"type": "string"}},
    {"$ref": "#/$defs/a", "$defs": {"a": {"patternProperties": {"^a": {}}}}, **UNEVALUATED},
    {"anyOf": [{"patternProperties": {"^a": {"type": "integer"}}}, {"properties": {"b": {}}}], **UNEVALUATED},
    {"allOf": [{"properties": {"ab": {}}}], "properties": {"b": {}}, **UNEVALUATED},
    {"allOf": [{"additionalProperties": {"type": "integer"}}], **UNEVALUATED},
    {"allOf": [{"unevaluatedProperties": {"type": "integer"}}], **UNEVALUATED},
    {"if": {"required": ["a"]}, "then": {"properties": {"a": {}}}, "else": {"properties": {"b": {}}}, **UNEVALUATED},
    {"if": {"patternProperties": {"^a": {"type": "integer"}}}, **UNEVALUATED},
    {"dependentSchemas": {"a": {"patternProperties": {"b$": {}}}}, "properties": {"a": {}}, **UNEVALUATED},
    {"$dynamicRef": "#x", "$defs": {"x": {"$dynamicAnchor": "x", "properties": {"b": {}}}}, **UNEVALUATED},
    {"$schema": "https://json-schema.org/draft/2020-12/schema", "pattern": "^a"},
    {"not": {"pattern": "a"}},
)
VALUES: tuple[Any, ...] = (
    "", "a", "b", "ab", "ab12", "ab12x", 1, None, [], ["a", "b"], ["ab", 1], {}, {"a": 1}, {"a": "x"}, {"b": 1},
    {"b": "x"}, {"ab": 1}, {"ab": "x"}, {"a": 1, "b": "x"}, {"a": 1, "b": 2, "z": 3}, {"z": "x"}, {"a": 1, "ab": "x"},
)  # fmt: skip


def declare(pattern: str) -> str:
    column = f"{{type: json, schema: {{type: array, items: {{type: string, pattern: '{pattern}'}}}}}}"
    return f"workspace: w\ntables:\n  a:\n    columns: {{b: {column}, c: text}}\n"


@pytest.fixture
def old(tmp_path: Path, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workspace]:
    """Return a workspace that an earlier version began, with a pattern that RE2 cannot match."""
    (tmp_path / "d.yaml").write_text(declare(LOOK_AHEAD))
    with monkeypatch.context() as patch:
        patch.setattr(core, "find_new_refused_patterns", lambda *_: [])
        Workspace.create(tmp_path / "w", tmp_path / "d.yaml", clock=clock).close()
    workspace = Workspace.open(tmp_path / "w", clock=clock)
    yield workspace
    workspace.close()


@check_rows("schema", SCHEMAS, ids=str)
def test_validator_with_linear_patterns_agrees_with_jsonschema(schema: dict[str, Any]) -> None:
    plain, linear = jsonschema.Draft202012Validator(schema), make_validator(schema)
    assert [linear.is_valid(value) for value in VALUES] == [plain.is_valid(value) for value in VALUES]
    assert list(find_refused_patterns(schema)) == []


@check_rows(
    "schema",
    [
        {"pattern": "^(a+)+$"},
        {"properties": {"x": {}}, "propertyNames": {"pattern": "^(a+)+$"}},
        {"patternProperties": {"^(a+)+$": {}}, "additionalProperties": False},
        {"patternProperties": {"^(a+)+$": {}}, "unevaluatedProperties": False},
        {"$schema": "https://json-schema.org/draft/2020-12/schema", "$ref": "#/$defs/a",
         "$defs": {"a": {"patternProperties": {"^(a+)+$": {}}, "additionalProperties": False, "pattern": "^(a+)+$"}}},
    ],
    ids=str,
)  # fmt: skip
def test_pattern_that_backtracks_is_decided(schema: dict[str, Any]) -> None:
    text = "a" * 5_000 + "!"
    assert find_fault(schema, text if "pattern" in schema else {text: 1}) is not None


def test_pattern_words_and_end_are_those_of_re2() -> None:
    assert find_fault({"pattern": r"^\w+$"}, "über") is not None
    assert find_fault({"pattern": r"^[\p{L}]+$"}, "über") is None
    assert find_fault({"pattern": r"^\d+$"}, "12\n") is not None


@check_rows(
    "schema",
    [
        {"pattern": LOOK_AHEAD},
        {"items": {"properties": {"const": {"pattern": r"(a)\1"}}}},
        {"patternProperties": {"(?<=a)b": {}}},
        {"anyOf": [{"pattern": "a++"}]},
        {"$ref": "#/default", "default": {"pattern": LOOK_AHEAD}},
        {"items": {"$schema": "https://json-schema.org/draft/2020-12/schema", "pattern": "^(a+)+$"}},
    ],
    ids=str,
)
def test_schema_that_re2_cannot_decide_is_refused(schema: dict[str, Any]) -> None:
    assert list(find_refused_patterns(schema))


def test_long_text_for_large_pattern_is_refused() -> None:
    with pytest.raises(PatternError, match="takes too long for a text of 900,000 characters"):
        find_fault({"pattern": "(.?){900}x"}, "a" * 900_000)
    assert find_fault({"pattern": "(.?){900}x"}, "a" * 900) is not None


def test_pattern_of_re2_alone_is_taken(tmp_path: Path, clock: FrozenClock) -> None:
    (tmp_path / "d.yaml").write_text(declare(r"^\p{L}+$"))
    workspace = Workspace.create(tmp_path / "w", tmp_path / "d.yaml", clock=clock)
    workspace.tables.save("a", {"b": ["über"]})
    workspace.close()


def test_pattern_of_no_syntax_is_refused() -> None:
    with pytest.raises(DeclarationError, match="is not a 'regex'"):
        parse_declaration(declare("(a"))


def test_new_declaration_with_look_ahead_is_refused(tmp_path: Path, clock: FrozenClock) -> None:
    (tmp_path / "d.yaml").write_text(declare(LOOK_AHEAD))
    with pytest.raises(DeclarationError, match=r"tables\.a\.columns\.b: the pattern .* linear time") as failure:
        Workspace.create(tmp_path / "w", tmp_path / "d.yaml", clock=clock)
    assert "without look-around" in str(failure.value.recovery)
    assert not (tmp_path / "w" / ".workspace").exists()


def test_old_look_ahead_still_decides(old: Workspace) -> None:
    old.tables.save("a", {"b": ["plan"], "c": "x"})
    with pytest.raises(ValidationError, match=r"a\.b\[1\] does not fit its schema \(pattern: "):
        old.tables.save("a", {"b": ["plan", "tmpfile"]})
    assert [row["b"] for row in old.tables.many("a").rows] == [["plan"]]


def test_old_pattern_that_never_ends_refuses_the_row() -> None:
    assert find_fault({"pattern": NEVER_ENDS}, "aaaa") is None
    with pytest.raises(PatternError, match=r"could not be checked within 2 s \(time\)"):
        find_fault({"pattern": NEVER_ENDS}, "a" * 60 + "!")


def test_old_look_ahead_may_be_replaced(old: Workspace, clock: FrozenClock) -> None:
    file = old.folder / "workspace.yaml"
    old.close()
    file.write_text(declare(NEVER_ENDS))
    with pytest.raises(DeclarationError, match="linear time"):
        Workspace.open(old.folder, clock=clock)
    file.write_text(declare("^[a-z]+$"))
    changed = Workspace.open(old.folder, clock=clock)
    changed.tables.save("a", {"b": ["tmpfile"]})
    changed.close()
