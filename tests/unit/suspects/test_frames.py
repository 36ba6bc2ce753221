"""Where two sentences part when they are laid beside each other."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_memory.suspects.frames import fit, label_of


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("My physician is Dr. Vane.", "My physician is Dr. Oduya now."),
        ("The catalogue is rendered with Jinja.", "The catalogue is rendered with Mako."),
        ("The barrier opens at 06:30.", "The barrier opens at 7:45."),
        ("max_depth: 4", "max_depth: 9"),
        ("I live in Gent.", "I live in Brugge now."),
        ("I live in Gent.", "I now live in Brugge."),
        ("Our depot is in Gent.", "Our depot is in Brugge."),
    ],
)
def test_one_place_that_differs_gives_one_matter_two_values(one: str, other: str) -> None:
    assert fit(other, one) == fit(one, other) == "value"


@pytest.mark.parametrize(
    ("one", "other", "said"),
    [
        ("The quota for parcels is 40 kg.", "The quota for letters is 2 kg.", "others"),
        ("My physician is Dr. Vane.", "My plumber is Mr. Oduya.", "others"),
        ("settings.ini sets depth: 4", "settings.ini sets width: 9", "others"),
        ("Pool north is open to all.", "Pool south is open to all.", "others"),
        ("The client Grey Mill has a term of 9 days.", "The client Blue Dune has a term of 9 days.", "others"),
        ("The client Grey Mill has a term of 9 days.", "The client Blue Dune has a term of 4 weeks.", "others"),
        ("Rust 1.82 is set for builds.", "Rust 1.90 is set for builds.", "open"),
        ("Ivo is the keeper of the keys.", "Nora is the keeper of the keys.", "open"),
        ("Checks run with tox.", "Checks run in parallel.", "apart"),
        ("Our depot is in Gent.", "Our depot has a crane.", "apart"),
        ("Checks live beside the code.", "Checks live in the attic.", "open"),
        ("The bikes are kept in the cellar.", "The bikes are in the yard.", "open"),
        ("The user loves chess.", "The user loves opera.", "open"),
        ("Rosa is tall.", "Rosa is Danish.", "open"),
        ("I live in Gent.", "I live in a flat.", "open"),
        ("The depot takes parcels.", "The depot takes no parcels.", "open"),
        ("Parcels are weighed.", "The crane squeaks.", "open"),
    ],
)
def test_what_parts_for_another_thing_or_matter_is_told_from_what_may_not(one: str, other: str, said: str) -> None:
    assert fit(other, one) == said


@given(st.text(max_size=60), st.text(max_size=60))
def test_the_order_of_two_sentences_does_not_matter(one: str, other: str) -> None:
    assert fit(one, other) == fit(other, one)
    assert fit(one, one) == "open"


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("Owner: Ivo", "owner"),
        ("max depth = 4", "max depth"),
        ("The gate opens at 6:30.", ""),
        ("A long row of words before: no label", ""),
    ],
)
def test_a_label_is_what_stands_before_a_mark(text: str, label: str) -> None:
    assert label_of(text) == label
