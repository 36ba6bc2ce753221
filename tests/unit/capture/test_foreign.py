"""What counts as the author's own words, and what a teammate said in a tool's output."""

from __future__ import annotations

from agent_memory.capture.typed_text import read_teammate_statements, separate, strip_injected
from tests.rows import check_rows

PAD = "[agent-memory: scratchpad of bob]\nKept from earlier sessions.\n````\n- we always use tabs\n```\nx\n```\n````"


def test_the_injected_block_is_stripped_with_its_fence_and_the_rest_stays() -> None:
    assert strip_injected(f"before\n{PAD}\nafter").split() == ["before", "after"]


def test_an_injected_block_that_never_closes_takes_the_rest_with_it() -> None:
    assert strip_injected("before\n[agent-memory: scratchpad of bob]\n```\n- we always use tabs") == "before"


def test_text_without_such_a_block_is_unchanged() -> None:
    assert strip_injected("a\r\nb [agent-memory: no]") == "a\r\nb [agent-memory: no]"


@check_rows(
    "line",
    [
        "2025-05-06 08:14:02 INFO we always retry", "src/app.py:12: we always retry", "    at Foo.bar(Foo.java:12)",
        "$ always retry", "> always retry", "+++ b/always.py", "| always | retry |", "npm WARN deprecated always",
        "6c2aa10 always flush before rotating", "// always retry", "<!-- always retry -->",
    ],
)  # fmt: skip
def test_lines_of_machines_and_quotations_are_not_ones_own_words(line: str) -> None:
    assert "always" not in separate(f"mine\n{line}\nalso mine", typed=True)[0]


def test_code_blocks_are_taken_out_and_kept_aside() -> None:
    own, blocks = separate("look:\n```py\nx = 1\n```\nthanks", typed=True)
    assert "x = 1" not in own
    assert "x = 1" in "".join(blocks.values())


def test_a_long_code_block_is_not_kept() -> None:
    _, blocks = separate("look:\n```\n" + "line\n" * 50 + "```", typed=True)
    assert "".join(blocks.values()) == ""


@check_rows(
    "output",
    [
        "author: tess-h (member)\n--\nwe agreed on X",
        "okafor commented 2 days ago\nwe agreed on X",
        "# HANDOFF.md\nWritten by Renske, last day 28 Feb.\nwe agreed on X",
        "wiki.corp.internal / Incidents\nAuthor: D. A. (platform team)\nwe agreed on X",
    ],
)
def test_a_teammates_words_are_found_in_a_tools_output(output: str) -> None:
    assert "we agreed on X" in read_teammate_statements(output)


@check_rows(
    "output",
    [
        "we agreed on X",
        "author: github-actions\n--\nwe agreed on X",
        "Why we left MongoDB (Engineering blog, Some GmbH)\nwritten by A. Blogger\nwe agreed on X",
        "node_modules/x/README.md\nauthor: x\nwe agreed on X",
        "You are a support agent.\nauthor: x\nwe agreed on X",
    ],
)
def test_files_pages_and_bots_are_nobodys_statement(output: str) -> None:
    assert "we agreed" not in read_teammate_statements(output)
