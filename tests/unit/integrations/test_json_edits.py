"""Edits of JSON texts that people and hosts write."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_memory.integrations.json_edits import append_item, parse_json, remove_items, remove_member, set_member

ENTRY = {"command": "/opt/agent-memory", "args": ["mcp"]}
KEYS = ("mcpServers",)
TEXTS = {
    "compact": '{"mcpServers":{"x":{"a":1}}}',
    "comments": '{\n  // mine\n  "mcpServers": {\n    "x": {"a": 1} // stays\n    /* so does this */\n  }\n}\n',
    "trailing comma": '{\n\t"mcpServers": {\n\t\t"x": {"a": 1,},\n\t},\n}\n',
    "strings": '{\n    "url": "http://x//y", "q": "a, }",\n    "mcpServers": {\n        "x": {"a": 1}\n    }\n}',
    "windows": '{\r\n  "mcpServers": {\r\n    "x": {"a": 1}\r\n  }\r\n}\r\n',
    "duplicate": '{"mcpServers": {}, "mcpServers": {"x": {"a": 1}}}',
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_entry_is_added_replaced_and_removed_without_other_changes(text: str) -> None:
    added = set_member(text, KEYS, "agent-memory", ENTRY)
    assert parse_json(added)["mcpServers"] == {"x": {"a": 1}, "agent-memory": ENTRY}
    assert all(comment in added for comment in ("// mine", "// stays", "/* so does this */") if comment in text)
    replaced = set_member(added, KEYS, "agent-memory", {"command": "other"})
    assert set_member(replaced, KEYS, "agent-memory", ENTRY) == added
    assert remove_member(added, KEYS, "agent-memory") in {text, text.replace("}}}", "}\n}}")}


@pytest.mark.parametrize("text", ["", "{}", "{\n}\n", '{"other": 1}', '{"mcpServers": {}}', "{ // mine\n}"])
def test_missing_objects_are_added(text: str) -> None:
    added = set_member(text, KEYS, "agent-memory", ENTRY)
    assert parse_json(added)["mcpServers"] == {"agent-memory": ENTRY}
    assert parse_json(remove_member(added, KEYS, "agent-memory")) == {**parse_json(text), "mcpServers": {}}
    assert remove_member(text, KEYS, "agent-memory") == (text or "{}")


def test_entry_between_others_is_removed_alone() -> None:
    text = '{"mcpServers": {\n  "a": 1,\n  "agent-memory": {}, // ours\n  "b": 2 }}'
    assert remove_member(text, KEYS, "agent-memory") == '{"mcpServers": {\n  "a": 1, // ours\n  "b": 2 }}'


@pytest.mark.parametrize("text", ['{"a": }', "{", '{"a": 1} x', '{"a": "\n"}', "/* open", "\ufeff{}", "{'a': 1}"])
def test_text_that_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"line|BOM|Expecting"):
        parse_json(text)


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda values: st.lists(values, max_size=3) | st.dictionaries(st.text(), values, max_size=3),
)


@given(
    others=st.dictionaries(st.text(), _VALUES, max_size=3),
    servers=st.dictionaries(st.text(), _VALUES, max_size=3),
    indent=st.sampled_from([None, 1, 4, "\t"]),
)
def test_any_object_keeps_its_other_members(others: dict[str, object], servers: dict[str, object], indent: int) -> None:
    value = {**others, "mcpServers": servers}
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    added = set_member(text, KEYS, "agent-memory", ENTRY)
    assert parse_json(added) == {**value, "mcpServers": {**servers, "agent-memory": ENTRY}}
    expected = {name: member for name, member in servers.items() if name != "agent-memory"}
    assert parse_json(remove_member(added, KEYS, "agent-memory")) == {**value, "mcpServers": expected}


def test_item_is_appended_and_removed_without_other_changes() -> None:
    text = '{\n  "hooks": {\n    "Stop": [ // mine\n      {"command": "x"} // stays\n    ]\n  }\n}\n'
    added = append_item(text, ("hooks", "Stop"), ENTRY)
    assert parse_json(added)["hooks"]["Stop"] == [{"command": "x"}, ENTRY]
    assert remove_items(added, ("hooks", "Stop"), lambda item: item == ENTRY) == text


@given(items=st.lists(st.integers(), max_size=4), indent=st.sampled_from([None, 1, 4, "\t"]))
def test_any_array_keeps_its_other_items(items: list[int], indent: int) -> None:
    text = json.dumps({"a": {"b": items}, "c": 1}, indent=indent)
    added = append_item(append_item(text, ("a", "b"), ENTRY), ("a", "b"), ENTRY)
    assert parse_json(added) == {"a": {"b": [*items, ENTRY, ENTRY]}, "c": 1}
    assert parse_json(remove_items(added, ("a", "b"), lambda item: item == ENTRY)) == {"a": {"b": items}, "c": 1}
