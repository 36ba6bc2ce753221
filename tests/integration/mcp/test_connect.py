"""`agent-memory connect`: writes a host's configuration with a backup, and takes it back."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from typer.testing import CliRunner

from agent_memory.cli import connect
from agent_memory.cli.app import build
from agent_memory.integrations.mcp.host_files import HOSTS

if TYPE_CHECKING:
    from collections.abc import Callable

    from click.testing import Result

PROGRAM = Path("/opt/bin/agent-memory")


@pytest.fixture
def run(root: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Return `agent-memory connect` for an empty home."""
    assert home.is_dir()
    monkeypatch.setenv("AGENT_MEMORY_ROOT", str(root))
    monkeypatch.delenv("AGENT_MEMORY_AGENT", raising=False)
    monkeypatch.setattr(connect, "_find_program", lambda: PROGRAM)

    def call(*arguments: str, code: int = 0) -> Result:
        result = CliRunner().invoke(build(), ["connect", *arguments], catch_exceptions=False)
        assert result.exit_code == code, result.output
        return result

    return call


def read_servers(name: str) -> Any:
    host, text = HOSTS[name], HOSTS[name].file.read_text()
    parse: dict[str, Any] = {"json": json.loads, "toml": tomllib.loads, "yaml": yaml.safe_load}
    value = parse[host.form](text)
    for key in host.keys:
        value = value.get(key, {})
    return value


@pytest.mark.parametrize("name", HOSTS)
def test_connected_host_starts_the_server_of_the_agent_and_undo_removes_that(
    run: Callable[..., Result], root: Path, name: str
) -> None:
    shown = run(name, "--agent", "bob", "--print").stdout
    assert not HOSTS[name].file.exists()
    assert str(PROGRAM) in shown
    told = run(name, "--agent", "bob", "--yes")
    assert f'Connected {name} to memory "bob" (0 memories, {root / "bob"}).' in told.stdout
    entry = read_servers(name)["agent-memory"]
    words = json.dumps(entry)
    assert json.dumps(["mcp", "--agent", "bob", "--root", str(root)])[1:-1] in words
    assert str(PROGRAM) in words
    assert "connected already" in run(name, "--agent", "bob", "--yes").stdout
    run(name, "--undo", "--yes")
    assert "agent-memory" not in read_servers(name)
    assert "not connected" in run(name, "--undo", "--yes").stdout


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("codex", '# mine\nmodel = "x"\n\n[mcp_servers.other]\ncommand = "y" # stays\n'),
        ("goose", "# mine\nextensions:\n  other:   # stays\n    cmd: 'y'\n"),
        ("cursor", '{\n  "mcpServers": {\n    "other": {\n      "command": "y"\n    }\n  }\n}\n'),
    ],
)
def test_other_servers_and_comments_stay_and_undo_restores_the_text(
    run: Callable[..., Result], name: str, text: str
) -> None:
    file = HOSTS[name].file
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    file.chmod(0o644)
    run(name, "--yes")
    assert "other" in read_servers(name)
    assert all(comment in file.read_text() for comment in ("# mine", "# stays") if comment in text)
    assert file.stat().st_mode & 0o777 == 0o644
    assert file.with_name(f"{file.name}.before-agent-memory").read_text() == text
    run(name, "--undo", "--yes")
    assert file.read_text() == text


@pytest.mark.parametrize("text", ["{ // a comment\n}", "[]", '{"mcpServers": 5}', "\xff"])
def test_file_that_cannot_be_used_is_left_as_it_is(run: Callable[..., Result], text: str) -> None:
    file = HOSTS["cursor"].file
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text.encode("latin-1"))
    told = run("cursor", "--yes", code=1)
    assert "~/.cursor/mcp.json" in told.stderr
    assert file.read_bytes() == text.encode("latin-1")
    assert "~/.cursor/mcp.json" in run("--json").stdout, "and the list of all hosts works"


def test_link_to_a_file_stays_a_link(run: Callable[..., Result], tmp_path: Path) -> None:
    file, target = HOSTS["cursor"].file, tmp_path / "dotfile.json"
    target.write_text("{}")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.symlink_to(target)
    run("cursor", "--yes")
    assert file.is_symlink()
    assert "agent-memory" in json.loads(target.read_text())["mcpServers"]


def test_hosts_that_share_an_agent_are_named(run: Callable[..., Result]) -> None:
    run("cursor", "--agent", "bob", "--yes")
    run("gemini", "--agent", "kate", "--yes")
    assert "Shared with: cursor." in run("codex", "--agent", "bob", "--yes").stdout
    listed = {row["host"]: row for row in json.loads(run("--json").stdout)["hosts"]}
    assert (listed["cursor"]["state"], listed["cursor"]["agent"]) == ("connected", "bob")
    assert listed["windsurf"]["state"] == "no file"


def test_program_in_a_cache_is_not_written_anywhere(
    run: Callable[..., Result], monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    cached = home / ".cache" / "uv" / "archive-v0" / "x" / "bin" / "agent-memory"
    monkeypatch.setattr(connect, "_find_program", lambda: cached)
    assert "uv tool install" in run("cursor", "--yes", code=1).stderr
    assert not HOSTS["cursor"].file.exists()
    assert "unknown_host" in run("emacs", code=1).stderr
