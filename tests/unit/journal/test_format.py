"""The line format: what is written is read back the same, by JSON and by both of PyYAML's safe loaders."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from agent_memory.errors import ValidationError
from agent_memory.journal import Change
from agent_memory.journal.format import (
    Header,
    MalformedLineError,
    compile_mentions,
    decode_entry,
    decode_header,
    decode_line,
    encode_entry,
    encode_line,
)
from tests.rows import check_rows
from tests.support import raises

AT = "2026-03-01T12:00:00Z"
LOADERS = (yaml.SafeLoader, yaml.CSafeLoader)
SURROGATES = range(0xD800, 0xE000)
text = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
awkward = st.sampled_from(
    ["", "<<", "=", "null", "~", "yes", "1e5", "1:30", "- a", "# b", "{", "\\u2028", "\x85", "\t", "---"]
)
keys = st.text(st.characters(exclude_categories=["Cs"]), max_size=256) | awkward
numbers = st.integers() | st.sampled_from([1e16, 1e-9, 5e-324, -0.0]) | st.floats(allow_nan=False, allow_infinity=False)
leaves = st.none() | st.booleans() | numbers | text | awkward
values = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4), max_leaves=25
)


def same(one: Any, two: Any) -> bool:
    """Compare with types: 1, 1.0 and True are three values."""
    if type(one) is not type(two):
        return False
    if isinstance(one, dict):
        return one.keys() == two.keys() and all(same(one[key], two[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(two) and all(map(same, one, two))
    if isinstance(one, float):
        return one == two and math.copysign(1, one) == math.copysign(1, two)
    return bool(one == two)


def assert_read_alike(value: dict[str, Any]) -> None:
    line = encode_line(value)
    assert line.startswith(b"--- ")
    assert line.count(b"\n") == 1
    assert same(json.loads(line[4:]), value)
    for loader in LOADERS:
        assert same(yaml.load(line, loader), value), loader


def encodable(value: Any) -> bool:
    """Tell whether no key is so full of control characters that escaping brings it beyond a YAML reader's window."""
    if isinstance(value, dict):
        return all(len(json.dumps(key)) <= 1000 for key in value) and all(map(encodable, value.values()))
    return all(map(encodable, value)) if isinstance(value, list) else True


@given(st.dictionaries(keys, values, max_size=4).filter(encodable))
@example({"a": 1.7976931348623157e308, "b": [1e22, -1e-300, 1.5e300, -2.25e-9]})
@example({"text": 'a "quoted" 1e5 \\ and \\" 2e7', "n": 3e8})
def test_json_and_both_yaml_loaders_read_the_same(value: dict[str, Any]) -> None:
    assert_read_alike(value)


@given(leaves, st.lists(st.booleans(), min_size=15, max_size=15))
def test_nesting_to_depth_sixteen_survives(leaf: Any, shape: list[bool]) -> None:
    for in_list in shape:
        leaf = [leaf] if in_list else {"k": leaf}
    assert_read_alike({"k": leaf})


def test_every_code_point_of_the_basic_plane_survives_as_value_and_as_key() -> None:
    points = [chr(point) for point in range(0x10000) if point not in SURROGATES]
    for begin in range(0, len(points), 1024):
        block = points[begin : begin + 1024]
        assert_read_alike({"value": "".join(block), "keys": {f"k{point}": 0 for point in block[::4]}})


@given(st.text(st.characters(min_codepoint=0x10000), min_size=1, max_size=200))
def test_astral_text_survives(content: str) -> None:
    assert_read_alike({"content": content, content: 1})


@check_rows("letter", ["k", "é", "漢", "🙂"])
def test_a_key_of_256_characters_survives_in_any_script(letter: str) -> None:
    assert_read_alike({letter * 256: "value"})


@check_rows(
    "value",
    [
        {"x": float("nan")},
        {"x": float("inf")},
        {"x": "\ud800"},
        {"\udfff": 1},
        {"x": {1, 2}},
        {"k" * 2000: 1},
        {"\x01" * 256: 1},
        {7: "a key that is no text"},
    ],
)
def test_what_not_every_reader_would_read_alike_is_refused(value: dict[str, Any]) -> None:
    with raises(ValidationError, "not_encodable"):
        encode_line(value)


def test_a_cycle_is_refused() -> None:
    value: dict[str, Any] = {}
    value["self"] = value
    with pytest.raises(ValidationError):
        encode_line(value)


def test_one_change_and_a_batch_come_back_as_they_went() -> None:
    one = (Change("put", "memory", "a", {"x": 1}),)
    many = (Change("put", "memory", "a", {"x": 1}), Change("delete", "topic", "b"), Change("mark", "memory", "c"))
    for changes in (one, many):
        entry = decode_entry(encode_entry(7, AT, changes))
        assert (entry.seq, entry.at, entry.changes, entry.opaque) == (7, AT, changes, False)


