"""`agent-memory connect`: writes a host's configuration with a backup, and takes it back."""

from __future__ import annotations

import json
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from typer.testing import CliRunner

from agent_memory.cli import connect, permanent_program
from agent_memory.cli.app import build
from agent_memory.cli.permanent_program import ProgramPlan
from agent_memory.files.layout import agents_under
from agent_memory.integrations.host_files import HOOK_FILES, HOSTS
from agent_memory.integrations.mcp.turn_files import is_host_limited

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
    monkeypatch.setattr(connect, "plan_program", lambda: ProgramPlan(PROGRAM))

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
    said = f'Connected {name} to memory "bob" (0 memories, {root / "bob"}). Undo: agent-memory connect {name} --undo.\n'
    assert told.stdout.endswith(said)
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


@pytest.mark.parametrize("text", ['{"a": }', "[]", '{"mcpServers": 5}', "\xff"])
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


@pytest.mark.parametrize("name", HOOK_FILES)
def test_connected_host_runs_the_hooks_of_the_agent_and_undo_removes_them(
    run: Callable[..., Result], root: Path, name: str
) -> None:
    file = HOOK_FILES[name].file.file
    file.parent.mkdir(parents=True, exist_ok=True)
    mine = {"matcher": "x", "hooks": [{"type": "command", "command": "mine"}], "command": "mine"}
    event = next(iter(HOOK_FILES[name].events))
    file.write_text(before := json.dumps({"hooks": {event: [mine], "Other": [mine]}, "version": 1}, indent=2))
    run(name, "--agent", "bob", "--yes")
    hooks = json.loads(file.read_text())["hooks"]
    assert hooks[event][0] == mine
    assert {*hooks} == {*HOOK_FILES[name].events, "Other"}
    host = f" --host {name}" if name != "claude-code" else ""
    assert f"{PROGRAM} hook session-start{host} --agent bob --root {root}" in json.dumps(hooks[event][1])
    run(name, "--agent", "kate", "--yes")
    assert "bob" not in file.read_text()
    assert json.loads(file.read_text())["hooks"][event][0] == mine
    run(name, "--undo", "--yes")
    after = json.loads(file.read_text())
    assert {key: after[key] for key in ("hooks", "version")} == json.loads(before)


def test_hooks_that_are_no_mapping_leave_both_files_as_they_are(run: Callable[..., Result]) -> None:
    file = HOOK_FILES["cursor"].file.file
    file.parent.mkdir(parents=True)
    file.write_text('{"hooks": []}')
    assert "~/.cursor/hooks.json" in run("cursor", "--yes", code=1).stderr
    assert not HOSTS["cursor"].file.exists()


def test_active_plugin_of_claude_code_has_the_hooks_alone(run: Callable[..., Result]) -> None:
    file = HOOK_FILES["claude-code"].file.file
    file.parent.mkdir(parents=True)
    file.write_text('{"enabledPlugins": {"agent-memory@here": true}}')
    run("claude-code", "--yes")
    assert "hooks" not in json.loads(file.read_text())


def test_hooks_without_an_entry_are_listed_and_removed(run: Callable[..., Result]) -> None:
    run("codex", "--yes")
    HOSTS["codex"].file.unlink()
    listed = {row["host"]: row["state"] for row in json.loads(run("--json").stdout)["hosts"]}
    assert listed["codex"] == "only hooks"
    run("codex", "--undo", "--yes")
    assert "hooks" not in json.loads(HOOK_FILES["codex"].file.file.read_text())


def test_host_without_hooks_is_named_with_the_consequence(run: Callable[..., Result]) -> None:
    assert "low trust" in run("goose", "--yes").stderr
    assert "/hooks" in run("codex", "--yes").stderr


UV = """#!/bin/sh
echo "$@" >> "$0.log"
case "$*" in
"tool dir") echo "$HOME/tools" ;;
*) bin="$HOME/tools/amplifier-bundle-agent-memory/bin" && mkdir -p "$bin" && cp "$0.program" "$bin/agent-memory" ;;
esac
"""


