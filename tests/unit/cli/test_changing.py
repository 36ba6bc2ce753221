"""`update`, beginnings of ids, several at once, and which categories there are."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import typer

from agent_memory.cli.app import build
from agent_memory.cli.options import complete_id
from tests.unit.cli.conftest import A, B, C

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
    changed = {"content", "category", "tags", "expires_at", "pinned"}
    assert {name for name in before if before[name] != after[name]} == changed
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
    result = cli("pin", "mem-ab", code=2)
    assert "[ambiguous_id]" in result.stderr
    assert "mem-abc000000001  text" in result.stderr
    assert "mem-abd000000002  text" in result.stderr
    cli("forget", "abx", "--yes", code=3)
    cli("forget", "mem-e", "--yes", code=3)


def test_several_at_once(bob: Run) -> None:
    assert bob("pin", B, C).stdout == f"{B} is pinned now.\n{C} is pinned now.\n"
    assert [each["changed"] for each in json.loads(bob("unpin", B, C, "--json").stdout)["memories"]] == [True, True]
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
