"""Commands for the environment that the program is installed in."""

from __future__ import annotations

import json
import sys
from importlib import metadata
from typing import TYPE_CHECKING

import pytest

from agent_memory.settings.installation import (
    build_removal_command,
    build_requirement,
    build_upgrade_command,
    is_temporary,
)

if TYPE_CHECKING:
    from pathlib import Path

NAME = "amplifier-bundle-agent-memory"
WHEEL = {"url": "file:///dist/x-0.1.0-py3-none-any.whl", "archive_info": {}}
CLONE = {"url": "file:///clone", "dir_info": {}}
GIT = {"url": "https://example.org/x", "vcs_info": {"vcs": "git", "requested_revision": "main", "commit_id": "1"}}


class FakeDistribution:
    """Distribution with one file of metadata."""

    def __init__(self, source: object) -> None:
        self.text = None if source is None else json.dumps(source)

    def read_text(self, name: str) -> str | None:
        assert name == "direct_url.json"
        return self.text


def install(monkeypatch: pytest.MonkeyPatch, prefix: Path, source: object, receipt: str = "") -> None:
    prefix.mkdir(parents=True)
    if receipt:
        (prefix / receipt).write_text("")
    monkeypatch.setattr(sys, "prefix", str(prefix))
    monkeypatch.setattr(sys, "executable", "/opt/python")
    monkeypatch.setattr(metadata, "distribution", lambda _: FakeDistribution(source))


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (None, ""),
        (WHEEL, " @ file:///dist/x-0.1.0-py3-none-any.whl"),
        (CLONE, " @ file:///clone"),
        (GIT, " @ git+https://example.org/x@main"),
    ],
)
def test_requirement_names_the_source(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, source: object, expected: str
) -> None:
    install(monkeypatch, tmp_path / "venv", source)
    assert build_requirement() == f"{NAME}[cli,local,mcp]{expected}"


@pytest.mark.parametrize(
    ("folder", "receipt", "source", "upgrade", "removal"),
    [
        (NAME, "uv-receipt.toml", GIT, f"uv tool upgrade {NAME}", f"uv tool uninstall {NAME}"),
        (NAME, "uv-receipt.toml", WHEEL, "uv tool install --force", f"uv tool uninstall {NAME}"),
        (NAME, "pipx_metadata.json", GIT, f"pipx upgrade {NAME}", f"pipx uninstall {NAME}"),
        ("amplifier", "uv-receipt.toml", GIT, "amplifier bundle update --all -y", "amplifier bundle remove"),
        ("archive-v0/x", "", GIT, "uv tool install --force", "uv cache clean"),
    ],
)
def test_commands_fit_the_installer(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    folder: str,
    receipt: str,
    source: object,
    upgrade: str,
    removal: str,
) -> None:
    install(monkeypatch, tmp_path / folder, source, receipt)
    assert build_upgrade_command().startswith(upgrade)
    assert build_removal_command().startswith(removal)


def test_environment_of_pip_is_upgraded_by_its_python(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TMPDIR", "/nowhere")
    folder = tmp_path / "venv"
    install(monkeypatch, folder, CLONE)
    if not folder.is_relative_to("/tmp"):
        assert not is_temporary(folder)
        assert build_upgrade_command().startswith("/opt/python -m pip install --upgrade")
    assert is_temporary(tmp_path / "archive-v0" / "x")
