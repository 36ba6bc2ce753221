"""Sentences of the same words that say the opposite."""

from __future__ import annotations

import pytest

from agent_memory.suspects import compare
from agent_memory.suspects.turned import are_turned
from tests.support import memory_of


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("The porch lamp is on.", "The porch lamp is off now."),
        ("Rinse before the second coat.", "Rinse after the second coat."),
        ("All valves are tested.", "Some valves are tested."),
        ("Paint with a primer.", "Paint without a primer."),
        ("The user prefers trains over planes.", "The user prefers planes over trains."),
    ],
)
def test_opposite_small_words_and_changed_places_turn_a_sentence(older: str, newer: str) -> None:
    assert are_turned(newer, older)
    assert are_turned(older, newer)
    assert compare(memory_of(newer), memory_of(older)) is not None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The porch lamp is on.", "The porch lamp is on now."),
        ("The porch lamp is on.", "The garden lamp is off."),
        ("Sand before painting.", "Painting after sand."),
        ("The user prefers trains over planes.", "The user prefers trains over buses."),
        ("Rosa likes plums and pears.", "Rosa likes pears and plums."),
        ("The lock must hold.", "The lock should hold."),
        ("", "On."),
    ],
)
def test_what_says_the_same_or_something_else_is_not_turned(one: str, other: str) -> None:
    assert not are_turned(other, one)
    assert not are_turned(one, other)


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("Rosa lives in Gent with two cats.", "Rosa moved to Brugge."),
        ("Our depot is in Gent.", "The depot relocated to Brugge."),
        ("Ivo drives the yellow van.", "The yellow van is driven by Nora."),
        ("The pump is oiled weekly.", "The pump is oiled monthly."),
    ],
)
def test_moves_irregular_verbs_and_frequencies_are_read(older: str, newer: str) -> None:
    assert compare(memory_of(newer), memory_of(older)) is not None
