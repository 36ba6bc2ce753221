"""Texts in the one form in which they are compared."""

from __future__ import annotations

from agent_memory.journal.purged_spans import is_distinctive, normalize_text, normalize_with_places
from tests.rows import check_rows


def test_wide_letters_count_for_two() -> None:
    assert is_distinctive("\u5979\u7684\u85aa\u6c34\u4e03\u4e07")
    assert not is_distinctive("\u5979\u7684\u85aa\u6c34")


@check_rows("text", ["Stra\u00dfe  72", "a\\u0026b\n> c", "&amp; \U0001f600", "\\ud83d\\ude00 x", ""])
def test_each_character_of_that_form_has_its_place_in_the_text(text: str) -> None:
    folded, places = normalize_with_places(text)
    assert folded == normalize_text(text)
    assert len(places) == len(folded)
    assert all(0 <= start < end <= len(text) for start, end in places)
    assert [start for start, _ in places] == sorted(start for start, _ in places)
