"""A text without some of its clauses is still a text, and denies what it denied."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_memory.forgetting.clauses import Clauses

SENTENCES = st.sampled_from(
    [
        "Lea likes tea, coffee and milk.", "Lea does not eat nuts or fish.", "Lea lives in Oslo, and she sings.",
        "Ann and Bob share a desk.", "Uma, who lives in Oslo, drives a Saab.", "I'm tall and my sister is called Mia.",
        "Web runs on port 80 and mail on port 25.", "Uri likes cats but not dogs.", "No verb here; and, or, but",
    ]
)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "gone", "left"),
    [
        ("Lea drives a van and is allergic to nuts.", 0, "Lea is allergic to nuts."),
        ("Lea drives a van and is allergic to nuts.", 1, "Lea drives a van."),
        ("Lea lives in Oslo. She sings.", 0, "Lea sings."),
        ("Tom never smokes and drives a van.", 0, "Tom drives a van."),
        ("Ann's badge is 12 and Bob's 13.", 0, "Bob's badge is 13."),
        ("Maya speaks Thai because she grew up there.", 0, "Maya grew up there."),
        ("- buy milk\n- Lea sings", 0, "- Lea sings"),
    ],
)
def test_a_clause_goes_and_the_rest_stands_by_itself(text: str, gone: int, left: str) -> None:
    assert Clauses(text).without({gone}) == left


@given(st.lists(SENTENCES | st.text(max_size=60), max_size=3).map(" ".join), st.sets(st.integers(0, 8)))
def test_whatever_is_taken_out_of_whatever_text_it_ends_well(text: str, gone: set[int]) -> None:
    clauses = Clauses(text)
    every = {unit.number for unit in clauses.units}
    assert clauses.without(set()) == text
    assert clauses.without(every) == "" or not every
    left = clauses.without(gone & every)
    assert bool(left) == bool(every - gone) or not every
