"""How much of two names is the same, by how much each word tells."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_memory.knowledge.entities import Described, describe_entity
from agent_memory.knowledge.entities.matching.matcher import NamePostings, get_keys
from agent_memory.knowledge.entities.matching.normal_forms import known_form
from agent_memory.knowledge.entities.matching.profiles import Profile, WordWeights, overlap
from agent_memory.models import Entity

WORDS = st.lists(
    st.sampled_from(["web", "socket", "websocket", "auth", "authentication", "the", "x1", "servcie"]), max_size=6
)


def profile(name: str) -> Profile:
    return Profile(Described(name))


@given(WORDS, WORDS)
def test_what_is_shared_is_the_same_both_ways_and_never_more_than_all(ours: list[str], theirs: list[str]) -> None:
    one, other = overlap(ours, theirs, WordWeights()), overlap(theirs, ours, WordWeights())
    assert one.shared == pytest.approx(other.shared)
    assert one.covered == pytest.approx(other.covered)
    assert 0 <= one.shared <= one.covered + 1e-9 <= 1 + 2e-9
    assert sorted(one.ours_alone) == sorted(other.theirs_alone)


@given(WORDS)
def test_a_name_shares_all_with_itself(words: list[str]) -> None:
    found = overlap(words, words, WordWeights())
    assert found.ours_alone == found.theirs_alone == []
    assert found.shared == pytest.approx(1.0 if words else 0.0)


def test_words_that_are_written_together_are_the_same() -> None:
    found = overlap(["web", "socket", "api"], ["websocket", "api"], WordWeights())
    assert found.shared == 1
    assert found.changed == []


def test_rare_words_tell_more_than_frequent_and_empty_ones() -> None:
    weights = WordWeights(profile(f"auth service {number}") for number in range(500))
    assert weights.of("unheard") > weights.of("auth") > weights.of("the")
    assert WordWeights().of("payment") > WordWeights().of("service")


def test_what_is_no_longer_known_is_no_longer_counted() -> None:
    weights = WordWeights([profile("lamp"), profile("lamp")])
    before = weights.of("lamp")
    weights.remove(profile("lamp"))
    assert weights.bearers("lamp") == 1
    assert weights.of("lamp") > before


def test_candidates_are_those_that_share_rare_keys() -> None:
    postings = NamePostings()
    names = [f"lamp {number} of the hall" for number in range(300)] + ["lamp of Aladdin"]
    for number, name in enumerate(names):
        postings.add(number, get_keys(profile(name)))
    assert postings.best(get_keys(profile("Aladdin")), 5) == [300]
    assert postings.best(get_keys(profile("lamp 7 of the hall")), 1) == [7]
    postings.remove(300, get_keys(profile(names[300])))
    assert postings.best(get_keys(profile("Aladdin")), 5) == []


def test_the_longest_known_name_is_taken_first() -> None:
    assert known_form("google cloud platform team") == "gcp team"
    assert known_form("k8s") == "kubernetes"
    assert known_form("nothing known") == "nothing known"


def test_an_entity_is_compared_by_all_that_is_known_of_it() -> None:
    entity = Entity(agent_id="bob", name="Bob", entity_type="person", aliases=["bs"], attributes={"city": "Bonn"})
    assert describe_entity(entity) == Described("Bob", "person", {"city": "Bonn"}, ("bs",))
    assert describe_entity(Entity(agent_id="bob", name="Bob")).kind == ""
