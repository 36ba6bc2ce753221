"""`agent-memory leave`: verified exports, and kills between its steps."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from agent_memory.cli import verified_export
from agent_memory.cli.app import build
from agent_memory.files.layout import agents_under
from agent_memory.integrations.host_files import HOSTS
from agent_memory.settings.installation import build_removal_command
from tests.support import resealed

if TYPE_CHECKING:
    from collections.abc import Callable

    from click.testing import Result

FIXTURES = Path(__file__).parents[1] / "fixtures" / "088d4165"
PROGRAM = [sys.executable, "-c", "from agent_memory.cli import main; main()", "leave"]
EVERYTHING = "delete everything\n"
KEY = "fixture-only-passphrase"


@pytest.fixture
def memory(root: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a root with two agents and a backup; connect two hosts."""
    monkeypatch.setenv("AGENT_MEMORY_ROOT", str(root))
    monkeypatch.delenv("AGENT_MEMORY_AGENT", raising=False)
    monkeypatch.delenv("AGENT_MEMORY_KEY", raising=False)
    shutil.copytree(FIXTURES / "full" / "agents", root)
    shutil.copytree(FIXTURES / "purged" / "agents" / "bob", root / "kate")
    (home / ".cursor").mkdir()
    servers = {"agent-memory": {"command": "x", "args": ["mcp", "--agent", "bob"]}, "other": {"command": "y"}}
    HOSTS["cursor"].file.write_text(json.dumps({"mcpServers": servers}))
    HOSTS["claude-code"].file.write_text(json.dumps({"mcpServers": {"agent-memory": servers["agent-memory"]}}))
    return root


@pytest.fixture
def run(memory: Path) -> Callable[..., Result]:
    """Return `agent-memory leave` in this process."""

    def call(*arguments: str, given: str = "", code: int = 0) -> Result:
        result = CliRunner().invoke(build(), ["leave", *arguments], input=given, catch_exceptions=False)
        assert result.exit_code == code, result.output
        return result

    return call


def read_hosts() -> list[str]:
    names = ("cursor", "claude-code")
    return [name for name in names if "agent-memory" in json.loads(HOSTS[name].file.read_text())["mcpServers"]]


def list_texts(folder: Path) -> set[str]:
    lines = map(json.loads, (folder / "export.jsonl").read_text().splitlines())
    return {line["content"] for line in lines if "content" in line}


def export_texts(root: Path, *agents: str) -> set[str]:
    texts = set()
    for agent in agents:
        file = root.parent / f"{agent}.jsonl"
        assert CliRunner().invoke(build(), ["export", str(file), "-a", agent, "--force"]).exit_code == 0
        texts |= {line["content"] for line in map(json.loads, file.read_text().splitlines()) if "content" in line}
    return texts


def test_leave_without_options_does_all_steps_after_the_typed_words(
    run: Callable[..., Result], memory: Path, home: Path
) -> None:
    texts = export_texts(memory, "bob", "kate")
    refused = run(given="yes\n", code=1)
    assert "Nothing was disconnected or deleted." in refused.stderr
    assert agents_under(memory) == ["bob", "kate"]
    assert read_hosts() == ["cursor", "claude-code"]
    done = run(given=EVERYTHING).stdout
    (target,) = home.glob("agent-memory-export-*")
    assert list_texts(target / "bob") | list_texts(target / "kate") == texts
    assert not memory.exists()
    assert read_hosts() == []
    assert "other" in HOSTS["cursor"].file.read_text()
    assert re.search(r"exported +bob: \d+ memor(y|ies), ", done)
    for line in ("disconnected  cursor", f"Remove the program: {build_removal_command()}"):
        assert line in done
    assert "Nothing is stored" in run().stdout


