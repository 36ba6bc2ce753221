"""Plain text out of prompts, tool results and messages, whatever their shape."""

from __future__ import annotations

from typing import Any

from agent_memory.integrations.amplifier.conversation import find_answer_text, get_content_text, get_result_text
from tests.rows import check_rows


@check_rows(
    ("result", "expected"),
    [
        ("plain", "plain"),
        ({"success": True, "output": "text", "error": None}, "text"),
        ({"success": True, "output": {"stdout": "out", "returncode": 0}}, "out"),
        ({"success": True, "output": [{"type": "text", "text": "a"}, "b"]}, "a\nb"),
        ({"success": False, "output": "text", "error": {"message": "no"}}, ""),
        (None, ""),
        (7, ""),
        ({}, ""),
    ],
)
def test_the_text_of_a_tool_result(result: Any, expected: str) -> None:
    assert get_result_text(result) == expected


def test_hostile_depth_and_length_are_bounded() -> None:
    deep: Any = "x"
    for _ in range(5000):
        deep = {"output": deep}
    assert get_result_text(deep) == ""
    assert len(get_result_text("x" * 1_000_000)) == len(get_content_text("x" * 1_000_000)) == 40_000
    assert len(get_result_text("x" * 1_000_000, 50_000)) == 50_000
    said = [{"role": "assistant", "content": "x" * 1_000_000}]
    assert len(find_answer_text(said, 50_000)) == 50_000


@check_rows(
    ("content", "expected"),
    [
        ("plain", "plain"),
        ([{"type": "text", "text": "a"}, {"type": "tool_use", "text": "no"}, {"type": "text", "text": "b"}], "a\n\nb"),
        ([{"type": "text", "text": None}, 7, None], ""),
        (None, ""),
    ],
)
def test_the_text_of_a_message(content: Any, expected: str) -> None:
    assert get_content_text(content) == expected


@check_rows(
    ("messages", "expected"),
    [
        ([{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}], "a"),
        ([{"role": "assistant", "content": "old"}, {"role": "user", "content": "q"}], ""),
        ([{"role": "assistant", "content": "a"}, {"role": "tool", "content": "t"}], "a"),
        ([], ""),
        (None, ""),
        ([7], ""),
    ],
)
def test_the_assistants_last_words_of_this_turn(messages: Any, expected: str) -> None:
    assert find_answer_text(messages) == expected
