"""`agent-memory undo`: the list of changes, and one change, session or import taken back."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.cli.conftest import A, B, C, document

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from typer.testing import Result

    Run = Callable[..., Result]


def list_contents(cli: Run) -> dict[str, str]:
    return {memory["id"]: memory["content"] for memory in document(cli("list", "--json"))["memories"]}


def list_changes(cli: Run) -> list[dict[str, Any]]:
    changes: list[dict[str, Any]] = document(cli("undo", "--json"))["changes"]
    return changes


def find_latest(cli: Run) -> int:
    return int(list_changes(cli)[0]["change"])


def find_session(cli: Run, prefix: str) -> str:
    return next(str(change["session"]) for change in list_changes(cli) if change["session"].startswith(prefix))


def test_undo_without_changes_says_so(cli: Run) -> None:
    cli("store", "The sky is blue.", "-a", "bob")
    assert [change["what"] for change in list_changes(cli)] == ["stored"]
    assert cli("undo").stdout.splitlines()[1] == "  The sky is blue."


def test_undo_list_names_who_what_and_fields(bob: Run) -> None:
    bob("update", B, "--content", "Maria likes coffee.")
    changed, imported = list_changes(bob)
    assert (changed["session"], changed["what"], changed["fields"]) == ("cli", "changed", ["content", "origin"])
    assert changed["content"] == "Maria likes coffee."
    assert imported["session"].startswith("import-")
    assert imported["memories"] == [A, B, C]


def test_undo_shows_twenty_newest_changes(cli: Run) -> None:
    for number in range(23):
        cli("store", f"Fact number {number} of many.", "-a", "bob")
    changes = list_changes(cli)
    assert [change["change"] for change in changes] == list(range(23, 3, -1))


@pytest.mark.parametrize(
    "change",
    [
        ("update", B, "--content", "Maria likes coffee.", "--tag", "new"),
        ("pin", B),
        ("forget", B, "--yes"),
        ("forget", C, "--yes"),
        ("store", "Something new."),
        ("store", "Maria likes coffee.", "--supersedes", B),
        ("forget", "what Maria likes", "--yes"),
    ],
)
def test_undo_of_last_change_restores_every_memory(bob: Run, change: tuple[str, ...]) -> None:
    before = bob("list", "--json").stdout
    bob(*change)
    assert bob("list", "--json").stdout != before
    last = list_changes(bob)[0]
    bob("undo", str(last["change"]))
    assert bob("list", "--json").stdout == before


def test_undo_of_undo_makes_the_change_again(bob: Run) -> None:
    bob("update", B, "--content", "Maria likes coffee.")
    bob("undo", B)
    assert list_contents(bob)[B] == "Maria likes tea."
    bob("undo", str(list_changes(bob)[0]["change"]))
    assert list_contents(bob)[B] == "Maria likes coffee."


def test_undo_of_memory_id_takes_its_storing_back(cli: Run) -> None:
    cli("store", "The sky is blue.", "-a", "bob")
    (memory_id,) = list_contents(cli)
    hint = cli("store", "The sea is deep.").stderr
    (second_id,) = list_contents(cli).keys() - {memory_id}
    assert f"Undo: agent-memory undo {second_id}" in hint
    cli("undo", memory_id)
    assert list(list_contents(cli).values()) == ["The sea is deep."]


def test_undo_of_older_change_keeps_later_ones(bob: Run) -> None:
    bob("update", B, "--content", "Maria likes coffee.")
    number = str(list_changes(bob)[0]["change"])
    bob("update", B, "--tag", "later")
    bob("undo", number)
    assert list_contents(bob)[B] == "Maria likes tea."
    assert "later" in document(bob("show", B, "--json"))["tags"]


def test_undo_of_field_changed_since_is_refused(bob: Run) -> None:
    bob("update", B, "--content", "Maria likes coffee.")
    number = str(list_changes(bob)[0]["change"])
    bob("update", B, "--content", "Maria likes water.")
    refused = bob("undo", number, code=1)
    assert f"{B} is left as it is: it was changed again since" in refused.stderr
    assert list_contents(bob)[B] == "Maria likes water."


def test_undo_of_storing_says_forgot(bob: Run) -> None:
    assert f"Forgot {B}; its last change was that it was stored." in bob("undo", B).stdout
    assert B not in list_contents(bob)


def test_undo_of_bringing_back_says_forgot_again(bob: Run) -> None:
    bob("forget", B, "--yes")
    bob("undo", B)
    assert f"Forgot {B} again; it had been brought back." in bob("undo", B).stdout
    assert B not in list_contents(bob)
    bob("undo", B)
    assert B in list_contents(bob)


@pytest.mark.parametrize("change", [("forget", B, "--yes"), ("store", "Something new."), ("pin", B)])
def test_undo_of_change_twice_says_taken_back_already(bob: Run, change: tuple[str, ...]) -> None:
    bob(*change)
    number = str(find_latest(bob))
    bob("undo", number)
    before = list_changes(bob)
    told = bob("undo", number)
    assert told.stdout == ""
    assert "Nothing was changed: this was taken back already." in told.stderr
    assert list_changes(bob) == before


def test_undo_session_shows_changes_before_asking(bob: Run) -> None:
    bob("store", "The sky is blue.")
    bob("store", "The sea is deep.")
    refused = bob("undo", "--session", "cli", code=2)
    assert "The sky is blue." in refused.stdout
    assert "The sea is deep." in refused.stdout
    assert "2 changes would be taken back." in refused.stderr
    assert {"The sky is blue.", "The sea is deep."} <= set(list_contents(bob).values())


def test_undo_import_takes_all_of_it_back(bob: Run, tmp_path: Path) -> None:
    before = list_contents(bob)
    file = tmp_path / "more.jsonl"
    file.write_text("".join(json.dumps({"content": f"Fact {number} of the import."}) + "\n" for number in range(230)))
    hint = bob("import", str(file)).stderr
    session = find_session(bob, "import-")
    assert f"Undo: agent-memory undo --import {session}" in hint
    bob("undo", "--import", session, "--yes")
    assert list_contents(bob) == before


def test_undo_session_takes_its_changes_back_newest_first(bob: Run) -> None:
    before = list_contents(bob)
    bob("update", B, "--content", "Maria likes coffee.")
    bob("update", B, "--content", "Maria likes water.")
    bob("store", "Something new.")
    bob("undo", "--session", "cli", "--yes")
    assert list_contents(bob) == before


def test_undo_of_several_without_terminal_asks_for_yes(bob: Run) -> None:
    bob("update", B, "--content", "Maria likes coffee.")
    bob("store", "Something new.")
    assert "--yes" in bob("undo", "--session", "cli", code=2).stderr
    assert list_contents(bob)[B] == "Maria likes coffee."


@pytest.mark.parametrize("arguments", [("999",), ("--session", "none"), ("--import", "none")])
def test_undo_of_unknown_change_is_not_found(bob: Run, arguments: tuple[str, ...]) -> None:
    assert "agent-memory undo" in bob("undo", *arguments, code=3).stderr


def test_undo_of_change_and_session_is_refused(bob: Run) -> None:
    bob("undo", "3", "--session", "cli", code=2)


def test_undo_of_purged_memory_is_not_listed(bob: Run) -> None:
    bob("update", B, "--content", "Maria likes coffee.")
    bob("purge", B, "--yes")
    assert all(B not in change["memories"] for change in list_changes(bob))


def test_undo_hint_with_several_agents_names_agent(bob: Run) -> None:
    bob("store", "The sky is blue.", "-a", "eve")
    hint = bob("store", "The sea is deep.", "-a", "eve").stderr.splitlines()
    (command_line,) = [line.removeprefix("Undo: ") for line in hint if line.startswith("Undo: ")]
    bob(*shlex.split(command_line)[1:])
    memories = document(bob("list", "--json", "-a", "eve"))["memories"]
    assert [memory["content"] for memory in memories] == ["The sky is blue."]


def test_undo_of_change_hints_command_that_works(bob: Run) -> None:
    before = list_contents(bob)
    bob("update", B, "--content", "Maria likes coffee.")
    assert f"Undo: agent-memory undo {B}" in bob("undo", B).stderr + bob("undo", str(find_latest(bob))).stderr
    assert list_contents(bob)[B] == "Maria likes coffee."
    bob("undo", B)
    assert list_contents(bob) == before


def test_undo_of_session_counts_each_memory_once(bob: Run) -> None:
    bob("update", B, "--content", "Maria likes coffee.")
    bob("update", B, "--tag", "later")
    done = bob("undo", "--session", "cli", "--yes")
    assert f"Took back 2 changes: {B}." in done.stdout
    assert "List changes to undo: agent-memory undo" in done.stderr


@pytest.mark.parametrize("option", ["session", "import"])
def test_undo_of_unknown_source_names_its_kind(bob: Run, option: str) -> None:
    assert f"No change is known of the {option} 'nope'." in bob("undo", f"--{option}", "nope", code=3).stderr


@pytest.mark.parametrize("arguments", [("--session", ""), ("--import", ""), ("--session", "  "), ("",)])
def test_undo_of_empty_argument_says_what_to_do(bob: Run, arguments: tuple[str, ...]) -> None:
    before = list_contents(bob)
    stderr = bob("undo", *arguments, code=2).stderr
    assert "is empty; nothing was changed." in stderr
    assert "Run agent-memory undo to list the last changes" in stderr
    assert list_contents(bob) == before


def test_undo_of_memories_forgotten_together_restores_all(bob: Run) -> None:
    before = list_contents(bob)
    bob("forget", "--all", "--yes")
    bob("undo", C)
    assert list_contents(bob) == before


def test_undo_of_archived_memory_brings_it_back(bob: Run) -> None:
    bob("archive", "add", C)
    assert C not in list_contents(bob)
    bob("undo", C)
    assert C in list_contents(bob)


@pytest.fixture
def versions(cli: Run, tmp_path: Path) -> list[str]:
    """Return a file of two versions that eve was given, and their IDs."""
    file, ids = tmp_path / "lathe.md", list[str]()
    for place in ("barn", "attic"):
        file.write_text(f"# Saw\n\nThe saw is new.\n\n# Lathe\n\nThe old lathe is in the {place}.")
        ids += document(cli("ingest", "-a", "eve", str(file), "--json"))["files"][0]["resources"]
    return [str(file), *ids]


def list_lathes(cli: Run) -> list[str]:
    rows = document(cli("list", "-a", "eve", "--items", "--json"))["memories"]
    return [row["content"].split()[-1] for row in rows if "lathe" in row["content"]]


def test_undo_lists_new_version_as_one_change(cli: Run, versions: list[str]) -> None:
    listed = cli("undo", "-a", "eve").stdout
    assert "new version of lathe.md" in listed
    assert "links" not in listed


@pytest.mark.parametrize("is_by_number", [True, False])
def test_undo_of_new_version_restores_old_one(cli: Run, versions: list[str], *, is_by_number: bool) -> None:
    [change] = [row for row in document(cli("undo", "-a", "eve", "--json"))["changes"] if "version_of" in row]
    undone = cli("undo", "-a", "eve", str(change["change"]) if is_by_number else change["memories"][0])
    assert "The version before is current again." in undone.stdout
    assert "agent-memory undo" not in undone.stderr
    assert list_lathes(cli) == ["barn."]
    assert [row["id"] for row in document(cli("knowledge", "resources", "-a", "eve", "--json"))["resources"]] == [
        versions[1]
    ]
    cli("ingest", "-a", "eve", versions[0])
    assert list_lathes(cli) == ["attic."]


def test_undo_of_each_change_shows_one_version(cli: Run, versions: list[str]) -> None:
    cli("ingest", "-a", "eve", "--undo", versions[2], "--yes")
    changes = document(cli("undo", "-a", "eve", "--json"))["changes"]
    assert [row["what"] for row in changes] == ["forgotten", "stored", "stored"]
    assert [row.get("withdrawn") for row in changes] == ["lathe.md", None, None]
    for number in (7, 5, 4):
        refused = cli("undo", "-a", "eve", str(number), code=1).stderr
        assert "taken back" in refused
        assert list_lathes(cli) == ["barn."], number


def test_undo_after_withdrawal_names_way_back(cli: Run, tmp_path: Path) -> None:
    file = tmp_path / "boat.md"
    file.write_text("The boat is blue.")
    cli("ingest", "-a", "eve", str(file))
    cli("ingest", "-a", "eve", "--undo", str(file), "--yes")
    listed = cli("undo", "-a", "eve")
    assert "boat.md taken back; ingest the file to restore it" in listed.stdout
    assert "Take one back: agent-memory undo 1 " in listed.stderr
    cli("ingest", "-a", "eve", str(file))
    assert "taken back" not in cli("undo", "-a", "eve").stdout
    assert "The boat is blue." in cli("list", "-a", "eve", "--items").stdout


def test_undo_of_version_with_newer_one_is_refused(cli: Run, versions: list[str], tmp_path: Path) -> None:
    [change] = [row for row in document(cli("undo", "-a", "eve", "--json"))["changes"] if "version_of" in row]
    (tmp_path / "lathe.md").write_text("# Lathe\n\nThe old lathe is in the shed.")
    cli("ingest", "-a", "eve", versions[0])
    refused = cli("undo", "-a", "eve", str(change["change"]), code=1)
    assert "take that back first" in refused.stderr
    assert list_lathes(cli) == ["shed."]
