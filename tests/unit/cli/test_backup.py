"""`backup`: made, read again, brought back, listed, removed."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from tests.unit.cli.conftest import B, document

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from tests.unit.cli.conftest import Run


def made(bob: Run, *more: str) -> str:
    """Make a backup and return its file."""
    return str(document(bob("backup", "create", "--json", *more))["backups"][0]["file"])


def test_a_backup_is_made_read_and_brought_back(bob: Run) -> None:
    file = made(bob, "-a", "bob")
    assert "whole. 3 memories" in bob("backup", "verify", file).stdout
    bob("forget", B, "--yes", "-a", "bob")
    bob("store", "Stored later.", "-a", "bob")
    told = bob("backup", "restore", file, "--yes")
    assert "1 memory that is missing now, most likely forgotten, is restored." in told.stderr
    assert "1 memory is deleted: it was stored later." in told.stderr
    assert "To undo that: agent-memory backup restore bob-" in told.stdout
    assert "Maria likes tea." in bob("list", "-a", "bob").stdout
    assert "Stored later." not in bob("list", "-a", "bob").stdout


def test_the_scratchpad_shows_what_was_restored(bob: Run, root: Path) -> None:
    file = made(bob)
    bob("store", "Stored later.", "-a", "bob")
    assert "Stored later." in (root / "bob" / "scratchpad.yaml").read_text()
    bob("backup", "restore", file, "--yes")
    assert "Stored later." not in (root / "bob" / "scratchpad.yaml").read_text()


def test_an_edit_of_the_scratchpad_is_in_the_backup_of_now(bob: Run, root: Path) -> None:
    bob("status", "-a", "bob")
    file = made(bob)
    pad = root / "bob" / "scratchpad.yaml"
    pad.write_text(pad.read_text() + "- content: Written by hand.\n")
    before = document(bob("backup", "restore", file, "--yes", "--json"))["before"]
    assert "Written by hand." not in bob("list", "-a", "bob").stdout
    bob("backup", "restore", before, "--yes")
    assert "Written by hand." in bob("list", "-a", "bob").stdout


def test_making_and_restoring_are_logged(bob: Run, root: Path) -> None:
    file = made(bob)
    before = document(bob("backup", "restore", file, "--yes", "--json"))["before"]
    logged = [json.loads(line) for line in (root / "bob" / "events.jsonl").read_text().splitlines()]
    name, previous = file.rpartition("/")[2], before.rpartition("/")[2]
    assert [(each["event"], each["source"], each.get("previous")) for each in logged[-2:]] == [
        ("memory:backed_up", name, None),
        ("memory:backup_restored", name, previous),
    ]


def test_health_tells_how_old_the_newest_backup_is(bob: Run) -> None:
    def told() -> str:
        checks = document(bob("agents", "health", "-a", "bob", "--json"))["agents"][0]["checks"]
        return next(str(each["sentence"]) for each in checks if each["code"] == "backup")

    assert "No backup was made here" in told()
    made(bob)
    assert "0.0 days ago" in told()


def test_restoring_asks_first(bob: Run) -> None:
    told = bob("backup", "restore", made(bob), code=2)
    assert "Nothing was changed." in told.output


def test_a_name_among_the_backups_is_enough(bob: Run, root: Path) -> None:
    made(bob)
    (file,) = (root / "_backups").iterdir()
    bob("backup", "restore", file.name, "--as", "eve")
    assert "Maria likes tea." in bob("list", "-a", "eve").stdout


def test_every_agent_gets_one_if_none_is_named(bob: Run) -> None:
    bob("store", "x", "-a", "carol")
    rows = document(bob("backup", "create", "--json"))["backups"]
    assert [(row["agent_id"], row["memories"]) for row in rows] == [("bob", 3), ("carol", 1)]
    listed = document(bob("backup", "--json"))["backups"]
    assert sorted((row["agent_id"], row["state"]) for row in listed) == [
        ("bob", "not read again"),
        ("carol", "not read again"),
    ]
    assert [row["state"] for row in document(bob("backup", "list", "-a", "bob", "--check", "--json"))["backups"]] == [
        "whole"
    ]


def test_a_damaged_one_is_told_of(bob: Run, root: Path) -> None:
    file = made(bob)
    content = bytearray((root / file).read_bytes())
    content[content.index(b"memories.yaml") + 100] ^= 1
    (root / file).write_bytes(content)
    assert "damaged" in bob("backup", "verify", file, code=1).output
    assert "backup_damaged" in bob("backup", "restore", file, "--yes", code=1).output


def test_prune_shows_what_it_would_remove(bob: Run) -> None:
    for _ in range(3):
        made(bob)
    told = bob("backup", "prune", "--keep", "1", code=2)
    assert "Nothing was removed." in told.output
    removed = document(bob("backup", "prune", "--keep", "1", "--yes", "--json"))
    assert (len(removed["removed"]), removed["left"]) == (2, 1)
    assert "usage" in bob("backup", "prune", code=2).output


def test_there_is_nothing_to_back_up_where_nobody_is(cli: Run) -> None:
    assert "No agents" in cli("backup", "create").stderr
    assert "No backups yet" in cli("backup").stderr


def backed_up(cli: Run, *arguments: str, code: int = 0) -> list[str]:
    """Return the agents whose backups a command lists or makes."""
    return sorted(each["agent_id"] for each in document(cli(*arguments, "--json", code=code))["backups"])


def test_whose_backups_is_said_before_the_command_after_it_or_by_the_environment(
    bob: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    bob("store", "-a", "ann", "The crane is repaired.")
    assert backed_up(bob, "backup", "create") == ["ann", "bob"]
    for said in (
        ("-a", "ann", "backup", "list"),
        ("backup", "-a", "ann", "list"),
        ("backup", "list", "-a", "ann"),
        ("-a", "bob", "backup", "-a", "ann"),
        ("-a", "bob", "backup", "list", "-a", "ann"),
    ):
        assert backed_up(bob, *said) == ["ann"]
    assert backed_up(bob, "-a", "bob", "backup", "create") == ["bob"]
    assert backed_up(bob, "backup", "--json", "-a", "bob", "list") == ["bob", "bob"]
    monkeypatch.setenv("AGENT_MEMORY_AGENT", "ann")
    assert backed_up(bob, "backup", "list") == ["ann"]
    assert backed_up(bob, "-a", "bob", "backup", "list") == ["bob", "bob"]


def test_backups_of_others_are_not_pruned(bob: Run) -> None:
    bob("store", "-a", "ann", "The crane is repaired.")
    for _ in range(2):
        bob("backup", "create")
    assert "Removed 1 backup" in bob("-a", "bob", "backup", "prune", "--keep", "1", "--yes").stdout
    assert backed_up(bob, "backup", "list") == ["ann", "ann", "bob"]


def test_a_backup_is_put_in_the_place_of_the_agent_that_is_named_before_the_command(bob: Run) -> None:
    bob("store", "-a", "ann", "The crane is repaired.")
    (file,) = (each["file"] for each in document(bob("-a", "ann", "backup", "create", "--json"))["backups"])
    bob("store", "-a", "ann", "Stored later.")
    assert "bob is restored to" in bob("-a", "bob", "backup", "restore", file, "--yes").stdout
    assert "The crane is repaired." in bob("list", "-a", "bob").stdout
    assert "Stored later." in bob("list", "-a", "ann").stdout
    bob("-a", "bob", "backup", "restore", file, "--as", "eve", code=2)


def test_restore_without_backup_suggests_reset_only_for_missing_journal(bob: Run, root: Path) -> None:
    intact = bob("restore", "bob", code=1).stderr
    assert "run agent-memory backup create -a bob" in intact
    assert "reset" not in intact
    (root / "bob" / "memories.yaml").unlink()
    assert "run agent-memory agents reset bob" in bob("restore", "bob", code=1).stderr


def test_restore_of_an_agent_with_yes_does_not_ask(bob: Run) -> None:
    made(bob)
    bob("store", "Stored later.", "-a", "bob")
    assert "bob is restored to" in bob("restore", "bob", "--yes").stdout
    assert "Stored later." not in bob("list", "-a", "bob").stdout


def test_copy_skips_a_pipe_in_place_of_vectors(bob: Run, root: Path) -> None:
    (root / "bob" / "embeddings.sqlite3").unlink(missing_ok=True)
    os.mkfifo(root / "bob" / "embeddings.sqlite3")
    bob("agents", "copy", "bob", "eve")
    assert not (root / "eve" / "embeddings.sqlite3").is_fifo()
    assert "Maria likes tea." in bob("list", "-a", "eve").stdout
