"""`agent-memory agents health`: what a person reads, what a monitor gets, and exit codes that mean one thing each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.unit.cli.conftest import document

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.cli.conftest import Run

ROOM = ("--limit", "disk_warning_mb=1e-6", "--limit", "disk_critical_mb=1e-6")


def test_all_well_is_0_and_one_line_a_check(bob: Run) -> None:
    lines = bob("agents", "health", *ROOM).stdout.splitlines()
    assert lines[0] == "bob  all is well"
    assert lines[1].split()[:2] == ["ok", "disk"]


def test_a_warning_is_1_and_comes_first_with_what_to_do(bob: Run, root: Path) -> None:
    (root / "bob").chmod(0o755)
    lines = bob("agents", "health", *ROOM, code=1).stdout.splitlines()
    assert lines[0] == "bob  warning: 1 of 10 checks"
    assert lines[1].split()[:2] == ["warning", "files"]
    assert lines[2].strip().startswith("→ chmod 700")


def test_something_critical_is_2(bob: Run, root: Path) -> None:
    with (root / "bob" / "memories.yaml").open("a") as file:
        file.write("--- {broken\n")
    assert "critical" in bob("agents", "health", *ROOM, code=2).stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ["-a", "nobody"],
        ["--nope"],
        ["--limit", "disk"],
        ["--limit", "disk_warnin_mb=3"],
        ["--limit", "disk_warning_mb=much"],
        ["--limit", "slow_warning_ms=9", "--limit", "slow_critical_ms=3"],
    ],
)
@pytest.mark.parametrize("form", [[], ["--json"]])
def test_what_keeps_it_from_looking_is_3_whatever_it_is(bob: Run, arguments: list[str], form: list[str]) -> None:
    bob("agents", "health", *arguments, *form, code=3)


def test_a_root_without_agents_is_3_since_its_disk_may_be_gone(cli: Run) -> None:
    assert "no_agents" in cli("agents", "health", code=3).stderr


def test_json_has_the_verdict_and_every_check(bob: Run, root: Path) -> None:
    limits = ("--limit", "disk_warning_mb=1e12", "--limit", "disk_critical_mb=1e-6")
    found = document(bob("agents", "health", *limits, "--json", code=1))
    assert (found["root"], found["level"], found["code"]) == (str(root), "warning", 1)
    (agent,) = found["agents"]
    assert (agent["agent_id"], agent["level"], agent["folder"]) == ("bob", "warning", str(root / "bob"))
    first = agent["checks"][0]
    assert set(first) == {
        "code", "level", "sentence", "advice", "value", "unit", "warning", "critical", "settings",
    }  # fmt: skip
    assert (first["code"], first["level"], first["warning"]) == ("disk", "warning", 1e18)
    assert first["settings"] == ["health.disk_warning_mb", "health.disk_critical_mb"]


def test_of_several_agents_only_what_is_bad_is_shown_unless_asked(bob: Run, root: Path) -> None:
    bob("store", "-a", "alice", "Maria likes tea.")
    (root / "alice").chmod(0o755)
    lines = bob("agents", "health", *ROOM, code=1).stdout.splitlines()
    assert [line.split()[0] for line in lines if line and not line.startswith(" ")] == ["alice", "bob"]
    assert not any(line.split()[:1] == ["ok"] for line in lines)
    assert " ok " in bob("agents", "health", "-v", *ROOM, code=1).stdout
    assert bob("agents", "health", "-a", "bob", *ROOM).stdout.startswith("bob  all is well")


def test_deep_reads_every_file(bob: Run, root: Path) -> None:
    assert "Every file was read" in bob("agents", "health", "--deep", *ROOM).stdout
    (root / "bob" / "scratchpad.yaml").write_text("content: [one\n")
    found = document(bob("agents", "health", "--deep", "--json", *ROOM, code=1))
    assert found["agents"][0]["checks"][0]["code"] == "doctor"


def test_the_help_names_the_exit_codes(cli: Run) -> None:
    said = " ".join(cli("agents", "health", "--help").stdout.split())
    assert "0 all is well, 1 warning, 2 critical, 3 unknown" in said


def test_an_agent_that_cannot_be_opened_hides_no_other(bob: Run, root: Path, tmp_path: Path) -> None:
    bob("store", "-a", "alice", "Maria likes tea.")
    (root / "alice").rename(tmp_path / "elsewhere")
    (root / "alice").symlink_to(tmp_path / "elsewhere")
    found = document(bob("agents", "health", "--json", *ROOM, code=2))
    assert [(agent["agent_id"], agent["level"]) for agent in found["agents"]] == [("alice", "critical"), ("bob", "ok")]
    (check,) = found["agents"][0]["checks"]
    assert check["code"] == "journal"
    assert "leads out of the storage root" in check["sentence"]
    assert check["advice"]
