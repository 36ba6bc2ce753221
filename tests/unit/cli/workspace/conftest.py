"""A workspace at the command line: the small book of `tests/unit/workspace`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_memory.workspace import Caller, Workspace
from tests.unit.workspace.conftest import BOOK

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from click.testing import Result

    from tests.unit.cli.conftest import Run


@pytest.fixture
def declaration(tmp_path: Path) -> Path:
    path = tmp_path / "book.yaml"
    path.write_text(BOOK)
    return path


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "place"


@pytest.fixture
def book(cli: Run, declaration: Path, place: Path) -> Callable[..., Result]:
    """Return `agent-memory workspace` for a workspace in which three chapters were prepared."""
    cli("workspace", "init", str(declaration), "--at", str(place))
    workspace = Workspace.open(place)
    claim = workspace.steps.claim("worker")
    for number in (1, 2, 3):
        values = {"number": number, "title": f"Chapter {number}"}
        workspace.tables.save("chapters", values, Caller("librarian", claim=claim))
    assert claim is not None
    workspace.steps.finish(claim)
    workspace.close()

    def run(command: str, *arguments: str, code: int = 0, given: str | None = None) -> Result:
        return cli("workspace", command, *arguments, "--at", str(place), code=code, given=given)

    return run
