"""`agent-memory conflicts`: list and settle pairs of memories that conflict."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.unit.cli.conftest import document

if TYPE_CHECKING:
    from tests.unit.cli.conftest import Run

OLD, NEW = "The daily backup keeps 14 copies.", "The daily backup keeps 30 copies."


def stored(bob: Run, text: str) -> str:
    return str(document(bob("store", text, "--json"))["memory_id"])


def test_a_store_names_what_it_disputes_and_the_list_shows_both_texts(bob: Run) -> None:
    old = stored(bob, OLD)
    bob("search", "backup")
    new = stored(bob, NEW)
    listed = document(bob("conflicts", "--json"))["suspects"]
    assert [(each["id"], each["other"], each["hint"]) for each in listed] == [(new, old, "replace")]
    said = bob("conflicts").stdout
    assert said.index(NEW) < said.index(OLD)


@pytest.mark.parametrize(("option", "left"), [("--replace", {NEW}), ("--keep", {OLD, NEW}), ("--not-same", {OLD, NEW})])
def test_a_decision_takes_a_pair_off_the_list(bob: Run, option: str, left: set[str]) -> None:
    old, new = stored(bob, OLD), stored(bob, NEW)
    assert document(bob("conflicts", new, old, option, "--json"))["decision"] in {"replace", "keep", "not_same"}
    assert document(bob("conflicts", "--json"))["suspects"] == []
    assert "No conflicts." in bob("conflicts").stderr
    found = {memory["content"] for memory in document(bob("list", "--json"))["memories"]}
    assert found & {OLD, NEW} == left


def test_what_a_person_sees_of_a_pair_says_which_is_newer_and_what_to_do(bob: Run) -> None:
    old = stored(bob, OLD)
    said = bob("store", NEW)
    assert f"may not be right together with {old}: {OLD}" in said.stderr
    new = said.stdout.split()[-1].rstrip(".")
    listed = bob("conflicts")
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
    bob("conflicts", new, code=2)
    bob("conflicts", new, old, code=2)
    bob("conflicts", new, old, "--keep", "--replace", code=2)
    assert len(document(bob("conflicts", "--json"))["suspects"]) == 1


def test_looking_at_all_finds_nothing_new_where_all_was_compared(bob: Run) -> None:
    stored(bob, OLD)
    stored(bob, NEW)
    assert "0 new pairs" in bob("conflicts", "--look").stderr


def test_suspects_old_name_runs_conflicts(bob: Run) -> None:
    stored(bob, OLD)
    stored(bob, NEW)
    assert bob("suspects", "--json").stdout == bob("conflicts", "--json").stdout
    assert "suspects" not in bob("help").stdout
