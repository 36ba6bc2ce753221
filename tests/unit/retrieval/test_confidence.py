"""How sure it is that memory answers a question."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_memory.retrieval.confidence import Coverage, Support, Words, is_asked_of_none, is_echo, of_answer, of_hit

share = st.floats(0, 1)
supports = st.builds(Support, st.none() | share, share, st.booleans(), st.booleans())


@given(supports)
def test_it_is_a_share(support: Support) -> None:
    assert 0 <= of_hit(support) <= 1
    assert 0 <= of_answer(support) <= 1


@given(supports, share)
def test_more_evidence_never_makes_it_less(support: Support, more: float) -> None:
    covered = support._replace(covered=max(support.covered, more))
    assert of_answer(covered) >= of_answer(support)
    assert of_hit(covered) >= of_hit(support)
    if support.nearness is not None:
        nearer = support._replace(nearness=max(support.nearness, more))
        assert of_answer(nearer) >= of_answer(support)
        assert of_hit(nearer) >= of_hit(support)


@given(supports)
def test_a_name_alone_is_less_than_what_is_asked_of_it(support: Support) -> None:
    assert of_answer(support._replace(name_only=True)) <= of_answer(support._replace(name_only=False))


ALIKE = Words(crowd=0.4, nearest=0.5, known=0.9, together=0.5, asked=6)


def test_where_many_are_alike_one_has_to_hold_what_is_asked() -> None:
    assert is_asked_of_none(ALIKE)
    for harmless in (
        {"crowd": 0.1},  # nothing else is near, so that nearness tells something
        {"nearest": 0.9},
        {"known": 0.3},  # it is asked in other words than memory has
        {"together": 0.8},
        {"asked": 14},  # a long question is held by no single note
    ):
        assert not is_asked_of_none(ALIKE._replace(**harmless))


def test_what_holds_nothing_but_the_words_of_a_question_says_no_more_than_it() -> None:
    assert is_echo(length=8, said=3, covered=1.0)  # four terms of its day, and its category
    assert not is_echo(length=9, said=3, covered=1.0)
    assert not is_echo(length=6, said=1, covered=0.3)  # of another question


def test_the_share_of_words_that_are_known_counts_how_rare_they_are() -> None:
    assert coverage().share(lambda term: term != "phone") == pytest.approx(3 / 6)
    assert Coverage({"@2026": 1.0}, full_score, (), {}).share(lambda _: True) == 0


def full_score(weights: Mapping[str, float]) -> float:
    rarity = {"mara": 2.0, "phone": 3.0, "number": 1.0}
    return sum(rarity[term] * weight for term, weight in weights.items())


def coverage(**holding: set[str]) -> Coverage:
    weights = {"mara": 1.0, "phone": 1.0, "number": 1.0, "@2026": 1.0}
    return Coverage(weights, full_score, {"mara"}, holding)


def test_words_count_by_how_rare_they_are_and_days_do_not() -> None:
    found = coverage(a={"mara", "@2026"}, b={"phone"})
    assert found.of(["a"]) == pytest.approx(2 / 6)
    assert found.of(["a", "b", "unknown"]) == pytest.approx(5 / 6)


def test_a_question_of_no_words_is_covered_by_nothing() -> None:
    assert Coverage({"@2026": 1.0}, full_score, (), {"a": {"@2026"}}).of(["a"]) == 0


def test_a_document_that_shares_a_name_alone() -> None:
    found = coverage(a={"mara"}, b={"mara", "number"}, c={"@2026"})
    assert [found.is_name_only(each) for each in "abc"] == [True, False, False]


def test_asking_for_a_name_is_no_question_about_it() -> None:
    assert not Coverage({"mara": 1.0}, full_score, {"mara"}, {"a": {"mara"}}).is_name_only("a")
