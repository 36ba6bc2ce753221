"""Places of quotes to the letter."""

from __future__ import annotations

from agent_memory.knowledge.passages.sections import find_words
from tests.rows import check_rows

TEXT = "Ann: The boat is moored at\n   pier four. 船は港にある。 The door is red."


@check_rows(
    ("quote", "found"),
    [
        ("The boat is moored", "The boat is moored"),
        ("moored at pier four.", "moored at\n   pier four."),
        ("港に", "港に"),
        ("oor is red", None),
        ("the boat", None),
        ("The boat was moored", None),
        ("   ", None),
    ],
)
def test_a_quote_stands_in_its_text_or_has_no_place(quote: str, found: str | None) -> None:
    place = find_words(quote, TEXT)
    assert (place and TEXT[slice(*place)]) == found


def test_a_quote_is_looked_for_in_its_part_alone() -> None:
    assert find_words("The boat", TEXT, 10) is None
    assert find_words("red", TEXT, 0, len(TEXT) - 3) is None
