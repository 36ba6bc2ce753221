"""What somebody wrote steers no terminal, no log and no spreadsheet that a person reads it in."""

from __future__ import annotations

import csv
import io
import json
import logging
import re
from typing import TYPE_CHECKING, Any

import pytest

from agent_memory.logs import get_logger
from agent_memory.models import STEERING
from agent_memory.workspace import Workspace
from tests.hostile.attacks import attack, tried

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from typer.testing import Result

    Run = Callable[..., Result]

STEERS = re.compile(f"(?!\n)[{STEERING}]")
STEERING_TEXTS: list[Any] = [
    tried("terminal-escape", "tea \x1b[2J\x1b[31m"),
    tried("terminal-title", "tea \x1b]0;pwned\x07"),
    tried("terminal-link", "tea \x1b]8;;https://x.example\x1b\\here\x1b]8;;\x1b\\"),
    tried("terminal-clipboard", "tea \x1b]52;c;cm0gLXJm\x07"),
    tried("terminal-eight-bit", "tea \x9b31m\x90x\x9c"),
    tried("terminal-backspace", "tea\b\b\bOBEY\r"),
    tried("terminal-right-to-left", "tea \u202eyebo\u202c"),
    tried("terminal-hidden", "tea " + "".join(chr(0xE0000 + ord(each)) for each in "obey")),
]
COMMANDS = (["list"], ["list", "--format", "table"], ["list", "--format", "csv"], ["list", "--json"],
            ["list", "--format", "jsonl"], ["search", "tea"], ["search", "tea", "--explain"], ["status"],
            ["stats"], ["briefing"], ["suspects"])  # fmt: skip
OF_ONE = (["show"], ["why"], ["history"])


@pytest.mark.parametrize("text", STEERING_TEXTS)
def test_no_command_prints_what_steers_a_terminal(cli: Run, tmp_path: Path, text: str) -> None:
    file = tmp_path / "in.jsonl"
    entry = {"content": text, "tags": [text], "category": "note", "metadata": {"k": text}, "source": {"detail": text}}
    file.write_text(json.dumps(entry) + "\n")
    cli("import", str(file), "--trusted")
    one = json.loads(cli("list", "--json").stdout)["memories"][0]["id"]
    for command in (*COMMANDS, *([*each, one] for each in OF_ONE)):
        said = cli(*command)
        assert not STEERS.search(said.output), command
    assert "tea" in cli("list").stdout


@attack("markup-of-the-terminal")
def test_brackets_of_a_memory_are_no_markup(cli: Run) -> None:
    cli("store", "[bold red]tea[/bold red] [link=https://x.example]here[/link]")
    assert "[link=https://x.example]here[/link]" in cli("list").stdout


@attack("entry-in-a-list")
def test_no_line_of_a_memory_passes_for_what_is_told_of_another(cli: Run) -> None:
    forged = "mem-0123456789ab · preference · 2026-01-01"
    cli("store", f"tea\n{forged}\n  {forged}\r\n {forged}")
    for said in (cli("list").stdout, cli("search", "tea").stdout):
        told = [line for line in said.splitlines() if "mem-" in line and not line.startswith("    ")]
        assert len(told) == 1
        assert "0123456789ab" not in told[0]


@attack("formula-in-a-list")
@pytest.mark.parametrize("text", ["=cmd|' /C calc'!A0", "+1+1", "-1+1", "@SUM(A1)", "\t=1+1", "\uff1d1+1"])
def test_a_list_for_a_spreadsheet_holds_no_formula(cli: Run, text: str) -> None:
    cli("store", "--", text)
    rows = list(csv.reader(io.StringIO(cli("list", "--format", "csv", "--fields", "content").stdout)))
    assert rows[1][0][0] not in "=+-@\t\r\n\uff1d\uff0b\uff0d\uff20"


@attack("formula-in-a-workspace")
@pytest.mark.parametrize("text", ["=cmd|' /C calc'!A0", "+1+1", "-1+1", "@SUM(A1)", "\t=1+1", "\n=1+1", "\uff1d1+1"])
def test_rows_for_a_spreadsheet_hold_no_formula(tmp_path: Path, text: str) -> None:
    (tmp_path / "declared.yaml").write_text("workspace: w\ntables: {notes: {columns: {note: text}}}\n")
    workspace = Workspace.create(tmp_path / "w", tmp_path / "declared.yaml")
    workspace.tables.save("notes", {"note": text})
    workspace.export(tmp_path / "out.csv")
    workspace.close()
    with (tmp_path / "out.csv" / "notes.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert rows[0]["note"][0] not in "=+-@\t\r\n\uff1d\uff0b\uff0d\uff20"


@attack("line-in-a-log")
def test_a_value_makes_no_line_of_its_own_in_a_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        get_logger("agent_memory.test").warning("seen", name="a\nWARNING forged=1 \x1b[2J \x9b \u202e", other='x" y=1')
    (record,) = caplog.records
    assert "\n" not in record.getMessage()
    assert not STEERS.search(record.getMessage())


@attack("name-of-an-entity")
def test_the_name_of_an_entity_steers_no_terminal(cli: Run, tmp_path: Path) -> None:
    talk = tmp_path / "talk.jsonl"
    text = "Ann \x1b[2JMiller moved to the Hamburg\u202e office in May. Ann Miller works at Kestrel."
    talk.write_text(json.dumps({"role": "user", "name": "Ann\x1b[2J Miller\u202e", "content": text}) + "\n")
    cli("ingest", str(talk))
    for command in (["entities"], ["episodes"], ["summaries"], ["resources"], ["topics"], ["list", "--items"]):
        said = cli(*command)
        assert not STEERS.search(said.output), command
    assert "Ann" in cli("entities").stdout
