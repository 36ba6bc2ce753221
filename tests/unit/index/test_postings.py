"""BM25: scores, removal, and equality with an index built fresh."""

import random

import pytest

from agent_memory.index.postings import Postings
from agent_memory.index.scores import Scores

_WORDS = ["ledger", "database", "cart", "mail", "backup", "friday"]


def _filled(documents: list[list[str]], arrays_from: int = 2_000) -> Postings:
    postings = Postings(1.2, 0.75, arrays_from)
    for terms in documents:
        postings.add(terms)
    return postings


def _all(scores: Scores) -> dict[int, float]:
    return {document: scores[document] for document in scores.best(len(scores))}


def test_a_rare_term_outweighs_a_common_one() -> None:
    postings = _filled([["cart", "mail"], ["cart"], ["cart"], ["mail", "ledger"]])
    scores = postings.scores({"cart": 1.0, "ledger": 1.0})
    assert scores.best(1) == [3]


def test_a_shorter_document_scores_higher_for_the_same_term() -> None:
    scores = _filled([["cart"] + ["filler"] * 20, ["cart", "filler"]]).scores({"cart": 1.0})
    assert scores.best(2) == [1, 0]
    assert scores[1] > scores[0]


def test_only_documents_with_a_term_are_scored() -> None:
    assert _filled([["cart"], ["mail"]]).scores({"mail": 1.0}).best(9) == [1]


def test_an_empty_index_scores_nothing() -> None:
    scores = Postings(1.2, 0.75).scores({"cart": 1.0})
    assert (len(scores), scores.best(3)) == (0, [])


@pytest.mark.parametrize("arrays_from", [0, 10**9])
def test_scores_after_removals_equal_those_of_a_fresh_index(arrays_from: int) -> None:
    choose = random.Random(7)
    documents = [choose.choices(_WORDS, k=choose.randint(1, 8)) for _ in range(2000)]
    postings = _filled(documents, arrays_from)
    gone = set(choose.sample(range(2000), 1500))
    for document in gone:
        postings.remove(document, documents[document])
    kept = [number for number in range(2000) if number not in gone]
    fresh = _all(_filled([documents[number] for number in kept], arrays_from).scores({"cart": 1.0, "mail": 2.0}))
    assert _all(postings.scores({"cart": 1.0, "mail": 2.0})) == {kept[number]: score for number, score in fresh.items()}
    assert len(postings) == len(kept)


def test_arrays_and_dicts_give_the_same_numbers_in_the_same_order() -> None:
    """Also among equals, of which six words make many: a search must not depend on how many memories there are."""
    choose = random.Random(8)
    documents = [choose.choices(_WORDS, k=choose.randint(1, 3)) for _ in range(500)]
    found = [_filled(documents, arrays_from).scores({"cart": 1.0, "mail": 2.0}) for arrays_from in (0, 10**9)]
    many, few = found
    assert type(many) is not type(few)
    assert _all(many) == _all(few)
    assert [many.best(count) for count in (0, 1, 7, 60, 999)] == [few.best(count) for count in (0, 1, 7, 60, 999)]
    assert (len(many), many[10**6 % 500]) == (len(few), few[10**6 % 500])
    for scores in found:
        assert set(scores.sample(10)) <= set(scores.best(len(scores)))
        assert 10 <= len(scores.sample(10)) <= 20


def test_the_last_document_of_a_term_takes_the_term_along() -> None:
    postings = _filled([["cart"], ["mail"]])
    postings.remove(0, ["cart"])
    assert postings.idf("cart") == 0.0
    assert len(postings.scores({"cart": 1.0})) == 0


def test_numbers_are_never_given_twice() -> None:
    postings = _filled([["cart"]])
    postings.remove(0, ["cart"])
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
