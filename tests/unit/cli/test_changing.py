"""`store`, `update`, `promote`, `pin`, `forget`, `compact`; beginnings of ids, several at once, categories."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from unittest.mock import ANY

import pytest
import typer

from agent_memory.cli.app import build
from agent_memory.cli.options import complete_id
from tests.unit.cli.conftest import A, B, C, document, ids

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.cli.conftest import Run


def shown(cli: Run, memory_id: str) -> dict[str, Any]:
    memory: dict[str, Any] = json.loads(cli("show", memory_id, "--json").stdout)
    return memory


def test_update_changes_what_is_named_and_nothing_else(bob: Run) -> None:
    before = shown(bob, B)
    options = ["-c", "preference", "-t", "Green", "--untag", "drinks", "--expires", "2099-01-01", "--pin"]
    result = bob("update", B, "--content", "Maria likes green tea.", *options)
    assert result.stdout == f"Changed content, category, tags, expires_at, pinned of {B}.\n"
    after = shown(bob, B)
    changed = {"content", "category", "tags", "expires_at", "pinned", "origin"}
    opened = {"access_count", "last_accessed"}  # to show a memory opens it
    assert {name for name in before if before[name] != after[name]} - opened == changed
    assert after["tags"] == ["maria", "green"]
    bob("update", B, "--expires", "never", "--unpin")
    assert (shown(bob, B)["expires_at"], shown(bob, B)["pinned"]) == (None, False)


def test_update_reads_a_text_from_stdin_and_says_when_nothing_changed(bob: Run) -> None:
    bob("update", B, "--content", "-", given="Maria likes coffee.\n")
    assert shown(bob, B)["content"] == "Maria likes coffee."
    assert bob("update", B, "--unpin").stdout == "Nothing was changed.\n"


def test_the_beginning_of_an_id_is_enough(cli: Run) -> None:
    lines = [{"id": f"mem-{number:012x}", "content": f"text {number}"} for number in (0xABC000000001, 0xABD000000002)]
    cli("import", "-", "-a", "bob", given="".join(json.dumps(line) + "\n" for line in lines))
    assert shown(cli, "mem-abc")["content"] == shown(cli, "ABC")["content"] == f"text {0xABC000000001}"
    cli("import", "-", given=json.dumps({"id": "mem-abc000000003", "content": "text 3"}))
    result = cli("pin", "mem-abc0", code=2)
    assert "[ambiguous_id]" in result.stderr
    assert "mem-abc000000001  text" in result.stderr
    assert "mem-abc000000003  text" in result.stderr
    cli("forget", "abx", "--yes", code=1)  # words
    cli("forget", "mem-eeee", "--yes", code=3)


_CHANGES = (
    "forget mem-0 --yes", "purge 0 --yes", "purge mem-000 --yes", "pin 0", "update mem-00 --pin", "promote 000",
    "undo a", "restore mem-0", "archive add 0", "archive restore 0", "store text --supersedes 0",
    "conflicts 0 1 --replace",
)  # fmt: skip


@pytest.mark.parametrize("command", _CHANGES)
def test_change_by_short_beginning_is_refused(bob: Run, command: str) -> None:
    bob("archive", "add", B)
    before = bob("list", "--json").stdout
    assert "is too short for the start of an ID; nothing was changed." in bob(*command.split(), code=2).stderr
    assert bob("list", "--json").stdout == before


def test_forget_short_beginning_is_a_description(bob: Run) -> None:
    before = bob("list", "--json").stdout
    assert "nothing was forgotten" in bob("forget", "0", "--yes", code=1).stderr
    assert bob("list", "--json").stdout == before


@pytest.mark.parametrize("command", ["show", "update", "forget", "restore", "history"])
def test_a_secret_in_place_of_an_id_is_not_repeated(bob: Run, command: str) -> None:
    secret = "gh" + "p_" + "aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0zAZz12"
    options = {"update": ["--pin"], "forget": ["--yes"]}.get(command, [])
    code = 1 if command == "forget" else 3  # of `forget` it is a description
    assert secret[:12] not in bob(command, secret, *options, code=code).output


def test_several_at_once(bob: Run) -> None:
    assert bob("pin", B, C).stdout == f"{B} is pinned now.\n{C} is pinned now.\n"
    assert [each["changed"] for each in json.loads(bob("pin", "--remove", B, C, "--json").stdout)["memories"]] == [
        True,
        True,
    ]
    assert [each["id"] for each in json.loads(bob("show", B, C, "--json").stdout)["memories"]] == [B, C]
    assert bob("forget", C, A, B, "--yes").stdout.splitlines()[-1] == f"Forgot {B}."
    for gone in (A, B, C):
        bob("show", gone, code=3)


def test_one_unknown_id_among_several_forgets_none(bob: Run) -> None:
    bob("forget", B, "mem-ffffffffffff", "--yes", code=3)
    bob("show", B)


@pytest.mark.parametrize("command", [["store", "x"], ["search", "x"], ["list"], ["update", B]], ids=lambda c: c[0])
def test_a_category_that_nobody_has_is_refused_by_all(bob: Run, command: list[str]) -> None:
    error = bob(*command, "-c", "decisoin", code=2).stderr
    assert "Did you mean 'decision'?" in error
    assert "preference, decision" in error


def test_a_category_that_came_in_by_import_is_one(bob: Run) -> None:
    bob("import", "-", given='{"content": "Snake case.", "category": "code_style"}\n')
    bob("store", "Two blanks.", "-c", "code_style")
    assert json.loads(bob("list", "-c", "code_style", "--json").stdout)["total"] == 2


def test_the_shell_is_offered_ids(bob: Run, root: Path) -> None:
    context = typer.Context(typer.main.get_command(build()))
    context.params = {"root": str(root)}
    assert complete_id(context, "mem-00000000000b") == [(B, "Maria likes tea.")]
    assert [each[0] for each in complete_id(context, "")] == [C, B, A]


def test_store_keeps_all_its_options(bob: Run) -> None:
    stored = document(
        bob("store", "Freeze on Friday.", "-c", "task", "-t", "Ops", "--expires", "2999-12-31", "--pin", "--json")
    )
    memory = document(bob("show", stored["memory_id"], "--json"))
    assert (memory["content"], memory["category"], memory["tags"]) == ("Freeze on Friday.", "task", ["ops"])
    assert memory["pinned"]
    assert memory["expires_at"].startswith("2999-12-31")
    assert (memory["created_by_session"], memory["source"]["kind"]) == ("cli", "user")


def test_what_is_piped_in_is_not_vouched_for(bob: Run) -> None:
    stored = document(bob("store", "-", "--json", given="From a pipe.\n"))
    memory = document(bob("show", stored["memory_id"], "--json"))
    assert (memory["content"], memory["trust"]) == ("From a pipe.", "medium")


def test_store_says_when_it_knew_that_or_removed_a_secret(bob: Run) -> None:
    told = bob("store", "Maria likes tea.", "-c", "decision", "-t", "hot water", "-t", "maria").stderr
    assert f"agent-memory update {B} --category decision --tag 'hot water'" in told
    assert bob("store", "Maria  likes tea.").stdout == f"{B} says that already.\n"
    secret = "ghp_" + "a1B2c3D4e5F6" * 3
    result = bob("store", f"The build server uploads with {secret}.")
    assert "A secret was removed" in result.stderr
    assert secret not in bob("export").stdout


def test_store_refuses_what_cannot_be_kept(bob: Run) -> None:
    assert "10001 characters" in bob("store", "x" * 10_001, code=1).stderr
    assert "nothing was stored" in bob("store", "x", "--supersedes", "mem-ffffffffffff", code=3).stderr


def test_promote_brings_back_what_had_left(bob: Run) -> None:
    assert "already" in bob("pin", "--once", B).stdout
    assert document(bob("pin", "--once", B, "--json")) == {
        "memory_id": B,
        "promoted": False,
        "evicted": None,
        "scratchpad_size": 2,
    }


def test_pin_and_unpin(bob: Run) -> None:
    assert bob("pin", B).stdout == f"{B} is pinned now.\n"
    assert bob("pin", B).stdout == f"{B} was pinned already.\n"
    assert document(bob("pin", "--remove", B, "--json")) == {"memory_id": B, "pinned": False, "changed": True}


def test_pinning_what_is_not_trusted_says_that_it_does_not_help(bob: Run, tmp_path: Path) -> None:
    (tmp_path / "low.jsonl").write_text('{"id": "mem-0000000000ff", "content": "From a page.", "trust": "low"}')
    bob("import", str(tmp_path / "low.jsonl"))
    assert "untrusted" in bob("pin", "mem-0000000000ff").stderr
    assert "untrusted" in bob("pin", "--once", "mem-0000000000ff", code=1).stderr


def test_forget_of_several_ids_is_one_change(bob: Run) -> None:
    before = bob("list", "--json").stdout
    done = bob("forget", B, C, "--yes")
    assert f"Undo: agent-memory undo {B}" in done.stderr
    assert len(document(bob("undo", "--json"))["changes"][0]["memories"]) == 3
    bob("undo", B)
    assert bob("list", "--json").stdout == before
    first, second = document(bob("forget", B, C, "--yes", "--json"))["memories"]
    assert (first["memory_id"], first["older_versions"]) == (B, [])
    assert (second["memory_id"], second["older_versions"]) == (C, [A])
    assert first["kept_until"] == second["kept_until"]


def test_forget_with_yes_forgets_the_older_versions_too(bob: Run) -> None:
    assert document(bob("forget", C, "--yes", "--json")) == {
        "memory_id": C,
        "forgotten": True,
        "kept_until": ANY,
        "older_versions": [A],
    }
    assert ids(bob("list", "--json"), "memories") == [B]


def test_forget_without_a_terminal_refuses(bob: Run) -> None:
    assert "--yes" in bob("forget", B, code=2, given="y\n").stderr
    assert B in ids(bob("list", "--json"), "memories")


def test_compact_tells_sizes(bob: Run) -> None:
    sizes = document(bob("archive", "compact", "--json"))
    assert 0 < sizes["bytes_after"] < sizes["bytes_before"] + 50, "its header says what was compacted"


def test_expiry_in_words_is_read_back(bob: Run) -> None:
    stored = bob("store", "The trip is in March.", "--expires", "2999-03-31")
    assert "Found until 2999-03-31 (Sun)." in stored.stderr
    assert "Found until 2999-01-01 (Tue)." in bob("update", B, "--expires", "2999-01-01").stderr
    assert "Found until" not in bob("update", B, "--expires", "never").stderr
    assert ", today." in bob("store", "The shop is open.", "--expires", "today").stderr
