"""What is shown cannot steer a terminal, and JSON still says the same."""

from __future__ import annotations

import io
import json
import re
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from agent_memory.cli import render
from agent_memory.cli.screen import OutputScreen
from agent_memory.cli.text import for_shell
from agent_memory.errors import EmbeddingError, UnknownIdError
from agent_memory.files.wording import counted
from agent_memory.memory.results import Status
from agent_memory.models import Memory
from agent_memory.models.record import view_fields
from agent_memory.models.text import one_line, plain, to_json
from tests.rows import check_rows

_ANY_TEXT = st.text(st.characters() | st.sampled_from("\x1b\x9b\x07\r\u202e\u2028\u200b\U000e0073\udc80"))


@given(_ANY_TEXT)
def test_plain_text_has_no_control_characters_but_tab_and_newline(text: str) -> None:
    assert not [c for c in plain(text) if unicodedata.category(c) in {"Cc", "Cs"} and c not in "\t\n"]


@check_rows(
    ("hostile", "shown"),
    [
        ("\x1b[2J", "\\x1b[2J"), ("\x9b31m", "\\x9b31m"), ("a\u202eb", "a\\u202eb"), ("a\rb", "a\\x0db"),
        ("a\u200bb\u00ad", "a\\u200bb\\xad"), ("\U000e0073", "\\U000e0073"), ("a\r\nb", "a\nb"),
        ("\udcff", "\\udcff"),
    ],
)  # fmt: skip
def test_what_steers_is_shown_as_its_code(hostile: str, shown: str) -> None:
    assert plain(hostile) == shown


def test_emoji_of_several_code_points_stay_whole() -> None:
    family = "\U0001f469\u200d\U0001f469\u200d\U0001f467"
    assert plain(family) == family


def test_one_line_is_one_line() -> None:
    assert one_line(" a\n\tb\u2028c ") == "a b\\u2028c"


@given(
    st.recursive(
        _ANY_TEXT | st.integers() | st.none(), lambda inner: st.lists(inner) | st.dictionaries(_ANY_TEXT, inner)
    )
)
def test_json_says_the_same_and_steers_nothing(value: object) -> None:
    text = to_json(value)
    assert json.loads(text) == value
    steering = "[\x00-\x1f\x7f-\x9f\u200b\u2028\u2029\u202a-\u202e\u2060-\u206f\ud800-\udfff\U000e0000-\U000e007f]"
    assert not re.search(steering, text)


def test_recovery_sentences_name_commands_instead_of_tools() -> None:
    assert "memory_" not in for_shell(UnknownIdError("x").recovery)
    assert "memory_" not in for_shell(EmbeddingError("x").recovery)


@check_rows(("number", "text"), [(0, "0 memories"), (1, "1 memory"), (2000, "2,000 memories")])
def test_counts_are_read_as_words(number: int, text: str) -> None:
    assert counted(number, "memory", "memories") == text


@pytest.fixture
def terminal() -> OutputScreen:
    """Return a screen of 80 columns."""
    screen = OutputScreen()
    screen.out = Console(file=io.StringIO(), force_terminal=True, width=80, color_system=None)
    return screen


def read_lines(screen: OutputScreen) -> list[str]:
    assert isinstance(screen.out.file, io.StringIO)
    return screen.out.file.getvalue().splitlines()


def test_list_indents_wrapped_lines_of_later_paragraphs(terminal: OutputScreen) -> None:
    render.show_memories(terminal, [Memory(agent_id="bob", content=f"Network\n\n{'router room ' * 12}\nLast.")], {})
    lines = read_lines(terminal)
    assert lines[:2] == ["Network", ""]
    assert all(line.startswith("    router") and len(line) <= 80 for line in lines[2:4])
    assert all(line == line.rstrip() for line in lines)
    assert lines[-1].startswith("  mem-")


def test_list_cuts_text_of_many_lines(terminal: OutputScreen) -> None:
    for text in ("word " * 100 + "\nmore", "a\nb\nc\nd\ne"):
        render.show_memories(terminal, [Memory(agent_id="bob", content=text)], {})
    lines = read_lines(terminal)
    assert [line[-1] for line in lines if line.endswith("…")] == ["…", "…"]
    assert len(lines) == 10


@pytest.mark.parametrize("label", ["pinned", "brought back", "conversations"])
def test_row_separates_label_and_value(terminal: OutputScreen, label: str) -> None:
    render.row(terminal, label, "1")
    assert read_lines(terminal)[0].split() == [*label.split(), "1"]


def test_view_fields_returns_json_values_in_order() -> None:
    memory = Memory(agent_id="bob", content="Ann", tags=["a"], timestamp="2026-03-01T12:00:00Z")
    fields = view_fields(memory, "content", "tags", "expires_at", at="timestamp")
    assert list(fields.items()) == [
        ("content", "Ann"), ("tags", ["a"]), ("expires_at", None), ("at", "2026-03-01T12:00:00Z"),
    ]  # fmt: skip


def test_overview_counts_memories_of_categories_left_out(terminal: OutputScreen) -> None:
    render.show_overview(
        terminal, {"memories": 11, "by_category": {"note": 6, "task": 4}, "by_project": {"kestrel": 3}}
    )
    assert [line.split() for line in read_lines(terminal)[1:3]] == [
        ["category", "note", "6", "·", "task", "4", "and", "1", "more"],
        ["project", "kestrel", "3"],
    ]


@pytest.mark.parametrize("problem", ["", "the weights are damaged"])
def test_status_says_how_the_second_model_is_added(terminal: OutputScreen, problem: str) -> None:
    languages = {"records": 0, "pending": 0} | ({"problem": problem} if problem else {})
    embedder = {"kind": "local", "status": "found", "languages": languages}
    render.show_status(terminal, Status("bob", "file", {}, embedder, {"status": "ok"}, None, []), Path("bob"))
    lines = " ".join(" ".join(read_lines(terminal)).split())
    assert "a model for other languages is added while sessions run; `agent-memory" in lines
    assert "search --wait` finishes it" in lines
    assert (f"it failed: {problem}" in lines) is bool(problem)
