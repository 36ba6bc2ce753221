"""Finding one among many known: stages and their flags, doubt, attributes, and what a match says of itself."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_memory.knowledge.entities import Described, Match, Matching
from agent_memory.knowledge.entities.matching import Matcher
from tests.rows import check_rows
from tests.support import scale_examples

if TYPE_CHECKING:
    from collections.abc import Iterable

OFF = Matching(
    exact_match_enabled=False, fuzzy_match_enabled=False, embedding_match_enabled=False, rule_based_enabled=False
)
WORDS = st.sampled_from(["auth", "authentication", "service", "svc", "1", "2", "db", "Bob", "Smith", "staging", "prod"])
NAMES = st.lists(WORDS, min_size=1, max_size=4).map(" ".join)
DESCRIBED = st.builds(
    lambda name, kind, attributes, aliases: Described(name, kind, attributes, tuple(aliases)),
    NAMES,
    st.sampled_from(["", "person", "service"]),
    st.dictionaries(st.sampled_from(["phone", "email", "year", "city", "id"]), st.sampled_from(["1", "", "x@y.de"])),
    st.lists(NAMES, max_size=2),
)


def person(name: str, **attributes: str) -> Described:
    return Described(name, "person", attributes)


def place(name: str, **attributes: str) -> Described:
    return Described(name, "place", attributes)


def found(known: Described, asked: Described, config: Matching | None = None) -> Match | None:
    return Matcher([("ent-1", known)], config=config).find(asked)


def test_nothing_is_found_among_nothing() -> None:
    assert Matcher().find(Described("Bob")) is None
    assert len(Matcher()) == 0


@check_rows(
    ("known", "asked", "stage"),
    [
        ("Acme GmbH", "ACME", "exact"),
        ("Kubernetes", "Kubernets", "fuzzy"),
        ("authentication service", "auth service", "rule"),
    ],
)
def test_a_match_says_which_stage_found_it(known: str, asked: str, stage: str) -> None:
    match = found(Described(known), Described(asked))
    assert match is not None
    assert match.stage == stage
    assert 0.5 <= match.score <= 1


@check_rows(
    ("flag", "known", "asked", "stage"),
    [
        ("exact_match_enabled", "Acme GmbH", "ACME", "exact"),
        ("fuzzy_match_enabled", "Kubernetes", "Kubernets", "fuzzy"),
        ("rule_based_enabled", "authentication service", "auth service", "rule"),
    ],
)
def test_each_stage_works_alone_and_not_at_all_without_its_flag(flag: str, known: str, asked: str, stage: str) -> None:
    alone = found(Described(known), Described(asked), replace(OFF, **{flag: True}))
    assert alone is not None
    assert alone.stage == stage
    assert found(Described(known), Described(asked), OFF) is None


def near(found_near: Iterable[tuple[str, float]]) -> object:
    return lambda _name, least: [(known_id, cosine) for known_id, cosine in found_near if cosine >= least]


def test_vectors_raise_candidates_that_nothing_else_does_and_merge_none() -> None:
    config = replace(OFF, embedding_match_enabled=True)
    matcher = Matcher([("ent-1", Described("laptop"))], near([("ent-1", 0.9), ("ent-gone", 0.99)]), config)  # type: ignore[arg-type]
    match = matcher.find(Described("notebook computer"))
    assert match is not None
    assert (match.stage, match.decision, match.score) == ("embedding", "suggest", 0.9)
    assert match.evidence[0] == "near in meaning (cosine 0.90)"


def test_what_vectors_raise_is_weighed_by_the_rules() -> None:
    known = [("ent-1", Described("laptop")), ("ent-2", Described("laptop", attributes={"id": "7"}))]
    matcher = Matcher(known, near([("ent-1", 0.9), ("ent-2", 0.85)]))  # type: ignore[arg-type]
    assert matcher.find(Described("notebook computer")) is None
    assert Matcher(known[:1], near([("ent-1", 0.79)]), replace(OFF, embedding_match_enabled=True)).find(  # type: ignore[arg-type]
        Described("notebook computer")
    ) is None  # fmt: skip


def test_two_known_ones_of_one_name_are_suggested_and_not_guessed() -> None:
    matcher = Matcher([("ent-1", person("Alice")), ("ent-2", person("Alice"))])
    match = matcher.find(person("Alice"))
    assert match is not None
    assert match.decision == "suggest"
    assert "2 known ones have this name" in match.evidence
    assert [each.id for each in matcher.likely(person("Alice"))] == ["ent-1", "ent-2"]


def test_a_name_that_several_have_tells_less_of_who_it_is() -> None:
    alone = Matcher([("ent-1", person("Alice"))]).match(person("Alice"), "ent-1")
    among = Matcher([("ent-1", person("Alice")), ("ent-2", person("Alice"))]).match(person("Alice"), "ent-1")
    assert alone is not None
    assert among is not None
    assert among.score < alone.score


def test_a_number_in_one_name_only_stays_a_suggestion_among_equal_attributes() -> None:
    authors = {"authors": "Ada Lee"}
    one, other = Described("Handbook of trees", "", authors), Described("Handbook of trees 2", "", authors)
    same = found(one, one)
    assert same is not None
    assert same.decision == "merge"
    match = found(one, other)
    assert match is not None
    assert match.decision == "suggest"
    assert "a number in one name only" in match.evidence


@check_rows(
    ("one", "other", "contradict"),
    [
        ("Acme GmbH", "Acme Inc.", True),
        ("Acme GmbH", "Acme", False),
        ("postgres 15", "postgres 16", True),
        ("postgres", "postgres 16", False),
        ("svc-auth-1", "svc-authn-2", True),
    ],
)
def test_what_is_only_not_known_is_no_contradiction(one: str, other: str, contradict: bool) -> None:
    matcher = Matcher([("ent-1", Described(one)), ("ent-2", Described(other))])
    assert matcher.conflict("ent-1", "ent-2") is contradict


def test_an_attribute_that_tells_who_it_is_decides_between_them() -> None:
    matcher = Matcher([("ent-1", person("Alice", email="a@b.de")), ("ent-2", person("Alice", email="c@d.de"))])
    match = matcher.find(person("Alice", email="c@d.de"))
    assert match is not None
    assert (match.id, match.decision) == ("ent-2", "merge")


def test_who_is_as_likely_another_is_not_merged_unasked() -> None:
    known = [("ent-1", person("Robert Smith", phone="+49 228 1234567")), ("ent-2", person("Rob Smith"))]
    known[1] = ("ent-2", person("Rob Smith", phone="0228 1234567"))
    match = Matcher(known).find(person("Bob Smith", phone="0228/123 45 67"))
    assert match is not None
    assert match.decision == "suggest"


@check_rows(
    ("known", "asked", "decision"),
    [
        (person("Robert Smith", email="bob@example.com"), person("bob", email="bob@example.com"), "merge"),
        (person("Ada Smith", email="smith@example.com"), person("Bob Smith", email="smith@example.com"), "suggest"),
        (place("Blue Door", phone="030/1234567"), place("Blue Door Café", phone=""), "suggest"),
        (place("Blue Door", phone="030/1234567"), place("The Blue Door", phone="+49 30 1234567"), "merge"),
        (Described("lamp", "product", {"sku": "A-1"}), Described("lamp", "product", {"sku": "A-2"}), None),
        (Described("lamp", "product", {"sku": "A-1"}), Described("lamp", "product", {"sku": ""}), "merge"),
        (Described("lamp", "product", {"price": "10"}), Described("lamp", "product", {"price": "10"}), "suggest"),
        (Described("lamp tx4711b", "product", {"price": "10"}), Described("lamp TX-4711B", "product", {}), "merge"),
        (Described("vault360 combo", "", {"price": "29.95"}), Described("bamboo vault360 combo"), "suggest"),
        (Described("kit exams 70-292 70-296", "", {"price": "9"}), Described("kit exams 70-292 and 70-296"), "suggest"),
        (Described("ftp wd-1000-0900", "", {"price": "9"}), Described("wd-1000-0900 ftp"), "suggest"),
        (Described("lamp kit", "", {"price": "9", "sku": "A-1"}), Described("lamp kit", "", {"sku": "A-1"}), "merge"),
        (Described("word wx4711b license", "", {"price": "10"}), Described("word WX-4711B license"), "suggest"),
        (Described("Report", attributes={"year": "2001"}), Described("Report", attributes={"year": "2002"}), None),
        (Described("Report", attributes={"year": "2001"}), Described("Report", attributes={"year": ""}), "merge"),
        (Described("Mercury", "place"), Described("Mercury", "person"), None),
        (Described("redis", "package"), Described("Redis", "service"), "suggest"),
        (Described("redis", "package"), Described("Redis", "other"), "merge"),
        (person("Ann Lee", city="Bonn"), person("Ann Lee", city="Köln"), "merge"),
        (person("Ann Lee", phone="030 1234567"), person("Ann Lee", phone="030 7654321"), "suggest"),
    ],
)  # fmt: skip
def test_attributes_decide_beside_the_name_and_missing_ones_say_nothing(
    known: Described, asked: Described, decision: str | None
) -> None:
    match, mirrored = found(known, asked), found(asked, known)
    assert (match.decision if match else None) == (mirrored.decision if mirrored else None) == decision


def test_an_alias_is_found_as_the_name_is() -> None:
    known = Described("Hamburg office", "place", aliases=("the Elbe place", "HH-1"))
    match = found(known, Described("Elbe place", "place"))
    assert match is not None
    assert (match.stage, match.decision) == ("exact", "merge")


def test_an_alias_that_two_things_share_does_not_make_one_of_them() -> None:
    assert found(Described("svc-auth-1", aliases=("auth",)), Described("svc-auth-2", aliases=("auth",))) is None


def test_who_is_known_by_two_names_that_differ_in_a_number_is_found_by_both() -> None:
    known = Described("auth", aliases=("svc-auth-1", "svc-auth-2"))
    for name in ("svc-auth-1", "svc-auth-2"):
        match = found(known, Described(name))
        assert match is not None
        assert match.decision == "merge"


def test_evidence_says_no_value() -> None:
    secret = "030 99 88 77 66"
    known = person("Bob Smith", phone=secret, email="hidden@example.com", city="Zwiesel")
    match = found(known, person("B. Smith", phone=secret, email="hidden@example.com", city="Zwiesel"))
    assert match is not None
    text = " ".join(match.evidence)
    assert not any(value in text for value in (secret, "hidden", "Zwiesel", "Smith"))
    assert {"the same phone", "the same email"} <= set(match.evidence)


def test_what_is_removed_is_not_found_and_what_is_added_again_is_replaced() -> None:
    matcher = Matcher([("ent-1", Described("lamp")), ("ent-2", Described("chair"))])
    matcher.remove("ent-1")
    matcher.remove("ent-1")
    assert matcher.find(Described("lamp")) is None
    matcher.add("ent-2", Described("table"))
    assert matcher.find(Described("chair")) is None
    assert len(matcher) == 1
    match = matcher.find(Described("table"))
    assert match is not None
    assert match.decision == "merge"


def test_one_known_one_can_be_asked_about_alone() -> None:
    matcher = Matcher([("ent-1", Described("lamp"))])
    match = matcher.match(Described("lamp"), "ent-1")
    assert match is not None
    assert match.stage == "exact"
    assert matcher.candidates(Described("lamp")) == ["ent-1"]
    with pytest.raises(KeyError):
        matcher.match(Described("lamp"), "ent-2")


def test_the_right_one_is_found_among_many_that_share_its_words() -> None:
    matcher = Matcher((f"ent-{number}", Described(f"auth service {number}", "service")) for number in range(2_000))
    match = matcher.find(Described("auth-service-1234", "service"))
    assert match is not None
    assert (match.id, match.stage, match.decision) == ("ent-1234", "exact", "merge")


@settings(max_examples=scale_examples(200))
@given(DESCRIBED, DESCRIBED)
def test_who_is_asked_and_who_is_known_can_change_places(one: Described, other: Described) -> None:
    matcher = Matcher([("ent-1", one), ("ent-2", other)])
    match, mirrored = matcher.match(one, "ent-2"), matcher.match(other, "ent-1")
    assert (match is None) == (mirrored is None)
    assert matcher.conflict("ent-1", "ent-2") == matcher.conflict("ent-2", "ent-1")
    if match is not None and mirrored is not None:
        assert (match.stage, match.decision) == (mirrored.stage, mirrored.decision)
        assert match.score == pytest.approx(mirrored.score)
        assert match.decision == "suggest" or not matcher.conflict("ent-1", "ent-2")


@given(DESCRIBED)
def test_a_description_never_contradicts_itself(one: Described) -> None:
    matcher = Matcher([("ent-1", one), ("ent-2", one)])
    assert not matcher.conflict("ent-1", "ent-2")


@given(st.text(max_size=60), st.text(max_size=60), st.sampled_from(["", "person", "organisation"]))
def test_any_two_texts_can_be_compared(one: str, other: str, kind: str) -> None:
    match = found(Described(one, kind, {"email": other}), Described(other, kind, {"email": one}))
    assert match is None or 0 <= match.score <= 1
