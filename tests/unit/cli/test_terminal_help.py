"""Help at any width, completion, pages of the manual, and exit codes of commands."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from agent_memory.cli.app import SUBCOMMANDS, build
from agent_memory.cli.exit_codes import MEANINGS, describe_exit_codes
from tests.unit.cli.conftest import A

if TYPE_CHECKING:
    from tests.unit.cli.conftest import Run

MOST_LINES = 60
WIDTHS = (60, 80, 120, 200)
HELP = [["list"], ["search"], ["purge"], ["archive", "tidy"], ["knowledge"], ["workspace", "status"]]


@pytest.mark.parametrize("width", [40, *WIDTHS])
@pytest.mark.parametrize("command", [[], *HELP], ids=" ".join)
def test_help_fits_the_width(cli: Run, monkeypatch: pytest.MonkeyPatch, command: list[str], width: int) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    lines = cli(*command, "--help").stdout.splitlines()
    assert max(map(len, lines)) <= width


@pytest.mark.parametrize("width", [40, 59, *WIDTHS])
@pytest.mark.parametrize("command", HELP, ids=" ".join)
def test_help_cuts_no_word(cli: Run, monkeypatch: pytest.MonkeyPatch, command: list[str], width: int) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    assert "…" not in cli(*command, "--help").stdout


@pytest.mark.parametrize("command", [[], *HELP], ids=" ".join)
def test_help_fits_on_one_screen(cli: Run, monkeypatch: pytest.MonkeyPatch, command: list[str]) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert len(cli(*command, "--help").stdout.splitlines()) <= MOST_LINES


@pytest.mark.parametrize("width", WIDTHS)
def test_help_wraps_paragraphs_once(cli: Run, monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    lines = [line.strip() for line in cli("archive", "tidy", "--help").stdout.splitlines()]
    paragraph = " ".join(lines[lines.index(next(line for line in lines if line.startswith("Nothing is done"))) :])
    assert "Archived memories are found only in the archive." in paragraph
    longest = max(len(line) for line in lines if line and line[0] not in "╭│╰")
    assert longest > min(width, 160) - 25  # no line ends early


@pytest.mark.parametrize(
    ("shell", "answer"), [("bash", "tidy"), ("zsh", '"tidy":"Show what could be archived'), ("fish", "tidy\tShow")]
)
def test_shell_completes_a_command_of_a_group(shell: str, answer: str) -> None:
    words = "agent-memory archive t"
    variables = {
        "_AGENT_MEMORY_COMPLETE": f"complete_{shell}", "COMP_WORDS": words, "COMP_CWORD": "2",
        "_TYPER_COMPLETE_ARGS": words, "_TYPER_COMPLETE_FISH_ACTION": "get-args",
    }  # fmt: skip
    assert answer in CliRunner().invoke(build(), [], prog_name="agent-memory", env=variables).stdout


def test_manual_into_a_file_names_the_folder(cli: Run, tmp_path: Path) -> None:
    (tmp_path / "man1").touch()
    refused = cli("man", "--folder", str(tmp_path / "man1"), code=2)
    assert "could not write to" in refused.stderr


def test_manual_has_a_page_for_each_command(cli: Run, tmp_path: Path) -> None:
    cli("man", "--folder", str(tmp_path / "man1"))
    names = {path.stem for path in (tmp_path / "man1").iterdir()}
    subcommands = {f"agent-memory-{group}-{name}" for group, entries in SUBCOMMANDS.items() for name in entries}
    assert {"agent-memory", "agent-memory-list", *subcommands} <= names
    page = (tmp_path / "man1" / "agent-memory-archive-tidy.1").read_text("utf-8")
    assert page.startswith('.TH "AGENT-MEMORY-ARCHIVE-TIDY" 1 ')
    assert ".B \\-\\-apply\n" in page
    assert not [line for line in page.splitlines() if line.startswith(("'", "\\["))]


def test_manual_escapes_what_roff_would_read(cli: Run, tmp_path: Path) -> None:
    from agent_memory.cli.man_pages import escape_roff

    assert escape_roff(".TH") == "\\&.TH"
    assert escape_roff("a-b\\c") == "a\\-b\\ec"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["list"], 0),
        (["show", A], 0),
        (["search", "zebra"], 3),
        (["show", "mem-ffffffffffff"], 3),
        (["show", "mem-00000000"], 2),
        (["list", "--none"], 2),
        (["serach"], 2),
        (["list", "-a", "nobody"], 1),
        (["agents", "health", "--none"], 3),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_command_ends_with_the_code_of_the_table(bob: Run, arguments: list[str], code: int) -> None:
    assert code in MEANINGS
    bob(*arguments, code=code)


def test_help_and_page_have_every_exit_code(cli: Run) -> None:
    assert describe_exit_codes() in " ".join(cli("--help").stdout.split())
    page = (Path(__file__).parents[3] / "docs" / "reference" / "cli.md").read_text("utf-8")
    assert [code for code in MEANINGS if f"\n| {code} | " not in page] == []


@pytest.mark.parametrize(
    "arguments",
    [["show", "mem-ffffffffffff"], ["list", "--none"], ["serach"], ["list", "-a", "nobody"], ["archive", "none"]],
    ids=" ".join,
)
def test_error_is_two_lines(bob: Run, arguments: list[str]) -> None:
    result = CliRunner().invoke(build(), arguments, prog_name="agent-memory")
    lines = result.stderr.splitlines()
    assert [line.partition(": ")[0] for line in lines[-2:]] == ["error", "hint"]
    assert result.stdout == ""
