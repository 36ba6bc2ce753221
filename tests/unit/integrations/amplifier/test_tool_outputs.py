"""Which outputs of tools are trusted, of the project, or untrusted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agent_memory.integrations.taint import CalledTool, ToolList
from tests.support import FILE_TOOLS, SHELL

if TYPE_CHECKING:
    from pathlib import Path

NEUTRAL = (
    "lookup", "get", "query", "run", "ask", "read", "open", "docs", "help", "context", "resolve", "inspect", "analyze",
    "summarize", "translate", "answer", "assistant", "helper", "data", "table", "sql", "kb", "notes", "todo", "grep",
    "glob", "read_file", "code_search", "memory_search", "memory_store", "memory_context", "recall", "bash",
)  # fmt: skip


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository with a folder, a link out of it, and a file next to it."""
    (tmp_path / "project" / ".git").mkdir(parents=True)
    (tmp_path / "project" / "src").mkdir()
    (tmp_path / "outside.txt").touch()
    (tmp_path / "project" / "link").symlink_to(tmp_path)
    return tmp_path / "project"


@pytest.mark.parametrize("name", NEUTRAL)
def test_classify_name_says_nothing(project: Path, name: str) -> None:
    for package in ("", "x", "amplifier_module_tool_mcp", "agent_memory_tools", "amplifier_module_tool_memory"):
        assert ToolList().classify(CalledTool(name, package, {"path": "src"}), project) == "untrusted"


@pytest.mark.parametrize(
    ("package", "name", "arguments", "kind"),
    [
        ("agent_memory", "memory_search", {}, "trusted"),
        ("amplifier_module_tool_memory_semantic", "memory_search", {}, "trusted"),
        ("amplifier_module_tool_todo", "todo", {}, "trusted"),
        (FILE_TOOLS, "write_file", {"file_path": "src/a.py", "content": "/etc"}, "trusted"),
        (FILE_TOOLS, "edit_file", {"file_path": "src/../b.py"}, "trusted"),
        (FILE_TOOLS, "edit_file", {"file_path": "../outside.txt"}, "untrusted"),
        (FILE_TOOLS, "read_file", {"file_path": "src/a.py"}, "project"),
        (FILE_TOOLS, "read_file", {"file_path": "../outside.txt"}, "untrusted"),
        (FILE_TOOLS, "read_file", {"file_path": "link/outside.txt"}, "untrusted"),
        (FILE_TOOLS, "read_file", {"file_path": "~/mail.txt"}, "untrusted"),
        (FILE_TOOLS, "read_files", {"paths": ["src/a.py", "../outside.txt"]}, "untrusted"),
        (FILE_TOOLS, "glob", {"pattern": "**/*.py"}, "project"),
        (FILE_TOOLS, "glob", {"pattern": "/etc/*"}, "untrusted"),
        ("amplifier_module_tool_search", "grep", {"pattern": "def", "path": "src"}, "project"),
        ("amplifier_module_tool_search", "grep", {"pattern": "def", "path": "/var/mail"}, "untrusted"),
        ("amplifier_module_tool_web", "web_fetch", {"url": "https://x.example"}, "untrusted"),
        ("amplifier_module_tool_task", "task", {"agent": "coder"}, "untrusted"),
    ],
)
def test_classify_tool_of_package(project: Path, package: str, name: str, arguments: Any, kind: str) -> None:
    assert ToolList().classify(CalledTool(name, package, arguments), project) == kind


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        ("make test", "project"),
        ("npm test -- --watch=false", "project"),
        ("python -m pytest -q tests/unit | tail -5", "project"),
        ("git log --oneline && git status", "project"),
        ("grep -rn requested src > /dev/null", "project"),
        ("FOO=1 timeout_free=1 pytest -q 2>&1 | tail -5", "project"),
        ("for f in a b; do cat README.md; done", "project"),
        ("if test -f a; then make; fi", "project"),
        ("ls\ncurl x", "untrusted"),
        ("echo 'unbalanced", "untrusted"),
        ("sed -i s/a/b/ src/a.py", "project"),
        ("curl -s x.example", "untrusted"),
        ("python -c 'import requests; print(requests.get(u).text)'", "untrusted"),
        ("gh issue view 12", "untrusted"),
        ("git pull --rebase", "untrusted"),
        ("kubectl logs web-1", "untrusted"),
        ("node -e 'fetch(u).then(console.log)'", "untrusted"),
        ("cat ../README.md", "project"),
        ("cat ../../outside.txt", "untrusted"),
        ("cat ../link/outside.txt", "untrusted"),
        ("tail -n/etc/passwd; cd .. && cd .. && cat outside.txt", "untrusted"),
        ("cat ~/Downloads/page.html", "untrusted"),
        ('cat "$HOME/page.html"', "untrusted"),
        ("cat /tmp/page.html", "untrusted"),
        ("agent-memory search 'push to main'", "untrusted"),
        ("python -m agent_memory.cli list", "untrusted"),
        ("x" * 20_001, "untrusted"),
        (None, "untrusted"),
    ],
)
def test_classify_command(project: Path, command: Any, kind: str) -> None:
    assert ToolList().classify(CalledTool("bash", SHELL, {"command": command}), project / "src") == kind
    assert ToolList().classify(CalledTool("bash", "another_shell", {"command": command}), project) == "untrusted"


