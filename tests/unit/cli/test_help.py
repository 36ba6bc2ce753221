"""Help, aliases, words that people try, and options before the command."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.unit.cli.conftest import B

if TYPE_CHECKING:
    from tests.unit.cli.conftest import Run


@pytest.mark.parametrize("arguments", [[], ["help"], ["--help"]], ids=["nothing", "help", "--help"])
def test_help_is_no_failure(cli: Run, arguments: list[str]) -> None:
    shown = cli(*arguments).stdout
    assert "search" in shown
    assert "130" in shown
    assert "<bool>" not in shown


@pytest.mark.parametrize("command", [["search"], ["agents", "rename"]], ids=" ".join)
def test_help_of_a_command_is_the_same_either_way(cli: Run, command: list[str]) -> None:
    shown = cli("help", *command).stdout
    assert " ".join(command) in shown
    assert shown.strip() == cli(*command, "--help").stdout.strip()
    assert "{" not in shown
    assert "<str>" not in shown


@pytest.mark.parametrize(("tried", "meant"), [("delete", "forget"), ("serach", "search"), ("find", "search")])
def test_another_programs_word_gets_a_hint(cli: Run, tried: str, meant: str) -> None:
    assert f"`agent-memory {meant}`" in cli(tried, code=2).stderr


def test_short_names(bob: Run) -> None:
    assert bob("ls", "--json").stdout == bob("list", "--json").stdout
    bob("add", "Something new.")
    bob("rm", B, "--yes")
    bob("show", B, code=3)


def test_common_options_may_come_first(bob: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    bob("-a", "carol", "store", "Known to Carol.")
    monkeypatch.setenv("AGENT_MEMORY_AGENT", "bob")
    assert json.loads(bob("-a", "carol", "--json", "list").stdout)["agent_id"] == "carol"
    assert json.loads(bob("-a", "carol", "list", "-a", "bob", "--json").stdout)["agent_id"] == "bob"


def test_wrong_values_are_told_in_our_words(bob: Run) -> None:
    for wrong in (["--limit", "0"], ["--limit", "many"]):
        assert "it must be" in " ".join(bob("list", *wrong, code=2).stderr.split())


@pytest.mark.parametrize("group", ["knowledge", "workspace", "archive"])
def test_help_of_a_group_alone_is_no_failure(cli: Run, group: str) -> None:
    assert cli(group).stdout.strip() == cli(group, "--help").stdout.strip() != ""
