"""How far strings are apart, and which words are short for others."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_memory.knowledge.entities.matching.normal_forms import distance, likeness, misspelt, nearness, numeronym
from tests.rows import check_rows

LETTERS = st.text(alphabet="abcé", max_size=9)


def slowly(one: str, other: str) -> int:
    """Count changes as it is defined: a table of all beginnings."""
    table = {(row, 0): row for row in range(len(one) + 1)} | {(0, at): at for at in range(len(other) + 1)}
    for row in range(1, len(one) + 1):
        for at in range(1, len(other) + 1):
            changed = table[row - 1, at - 1] + (one[row - 1] != other[at - 1])
            table[row, at] = min(table[row - 1, at] + 1, table[row, at - 1] + 1, changed)
            if row > 1 < at and one[row - 1] == other[at - 2] and one[row - 2] == other[at - 1]:
                table[row, at] = min(table[row, at], table[row - 2, at - 2] + 1)
    return table[len(one), len(other)]


@given(LETTERS, LETTERS)
def test_the_distance_is_the_least_number_of_changes(one: str, other: str) -> None:
    assert distance(one, other) == slowly(one, other) == distance(other, one)


def test_the_distance_of_long_texts_goes_beyond_a_machine_word() -> None:
    assert distance("ab" * 100, "ba" + "ab" * 99) == 1
    assert distance("x" * 150, "y" * 150) == 150


def test_likeness_is_the_share_of_places_that_are_not_changed() -> None:
    assert likeness("kitten", "sitting") == pytest.approx(1 - 3 / 7)
    assert likeness("", "") == 1.0
    assert likeness("", "ab") == 0.0


@given(LETTERS, LETTERS)
def test_nearness_is_the_same_both_ways_and_one_for_equal_words(one: str, other: str) -> None:
    assert nearness(one, other) == nearness(other, one)
    assert (nearness(one, other) == 1) == (one == other)


@check_rows(
    ("one", "other"),
    [("auth", "authentication"), ("service", "services"), ("kubernets", "kubernetes"), ("mgmt", "management")],
)
def test_words_that_are_short_for_others_or_misspelt_are_near(one: str, other: str) -> None:
    assert 0 < nearness(one, other) < 1


@check_rows(("one", "other"), [("db1", "db12"), ("cat", "cut"), ("in", "inn"), ("east", "west")])
def test_short_words_and_words_with_digits_are_near_only_to_themselves(one: str, other: str) -> None:
    assert nearness(one, other) == 0


def test_one_change_is_a_slip_from_five_letters_on_and_never_in_the_first() -> None:
    assert misspelt("smith", "smyth")
    assert not misspelt("mary", "mart")
    assert not misspelt("import", "export")
    assert not misspelt("smith", "smyhte")


def test_a_counted_middle_stands_for_a_word_of_that_length() -> None:
    assert numeronym("k8s", "kubernetes")
    assert not numeronym("k8s", "kubernets")
    assert not numeronym("k²s", "kabs")
    assert not numeronym("888", "8888888888")
