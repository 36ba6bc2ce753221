"""Export and import files: what goes out comes back, and what is broken costs only itself."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from agent_memory.cli.formats import BlockText, Format, decode, encode, read_yaml, to_yaml
from agent_memory.errors import ValidationError
from agent_memory.models import Memory
from tests.rows import check_rows
from tests.support import memory_of, raises
from tests.unit.cli.strategies import memories

if TYPE_CHECKING:
    from agent_memory.cli.formats import ImportedLine

FORMATS: tuple[Format, ...] = ("yaml", "jsonl")
both = pytest.mark.parametrize("form", FORMATS)


def decoded(text: str | bytes, form: Format, agent_id: str = "bob") -> list[ImportedLine]:
    return list(decode(text.encode() if isinstance(text, str) else text, form, agent_id))


def only(text: str | bytes, form: Format) -> Memory:
    (record,) = decoded(text, form)
    assert record.memory is not None, record.problem
    return record.memory


@both
@given(several=st.lists(memories, max_size=4))
def test_a_file_gives_back_the_memories_that_were_written(form: Format, several: list[Memory]) -> None:
    """Every field, any text, in both formats and in the same order."""
    records = decoded("".join(encode(memory, form) for memory in several), form)
    assert [record.memory for record in records] == several
    assert [record.problem for record in records] == [""] * len(several)


@given(memories)
def test_the_slow_and_the_fast_yaml_parser_read_the_same(memory: Memory) -> None:
    text = encode(memory, "yaml")
    assert list(yaml.safe_load_all(text)) == list(yaml.load_all(text, yaml.CSafeLoader))


@both
@given(memory=memories)
def test_a_file_shown_on_a_terminal_steers_nothing(form: Format, memory: Memory) -> None:
    text = encode(memory, form)
    assert not set(text) & set("\x1b\x07\r\x7f\x85\x9b\u2028\u2029\u202e\u2066\ufeff")


@both
def test_no_field_of_a_memory_is_forgotten(form: Format) -> None:
    """Fails when a new field is added to the data model and an export leaves it out."""
    full = memory_of(
        "x",
        id="mem-0123456789ab",
        category="task",
        topic="network",
        tags=["a"],
        observed_at="2026-01-01T00:00:00Z",
        last_accessed="2026-01-02T00:00:00Z",
        access_count=3,
        created_by_session="s",
        group="acme:s",
        project="kestrel",
        source={"kind": "user", "detail": "d"},
        origin="typed",
        trust="high",
        confidence=0.5,
        importance=0.25,
        links=[{"rel": "about", "id": "mem-0123456789ac"}],
        supersedes="mem-0123456789ad",
        expires_at="2027-01-01T00:00:00Z",
        pinned=True,
        promoted_at="2026-01-03T00:00:00Z",
        evicted_at="2026-01-04T00:00:00Z",
        metadata={"k": [1, 2.5, None, "v"]},
    )
    defaults = Memory(agent_id="bob", content="y", id="mem-0123456789ae", timestamp=full.timestamp)
    unset = {
        name
        for name in Memory.model_fields
        if name not in {"agent_id", "timestamp"} and getattr(full, name) == getattr(defaults, name)
    }
    assert unset == set()
    assert only(encode(full, form), form) == full


@both
def test_a_memory_becomes_one_of_the_agent_that_imports_it(form: Format) -> None:
    (record,) = decoded(encode(memory_of("x"), form), form, agent_id="carol")
    assert record.memory.agent_id == "carol"


def test_a_broken_json_line_is_named_and_the_rest_is_read() -> None:
    lines = [b'{"content": "one"}', b"not json", b"", b'["a list"]', b'{"content": "\xff"}', b'{"content": "two"}']
    records = decoded(b"\xef\xbb\xbf" + b"\r\n".join(lines), "jsonl")
    assert [(record.line, record.memory.content if record.memory else None) for record in records] == [
        (1, "one"),
        (2, None),
        (4, None),
        (5, None),
        (6, "two"),
    ]
    assert all(record.problem for record in records if record.memory is None)


def test_a_broken_yaml_document_is_named_and_the_rest_is_read() -> None:
    text = "# made by hand\n---\ncontent: one\n---\ncontent: [broken\ntags: x\n---\ncontent: two\n"
    records = decoded(text, "yaml")
    assert [record.memory.content if record.memory else None for record in records] == ["one", None, "two"]
    assert 4 <= records[1].line <= 7
    assert "not YAML" in records[1].problem


def test_a_yaml_list_is_read_item_by_item() -> None:
    records = decoded("- content: one\n- content:\n- content: two\n", "yaml")
    assert [(record.line, bool(record.memory)) for record in records] == [(1, True), (2, False), (3, True)]


@check_rows("text", ["", "\n\n", "# nothing\n", "---\n---\n"])
def test_an_empty_yaml_file_has_no_memories(text: str) -> None:
    assert decoded(text, "yaml") == []


@both
@pytest.mark.parametrize("depth", [300, 100_000])
def test_nesting_without_end_is_a_problem_not_a_crash(form: Format, depth: int) -> None:
    (record,) = decoded('{"content": ' + "[" * depth + "]" * depth + "}", form)
    assert record.memory is None


def test_block_nesting_without_end_is_a_problem_not_a_crash() -> None:
    (record,) = decoded("- " * 100_000 + "x", "yaml")
    assert record.memory is None


def test_yaml_that_refers_to_itself_is_a_problem_not_a_loop() -> None:
    (record,) = decoded("content: x\nmetadata: &m\n  again: *m\n", "yaml")
    assert record.memory is None


def test_yaml_cannot_make_objects() -> None:
    (record,) = decoded("content: !!python/object/apply:os.getcwd []\n", "yaml")
    assert record.memory is None


@both
def test_fields_of_a_newer_version_are_left_aside_and_named(form: Format) -> None:
    (record,) = decoded('{"content": "x", "superpower": 1, "agent_id": "eve", "superseded_by": null}', form)
    assert record.memory is not None
    assert record.unknown_fields == ("superpower",)


@both
def test_an_entry_without_an_id_gets_the_same_one_each_time(form: Format) -> None:
    first, second = only('{"content": "Same text"}', form), only('{"content": "same  TEXT"}', form)
    assert first.id == second.id
    assert first.source.kind == "import"


@both
def test_a_journal_is_not_taken_for_an_export(form: Format) -> None:
    with raises(ValidationError, "not_an_export"):
        decoded('{"journal": "agent-memory", "format": 1, "generation": "g"}', form)


def test_text_of_several_lines_is_a_block_in_yaml() -> None:
    assert to_yaml({"content": "one\ntwo"}) == "content: |-\n  one\n  two\n"


def test_prose_is_a_block_however_long_its_line() -> None:
    line = "word " * 60 + "end"
    assert to_yaml({"content": BlockText(line)}) == f"content: |-\n  {line}\n"


@check_rows("text", ["a: [", "a: \x00", "--- a\n--- b", "[" * 5000])
def test_what_is_no_yaml_says_so(text: str) -> None:
    with pytest.raises(ValidationError, match="not YAML"):
        read_yaml(text)


def test_a_json_line_is_json_for_everybody() -> None:
    value: dict[str, Any] = json.loads(encode(memory_of("ünï 🙂", tags=["a"]), "jsonl"))
    assert value["content"] == "ünï 🙂"
