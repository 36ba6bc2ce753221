"""The text an editor shows, and what is made of a person's changes to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given

from agent_memory.cli.edit import difference, render
from agent_memory.errors import ValidationError
from tests.rows import check_rows
from tests.support import memory_of
from tests.unit.cli.strategies import memories

if TYPE_CHECKING:
    from agent_memory.models import Memory


@given(memories)
def test_closing_the_editor_unchanged_changes_nothing(memory: Memory) -> None:
    text = render(memory)
    assert difference(text, text) == {}


@given(memories)
def test_the_text_shows_the_content_as_it_is(memory: Memory) -> None:
    """A changed category must not bring an altered content with it."""
    text = render(memory)
    assert difference(text.replace(f"category: {memory.category}", "category: other_one"), text).keys() <= {"category"}


def test_only_what_was_changed_is_handed_on() -> None:
    text = render(memory_of("Old text.", tags=["a", "b"]))
    edited = text.replace("Old text.", "New text.").replace("- b\n", "")
    assert difference(text, edited) == {"content": "New text.", "tags": ["a"]}


def test_a_field_taken_out_gets_its_default() -> None:
    text = render(memory_of("x", expires_at="2027-01-01T00:00:00Z"))
    edited = "".join(line for line in text.splitlines(keepends=True) if not line.startswith("expires_at"))
    assert difference(text, edited) == {"expires_at": None}


def test_a_field_may_be_added() -> None:
    text = render(memory_of("x"))
    assert difference(text, text + "importance: 0.5\n") == {"importance": 0.5}


@check_rows(
    "field", ["id: mem-000000000000", "timestamp: 2020-01-01", "access_count: 9", "agent_id: eve", "colour: red"]
)
def test_fields_that_are_not_for_editing_are_refused(field: str) -> None:
    text = render(memory_of("x"))
    with pytest.raises(ValidationError, match=field.split(":", maxsplit=1)[0]):
        difference(text, f"{text}{field}\n")


@check_rows("edited", ["", "# all gone", "- a list", "just words", "content: [", "category: note"])
def test_a_text_that_is_no_memory_any_more_is_refused(edited: str) -> None:
    with pytest.raises(ValidationError):
        difference(render(memory_of("x")), edited)


def test_the_comment_fits_a_terminal() -> None:
    comments = [line for line in render(memory_of("x")).splitlines() if line.startswith("#")]
    assert comments
    assert max(map(len, comments)) < 80
