"""Commands in hints run as they are printed: they name the root and the agent of the command that printed them."""

from __future__ import annotations

import ast
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import agent_memory.cli
from agent_memory.cli.text import complete_commands
from tests.rows import check_rows
from tests.unit.cli.conftest import A

if TYPE_CHECKING:
    import pytest

    from tests.unit.cli.conftest import Run

OPTIONS = {"-a": "bob", "--root": "/my memories"}
ADDED = "-a bob --root '/my memories'"
COMMAND = re.compile(r"(?:`|[|:] |[Rr]un )agent-memory [a-z]")
PRINTS = {"hint", "complete"}


@check_rows(
    ("text", "completed"),
    [
        ("`agent-memory compact --now` ends that.", f"`agent-memory compact --now {ADDED}` ends that."),
        ("Run agent-memory undo to list.", f"Run agent-memory undo {ADDED} to list."),
        ("To undo that: agent-memory backup restore x.zip", "agent-memory backup --root '/my memories' restore x.zip"),
        ("`agent-memory agents` lists", "`agent-memory agents --root '/my memories'` lists"),
        ("`agent-memory store -a NAME TEXT`", "`agent-memory store -a NAME TEXT --root '/my memories'`"),
        ("run agent-memory list --root /x, or", "run agent-memory list -a bob --root /x, or"),
        ("`agent-memory workspace claim`", "`agent-memory workspace claim`"),
        ("made by a newer agent-memory than this", "made by a newer agent-memory than this"),
    ],
)
def test_complete_commands_adds_what_is_missing(text: str, completed: str) -> None:
    options = OPTIONS if "backup restore" not in text else {"--root": OPTIONS["--root"]}
    assert completed in complete_commands(text, options)
    assert complete_commands(text, {}) == text


def test_every_command_in_a_hint_is_completed() -> None:
    """A text with a command that is printed otherwise than by a hint would lack the root."""
    wrong = []
    for path in Path(agent_memory.cli.__file__).parent.glob("*.py"):
        tree = ast.parse(path.read_text())
        parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
        for node in ast.walk(tree):
            if not (isinstance(node, ast.Constant) and isinstance(node.value, str) and COMMAND.search(node.value)):
                continue
            names, parent = set(), parents.get(node)
            while parent is not None and not isinstance(parent, ast.FunctionDef | ast.AsyncFunctionDef):
                if isinstance(parent, ast.Call):
                    names.add(getattr(parent.func, "attr", getattr(parent.func, "id", "")))
                parent = parents.get(parent)
            if names & {"note", "show", "row", "confirm"} and not names & PRINTS:
                wrong.append(f"{path.name}:{node.lineno}")
    assert wrong == []


def test_hints_of_a_command_run_as_printed(bob: Run, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bob("store", "-a", "eve", "Kate owns the ledger.")
    monkeypatch.delenv("AGENT_MEMORY_ROOT")
    here = ("--root", str(root))
    hints = bob("forget", A, "--yes", "-a", "bob", *here).stderr
    printed = re.findall(r"(?:`|: )(agent-memory [^`\n]+)", hints)
    assert len(printed) == 2
    for command in printed:
        assert "--root" in command
        bob(*shlex.split(command)[1:], *(("--yes",) if "compact" in command else ()))


def test_hint_of_an_error_names_the_root(bob: Run, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AGENT_MEMORY_ROOT")
    (root / "bob" / "memories.yaml").unlink()
    stderr = bob("list", "--root", str(root), code=1).stderr
    (command,) = re.findall(r"run (agent-memory agents reset [^(]+)", stderr)
    bob(*shlex.split(command)[1:])
    assert bob("store", "-a", "bob", "Kate owns the ledger.", "--root", str(root)).stdout
