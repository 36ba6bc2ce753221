"""Commands that only read print the JSON keys that docs/reference/cli.md names."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from agent_memory.cli.app import build
from scripts.cli_page import DOCUMENTS

if TYPE_CHECKING:
    from pathlib import Path

ARGUMENTS = {"search": ["ledger"], "agents": [], "agents health": ["-a", "bob"]}
OPTIONAL = {"status": {"passages", "model", "retired", "problems"}, "search": {"degraded"}}
"""Keys that only some memories have."""


@pytest.mark.parametrize("command", DOCUMENTS)
def test_json_document_has_the_documented_keys(command: str, root: Path) -> None:
    del root

    def run(*arguments: str) -> str:
        result = CliRunner().invoke(build(), list(arguments), prog_name="agent-memory", catch_exceptions=False)
        assert result.exit_code in {0, 1}, result.output
        return result.stdout

    stored = run("store", "-a", "bob", "Kate owns the ledger.", "--json")
    words = [*command.split(), *ARGUMENTS.get(command, []), "--json"]
    if command == "show --history":
        words.append(json.loads(stored)["memory_id"])
    keys = json.loads(run(*words)).keys() - OPTIONAL.get(command, set())
    assert keys == set(DOCUMENTS[command].split(", "))
