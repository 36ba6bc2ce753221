"""`agent-memory suspects`: the list of pairs that cannot both be right, as it looks, and what settles one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.unit.cli.conftest import document

if TYPE_CHECKING:
    from tests.unit.cli.conftest import Run

OLD, NEW = "The daily backup runs at 2:30.", "The daily backup runs at 4:00."


def stored(bob: Run, text: str) -> str:
    return str(document(bob("store", text, "--json"))["memory_id"])


def test_a_store_names_what_it_disputes_and_the_list_shows_both_texts(bob: Run) -> None:
    old = stored(bob, OLD)
    bob("search", "backup")
    new = stored(bob, NEW)
    listed = document(bob("suspects", "--json"))["suspects"]
    assert [(each["id"], each["other"], each["hint"]) for each in listed] == [(new, old, "replace")]
    said = bob("suspects").stdout
    assert said.index(NEW) < said.index(OLD)


@pytest.mark.parametrize(("option", "left"), [("--replace", {NEW}), ("--keep", {OLD, NEW}), ("--not-same", {OLD, NEW})])
def test_a_decision_takes_a_pair_off_the_list(bob: Run, option: str, left: set[str]) -> None:
    old, new = stored(bob, OLD), stored(bob, NEW)
    assert document(bob("suspects", new, old, option, "--json"))["decision"] in {"replace", "keep", "not_same"}
    assert document(bob("suspects", "--json"))["suspects"] == []
    assert "No two memories" in bob("suspects").stderr
    found = {memory["content"] for memory in document(bob("list", "--json"))["memories"]}
    assert found & {OLD, NEW} == left


def test_what_a_person_sees_of_a_pair_says_which_is_newer_and_what_to_do(bob: Run) -> None:
    old = stored(bob, OLD)
    said = bob("store", NEW)
    assert f"may not be right together with {old}: {OLD}" in said.stderr
    new = said.stdout.split()[-1].rstrip(".")
    listed = bob("suspects")
    assert listed.stdout.count(OLD) == listed.stdout.count(NEW) == 1
    assert listed.stdout.index("newer") < listed.stdout.index(NEW) < listed.stdout.index("older")
    assert "--not-same" in listed.stderr
    assert f"{old}, which is older" in bob("show", new).stdout
    assert f"by {new}" in bob("show", old).stdout


def test_what_a_store_has_replaced_at_once_is_quoted(bob: Run) -> None:
    stored(bob, "The public API allows 100 requests.")
    said = bob("store", "The limit of the public API was raised to 300 requests.")
    assert "The public API allows 100 requests." in said.stderr
    assert "agent-memory undo" in said.stderr


def test_one_memory_or_two_decisions_are_no_decision(bob: Run) -> None:
    old, new = stored(bob, OLD), stored(bob, NEW)
    bob("suspects", new, code=2)
    bob("suspects", new, old, code=2)
    bob("suspects", new, old, "--keep", "--replace", code=2)
    assert len(document(bob("suspects", "--json"))["suspects"]) == 1


def test_looking_at_all_finds_nothing_new_where_all_was_compared(bob: Run) -> None:
    stored(bob, OLD)
    stored(bob, NEW)
    assert "0 new pairs" in bob("suspects", "--look").stderr
