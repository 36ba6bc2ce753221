"""What is found to be one comes together, and nothing comes together that contradicts itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from agent_memory.entities import Described
from agent_memory.entities.matching import Clusters, Matcher, Pair, clusters

if TYPE_CHECKING:
    from collections.abc import Callable

IDS = "abcdefg"
PAIRS = st.lists(
    st.builds(Pair, st.sampled_from(IDS), st.sampled_from(IDS), st.sampled_from([0.98, 0.99, 1.0])), max_size=20
)
CONFLICTS = st.sets(st.frozensets(st.sampled_from(IDS), min_size=2, max_size=2), max_size=8)


def against(conflicts: set[frozenset[str]]) -> Callable[[str, str], bool]:
    return lambda one, other: frozenset((one, other)) in conflicts


@given(PAIRS, CONFLICTS)
def test_no_cluster_holds_two_that_contradict_each_other(pairs: list[Pair], conflicts: set[frozenset[str]]) -> None:
    found = clusters(IDS, pairs, against(conflicts))
    for members in found.members:
        assert not any(conflict <= set(members) for conflict in conflicts)


@given(PAIRS, CONFLICTS)
def test_each_id_is_in_one_cluster_and_each_pair_together_or_refused(
    pairs: list[Pair], conflicts: set[frozenset[str]]
) -> None:
    found = clusters(IDS, pairs, against(conflicts))
    assert sorted(each for members in found.members for each in members) == sorted(IDS)
    of = {each: members for members in found.members for each in members}
    for pair in pairs:
        assert (of[pair.one] == of[pair.other]) != (pair in found.refused)


@given(PAIRS, CONFLICTS, st.randoms(use_true_random=False))
def test_the_order_of_pairs_does_not_matter(pairs: list[Pair], conflicts: set[frozenset[str]], chance: object) -> None:
    shuffled = list(pairs)
    chance.shuffle(shuffled)  # type: ignore[attr-defined]
    one, other = (clusters(IDS, each, against(conflicts)) for each in (pairs, shuffled))
    assert one.members == other.members
    assert set(one.refused) == set(other.refused)


@given(PAIRS)
def test_without_contradictions_whatever_is_linked_comes_together(pairs: list[Pair]) -> None:
    found = clusters(IDS, pairs, against(set()))
    assert found.refused == ()
    of = {each: members for members in found.members for each in members}
    assert all(of[pair.one] == of[pair.other] for pair in pairs)


def test_a_chain_whose_ends_contradict_each_other_breaks_at_its_weakest_pair() -> None:
    known = {
        "ent-1": Described("PostgreSQL 15", "service"),
        "ent-2": Described("postgres", "service"),
        "ent-3": Described("PostgreSQL 16", "service"),
    }
    matcher = Matcher(known.items())
    pairs = [Pair("ent-1", "ent-2", 0.99), Pair("ent-2", "ent-3", 0.98)]
    assert clusters(known, pairs, matcher.conflict) == Clusters(
        members=(("ent-1", "ent-2"), ("ent-3",)), refused=(Pair("ent-2", "ent-3", 0.98),)
    )


def test_ids_that_only_a_pair_names_are_taken_in() -> None:
    assert clusters([], [Pair("b", "a", 1.0)], against(set())).members == (("a", "b"),)
