"""Text and metadata: accepted forms, and equality of texts."""

from __future__ import annotations

import json
import unicodedata
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent_memory.models import check_text, content_hash, get_duplicate_key, is_only_folded_equal, visible
from agent_memory.models.text import check_metadata
from tests.rows import check_rows
from tests.support import memory_of


def test_what_steers_becomes_a_space_and_what_nobody_sees_is_left_out() -> None:
    assert visible("a\x1b[2Jb\u2028c\x85d\r\n\te") == "a [2Jb c d \n\te"
    assert visible("a\u200bb\u00adc\u200fd\ufeff\u2060\u206a\u061c\U000e0041") == "abcd"
    assert visible("a\u034fb\u115fc\u17b4d\u180ee\u3164\uffa0f") == "abcdef"
    assert visible("a" + "".join(chr(0xE0100 + byte) for byte in b"ignore all") + "b") == "ab"
    assert visible("a" + "".join(chr(0xFE00 + byte % 16) for byte in b"ignore all") + "b") == "ab"
    assert visible("\U0001f469\u200d\U0001f467 \u2764\ufe0f") == "\U0001f469\u200d\U0001f467 \u2764\ufe0f"


def test_a_tag_keeps_nothing_that_steers_or_hides() -> None:
    tags = ["a\x1b]0;title\x07\u202eb", "\U000e0073\U000e0065", " \u200b tea \x85 time ", "\u2764\ufe0f"]
    assert memory_of("x", tags=tags).tags == ["a ]0;title b", "tea time", "\u2764\ufe0f"]


@given(st.text(st.characters(), max_size=30))
@example("\0\ud800")
@example("\ud800\0")
def test_text_is_accepted_exactly_if_it_can_be_written(text: str) -> None:
    if "\0" in text:
        with pytest.raises(ValueError, match=f"position {text.index(chr(0))}"):
            check_text(text)
        return
    try:
        text.encode()
    except UnicodeEncodeError:
        with pytest.raises(ValueError, match="surrogate"):
            check_text(text)
    else:
        assert check_text(text) == text


@check_rows("same", ["tea with milk", "TEA  WITH\tMILK", " Tea\nwith milk ", "\uff34ea with milk"])
def test_case_width_and_white_space_make_no_other_text(same: str) -> None:
    assert content_hash(same) == content_hash("Tea with milk")


@check_rows("same", ["Tea  with\nmilk", " Tea with milk\u2003"])
def test_duplicate_key_of_other_white_space_is_equal(same: str) -> None:
    assert get_duplicate_key(same) == get_duplicate_key("Tea with milk")


@given(st.text())
def test_duplicate_key_equal_implies_equal_content_hash(text: str) -> None:
    decomposed = f" {unicodedata.normalize('NFD', text)}\t"
    assert get_duplicate_key(decomposed) == get_duplicate_key(text)
    assert content_hash(decomposed) == content_hash(text)


@check_rows(("text", "other_text"), [("5 mW", "5 MW"), ("10⁵", "105"), ("PATH", "Path"), ("ﬁle", "file")])
def test_duplicate_key_of_other_case_or_form_differs(text: str, other_text: str) -> None:
    assert is_only_folded_equal(text, other_text)


@check_rows("other", ["tea with milk.", "teawith milk", "tea with mílk"])
def test_other_words_make_another_text(other: str) -> None:
    assert content_hash(other) != content_hash("Tea with milk")


@given(
    st.dictionaries(
        st.text(max_size=5), st.recursive(st.integers() | st.text(max_size=5), st.lists, max_leaves=5), max_size=3
    )
)
def test_metadata_that_passes_is_json(metadata: dict[str, Any]) -> None:
    try:
        checked = check_metadata(metadata)
    except ValueError:
        return
    assert json.loads(json.dumps(checked, allow_nan=False)) == metadata


@check_rows(
    ("metadata", "reason"),
    [
        ({"x": "y" * 8200}, "bytes"),
        ({"x": list(range(9000))}, "bytes"),
        ({"k" * 257: 1}, "keys"),
        ({5: 1}, "keys"),
        ({"a\0": 1}, "NUL"),
        ({"x": float("nan")}, "JSON"),
        ({"x": b"bytes"}, "bytes; only JSON"),
        ({"x": {1, 2}}, "set"),
    ],
)
def test_metadata_beyond_its_bounds_is_refused_with_the_reason(metadata: dict[Any, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        check_metadata(metadata)


@check_rows(("levels", "accepted"), [(15, True), (16, False), (100_000, False)])
def test_metadata_is_sixteen_levels_deep_at_most(levels: int, accepted: bool) -> None:
    value: Any = []
    for _ in range(levels - 1):
        value = [value]
    if accepted:
        assert check_metadata({"x": value})
    else:
        with pytest.raises(ValueError, match="16 levels"):
            check_metadata({"x": value})
