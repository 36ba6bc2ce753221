"""Long lists in a pager: on a terminal alone, and only if they are longer than the screen."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from typing import TYPE_CHECKING, Final

import pytest

from agent_memory.cli.pager import find_pager

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.cli.conftest import Run

_ROWS: Final = "4"
_PAGER: Final = "sed s/^/paged:/"


def list_on_terminal(root: str, *arguments: str, pager: str = _PAGER) -> str:
    """Return the output of `agent-memory list` on a terminal of four lines."""
    variables = {**os.environ, "AGENT_MEMORY_ROOT": root, "AGENT_MEMORY_PAGER": pager, "LINES": _ROWS, "COLUMNS": "80"}
    outer, inner = pty.openpty()
    command = [sys.executable, "-m", "agent_memory.cli", "list", *arguments]
    process = subprocess.Popen(command, stdin=inner, stdout=inner, stderr=subprocess.PIPE, env=variables)
    os.close(inner)
    chunks = []
    try:
        while chunk := os.read(outer, 65_536):
            chunks.append(chunk)
    except OSError:  # how Linux says that the other side is closed
        pass
    finally:
        os.close(outer)
        process.communicate(timeout=60)
    assert process.returncode == 0
    return b"".join(chunks).decode()


@pytest.fixture
def root_of_bob(bob: Run, root: object) -> str:
    """Return the root of an agent whose list has five lines."""
    return str(root)


def test_long_list_is_paged_on_a_terminal(root_of_bob: str) -> None:
    shown = list_on_terminal(root_of_bob)
    assert shown.count("paged:") == len(shown.splitlines()) > int(_ROWS)


@pytest.mark.parametrize("arguments", [["--no-pager"], ["--limit", "1"]], ids=" ".join)
def test_list_is_not_paged(root_of_bob: str, arguments: list[str]) -> None:
    shown = list_on_terminal(root_of_bob, *arguments)
    assert "mem-" in shown
    assert "paged:" not in shown


def test_list_is_printed_if_the_pager_is_no_program(root_of_bob: str, tmp_path: Path) -> None:
    (tmp_path / "pager").write_bytes(b"\x7fELF")
    (tmp_path / "pager").chmod(0o700)
    assert "mem-" in list_on_terminal(root_of_bob, pager=str(tmp_path / "pager"))


def test_list_is_not_paged_in_a_pipe(bob: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_MEMORY_PAGER", _PAGER)
    assert "paged:" not in bob("list", "--all").stdout


@pytest.mark.parametrize(
    ("variables", "command"),
    [
        ({"AGENT_MEMORY_PAGER": "cat", "PAGER": "sed p"}, []),
        ({"AGENT_MEMORY_PAGER": ""}, []),
        ({"PAGER": "sed p"}, ["sed", "p"]),
        ({"PAGER": "no-such-program-here"}, []),
        ({"PAGER": "less 'x"}, []),
    ],
    ids=["cat", "empty", "PAGER", "absent", "open quote"],
)
def test_pager_is_chosen_by_the_environment(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], command: list[str]
) -> None:
    for name in ("AGENT_MEMORY_PAGER", "PAGER"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert find_pager() == command
