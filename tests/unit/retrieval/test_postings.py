"""BM25: scores, removal, and equality with an index built fresh."""

import random

import pytest

from agent_memory.retrieval.postings import Postings

_WORDS = ["ledger", "database", "cart", "mail", "backup", "friday"]


def _filled(documents: list[list[str]]) -> Postings:
    postings = Postings(1.2, 0.75)
    for terms in documents:
        postings.add(terms)
    return postings


def test_a_rare_term_outweighs_a_common_one() -> None:
    postings = _filled([["cart", "mail"], ["cart"], ["cart"], ["mail", "ledger"]])
    scores = postings.scores({"cart": 1.0, "ledger": 1.0})
    assert max(scores, key=scores.__getitem__) == 3


def test_a_shorter_document_scores_higher_for_the_same_term() -> None:
    scores = _filled([["cart"] + ["filler"] * 20, ["cart", "filler"]]).scores({"cart": 1.0})
    assert scores[1] > scores[0]


def test_only_documents_with_a_term_are_scored() -> None:
    assert set(_filled([["cart"], ["mail"]]).scores({"mail": 1.0})) == {1}


def test_an_empty_index_scores_nothing() -> None:
    assert Postings(1.2, 0.75).scores({"cart": 1.0}) == {}


@pytest.mark.parametrize("removed", [10, 1500])
def test_scores_after_removals_equal_those_of_a_fresh_index(removed: int) -> None:
    """1,500 removals cross the sweep, 10 do not."""
    choose = random.Random(7)
    documents = [choose.choices(_WORDS, k=choose.randint(1, 8)) for _ in range(2000)]
    postings = _filled(documents)
    gone = set(choose.sample(range(2000), removed))
    for document in gone:
        postings.remove(document)
    kept = [number for number in range(2000) if number not in gone]
    fresh = _filled([documents[number] for number in kept]).scores({"cart": 1.0, "mail": 2.0})
    assert postings.scores({"cart": 1.0, "mail": 2.0}) == pytest.approx(
        {kept[number]: score for number, score in fresh.items()}
    )
    assert len(postings) == len(kept)


def test_numbers_are_never_given_twice() -> None:
    postings = _filled([["cart"]])
    postings.remove(0)
    assert postings.add(["cart"]) == 1


def test_a_window_of_one_scores_like_its_document() -> None:
    postings = _filled([["cart", "mail"], ["mail"], ["ledger"]])
    weights = {"cart": 1.0, "mail": 1.0}
    assert postings.window_scores(weights, {0: (0,)}) == pytest.approx({0: postings.scores(weights)[0]})


def test_a_window_joins_the_words_of_its_documents() -> None:
    postings = _filled([["cart"], ["mail"], ["ledger"], ["mail"]])
    scores = postings.window_scores({"cart": 1.0, "mail": 1.0}, {0: (0, 1), 2: (2, 3)})
    assert scores[0] > scores[2] > 0


def test_the_full_score_is_that_of_an_average_document_with_every_word() -> None:
    postings = _filled([["cart", "mail"], ["ledger", "backup"]])
    weights = {"cart": 1.0, "mail": 1.0}
    assert postings.scores(weights)[0] == pytest.approx(postings.full_score(weights))
