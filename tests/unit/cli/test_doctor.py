"""`agent-memory doctor` as a person and as a program use it. What is found and mended has tests of its own."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from agent_memory.care.checks import examination
from agent_memory.cli.app import build

if TYPE_CHECKING:
    from pathlib import Path

    from typer.testing import Result

    from tests.unit.cli.conftest import Run

    Cli = Run


@pytest.fixture
def cli(root: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    monkeypatch.delenv("AGENT_MEMORY_AGENT", raising=False)
    monkeypatch.setattr(examination, "_check_model", lambda: iter(()))
    app, runner = build(), CliRunner()

    def run(*arguments: str, code: int = 0, stdin: str | None = None) -> Result:
        result = runner.invoke(
            app, [*arguments, "--root", str(root)], input=stdin, prog_name="agent-memory", catch_exceptions=False
        )
        assert result.exit_code == code, result.output
        return result

    return run


@pytest.fixture
def bob(cli: Cli, root: Path) -> Path:
    cli("store", "Releases go out on Tuesdays.", "--agent", "bob")
    return root / "bob"


def _damage(bob: Path) -> None:
    with (bob / "memories.yaml").open("a") as journal:
        journal.write("junk\n")


def test_all_is_well(cli: Cli, bob: Path) -> None:
    out = cli("doctor").stdout
    assert "bob  healthy · 1 memory" in out
    assert "Nothing needs your attention." in out


def test_a_home_that_does_not_exist_is_well(cli: Cli, root: Path) -> None:
    assert "There is no folder" in cli("doctor").stdout
    assert not root.exists()


def test_of_many_agents_only_what_matters_is_shown_unless_asked(cli: Cli, bob: Path) -> None:
    cli("store", "Maria prefers tea.", "--agent", "alice")
    brief, verbose = cli("doctor").stdout, cli("doctor", "--verbose").stdout
    assert "The lock is free." not in brief
    assert verbose.count("The lock is free.") == 2
    assert cli("doctor", "--agent", "bob").stdout.count("The lock is free.") == 1


def test_a_finding_is_explained_and_the_exit_code_says_so(cli: Cli, bob: Path) -> None:
    _damage(bob)
    out = cli("doctor", code=1).stdout
    assert "problem  journal     1 line of memories.yaml cannot be read; all others are used.  5 bytes" in out
    assert "line 3: it does not begin with '--- '" in out
    assert f"One finding needs your attention; `agent-memory doctor --repair --root {bob.parent}` repairs it." in out


def test_a_program_gets_one_document(cli: Cli, bob: Path) -> None:
    _damage(bob)
    document = json.loads(cli("doctor", "--json", code=1).stdout)
    assert document["healthy"] is False
    (agent,) = document["agents"]
    assert (agent["agent_id"], agent["healthy"], agent["memories"]) == ("bob", False, 1)
    finding = next(each for each in agent["findings"] if each["code"] == "journal_lines")
    assert (finding["severity"], finding["bytes"]) == ("problem", 5)
    assert document["repairs"] == []


def test_a_dry_run_says_what_it_would_do_and_does_nothing(cli: Cli, bob: Path) -> None:
    _damage(bob)
    before = sorted((path.name, path.stat().st_mtime_ns) for path in bob.iterdir())
    assert "would do bob         journal_lines: copies the journal aside" in cli("doctor", "--dry-run", code=1).stdout
    document = json.loads(cli("doctor", "--repair", "--dry-run", "--json", code=1).stdout)
    assert [each["code"] for each in document["would_repair"]] == ["journal_lines"]
    assert sorted((path.name, path.stat().st_mtime_ns) for path in bob.iterdir()) == before


def test_a_repair_says_what_it_did_and_then_how_things_are(cli: Cli, bob: Path) -> None:
    _damage(bob)
    out = cli("doctor", "--repair").stdout
    assert "repaired bob         Made memories.yaml sound" in out
    assert "bob  healthy" in out
    assert "Nothing to repair." in cli("doctor", "--repair").stdout


def test_memories_of_a_conflict_copy_come_back_by_an_import(cli: Cli, bob: Path, root: Path) -> None:
    sound = (bob / "memories.yaml").read_bytes()
    cli("store", "Written on the other machine.", "--agent", "bob")
    (bob / "memories.yaml").rename(bob / "memories 2.yaml")
    (bob / "memories.yaml").write_bytes(sound)
    assert "doctor --salvage 'memories 2.yaml' --agent bob" in cli("doctor", code=1).stdout
    salvaged = cli("doctor", "--salvage", "memories 2.yaml", "--agent", "bob").stdout
    assert [json.loads(line)["content"] for line in salvaged.splitlines()] == ["Written on the other machine."]
    cli("import", "-", "--agent", "bob", stdin=salvaged)
    assert "holds no memory that the journal does not know" in cli("doctor").stdout


@pytest.mark.parametrize(("content", "code"), [(None, "no_file"), ("hello\n", "not_a_journal")])
def test_what_is_no_copy_of_a_journal_cannot_be_salvaged(
    cli: Cli, bob: Path, tmp_path: Path, content: str | None, code: str
) -> None:
    file = tmp_path / "x.yaml"
    if content is not None:
        file.write_text(content)
    result = cli("doctor", "--salvage", str(file), "--agent", "bob", code=1)
    assert ("No file" if code == "no_file" else "is no copy of a journal") in result.stderr


def test_an_unknown_agent_is_an_error(cli: Cli, bob: Path) -> None:
    assert "No agent 'carol'" in cli("doctor", "--agent", "carol", code=1).stderr


def test_an_agent_whose_folder_is_a_broken_link_is_examined_all_the_same(cli: Cli, bob: Path, root: Path) -> None:
    (root / "eve").symlink_to("nowhere")
    assert "eve  1 problem" in cli("doctor", "--agent", "eve", code=1).stdout


def test_what_a_file_says_cannot_steer_the_terminal(cli: Cli, bob: Path) -> None:
    (bob / "memories \x1b[31m2.yaml").write_text("x")
    assert "\x1b" not in cli("doctor").stdout


def test_each_journal_is_named_with_what_is_in_it(cli: Cli, bob: Path, tmp_path: Path) -> None:
    (tmp_path / "talk.jsonl").write_text('{"speaker": "Ann", "text": "Tobias Reuter lives in Berlin."}')
    cli("ingest", "-a", "bob", str(tmp_path / "talk.jsonl"))
    (tmp_path / "more.md").write_text("The router is upstairs.")
    cli("ingest", "-a", "bob", str(tmp_path / "more.md"))
    cli("ingest", "-a", "bob", "--undo", "--yes", "more.md")
    told = " ".join(cli("doctor", "-v", "-a", "bob").stdout.split())  # the document and its page are forgotten
    assert "1 record of knowledge.yaml, 2 forgotten (their text stays for 30 days), in " in told
    assert "1 episode of episodes.yaml, in " in told
    assert " records of entities.yaml, in " in told
    assert " marks of tasks.yaml, in " in told
