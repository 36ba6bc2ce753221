"""What is said of two named things, and what only sounds like it."""

from __future__ import annotations

import pytest

from agent_memory.entities import Gazetteer
from agent_memory.entities.relating import relations_in
from agent_memory.entities.verbs import VERBS, Verb, saying

KNOWN = Gazetteer(
    {"Alice": "person", "Bob": "person", "Carol": "person", "Acme": "organisation", "Globex": "organisation",
     "Berlin": "place", "Lisbon": "place", "Redis": "product", "Postgres": "product", "Atlas": "product",
     "ledger-api": "service", "billing-worker": "service", "db-01": "host", "orjson": "package",
     "Data Team": "organisation"}
)  # fmt: skip


def said(text: str, speaker: str = "") -> list[tuple[str, str, str]]:
    found = relations_in(text, gazetteer=KNOWN, speaker=speaker)
    return [(each.subject.name, each.name, each.object.name) for each in found]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Alice works at Acme.", ("Alice", "works_at", "Acme")),
        ("Alice now works for Globex.", ("Alice", "works_at", "Globex")),
        ("Alice, our new designer, works at Acme.", ("Alice", "works_at", "Acme")),
        ("Alice has worked at Acme since March 2024.", ("Alice", "works_at", "Acme")),
        ("Alice joined Acme.", ("Alice", "works_at", "Acme")),
        ("Bob lives in Berlin.", ("Bob", "lives_in", "Berlin")),
        ("Bob has moved to Lisbon.", ("Bob", "lives_in", "Lisbon")),
        ("Bob moved from New York to Lisbon.", ("Bob", "lives_in", "Lisbon")),
        ("Bob moved from Bern to Lisbon in May.", ("Bob", "lives_in", "Lisbon")),
        ("Acme is located in Berlin.", ("Acme", "located_in", "Berlin")),
        ("Alice manages the Data Team.", ("Alice", "manages", "Data Team")),
        ("The Data Team is led by Carol.", ("Carol", "manages", "Data Team")),
        ("Bob reports to Carol.", ("Bob", "reports_to", "Carol")),
        ("Bob's manager is Carol.", ("Bob", "reports_to", "Carol")),
        ("Carol is Bob's manager.", ("Bob", "reports_to", "Carol")),
        ("Carol owns ledger-api.", ("Carol", "owns", "ledger-api")),
        ("ledger-api is owned by the Data Team.", ("Data Team", "owns", "ledger-api")),
        ("ledger-api depends on orjson.", ("ledger-api", "depends_on", "orjson")),
        ("ledger-api uses Postgres.", ("ledger-api", "uses", "Postgres")),
        ("ledger-api runs on db-01.", ("ledger-api", "deployed_on", "db-01")),
        ("Alice is married to Bob.", ("Alice", "married_to", "Bob")),
        ("Alice is a member of the Data Team.", ("Alice", "member_of", "Data Team")),
        ("Redis was replaced by Postgres.", ("Redis", "replaced_by", "Postgres")),
        ("Postgres has replaced Redis.", ("Redis", "replaced_by", "Postgres")),
        ("Redis wurde durch Postgres ersetzt.", ("Redis", "replaced_by", "Postgres")),
        ("Atlas is a fork of Redis.", ("Atlas", "version_of", "Redis")),
        ("Alice arbeitet bei Acme.", ("Alice", "works_at", "Acme")),
        ("weil Alice bei Acme arbeitet", ("Alice", "works_at", "Acme")),
        ("Bob wohnt jetzt in Berlin.", ("Bob", "lives_in", "Berlin")),
        ("Bob ist nach Lisbon gezogen.", ("Bob", "lives_in", "Lisbon")),
        ("Carol leitet das Data Team.", ("Carol", "manages", "Data Team")),
        ("Bob berichtet an Carol.", ("Bob", "reports_to", "Carol")),
        ("ledger-api h\u00e4ngt von orjson ab.", ("ledger-api", "depends_on", "orjson")),
        ("ledger-api l\u00e4uft auf db-01.", ("ledger-api", "deployed_on", "db-01")),
        ("Alice ist mit Bob verheiratet.", ("Alice", "married_to", "Bob")),
        ("Acme befindet sich in Berlin.", ("Acme", "located_in", "Berlin")),
    ],
)
def test_a_relation_is_read_where_the_words_between_two_names_say_it(text: str, expected: tuple[str, str, str]) -> None:
    assert said(text) == [expected]