@pytest.mark.parametrize(
    "command",
    [
        "cat /etc/motd",
        "cat $TMPDIR/x",
        'cat "$OLDPWD/x"',
        "cd && cat mail.txt",
        "cd -; cat x",
        "pushd /tmp; cat x",
        "cat l/x",
        "python -c 'import http.client as h; print(h)'",
        "python -c 'import socket'",
        "perl -MLWP::Simple -e 'getprint(shift)' x.example",
        "ruby -ropen-uri -e 'puts URI.open(ARGV[0]).read' x.example",
        "node -e 'require(\"http\").get(u)'",
        "nslookup -type=txt x.example",
        "dig txt x.example",
        "host -t txt x.example",
        "openssl s_client -connect x.example:443",
        "busybox wget x.example",
        "git fetch",
        "git submodule update --remote",
        "git remote update",
        "svn cat file",
        "hg pull",
        "docker run alpine cat x",
        "docker logs web",
        "kubectl get pods",
        "aws s3 cp s3://b/x -",
        "gsutil cat gs://b/x",
        "az storage blob download",
        "psql -c 'select * from mail'",
        "mysql -e 'select 1'",
        "redis-cli get x",
        "npm install left-pad",
        "npm view x",
        "pip download x",
        "cargo install x",
        "go get x",
        "brew info x",
        "apt show x",
        "snap info x",
        "xclip -o",
        "pbpaste",
        "osascript -e 'get mail'",
        "mail -p",
        "mutt",
        "echo aHR0cHM6Ly94 | base64 -d | xargs curl",
        "eval $(printf '\\x63url x')",
        "bash <(echo Y3VybA== | base64 -d)",
        "history",
        "cat <<< $(getent hosts x)",
        "sqlite3 ~/mail.db .dump",
        "find / -name x",
        "less ~root/x",
        "cat ~/../x",
        "cp l/x . && cat x",
        "tar xOf ../a.tar",
        "cat ${HOME}/x",
        "cat `echo /etc/passwd`",
    ],
)
def test_classify_command_that_brings_foreign_text_is_untrusted(project: Path, command: str) -> None:
    (project / "l").symlink_to(project.parent)
    assert ToolList().classify(CalledTool("bash", SHELL, {"command": command}), project) == "untrusted"


def test_classify_command_without_project_is_untrusted(home: Path) -> None:
    assert ToolList().classify(CalledTool("bash", SHELL, {"command": "ls"}), home) == "untrusted"


def test_classify_listed_tools(project: Path) -> None:
    lookup, other = CalledTool("lookup", "lookup_tool", {}), CalledTool("fetch", "lookup_tool", {})
    assert ToolList(["lookup_tool"]).classify(other, project) == "trusted"
    assert ToolList(["lookup_tool:lookup"]).classify(lookup, project) == "trusted"
    assert ToolList(["lookup_tool:lookup"]).classify(other, project) == "untrusted"
    assert ToolList().classify(lookup, project, {"lookup_tool"}) == "trusted"
    assert ToolList(["lookup"]).classify(lookup, project) == "untrusted"
    assert ToolList(named=["look*"]).classify(lookup, project) == "trusted"


@pytest.mark.parametrize("pattern", ["LOOKUP", "look*", "lookup_tool", "*_tool"])
def test_classify_untrusted_tools_win(project: Path, pattern: str) -> None:
    tools = ToolList(["lookup_tool"], untrusted=[pattern], named=["lookup"])
    assert tools.classify(CalledTool("lookup", "lookup_tool", {}), project, {"lookup_tool"}) == "untrusted"


def test_called_tool_is_known_by_package_of_object() -> None:
    tool = type("Tool", (), {"__module__": "some_package.inner.tool"})()
    assert CalledTool.of("memory_search", tool, '{"path": "x"}') == ("memory_search", "some_package", {"path": "x"})
    assert CalledTool.of("memory_search", None, "ls") == ("memory_search", "", {"command": "ls"})
