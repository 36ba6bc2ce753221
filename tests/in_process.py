"""The command line in the process of a test, and copies of folders that earlier versions wrote."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from typer.testing import CliRunner

from agent_memory.cli.app import build

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest
    from typer.testing import Result

    Run = Callable[..., Result]


def build_cli(root: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return `agent-memory` for the agent bob; a `code` of None allows any exit code."""
    monkeypatch.setenv("AGENT_MEMORY_ROOT", str(root))
    monkeypatch.setenv("AGENT_MEMORY_AGENT", "bob")
    app, runner = build(), CliRunner()

    def run(*arguments: str, code: int | None = 0) -> Result:
        result = runner.invoke(app, list(arguments), prog_name="agent-memory", catch_exceptions=False)
        assert code is None or result.exit_code == code, result.output
        return result

    return run


def copy_private(folder: Path, to: Path) -> Path:
    """Copy a folder, readable by its owner alone, and return the copy."""
    shutil.copytree(folder, to)
    for path in to.rglob("*"):
        path.chmod(0o700 if path.is_dir() else 0o600)
    return to
