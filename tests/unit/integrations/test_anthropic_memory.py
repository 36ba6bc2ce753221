"""The backend of Anthropic's memory tool, with or without its package."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from tests.adapter_protocols import use_protocols

use_protocols("anthropic")

from anthropic.lib.tools import ToolError  # noqa: E402 - it may be the stand-in

from agent_memory.integrations.anthropic_memory import AgentMemoryTool, AsyncAgentMemoryTool  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SECRET = "gh" + "p_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


@pytest.fixture
def tool(root: Path) -> Iterator[AgentMemoryTool]:
    tool = AgentMemoryTool("bob", root=root)
    yield tool
    tool.close()


def call(tool: Any, command: str, path: str = "", **fields: Any) -> str:
    values = {"path": path, "view_range": None, **fields}
    answer = getattr(tool, command)(SimpleNamespace(command=command, **values))
    return str(asyncio.run(answer) if asyncio.iscoroutine(answer) else answer)


def create(tool: Any, path: str, text: str = "one\ntwo\n") -> str:
    return call(tool, "create", path, file_text=text)


@pytest.mark.parametrize("kind", [AgentMemoryTool, AsyncAgentMemoryTool])
def test_tool_creates_edits_and_views_a_file(kind: Any, root: Path) -> None:
    tool = kind("bob", root=root)
    assert create(tool, "/memories/a/b.md") == "File created successfully at: /memories/a/b.md"
    call(tool, "insert", "/memories/a/b.md", insert_line=1, insert_text="half\n")
    edited = call(tool, "str_replace", "/memories/a/b.md", old_str="two", new_str="three")
    assert edited.endswith("\n     1\tone\n     2\thalf\n     3\tthree\n     4\t")
    assert call(tool, "view", "/memories/a/b.md", view_range=[2, -1]).endswith(
        ":\n     2\thalf\n     3\tthree\n     4\t"
    )
    assert call(tool, "rename", old_path="/memories/a", new_path="/memories/c/d").startswith("Successfully")
    assert "15B\t/memories/c/d/" in call(tool, "view", "/memories")
    assert call(tool, "delete", "/memories/c") == "Successfully deleted /memories/c"
    create(tool, "/memories/x")
    result = tool.clear_all_memory()
    assert (asyncio.run(result) if asyncio.iscoroutine(result) else result) == "All memory cleared"
    assert call(tool, "view", "/memories").endswith(":\n0B\t/memories")
    closing = tool.close()
    if closing is not None:
        asyncio.run(closing)


def test_listing_has_two_levels_without_hidden_names(tool: AgentMemoryTool) -> None:
    for path in ("b/c/d.md", "b/e.md", "a.md", ".hidden", "b/.git/x", ".cache/y"):
        create(tool, f"/memories/{path}", "x" * 1536)
    assert call(tool, "view", "/memories").splitlines()[1:] == [
        "9K\t/memories",
        "1.5K\t/memories/a.md",
        "3K\t/memories/b/",
        "1.5K\t/memories/b/c/",
        "1.5K\t/memories/b/e.md",
    ]
    assert call(tool, "view", "/memories/b/c").splitlines()[1:] == ["1.5K\t/memories/b/c", "1.5K\t/memories/b/c/d.md"]


@pytest.mark.parametrize(
    ("command", "path", "fields", "message"),
    [
        ("view", "/etc/passwd", {}, "Path must start with /memories, got: /etc/passwd"),
        ("view", "/memoriesX/a", {}, "Path must start with"),
        ("view", "/memories/../etc", {}, "Path /memories/../etc would escape /memories directory"),
        ("view", "/memories/none", {}, "The path /memories/none does not exist. Please provide a valid path."),
        ("create", "/memories/a.md", {"file_text": ""}, "File /memories/a.md already exists"),
        ("create", "/memories/dir", {"file_text": ""}, "File /memories/dir already exists"),
        ("create", "/memories/a.md/b", {"file_text": ""}, "A folder of /memories/a.md/b is a file"),
        ("create", "/memories/nul", {"file_text": "\0"}, "NUL character"),
        ("str_replace", "/memories/dir", {"old_str": "a", "new_str": "b"}, "The path /memories/dir is not a file."),
        ("str_replace", "/memories/none", {"old_str": "a", "new_str": "b"}, "does not exist. Please"),
        ("str_replace", "/memories/a.md", {"old_str": "no", "new_str": "b"}, "`no` did not appear verbatim in"),
        ("str_replace", "/memories/a.md", {"old_str": "aa", "new_str": "b"}, "in lines: 1, 1, 2. Please"),
        ("insert", "/memories/a.md", {"insert_line": 3, "insert_text": "x"}, r"range \[0, 2\]"),
        ("delete", "/memories", {}, "Cannot delete the /memories directory itself"),
        ("delete", "/memories/none", {}, "The path /memories/none does not exist"),
        ("rename", "", {"old_path": "/memories", "new_path": "/memories/x"}, "Cannot rename the /memories directory"),
        ("rename", "", {"old_path": "/memories/none", "new_path": "/memories/x"}, "/memories/none does not exist"),
        ("rename", "", {"old_path": "/memories/a.md", "new_path": "/memories/dir"}, "/memories/dir already exists"),
        ("rename", "", {"old_path": "/memories/dir", "new_path": "/memories/dir/x"}, "into itself"),
    ],
)
def test_wrong_command_changes_nothing(
    tool: AgentMemoryTool, command: str, path: str, fields: dict[str, Any], message: str
) -> None:
    create(tool, "/memories/a.md", "aaa\naa")
    create(tool, "/memories/dir/b.md")
    before = call(tool, "view", "/memories")
    with pytest.raises(ToolError, match=message):
        call(tool, command, path, **fields)
    assert call(tool, "view", "/memories") == before


def test_secret_in_a_file_becomes_a_marker(tool: AgentMemoryTool, root: Path) -> None:
    create(tool, "/memories/a.md", f"token {SECRET}  end")
    assert "token [redacted:" in call(tool, "view", "/memories/a.md")
    edited = call(tool, "str_replace", "/memories/a.md", old_str="end", new_str=f"end {SECRET}")
    assert SECRET not in edited
    assert SECRET.encode() not in b"".join(path.read_bytes() for path in root.rglob("*.yaml"))


def test_tool_refuses_files_while_memory_is_off(tool: AgentMemoryTool, root: Path) -> None:
    create(tool, "/memories/a.md", "aaa")
    (root / "consent.yaml").write_text("enabled: false\n")
    for act in (
        lambda: create(tool, "/memories/b.md", "bbb"),
        lambda: call(tool, "str_replace", "/memories/a.md", old_str="aaa", new_str="b"),
        lambda: tool.rename(SimpleNamespace(old_path="/memories/a.md", new_path="/memories/c.md")),
    ):
        with pytest.raises(ToolError, match="Memory is off"):
            act()
    assert "aaa" in call(tool, "view", "/memories/a.md")
    call(tool, "delete", "/memories/a.md")


def test_refusing_tool_names_the_secret_kind(root: Path) -> None:
    tool = AgentMemoryTool("bob", root=root, refuse_secrets=True)
    with pytest.raises(ToolError, match="the content has a secret"):
        create(tool, "/memories/a.md", SECRET)
    tool.close()


async def test_two_tools_edit_one_file_without_loss(root: Path) -> None:
    tools = [AsyncAgentMemoryTool("bob", root=root) for _ in range(2)]
    await tools[0].create(SimpleNamespace(path="/memories/a", file_text=""))

    async def insert(tool: Any, name: str) -> None:
        for number in range(20):
            await tool.insert(SimpleNamespace(path="/memories/a", insert_line=0, insert_text=f"{name}{number}"))

    await asyncio.gather(*(insert(tool, name) for tool, name in zip(tools, "xy", strict=True)))
    text = await tools[0].view(SimpleNamespace(path="/memories/a", view_range=None))
    lines = [line.split("\t")[1] for line in text.splitlines()[1:]]
    assert sorted(filter(None, lines)) == sorted(f"{name}{number}" for name in "xy" for number in range(20))
    for tool in tools:
        await tool.close()
