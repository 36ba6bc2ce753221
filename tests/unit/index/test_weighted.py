"""The ranking profile `weighted`: four weights, one scale, and a time that counts where it is asked for."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_memory.index.fusion import EXPONENT, THRESHOLD, WeightedQuestion, WeightedScore

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
share = st.floats(0, 1)


def test_is_the_weighted_sum_where_all_is_known() -> None:
    assert WeightedScore(0.5, 0.8, 1.0, 0.3).raw == pytest.approx(0.4 * 0.5 + 0.3 * 0.8 + 0.2 * 1.0 + 0.1 * 0.3)


def test_what_is_not_known_has_no_weight() -> None:
    assert WeightedScore(0.5, 0.8, None, 0.3).raw == pytest.approx((0.4 * 0.5 + 0.3 * 0.8 + 0.1 * 0.3) / 0.8)
    assert WeightedScore(None, 0.8, None, 0.3).raw == pytest.approx((0.3 * 0.8 + 0.1 * 0.3) / 0.4)


@given(st.lists(st.tuples(share, share, st.none() | share, share), min_size=2, max_size=2))
def test_the_scale_keeps_the_order_and_its_ends(values: list[tuple[float, float, float | None, float]]) -> None:
    first, second = (WeightedScore(*each) for each in values)
    assert 0 <= first.relevance <= 1
    if first.raw > second.raw:
        assert first.relevance >= second.relevance


def test_nine_of_ten_labelled_hits_reach_the_threshold() -> None:
    """At the exponent .5 these reached .44 to .46 (LoCoMo in two forms, an agent's notes, plain facts)."""
    reached = [at_half ** (2 * EXPONENT) for at_half in (0.44, 0.45, 0.46)]
    assert all(abs(each - THRESHOLD) < 0.012 for each in reached)


def asked(query: str, **words: float) -> WeightedQuestion:
    return WeightedQuestion(query, words, NOW)


def test_words_count_by_how_much_they_tell() -> None:
    question = asked("ferry elba", ferri=3.0, elba=1.0)
    assert question.weigh("The ferry is late.", {}, NOW, 0.5).keyword == pytest.approx(0.75)
    assert question.weigh("The ferry to Elba is late.", {}, NOW, 0.5).keyword == pytest.approx(1.0)
    assert question.weigh("Nothing of it.", {}, NOW, 0.5).keyword == 0
    assert asked("the").weigh("The ferry", {}, NOW, 0.5).keyword == 0


def test_meaning_is_the_cosine_and_unknown_without_one() -> None:
    question = asked("ferry", ferri=1.0)
    assert question.weigh("x", {"cosine": 0.42, "bm25": 3.0}, NOW, 0.5).semantic == 0.42
    assert question.weigh("x", {"cosine": -0.1}, NOW, 0.5).semantic == 0
    assert question.weigh("x", {"bm25": 3.0}, NOW, 0.5).semantic is None


def test_time_counts_where_the_question_names_one() -> None:
    yesterday, before = NOW - timedelta(days=1), NOW - timedelta(days=40)
    assert asked("how was the ferry", ferri=1.0).weigh("x", {}, before, 0.5).temporal is None
    question = asked("how was the ferry yesterday", ferri=1.0)
    assert question.weigh("x", {}, yesterday, 0.5).temporal == 1.0
    assert question.weigh("x", {}, before, 0.5).temporal == 0.0
