"""`agents`: what there is, renamed, copied, deleted; never while somebody else works with it."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from agent_memory.care import agents
from agent_memory.files.atomic import hold_folder, unlock_and_close
from agent_memory.files.lock import folder_lock
from agent_memory.storage import copy_agent, folder_of
from tests.unit.cli.conftest import B, C

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.cli.conftest import Run


def test_agents_tells_how_much_there_is(bob: Run, root: Path) -> None:
    bob("store", "x", "-a", "carol")
    bob("forget", B, "--yes", "-a", "bob")
    rows = json.loads(bob("agents", "--json").stdout)["agents"]
    assert [(row["agent_id"], row["memories"]) for row in rows] == [("bob", 2), ("carol", 1)]
    assert all(row["bytes"] > 0 and row["last_used"] for row in rows)
    assert str(root / "bob") in bob("agents", "list").stdout


def test_what_an_agent_was_given_is_counted_in_words(cli: Run, tmp_path: Path) -> None:
    (tmp_path / "chat.jsonl").write_text('{"speaker": "Ann", "text": "Tobias Reuter lives in Berlin."}')
    cli("ingest", "-a", "eve", str(tmp_path / "chat.jsonl"))
    told = cli("agents").stdout
    assert "1 document, conversation or topic, " in told
    assert "1 turn, " in told
    assert "records of entities, " in told
    assert ".yaml" not in told
    assert "tasks.yaml" in json.loads(cli("agents", "--json").stdout)["agents"][0]["others"]


def test_an_agent_that_cannot_be_read_is_listed(bob: Run, root: Path) -> None:
    (root / "bob" / "memories.yaml").unlink()
    (root / "bob" / "memories.yaml").mkdir()
    assert "unreadable" in bob("agents").stdout


def test_an_agent_that_is_a_link_out_of_the_root_is_listed(bob: Run, root: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "memories.yaml").write_text("")
    (root / "carol").symlink_to(tmp_path / "elsewhere")
    rows = json.loads(bob("agents", "--json").stdout)["agents"]
    assert [(row["agent_id"], row["memories"]) for row in rows] == [("bob", 3), ("carol", None)]
    assert "leads out of the storage root" in rows[1]["problem"]


def test_no_agents_yet_is_no_failure(cli: Run) -> None:
    assert "No agents" in cli("agents").stderr


def test_a_renamed_agent_knows_what_it_knew(bob: Run, root: Path) -> None:
    before = bob("export").stdout
    bob("agents", "rename", "bob", "robert", "--yes")
    assert not (root / "bob").exists()
    assert bob("export", "-a", "robert").stdout == before
    bob("agents", "rename", "robert", "Robert", "--yes")
    assert bob("export", "-a", "Robert").stdout == before


def test_a_copy_is_one_of_its_own(bob: Run) -> None:
    before = bob("export").stdout
    bob("agents", "copy", "bob", "twin")
    assert bob("export", "-a", "twin").stdout == before
    bob("forget", C, "--yes", "-a", "twin")
    assert bob("export", "-a", "bob").stdout == before


def test_a_deleted_agent_leaves_nothing(bob: Run, root: Path) -> None:
    bob("store", "x", "-a", "carol")
    bob("agents", "delete", "bob", "--yes")
    assert [path.name for path in root.iterdir()] == ["carol"]


@pytest.mark.parametrize("command", [["rename", "bob", "CAROL", "--yes"], ["copy", "bob", "carol"]], ids=lambda c: c[0])
def test_a_name_that_is_taken_is_refused(bob: Run, command: list[str]) -> None:
    bob("store", "x", "-a", "carol")
    assert "[agent_exists]" in bob("agents", *command, code=1).stderr


@pytest.mark.parametrize("command", [["rename", "bbo", "x", "--yes"], ["copy", "bbo", "x"], ["delete", "bbo", "--yes"]])
def test_an_agent_that_is_none_is_refused(bob: Run, command: list[str]) -> None:
    assert "There are: bob" in bob("agents", *command, code=1).stderr


@pytest.mark.parametrize("command", [["rename", "bob", "robert"], ["delete", "bob"]], ids=lambda c: c[0])
def test_what_another_process_has_open_stays_where_it_is(bob: Run, root: Path, command: list[str]) -> None:
    script = "import sys; file = open(sys.argv[1]); print('open', flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", script, str(root / "bob" / "memories.yaml")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        process.stdout.readline()
        result = bob("agents", *command, "--yes", code=4)
        process.communicate(b"")
    assert f"process {process.pid}" in result.stderr
    assert (root / "bob" / "memories.yaml").exists()
    bob("agents", *command, "--yes")


def test_a_locked_agent_is_not_touched(bob: Run, root: Path) -> None:
    with folder_lock(root / "bob"):
        assert "[busy" in bob("agents", "delete", "bob", "--yes", code=4).stderr


@pytest.mark.parametrize(
    "command", [["agents"], ["agents", "copy", "bob", "twin"], ["agents", "rename", "bob", "x", "-y"]]
)
def test_what_an_interrupted_deletion_or_copying_left_goes_with_the_next_command(
    bob: Run, root: Path, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    bob("store", "The vault is in Basel", "-a", "carol")

    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(agents.shutil, "rmtree", killed)
        bob("agents", "delete", "carol", "--yes", code=130)
        with contextlib.suppress(KeyboardInterrupt):
            patch.setattr(agents.atomic, "sync_tree", killed)
            copy_agent(folder_of("bob", root), "dave", root)
    (left,) = root.glob("_deleted-*")
    halves = root.glob("_copy-*")
    told = json.loads(bob("doctor", "--json", code=1).stdout)["findings"]
    (found,) = [each for each in told if each["code"] == "agents_unfinished"]
    assert set(found["details"]) == {left.name, *(half.name for half in halves)}
    assert left.name in bob(*command).stderr
    assert [path.name for path in root.iterdir() if path.name.startswith(("_deleted", "_copy"))] == []


def test_a_folder_that_could_not_be_removed_is_named(bob: Run, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(agents.shutil, "rmtree", refused)
    output = bob("agents", "delete", "bob", "--yes", code=1).stderr
    (left,) = root.glob("_deleted-*")
    assert left.name in output.replace("\n", "")
    assert left.name in bob("agents").stderr.replace("\n", ""), "and again by whoever looks next"


def test_a_copying_under_way_is_left_alone(root: Path) -> None:
    under_way = root / "_copy-0123456789ab"
    under_way.mkdir(parents=True)
    held = hold_folder(under_way)
    if held is None:
        pytest.skip("folders cannot be held here")
    assert agents.sweep_agents(root) == []
    unlock_and_close(held)
    assert agents.sweep_agents(root) == [under_way]


def test_a_name_that_is_taken_is_told_before_anything_is_asked(bob: Run) -> None:
    bob("store", "Tea at noon.", "--agent", "alice")
    assert "[agent_exists]" in bob("agents", "rename", "bob", "alice", code=1).stderr


@pytest.mark.parametrize("has_purged", [False, True])
def test_reset_twice_says_that_nothing_is_left(bob: Run, root: Path, has_purged: bool) -> None:
    if has_purged:
        bob("purge", B, "--yes")
    bob("agents", "reset", "bob", "--yes")
    (moved,) = (root / "_backups").glob("*-reset")
    for options in ((), ("--yes",)):
        error = json.loads(bob("agents", "reset", "bob", "--json", *options, code=1).stdout)["error"]
        assert error["code"] == "nothing_to_reset"
        assert error["recovery"].startswith("Run agent-memory agents")
    assert list((root / "_backups").glob("*-reset")) == [moved]
    assert (moved / "memories.yaml").exists()
