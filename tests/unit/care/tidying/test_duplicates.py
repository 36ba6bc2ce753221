"""What says the same in the same words, and what only looks so."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from agent_memory.care.tidying.suggestions import duplicates, extract_words
from agent_memory.models import BESIDE, DISTINCT, SUSPECT, Link, Memory
from tests.rows import check_rows
from tests.support import NOON, memory_of

SAME = [
    ("The office is in Rome.", "the office is in Rome"),
    ("The office  is in\nRome!", "The office is in Rome."),
    ("Maria likes tea, and Ann coffee.", "Maria likes tea and Ann coffee"),
    ("Use a tab for indenting.", "Use tab for indenting"),
    ("The caf\u00e9 opens at 4.", "The cafe\u0301 opens at 4."),
    ("He said \u201cno\u201d.", 'He said "no".'),
]
OTHER = [
    ("\uff34ea is at 4.", "Tea is at 4."),
    ("The limit is 10⁵ rows.", "The limit is 105 rows."),
    ("The office is in Rome.", "The office is in Turin."),
    ("The office is in Rome.", "The office is not in Rome."),
    ("The office is in Rome.", "Is the office in Rome?"),
    ("The office is in Rome.", "The office is in Rome?"),
    ("The limit is 600.", "The limit is 60.0."),
    ("The limit is 5 %.", "The limit is 5."),
    ("The offset is -5.", "The offset is 5."),
    ("Version 1.2 works.", "Version 12 works."),
    ("Use C++ here.", "Use C here."),
    ("Ticket AB-12 is open.", "Ticket AB-13 is open."),
    ("We met in the US.", "We met in the us."),
    ("She likes Polish food.", "She likes polish food."),
    ("Don't deploy on Fridays.", "Deploy on Fridays."),
    ("Move it from A to B.", "Move it to A from B."),
    ("Maria likes tea.", "Maria likes tea and coffee."),
    ("Tom hired Ann.", "Ann hired Tom."),
    ("The cat sleeps on the table.", "The cat sleeps under the table."),
    ("The price is 10 €.", "The price is 10 $."),
    ("It runs.", "It ran."),
]


def said(text: str, **fields: Any) -> Memory:
    return memory_of(text, **fields)


def found(*memories: Memory) -> list[tuple[str, list[str]]]:
    return [(best.id, [each.id for each in others]) for best, others in duplicates(memories)]


@check_rows(("one", "other"), SAME)
def test_white_space_punctuation_case_and_articles_make_no_difference(one: str, other: str) -> None:
    first, second = said(one), said(other, timestamp=NOON + timedelta(days=1))
    assert found(first, second) == [(second.id, [first.id])]


@check_rows(("one", "other"), OTHER)
def test_whatever_else_differs_is_another_statement(one: str, other: str) -> None:
    assert found(said(one), said(other)) == []


def test_what_is_pinned_stays_then_what_is_trusted_then_what_is_newest() -> None:
    old = said("Maria likes tea.", timestamp=NOON - timedelta(days=9))
    new = said("Maria likes tea.")
    assert found(old, new) == [(new.id, [old.id])]
    trusted = said("Maria likes tea.", trust="high", timestamp=NOON - timedelta(days=20))
    assert found(old, new, trusted) == [(trusted.id, [new.id, old.id])]
    pinned = said("Maria likes tea.", trust="low", pinned=True, timestamp=NOON - timedelta(days=30))
    assert found(old, new, trusted, pinned)[0][0] == pinned.id


@check_rows("rel", [SUSPECT, BESIDE, DISTINCT])
def test_a_pair_that_somebody_decides_about_is_left(rel: str) -> None:
    first = said("Maria likes tea.")
    assert found(first, said("Maria likes tea!", links=[Link(rel=rel, id=first.id)])) == []
    second = said("Maria likes tea!", timestamp=NOON - timedelta(days=1))
    assert found(said("Maria likes tea.", links=[Link(rel=rel, id=second.id)]), second) == []


@check_rows(
    "differing",
    [{"group": "acme:one"}, {"project": "kestrel"}, {"expires_at": NOON + timedelta(days=3)}, {"topic": "kitchen"}],
)
def test_another_group_topic_or_end_is_another_matter(differing: dict[str, Any]) -> None:
    assert found(said("Maria likes tea."), said("Maria likes tea.", **differing)) == []


def test_a_day_that_is_named_from_when_it_was_said_has_to_be_the_same_day() -> None:
    today, later = said("We met yesterday."), said("We met yesterday.", timestamp=NOON + timedelta(days=7))
    assert found(today, later) == []
    same_day = said("We met yesterday.", timestamp=NOON + timedelta(hours=1))
    assert found(today, same_day) == [(same_day.id, [today.id])]
    assert found(today, said("We met yesterday.", timestamp=later.timestamp, observed_at=NOON))


def test_what_has_no_words_repeats_nothing() -> None:
    assert extract_words(" .,! ") == ()
    assert found(said("..."), said("...")) == []