@pytest.mark.parametrize(
    "text",
    [
        "Alice does not work at Acme.",
        "Alice doesn't work at Acme.",
        "Alice never works at Acme.",
        "Alice no longer works at Acme.",
        "Alice works at Acme no more.",
        "Does Alice work at Acme?",
        "Alice works at Acme?",
        "If Alice works at Acme, we can ask her.",
        "Maybe Bob lives in Berlin.",
        "Carol thinks Bob lives in Berlin.",
        "It is not true that Bob lives in Berlin.",
        "Bob used to live in Berlin. Alice used to work at Acme.",
        "Alice worked at Acme.",
        "Bob would move to Lisbon.",
        "Alice met Bob at Acme.",
        "Alice joined the Acme team.",
        "Alice left the Acme meeting early.",
        "Alice wrote to Bob while Carol was in Berlin.",
        "Alice arbeitet nicht bei Acme.",
        "Alice arbeitet bei Acme nicht mehr.",
        "Arbeitet Alice bei Acme?",
        "Falls Bob in Berlin wohnt, sag Bescheid.",
        "ledger-api is married to Bob.",
        "db-01 works at Acme.",
        "Acme.",
        "",
    ],
)
def test_what_is_denied_asked_supposed_or_past_is_none(text: str) -> None:
    assert said(text) == []


def test_several_subjects_and_objects_are_each_related() -> None:
    assert said("Alice and Bob work at Acme.") == [("Alice", "works_at", "Acme"), ("Bob", "works_at", "Acme")]
    assert said("ledger-api uses Redis and Postgres.") == [
        ("ledger-api", "uses", "Redis"),
        ("ledger-api", "uses", "Postgres"),
    ]


def test_a_sentence_goes_on_with_its_subject() -> None:
    assert said("Alice works at Acme and lives in Berlin.") == [
        ("Alice", "works_at", "Acme"),
        ("Alice", "lives_in", "Berlin"),
    ]
    assert said("Bob moved to Lisbon last month and joined Acme.") == [
        ("Bob", "lives_in", "Lisbon"),
        ("Bob", "works_at", "Acme"),
    ]
    assert said("Alice, who works at Acme, reports to Carol.")[0] == ("Alice", "works_at", "Acme")


def test_one_denied_clause_leaves_the_other() -> None:
    assert said("Bob does not come; Alice works at Acme.") == [("Alice", "works_at", "Acme")]
    assert said("Alice works at Acme but Bob does not.") == [("Alice", "works_at", "Acme")]


def test_who_speaks_is_the_subject_of_i() -> None:
    assert said("I work at Acme and live in Berlin.", "Alice") == [
        ("Alice", "works_at", "Acme"),
        ("Alice", "lives_in", "Berlin"),
    ]
    assert said("I work at Acme.") == []
    assert said("Ich wohne in Berlin.", "Bob") == [("Bob", "lives_in", "Berlin")]


def test_functional_ones_are_marked_and_a_sentence_is_told() -> None:
    text = "Hello. Alice works at Acme. It uses Redis."
    (found,) = relations_in(text, gazetteer=KNOWN)
    assert found.functional
    assert text[found.start : found.end].strip() == "Alice works at Acme."
    assert {verb.name: verb.functional for verb in VERBS}["uses"] is False


def test_a_verb_tells_the_kind_of_what_was_only_likely() -> None:
    (found,) = relations_in("Sarah Miller works at Initech.")
    assert (found.subject.kind, found.object.kind) == ("person", "organisation")


def test_other_relations_can_be_given() -> None:
    mentors = Verb("mentors", functional=False, sayings=(saying("mentors"),))
    (found,) = relations_in("Alice mentors Bob.", gazetteer=KNOWN, verbs=(mentors,))
    assert found.name == "mentors"