def test_leave_lists_hosts_agents_backups_and_caches(run: Callable[..., Result], memory: Path) -> None:
    document = json.loads(run("--list", "--json").stdout)
    assert [row["host"] for row in document["hosts"]] == ["claude-code", "cursor"]
    kinds = {(item["kind"], item["agent"]) for item in document["stored"]}
    assert {("agent", "bob"), ("agent", "kate"), ("backup", "bob"), ("cache", "bob")} <= kinds
    assert all(item["bytes"] > 0 for item in document["stored"])
    assert agents_under(memory) == ["bob", "kate"]


def test_leave_export_writes_importable_lines_and_private_pages(
    run: Callable[..., Result], memory: Path, tmp_path: Path
) -> None:
    target = tmp_path / "export"
    run("--export", str(target))
    assert "## mem-" in (target / "bob" / "memories.md").read_text()
    assert {path.stat().st_mode & 0o077 for path in target.rglob("*")} == {0}
    other = ["-a", "eve", "--root", str(tmp_path / "elsewhere")]
    imported = CliRunner().invoke(build(), ["import", str(target / "bob" / "export.jsonl"), "--trusted", *other])
    assert imported.exit_code == 0, imported.output
    assert agents_under(memory) == ["bob", "kate"]
    assert read_hosts() == ["cursor", "claude-code"]


def test_leave_disconnects_the_hosts_that_it_can(run: Callable[..., Result], memory: Path) -> None:
    HOSTS["claude-code"].file.write_text("{ broken")
    failed = run("--disconnect", code=1)
    assert "Could not disconnect claude-code" in failed.stderr
    assert "agent-memory" not in HOSTS["cursor"].file.read_text()
    assert HOSTS["claude-code"].file.read_text() == "{ broken"
    assert agents_under(memory) == ["bob", "kate"]


def test_leave_deletes_one_agent_by_its_name(run: Callable[..., Result], memory: Path, tmp_path: Path) -> None:
    assert "--no-export" in run("--delete", "-a", "bob", given="bob\n", code=2).stderr
    run("--delete", "-a", "bob", "--export", str(tmp_path / "export"), given=EVERYTHING, code=1)
    assert agents_under(memory) == ["bob", "kate"]
    run("--delete", "-a", "bob", "--export", str(tmp_path / "export"), given="bob\n")
    assert agents_under(memory) == ["kate"]
    assert list((memory / "_backups").glob("bob-*")) == []
    assert read_hosts() == ["cursor", "claude-code"]
    run("--delete", "--no-export", given=EVERYTHING)
    assert not memory.exists()


def test_leave_keeps_files_of_others_and_backups_without_export(
    run: Callable[..., Result], memory: Path, tmp_path: Path
) -> None:
    (memory / "mine.txt").write_text("not of this program")
    shutil.copy(next((memory / "_backups").glob("bob-*")), memory / "_backups" / "zoe-20261127T023847Z.zip")
    done = run("--delete", "--export", str(tmp_path / "export"), given=EVERYTHING).stdout
    assert agents_under(memory) == []
    assert sorted(path.name for path in memory.rglob("*")) == ["_backups", "mine.txt", "zoe-20261127T023847Z.zip"]
    assert "left " in done


@pytest.mark.parametrize("file", ["export.jsonl", "records.jsonl", "memories.md"])
def test_leave_deletes_nothing_if_the_export_differs(
    run: Callable[..., Result], memory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str
) -> None:
    verify = verified_export.verify_export

    def lose_memory(folder: Any, place: Path) -> Any:
        path = place / file
        path.write_text("".join(line for line in path.read_text().splitlines(keepends=True) if "mem-" not in line))
        return verify(folder, place)

    monkeypatch.setattr(verified_export, "verify_export", lose_memory)
    failed = run("--export", str(tmp_path / "export"), "--delete", given=EVERYTHING, code=1)
    assert "is not verified" in failed.stderr
    assert file in failed.stderr
    assert "Nothing was disconnected or deleted." in failed.stderr
    assert agents_under(memory) == ["bob", "kate"]


