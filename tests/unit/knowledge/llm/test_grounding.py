"""Places of quotes to the letter."""

from __future__ import annotations

import pytest

from agent_memory.knowledge.llm.grounding import place_of

TEXT = "Ann: The boat is moored at\n   pier four. 船は港にある。 The door is red."


@pytest.mark.parametrize(
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
    place = place_of(quote, TEXT)
    assert (place and TEXT[slice(*place)]) == found


def test_a_quote_is_looked_for_in_its_part_alone() -> None:
    assert place_of("The boat", TEXT, 10) is None
    assert place_of("red", TEXT, 0, len(TEXT) - 3) is None
