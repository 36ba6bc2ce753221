"""Delimiters of quoted text."""

import re

from hypothesis import given
from hypothesis import strategies as st

from agent_memory.language.prompt_text import fence, get_fence
from tests.rows import check_rows


@given(st.text(alphabet="`~ a\n", max_size=40))
def test_fence_around_any_text_is_closed_by_its_last_line_alone(text: str) -> None:
    opening, *inside, closing = fence(text, "text").split("\n")
    marks = opening.removesuffix("text")
    assert marks == closing
    assert inside == text.split("\n")
    assert not any(re.match(rf" {{0,3}}`{{{len(marks)},}}", line) for line in inside)


@check_rows(("text", "least", "marks"), [("tea", 3, "```"), ("tea", 1, "`"), ("a `b` ```c", 1, "````")])
def test_fence_of_a_text_is_longer_than_its_runs(text: str, least: int, marks: str) -> None:
    assert get_fence(text, least) == marks