def test_leave_keeps_a_memory_that_was_stored_after_the_export(
    run: Callable[..., Result], memory: Path, tmp_path: Path
) -> None:
    target = str(tmp_path / "export")
    run("--export", target)
    assert CliRunner().invoke(build(), ["store", "The harbour is closed.", "-a", "bob"]).exit_code == 0
    failed = run("--export", target, "--delete", given=EVERYTHING, code=1)
    assert "something was stored or changed since" in failed.stderr
    assert agents_under(memory) == ["bob", "kate"]
    run("--export", f"{target}-2", "--delete", given=EVERYTHING)
    assert "The harbour is closed." in list_texts(Path(f"{target}-2") / "bob")


def test_leave_overwrites_no_files_of_others(run: Callable[..., Result], memory: Path, tmp_path: Path) -> None:
    (tmp_path / "bob").mkdir()
    (tmp_path / "bob" / "README.md").write_text("mine")
    assert "has other files" in run("--export", str(tmp_path), code=1).stderr
    assert (tmp_path / "bob" / "README.md").read_text() == "mine"
    assert "inside the storage root" in run("--export", str(memory / "x"), code=1).stderr


def test_leave_exports_an_agent_after_tidying(run: Callable[..., Result], memory: Path, tmp_path: Path) -> None:
    tidied = CliRunner().invoke(build(), ["archive", "tidy", "--apply", "-a", "bob"])
    assert "Archived 1 memory" in tidied.output
    run("--export", str(tmp_path / "export"), "--delete", given=EVERYTHING)
    assert '"tidy_run"' in (tmp_path / "export" / "bob" / "records.jsonl").read_text()
    assert not memory.exists()


def test_leave_needs_the_key_of_an_encrypted_agent(
    run: Callable[..., Result], memory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(FIXTURES / "encrypted" / "agents" / "bob", memory / "zoe")
    arguments = ["--export", str(tmp_path / "export"), "--delete"]
    failed = run(*arguments, given=EVERYTHING, code=1).stderr
    assert "Could not export zoe. It stays as it is." in failed
    assert agents_under(memory) == ["bob", "kate", "zoe"]
    monkeypatch.setenv("AGENT_MEMORY_KEY", KEY)
    assert "its export is not" in run(*arguments, given=EVERYTHING).stderr
    assert list_texts(tmp_path / "export" / "zoe")
    assert not memory.exists()


def test_leave_of_a_newer_journal_names_the_upgrade(run: Callable[..., Result], memory: Path, tmp_path: Path) -> None:
    journal = memory / "bob" / "memories.yaml"
    first, rest = journal.read_bytes().split(b"\n", 1)
    journal.write_bytes(resealed(first.replace(b'"min_reader": 2', b'"min_reader": 9') + b"\n") + rest)
    failed = run("--export", str(tmp_path / "export"), "--delete", given=EVERYTHING, code=1).stderr
    assert "format 9" in failed
    assert "hint: Upgrade, then try again: " in failed
    assert agents_under(memory) == ["bob", "kate"]


@pytest.mark.parametrize("line", ["Exported bob", "Exported kate", "Disconnected claude-code", "Deleted bob"])
def test_leave_after_a_kill_continues_without_loss(run: Callable[..., Result], memory: Path, line: str) -> None:
    texts = export_texts(memory, "bob", "kate")
    command = subprocess.Popen(PROGRAM, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    with command as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(EVERYTHING.encode())
        process.stdin.flush()
        for shown in process.stdout:
            if line.encode() in shown:
                process.send_signal(signal.SIGKILL)
                break
    stored = agents_under(memory)
    target = next(Path(os.environ["HOME"]).glob("agent-memory-export-*"), None)
    exported = {name for name in ("bob", "kate") if target and verified_export.read_export(target / name)}
    assert exported | set(stored) == {"bob", "kate"}, "each agent is stored, or its export is verified"
    run(given=EVERYTHING)
    assert not memory.exists()
    assert read_hosts() == []
    folders = Path(os.environ["HOME"]).glob("agent-memory-export-*/*")
    assert set().union(*map(list_texts, folders)) == texts