@check_rows(
    ("line", "beyond"),
    [
        ({"op": "archive", "kind": "memory", "id": "a"}, {"memory"}),
        ({"op": "put", "kind": "memory", "id": "a", "signature": "x"}, set()),
        ({"op": "batch", "entries": [], "transaction": 1}, set()),
        ({"op": "batch", "entries": [{"op": {"odd": 1}, "kind": "topic"}, {"no": "op"}]}, {"topic", "None"}),
    ],
)
def test_what_is_beyond_this_version_is_marked_and_kept(line: dict[str, Any], beyond: set[str]) -> None:
    raw = encode_line({"seq": 1, "at": AT, **line})
    entry = decode_entry(raw)
    assert entry.opaque
    assert entry.raw == raw
    assert entry.beyond == beyond


@check_rows(
    "line",
    [
        b"",
        b"---",
        b"--- ",
        b"--- []",
        b"--- {",
        b'{"seq": 1}',
        b'--- {"seq": 1, "at": "x", "op": "put", "kind": "memory", "id": "a"}',
        b'--- {"seq": 0, "at": "2026-03-01T12:00:00Z", "op": "put", "kind": "memory", "id": "a"}',
        b'--- {"seq": true, "at": "2026-03-01T12:00:00Z", "op": "put", "kind": "memory", "id": "a"}',
        b'--- {"seq": 1, "at": "2026-03-01T12:00:00", "op": "put", "kind": "memory", "id": "a"}',
        b'--- {"seq": 1, "at": "2026-03-01T12:00:00Z", "kind": "memory", "id": "a"}',
        b'--- {"seq": 1, "at": "2026-03-01T12:00:00Z", "op": "put", "kind": 5, "id": "a"}',
        b'--- {"seq": 1, "at": "2026-03-01T12:00:00Z", "op": "put", "kind": "memory"}',
        b'--- {"seq": 1, "at": "2026-03-01T12:00:00Z", "op": "put", "kind": "memory", "id": "a", "data": []}',
        b'--- {"seq": 1, "at": "2026-03-01T12:00:00Z", "op": "touch", "kind": "m", "id": "a", "data": {"count": -1}}',
        b'--- {"seq": 1, "at": "2026-03-01T12:00:00Z", "op": "touch", "kind": "m", "id": "a", "data": {"count": "1"}}',
        b'--- {"seq": 1, "at": "2026-03-01T12:00:00Z", "op": "batch", "entries": {}}',
        b'--- {"seq": 1, "at": "2026-03-01T12:00:00Z", "op": "batch", "entries": [1]}',
        b'--- {"x": "\xff"}',
        b"--- " + b"[" * 100_000,
        b"--- {} --- {}",
    ],
)
def test_a_line_that_is_no_entry_is_malformed_whatever_is_wrong_with_it(line: bytes) -> None:
    with pytest.raises(MalformedLineError):
        decode_entry(line)


@given(st.binary(max_size=200))
def test_random_bytes_never_make_the_reader_crash(noise: bytes) -> None:
    for line in (noise, b"--- " + noise):
        with pytest.raises(MalformedLineError):
            decode_entry(line)


def test_a_header_comes_back_as_it_went() -> None:
    header = Header.fresh(41)
    assert decode_header(header.encode()) == header
    assert Header.fresh().generation != header.generation


@check_rows(
    "line",
    [
        {"journal": "other", "generation": "g"},
        {"journal": "agent-memory"},
        {"journal": "agent-memory", "generation": "g", "min_reader": "2"},
        {"journal": "agent-memory", "generation": "g", "last_seq": None},
    ],
)
def test_another_files_header_is_refused(line: dict[str, Any]) -> None:
    with pytest.raises(MalformedLineError):
        decode_header(encode_line(line))


def test_a_line_is_read_with_and_without_its_newline() -> None:
    assert decode_line(b'--- {"a": 1}') == decode_line(b'--- {"a": 1}\n') == {"a": 1}


@pytest.mark.parametrize("count", [1, 4, 5, 800])
@pytest.mark.parametrize("form", ["mem-{:012x}", "itm-{:012x}", "own name {}"])
def test_compile_mentions_any_number_of_ids_finds_each(count: int, form: str) -> None:
    ids = [form.format(number).encode() for number in range(count)]
    names = compile_mentions(ids)
    assert all(names(b'--- {"id": "%s"}\n' % record_id) for record_id in ids)
    assert not names(b'--- {"id": "mem-ffffffffffff", "data": "itm-ffffffffffff"}\n')


def test_compile_mentions_several_kinds_finds_each() -> None:
    ids = [*(f"mem-{number:012x}".encode() for number in range(5)), b"itm-00000000000a"]
    names = compile_mentions(ids)
    assert names(b"x itm-00000000000a y")
    assert not names(b"x itm-00000000000b y")
