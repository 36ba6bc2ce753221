"""Amounts in one unit a dimension."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_memory.suspects.quantities import Amount, number_of, unit_of
from agent_memory.suspects.statements import statements_of


def amounts_in(text: str) -> list[tuple[str, float | str]]:
    return [(each.dimension, each.value) for each in statements_of(text)[0].amounts]


@pytest.mark.parametrize(
    ("text", "amounts"),
    [
        ("waits 30 s", [("time", 30)]),
        ("waits thirty seconds", [("time", 30)]),
        ("waits 250ms", [("time", 0.25)]),
        ("fails below 80 % coverage", [("share", 80)]),
        ("fails below 80% coverage", [("share", 80)]),
        ("was raised to 80 %.", [("share", 80)]),
        ("was raised to 80 %, then lowered", [("share", 80)]),
        ("costs $1,800 each", [("dollars", 1800)]),
        ("starts at 09:05", [("clock", "9:05")]),
        ("holds 42 entries", [("entri", 42)]),
        ("targets Python 3.11", [("python", 3.11)]),
        ("targets Rust 1.82.1", [("rust", "1.82.1")]),
        ("meets on Tuesdays", [("weekday", "tuesday")]),
        ("ends on 4 January", [("date", "4")]),
        ("on 2026-05-01 at noon", [("date", "2026-05-01")]),
        ("compares the two", []),
    ],
)
def test_a_number_counts_for_what_stands_beside_it(text: str, amounts: list[tuple[str, float | str]]) -> None:
    assert amounts_in(text) == amounts


@given(st.integers(1, 10**6))
def test_an_amount_is_the_same_in_another_unit(number: int) -> None:
    seconds, milliseconds = Amount("time", float(number), ""), Amount("time", number * 1000 * 1e-3, "")
    assert seconds.equals(milliseconds)
    assert not seconds.equals(Amount("time", number + 1.0, ""))


@given(st.integers(1, 10**6), st.sampled_from([1000, 1024]))
def test_a_kilobyte_may_be_either(number: int, kilo: int) -> None:
    _, scale = unit_of("kb") or ("", 0.0)
    mega = (unit_of("mb") or ("", 0.0))[1]
    assert Amount("size", number * mega, "").equals(Amount("size", number * kilo * scale, ""))


def test_versions_stay_texts_and_commas_are_read_by_where_they_stand() -> None:
    assert number_of("3.11.2") == "3.11.2"
    assert number_of("1,800") == 1800
    assert number_of("1,5") == 1.5
    assert number_of("9" * 40) == "9" * 40
