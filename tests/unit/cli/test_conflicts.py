"""`agent-memory conflicts`: list and settle pairs of memories that conflict."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import typer

from agent_memory.cli import decisions
from tests.unit.cli.conftest import document

if TYPE_CHECKING:
    from collections.abc import Callable

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


@pytest.mark.parametrize("option", ["--keep", "--not-same"])
@pytest.mark.parametrize("every", [False, True])
def test_undo_of_decision_lists_the_pair_again_and_keeps_both(bob: Run, option: str, every: bool) -> None:
    old, new = stored(bob, OLD), stored(bob, NEW)
    bob("conflicts", *(["--all"] if every else [new, old]), option)
    change, *_ = document(bob("undo", "--json"))["changes"]
    assert change["fields"] == ["decision"]
    assert "Took back 1 change" in bob("undo", new, "--yes").stdout
    assert {memory["content"] for memory in document(bob("list", "--json"))["memories"]} >= {OLD, NEW}
    assert [row["id"] for row in document(bob("conflicts", "--json"))["suspects"]] == [new]
    bob("undo", new, "--yes")
    assert document(bob("conflicts", "--json"))["suspects"] == []


def test_pair_decided_for_the_memory_that_replaced_one_is_not_listed_again(bob: Run) -> None:
    first, second = stored(bob, OLD), stored(bob, NEW)
    third = stored(bob, "The daily backup keeps 90 copies.")
    bob("conflicts", third, second, "--replace")
    bob("conflicts", third, first, "--keep")
    assert document(bob("conflicts", "--json"))["suspects"] == []


def test_memory_replaced_by_decision_names_the_chosen_one(bob: Run) -> None:
    old, rival = stored(bob, "The daily backup keeps 7 copies."), stored(bob, OLD)
    new = str(document(bob("store", NEW, "--supersedes", old, "--json"))["memory_id"])
    bob("conflicts", new, rival, "--replace")
    rows = document(bob("list", "--superseded", "--json"))["memories"]
    newer = {row["id"]: row["superseded_by"] for row in rows}
    assert (newer[old], newer[rival]) == (new, new)
    assert document(bob("show", rival, "--json"))["superseded_by"] == new
    assert f"replaced by {new}" in bob("why", rival).stdout
    found = document(bob("search", "daily backup", "--superseded", "--json"))["results"]
    assert {row["id"]: row.get("superseded_by") for row in found} == {old: new, rival: new, new: None}


def test_store_conflict_one_line_each_and_command(bob: Run) -> None:
    old = stored(bob, f"{OLD} They are tested once a month by the people on call, and then listed.")
    stored(bob, "The copies of the daily backup are tested and listed once a month.")
    said = bob("store", f"{NEW} They are tested once a month by the people on call, and then listed.")
    conflict, similar, hint, *_ = said.stderr.splitlines()
    assert conflict.startswith(f'Conflict: {old} "The daily backup keeps 14 copies.')
    assert similar.startswith("Similar: ")
    assert hint == "Decide with `agent-memory conflicts`."
    assert max(len(conflict), len(similar)) <= 80
    assert old not in similar


def test_conflicts_pair_shown_newer_first_with_command(bob: Run) -> None:
    old, new = stored(bob, OLD), stored(bob, NEW)
    listed = bob("conflicts")
    assert listed.stdout.count(OLD) == listed.stdout.count(NEW) == 1
    assert listed.stdout.index(f"newer  {new}") < listed.stdout.index(NEW) < listed.stdout.index(f"older  {old}")
    assert "replace" not in listed.stdout
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
    bob("conflicts", "--keep", code=2)
    bob("conflicts", new, old, "--keep", "--all", code=2)
    bob("conflicts", new, old, "--keep", "--look", code=2)
    assert len(document(bob("conflicts", "--json"))["suspects"]) == 1


def test_looking_at_all_finds_nothing_new_where_all_was_compared(bob: Run) -> None:
    stored(bob, OLD)
    stored(bob, NEW)
    assert "0 new pairs" in bob("conflicts", "--look").stderr


@pytest.mark.parametrize(
    ("keys", "valid", "waiting"),
    [("n ", {NEW}, 0), ("o ", {OLD}, 0), ("b ", {OLD, NEW}, 0), ("d ", {OLD, NEW}, 0), ("nuq", {OLD, NEW}, 1),
     ("nu", {OLD, NEW}, 1), ("s", {OLD, NEW}, 1), ("q", {OLD, NEW}, 1)],
)  # fmt: skip
def test_conflicts_terminal_key_settles_pair(
    bob: Run, press: Callable[[str], list[str]], keys: str, valid: set[str], waiting: int
) -> None:
    stored(bob, OLD)
    stored(bob, NEW)
    questions = press(keys)
    assert bob("conflicts").stdout.count(NEW) >= 1
    assert questions[0].startswith("[n]ewer, [o]lder, [b]oth, [d]ifferent")
    assert len(questions[0]) <= 80
    assert {memory["content"] for memory in document(bob("list", "--json"))["memories"]} & {OLD, NEW} == valid
    assert len(document(bob("conflicts", "--json"))["suspects"]) == waiting


@pytest.mark.parametrize(("keys", "dropped"), [("", False), ("n", True)])
@pytest.mark.parametrize("command", ["conflicts", "review"])
def test_conflicts_control_c_changes_nothing_and_ends_with_130(
    bob: Run, press: Callable[[str], list[str]], monkeypatch: pytest.MonkeyPatch, command: str, keys: str, dropped: bool
) -> None:
    stored(bob, OLD)
    stored(bob, NEW)
    typed = iter(keys)

    def type_key() -> str:
        if key := next(typed, ""):
            return key
        raise KeyboardInterrupt

    read_key = decisions.read_key
    press("")
    monkeypatch.setattr(decisions, "read_key", read_key)
    monkeypatch.setattr(typer, "getchar", type_key)
    stopped = bob(command, code=130)
    assert "Stopped. 0 decisions made." in stopped.stderr
    assert ("The last one was not carried out." in stopped.stderr) == dropped
    assert "Settled" not in stopped.stdout
    assert {memory["content"] for memory in document(bob("list", "--json"))["memories"]} >= {OLD, NEW}
    assert len(document(bob("conflicts", "--json"))["suspects"]) == 1


@pytest.mark.parametrize(("answer", "options", "left"), [("y\n", [], 0), ("n\n", [], 1), ("", ["--yes"], 0)])
@pytest.mark.parametrize("decision", ["--replace", "--keep"])
def test_conflicts_all_at_a_terminal_asks_once(
    bob: Run, press: Callable[[str], list[str]], decision: str, answer: str, options: list[str], left: int
) -> None:
    old, new = stored(bob, OLD), stored(bob, NEW)
    press("")
    said = bob("conflicts", "--all", decision, *options, given=answer, code=left)
    assert (
        (said.stdout.index(f"newer  {new}") < said.stdout.index(f"older  {old}")) if answer else new not in said.stdout
    )
    assert said.stderr.count("[y/N]") == bool(answer)
    assert ("Nothing was settled." in said.stderr) == bool(left)
    assert len(document(bob("conflicts", "--json"))["suspects"]) == left


def test_conflicts_terminal_without_pairs_asks_nothing(bob: Run, press: Callable[[str], list[str]]) -> None:
    questions = press("n")
    assert "No conflicts." in bob("conflicts").stderr
    assert questions == []


@pytest.mark.parametrize(("option", "settled", "left"), [("--keep", 3, 3), ("--not-same", 3, 3), ("--replace", 2, 1)])
def test_conflicts_all_settles_every_pair(bob: Run, option: str, settled: int, left: int) -> None:
    texts = [OLD, NEW, "The daily backup keeps 45 copies."]
    for text in texts:
        stored(bob, text)
    assert len(document(bob("conflicts", "--all", option, "--json"))["settled"]) == settled
    assert document(bob("conflicts", "--json"))["suspects"] == []
    valid = {memory["content"] for memory in document(bob("list", "--json"))["memories"]} & {*texts}
    assert valid == {*texts[-left:]}


def test_conflicts_all_without_decision_lists_all(bob: Run, press: Callable[[str], list[str]]) -> None:
    for name in "abcdefghijkl":
        for number in (3, 5):
            stored(bob, f"Job {name} writes the report to disk {number}.")
    questions = press("")
    assert len(document(bob("conflicts", "--json"))["suspects"]) > 0
    said = bob("conflicts", "--all")
    assert said.stdout.count("newer  mem-") == len(document(bob("conflicts", "--json"))["suspects"])
    assert "more;" not in said.stderr
    assert questions == []


def test_suspects_old_name_runs_conflicts(bob: Run) -> None:
    stored(bob, OLD)
    stored(bob, NEW)
    assert bob("suspects", "--json").stdout == bob("conflicts", "--json").stdout
    assert "suspects" not in bob("help").stdout
