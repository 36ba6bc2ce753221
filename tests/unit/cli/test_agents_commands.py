"""`agents`: what there is, renamed, copied, deleted; never while somebody else works with it."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from agent_memory.journal.lock import folder_lock
from tests.unit.cli.conftest import B, C

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from typer.testing import Result


def test_agents_tells_how_much_there_is(bob: Callable[..., Result], root: Path) -> None:
    bob("store", "x", "-a", "carol")
    bob("forget", B, "--yes", "-a", "bob")
    rows = json.loads(bob("agents", "--json").stdout)["agents"]
    assert [(row["agent_id"], row["memories"]) for row in rows] == [("bob", 2), ("carol", 1)]
    assert all(row["bytes"] > 0 and row["last_used"] for row in rows)
    assert str(root / "bob") in bob("agents", "list").stdout


def test_an_agent_that_cannot_be_read_is_listed(bob: Callable[..., Result], root: Path) -> None:
    (root / "bob" / "memories.yaml").unlink()
    (root / "bob" / "memories.yaml").mkdir()
    assert "unreadable" in bob("agents").stdout


def test_an_agent_that_is_a_link_out_of_the_root_is_listed(
    bob: Callable[..., Result], root: Path, tmp_path: Path
) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "memories.yaml").write_text("")
    (root / "carol").symlink_to(tmp_path / "elsewhere")
    rows = json.loads(bob("agents", "--json").stdout)["agents"]
    assert [(row["agent_id"], row["memories"]) for row in rows] == [("bob", 3), ("carol", None)]
    assert "leads out of the storage root" in rows[1]["problem"]


def test_no_agents_yet_is_no_failure(cli: Callable[..., Result]) -> None:
    assert "no agents" in cli("agents").stderr


def test_a_renamed_agent_knows_what_it_knew(bob: Callable[..., Result], root: Path) -> None:
    before = bob("export").stdout
    bob("agents", "rename", "bob", "robert", "--yes")
    assert not (root / "bob").exists()
    assert bob("export", "-a", "robert").stdout == before
    bob("agents", "rename", "robert", "Robert", "--yes")
    assert bob("export", "-a", "Robert").stdout == before


def test_a_copy_is_one_of_its_own(bob: Callable[..., Result]) -> None:
    before = bob("export").stdout
    bob("agents", "copy", "bob", "twin")
    assert bob("export", "-a", "twin").stdout == before
    bob("forget", C, "--yes", "-a", "twin")
    assert bob("export", "-a", "bob").stdout == before


def test_a_deleted_agent_leaves_nothing(bob: Callable[..., Result], root: Path) -> None:
    bob("store", "x", "-a", "carol")
    bob("agents", "delete", "bob", "--yes")
    assert [path.name for path in root.iterdir()] == ["carol"]


@pytest.mark.parametrize("command", [["rename", "bob", "CAROL", "--yes"], ["copy", "bob", "carol"]], ids=lambda c: c[0])
def test_a_name_that_is_taken_is_refused(bob: Callable[..., Result], command: list[str]) -> None:
    bob("store", "x", "-a", "carol")
    assert "[agent_exists]" in bob("agents", *command, code=1).stderr


@pytest.mark.parametrize("command", [["rename", "bbo", "x", "--yes"], ["copy", "bbo", "x"], ["delete", "bbo", "--yes"]])
def test_an_agent_that_is_none_is_refused(bob: Callable[..., Result], command: list[str]) -> None:
    assert "There are: bob" in bob("agents", *command, code=1).stderr


@pytest.mark.parametrize("command", [["rename", "bob", "robert"], ["delete", "bob"]], ids=lambda c: c[0])
def test_what_another_process_has_open_stays_where_it_is(
    bob: Callable[..., Result], root: Path, command: list[str]
) -> None:
    script = "import sys; file = open(sys.argv[1]); print('open', flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", script, str(root / "bob" / "memories.yaml")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        result = bob("agents", *command, "--yes", code=4)
        process.communicate(b"")
    assert f"process {process.pid}" in result.stderr
    assert (root / "bob" / "memories.yaml").exists()
    bob("agents", *command, "--yes")


def test_a_locked_agent_is_not_touched(bob: Callable[..., Result], root: Path) -> None:
    with folder_lock(root / "bob"):
        assert "[busy" in bob("agents", "delete", "bob", "--yes", code=4).stderr
