"""What two values of one attribute say, and that what is missing says nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_memory.knowledge.entities import Described
from agent_memory.knowledge.entities.matching.comparison import weigh_attributes
from agent_memory.knowledge.entities.matching.profiles import Profile, WordWeights
from tests.rows import check_rows

if TYPE_CHECKING:
    from agent_memory.knowledge.entities.matching.comparison import NameEvidence

NOTES = "the quick brown fox jumps over the lazy dog that sleeps"
KEYS = ["phone", "email", "url", "year", "price", "sku", "authors", "address", "notes", "city"]


def said(key: str, one: str, other: str) -> list[NameEvidence]:
    ours, theirs = (Profile(Described("x", attributes={key: value})) for value in (one, other))
    return list(weigh_attributes(ours, theirs, WordWeights([ours, theirs])))


@check_rows(
    ("key", "one", "other"),
    [
        ("phone", "404/351-9533", "(404) 351 9533"),
        ("Telephone number", "+49 228 1234567", "0228/1234567"),
        ("e-mail", "Bob@Example.com", "bob@example.com"),
        ("contact", "bob@example.com", "BOB@example.com"),
        ("website", "https://www.example.com/", "example.com"),
        ("isbn", "978-3-16", "978 3 16"),
        ("authors", "Ada B. Lovelace, Charles Babbage", "C. Babbage; A. Lovelace"),
        ("address", "155 W. 51st St.", "155 w 51st street"),
    ],
)
def test_some_attributes_tell_who_it_is(key: str, one: str, other: str) -> None:
    [evidence] = said(key, one, other)
    assert evidence.strong
    assert evidence.weight >= 2


@check_rows(
    ("key", "one", "other"),
    [
        ("year", "2001", "in 2001"),
        ("price", "$1,299.00", "1290"),
        ("city", "new york", "New York"),
        ("city", "new york", "new york city"),
        ("venue", "vldb", "very large data bases"),
        ("notes", f"{NOTES} by the river at night", f"{NOTES} at noon, which nobody saw"),
    ],
)
def test_others_only_speak_for_it(key: str, one: str, other: str) -> None:
    [evidence] = said(key, one, other)
    assert evidence.weight > 0
    assert not evidence.strong
    assert not evidence.blocks


@check_rows(
    ("key", "one", "other", "blocks"),
    [
        ("phone", "404 351 9533", "404 351 9534", ""),
        ("price", "10", "100", ""),
        ("address", "155 W. 51st St.", "12 Main St.", ""),
        ("city", "Bonn", "Rome", ""),
        ("authors", "Ada Lovelace", "Charles Babbage", "conflict"),
        ("year", "2001", "2002", "all"),
        ("sku", "A-1", "A-2", "all"),
        ("version", "1.10", "1.1", "all"),
    ],
)
def test_others_speak_against_it(key: str, one: str, other: str, blocks: str) -> None:
    [evidence] = said(key, one, other)
    assert evidence.weight < 0
    assert evidence.blocks == blocks


@check_rows(
    ("key", "one", "other"),
    [
        ("email", "a@b.de", "c@d.de"),
        ("website", "a.de", "b.de"),
        ("phone", "112", "112"),
        ("price", "free", "10"),
        ("price", "0", "10"),
        ("year", "long ago", "2001"),
        ("authors", "?", "Ada Lovelace"),
        ("address", "Main St.", "12 Main St."),
        ("city", "?", "Bonn"),
        ("city", "san jose del monte", "san pedro del mar"),
        ("notes", " ".join(f"a{number}" for number in range(20)), " ".join(f"b{number}" for number in range(20))),
    ],
)  # fmt: skip
def test_others_say_nothing(key: str, one: str, other: str) -> None:
    assert said(key, one, other) == []


@given(st.sampled_from(KEYS), st.text(max_size=30))
def test_a_value_that_is_missing_says_nothing(key: str, value: str) -> None:
    assert said(key, value, "") == said(key, "  ", value) == []
    ours, theirs = Profile(Described("x", attributes={key: value})), Profile(Described("x"))
    assert list(weigh_attributes(ours, theirs, WordWeights())) == []


@given(st.sampled_from(KEYS), st.text(max_size=30), st.text(max_size=30))
def test_both_orders_say_the_same(key: str, one: str, other: str) -> None:
    assert [(each.blocks, pytest.approx(each.weight)) for each in said(key, one, other)] == [
        (each.blocks, each.weight) for each in said(key, other, one)
    ]


def test_a_number_is_the_same_whatever_it_is_called() -> None:
    ours = Profile(Described("x", attributes={"mobile": "0228 1234567", "mail": "a@b.de", "sku": "7"}))
    theirs = Profile(Described("x", attributes={"phone": "+49 228 1234567", "email": "c@d.de", "number": "7"}))
    for one, other in ((ours, theirs), (theirs, ours)):
        [evidence] = weigh_attributes(one, other, WordWeights())
        assert evidence.strong


def test_some_of_many_people_are_not_enough_to_merge() -> None:
    [evidence] = said("authors", "Ada Lovelace", "Ada Lovelace, Charles Babbage, Mary Somerville, John Herschel")
    assert evidence.blocks == "unsure"