@pytest.fixture
def cached(run: Callable[..., Result], home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let the program run from the cache of uv; return a uv that installs a program that starts."""
    folder, uv = home / ".cache" / "uv" / "archive-v0" / "x" / "bin", home / "uv"
    folder.mkdir(parents=True)
    for path, text in ((folder / "agent-memory", "#!/bin/sh\n"), (uv, UV), (home / "uv.program", "#!/bin/sh\n")):
        path.write_text(text)
        path.chmod(0o700)
    monkeypatch.setattr(connect, "plan_program", permanent_program.plan_program)
    monkeypatch.setattr(sys, "executable", str(folder / "python"))
    monkeypatch.setenv("UV", str(uv))
    return uv


def test_connect_from_a_cache_installs_the_program_first(run: Callable[..., Result], cached: Path, home: Path) -> None:
    shown = run("cursor", "--print").stdout
    assert "uv tool install --force --compile-bytecode" in shown
    assert not (home / "tools").exists()
    refused = run("cursor", code=2).stderr
    assert "Nothing was changed" in refused
    assert not (home / "tools").exists()
    run("cursor", "--yes")
    program = home / "tools" / "amplifier-bundle-agent-memory" / "bin" / "agent-memory"
    assert program.exists()
    assert read_servers("cursor")["agent-memory"]["command"] == str(program)
    assert "amplifier-bundle-agent-memory[cli,local,mcp]" in cached.with_name("uv.log").read_text()


@pytest.mark.parametrize("broken", ["uv", "uv.program"])
def test_connect_after_failed_installation_changes_no_host(
    run: Callable[..., Result], cached: Path, home: Path, broken: str
) -> None:
    (home / broken).write_text('#!/bin/sh\n[ "$2" = dir ] && echo "$HOME/tools" || exit 7\n')
    assert "No host was changed" in run("cursor", "--yes", code=1).stderr
    assert not HOSTS["cursor"].file.exists()


def test_connect_creates_the_default_agent_and_names_amplifier(
    run: Callable[..., Result], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AGENT_MEMORY_ROOT")
    (home / ".amplifier").mkdir()
    (home / ".amplifier" / "settings.yaml").write_text("")
    shown = run("claude-code", "--yes").stdout.splitlines()[-1]
    assert shown == (
        'Connected claude-code to memory "me" (0 memories, ~/.amplifier/memory/me). '
        "Shared with: amplifier. Undo: agent-memory connect claude-code --undo."
    )
    assert agents_under(home / ".amplifier" / "memory") == ["me"]
    assert "me" in CliRunner().invoke(build(), ["agents"]).stdout
    assert CliRunner().invoke(build(), ["doctor"]).exit_code == 0
    assert CliRunner().invoke(build(), ["list"]).exit_code == 0


@pytest.mark.parametrize(
    ("name", "variable", "file"),
    [
        ("claude-code", "CLAUDE_CONFIG_DIR", ".claude.json"),
        ("codex", "CODEX_HOME", "config.toml"),
        ("opencode", "XDG_CONFIG_HOME", "opencode/opencode.json"),
        ("goose", "XDG_CONFIG_HOME", "goose/config.yaml"),
    ],
)
def test_connect_writes_to_the_folder_of_the_environment(
    run: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, variable: str, file: str
) -> None:
    monkeypatch.setenv(variable, str(tmp_path / "other"))
    run(name, "--yes")
    assert "agent-memory" in (tmp_path / "other" / file).read_text()
    assert str(tmp_path / "other") in run("--list").stdout


def test_connect_without_packages_of_the_server_writes_nothing(
    run: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    run("codex", "--yes")
    before = HOSTS["codex"].file.read_text()
    monkeypatch.setitem(sys.modules, "tomlkit", None)
    for arguments in (("cursor", "--yes"), ("codex", "--print")):
        assert "tomlkit" in run(*arguments, code=1).stderr
    assert not HOSTS["cursor"].file.exists()
    assert "not installed" in run("--list").stdout
    assert "tomlkit" in run("codex", "--undo", "--yes", code=1).stderr
    assert HOSTS["codex"].file.read_text() == before


def test_unknown_host_is_refused(run: Callable[..., Result]) -> None:
    assert "unknown_host" in run("emacs", code=1).stderr


def test_host_of_one_project_gets_the_argument_and_a_sign_for_hooks(run: Callable[..., Result], root: Path) -> None:
    run("cursor", "--agent", "bob", "--project-only", "--yes")
    assert "--project-only" in read_servers("cursor")["agent-memory"]["args"]
    assert is_host_limited(root, "cursor")
    run("cursor", "--agent", "bob", "--yes")
    assert "--project-only" not in read_servers("cursor")["agent-memory"]["args"]
    assert not is_host_limited(root, "cursor")
