"""The chain that labels words, apart from what it has learnt."""

from __future__ import annotations

import pytest

from agent_memory.entities.features import WordLists, features_of
from agent_memory.entities.tagger import Chain, TextTagger, chain, confidence, word_lists
from agent_memory.entities.tokens import tokens_of

STEPS = ((0.0, 0.0, -1e9), (0.0, -1.0, 0.5), (0.0, -1.0, 0.5))


def test_the_best_path_never_continues_a_name_that_has_not_begun() -> None:
    chain = Chain({"x": (0.0, 0.0, 5.0), "o": (20.0, 0.0, 0.0)}, STEPS)
    assert chain.best(chain.scores([["o"], ["x"], ["x"]])) == "OBI"
    assert chain.best([]) == ""


def test_reluctance_decides_where_the_words_do_not() -> None:
    features = [["a"]]
    weights = {"a": (0.0, 0.3, 0.0)}
    assert Chain(weights, STEPS, 0.0).best(Chain(weights, STEPS, 0.0).scores(features)) == "B"
    assert Chain(weights, STEPS, 0.5).best(Chain(weights, STEPS, 0.5).scores(features)) == "O"


def test_confidence_grows_with_how_far_all_words_are_from_being_none() -> None:
    told = [confidence([(-margin, 0.0, 0.0)]) for margin in (-900.0, 0.0, 2.0, 6.0, 900.0)]
    assert told == sorted(told)
    assert told[0] < 0.01
    assert 0.2 < told[1] < 0.5
    assert told[-1] > 0.99
    assert confidence([(0.0, 6.0, 0.0), (0.0, 0.0, 0.0)]) < confidence([(0.0, 6.0, 0.0), (0.0, 0.0, 6.0)])


def test_features_tell_how_a_word_is_written_and_what_is_known_of_it() -> None:
    lists = WordLists({"went": "0101", "soooo": "11"}, {"went": 4}, {"place": frozenset({"new york"})})
    first, second, third, fourth = features_of(["Bob", "went", "New", "York"], lists)
    assert {"w0=bob", "e-1", "w1=went", "c1=0101", "q=0"} <= set(first)
    assert {"kq=l4", "c0=0101"} <= set(second)
    assert "g0=place" in third
    assert "g0=place" in fourth


def test_words_keep_their_places_and_possessives_stand_apart() -> None:
    text = "Bob's U.S. trip cost $5, didn't it? AT&T @bob #tag C++ x.y"
    tokens = tokens_of(text)
    assert [token.word for token in tokens][:4] == ["Bob", "'s", "U.S.", "trip"]
    assert {"did", "n't", "AT&T", "@bob", "#tag", "C++", "x.y"} <= {token.word for token in tokens}
    assert all(text[token.start : token.end] == token.word for token in tokens)


def test_text_tagger_repeated_words_has_scores_of_each_sentence() -> None:
    tagger = TextTagger()
    for text in ("Anna Berg moved to New York", "New York moved Anna", "Anna Berg moved to New York"):
        words = text.split()
        expected = chain().scores(features_of(words, word_lists()))
        labels, scores = tagger.labels_of(words)
        assert labels == chain().best(expected)
        assert [pytest.approx(score) for score in expected] == scores
