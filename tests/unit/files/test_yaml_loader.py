"""YAML of other people: plain data is read, and nothing that is more than it looks."""

from __future__ import annotations

import pytest
import yaml

from agent_memory.files.yaml_loader import load_yaml
from tests.rows import check_rows


def test_plain_data_is_read() -> None:
    assert load_yaml("- {a: 1, b: [x, null]}\n- '<<'\n") == [{"a": 1, "b": ["x", None]}, "<<"]


def test_an_anchor_that_nothing_refers_to_does_no_harm() -> None:
    assert load_yaml("- &here x\n") == ["x"]


@check_rows(
    ("text", "line"),
    [
        ("- &a x\n- *a\n", 2),
        ("- {a: 1}\n- {<<: {b: 2}}\n", 2),
        ("- &m {a: b}\n- {<<: [*m, *m], c: d}\n", 2),
        ("- ? !!merge x\n  : {a: b}\n", 1),
    ],
)
def test_what_repeats_itself_is_refused_and_the_line_is_named(text: str, line: int) -> None:
    with pytest.raises(yaml.MarkedYAMLError, match="write the value out") as refused:
        load_yaml(text)
    assert refused.value.problem_mark.line + 1 == line


def test_a_small_text_that_would_grow_without_end_is_refused_before_it_grows() -> None:
    lines = "".join(f"- &m{n} {{<<: [{','.join([f'*m{n - 1}'] * 8)}], k{n}: v}}\n" for n in range(1, 13))
    with pytest.raises(yaml.MarkedYAMLError, match="not read here"):
        load_yaml("- &m0 {a: b}\n" + lines)
