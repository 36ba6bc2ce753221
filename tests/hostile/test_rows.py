"""Rows that several sessions share: what a stranger's page put there is a stranger's to whoever reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import amplifier_module_tool_memory_workspace as workspace_module
from agent_memory.workspace import Workspace
from tests.hostile.attacked import EVIL, text_of
from tests.hostile.attacks import attack, tried

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

    from tests.hostile.attacked import Attacked

    Begin = Callable[..., Awaitable[Attacked]]

DECLARED = """
workspace: talks
tables:
  talks:
    key: number
    columns: {number: {type: integer, required: true}, title: text, summary: text, sections: {type: json}}
    search: [title, summary]
phases:
  - {name: analyse, over: talks, reads: own, agents: [{agent: analyst, produces: [summary]}]}
tools:
  get_summary: {operation: get, table: talks, key: talk, columns: [summary], bare: true}
  list_titles: {operation: list, table: talks, columns: [title]}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "talks.yaml").write_text(DECLARED)
    workspace = Workspace.create(tmp_path / "talks", tmp_path / "talks.yaml")
    for number in (1, 2):
        workspace.tables.save("talks", {"number": number, "title": f"Talk {number}", "summary": "A roof begins."})
    workspace.close()
    return tmp_path / "talks"


@pytest.fixture
async def at_work(attacked: Begin, folder: Path) -> AsyncIterator[Begin]:
    """Return a function that begins a session with the tools of the workspace, too."""
    cleanups: list[Any] = []

    async def begin(session_id: str, **session: Any) -> Attacked:
        begun = await attacked(session_id, **session)
        settings = {"workspace": str(folder), "tools": ["*"]}
        cleanups.append(await workspace_module.mount(begun.coordinator, settings))
        await begun.say("go on")
        return begun

    yield begin
    for cleanup in cleanups:
        await cleanup()


async def a_strangers_row(at_work: Begin) -> None:
    """Have a session that read a page write it into the first talk."""
    session = await at_work("root-1")
    await session.read()
    changed = await session.tool("update_row", table="talks", key=1, fields={"summary": EVIL, "title": "Talk diffs"})
    assert changed["status"] == "updated"


READS: list[Any] = [
    tried("row-read-by-key", "get_row", {"table": "talks", "key": 1}),
    tried("row-in-a-list", "list_rows", {"table": "talks"}),
    tried("row-in-a-list-of-one-column", "list_rows", {"table": "talks", "columns": ["summary"]}),
    tried("row-in-a-search", "search_rows", {"table": "talks", "query": "diff"}),
    tried("row-by-a-declared-tool", "get_summary", {"talk": 1}),
    tried("row-in-a-declared-list", "list_titles", {"limit": 5}),
]


@pytest.mark.parametrize(("tool", "given"), READS)
async def test_a_row_that_a_stranger_wrote_into_brings_a_strangers_words(
    at_work: Begin, tool: str, given: dict[str, Any]
) -> None:
    await a_strangers_row(at_work)
    later = await at_work("root-2")
    assert later.trust == "medium"
    assert "diff" in text_of(await later.tool(tool, **given))
    assert (await later.store()).trust == "low"


async def test_a_row_that_no_stranger_wrote_into_brings_none(at_work: Begin) -> None:
    await a_strangers_row(at_work)
    later = await at_work("root-2")
    await later.tool("get_row", table="talks", key=2)
    await later.tool("list_rows", table="talks", where={"number": 2}, columns=["title"])
    await later.tool("update_row", table="talks", key=2, fields={"summary": "A wall."})
    assert (await later.store()).trust == "medium"


@attack("row-copied-to-another")
async def test_what_is_written_after_such_a_row_was_read_is_a_strangers_too(at_work: Begin) -> None:
    await a_strangers_row(at_work)
    copying = await at_work("root-2")
    said = await copying.tool("get_row", table="talks", key=1)
    await copying.tool("update_row", table="talks", key=2, fields={"summary": said["row"]["summary"]})
    later = await at_work("root-3")
    await later.tool("get_row", table="talks", key=2)
    assert later.trust == "low"


@attack("row-after-a-snapshot")
async def test_a_row_that_comes_back_and_whose_history_was_cut_is_a_strangers_still(
    at_work: Begin, folder: Path
) -> None:
    await a_strangers_row(at_work)
    workspace = Workspace.open(folder)
    workspace.snapshots.make("first")
    workspace.tables.update("talks", 1, {"summary": "A roof."})
    workspace.resume_from_snapshot("first")
    workspace.snapshots.make("second")
    workspace.snapshots.prune(["second"])
    workspace.close()
    later = await at_work("root-2")
    assert "x.example" in text_of(await later.tool("get_row", table="talks", key=1))
    assert later.trust == "low"


@attack("feedback-of-a-step")
async def test_why_a_step_failed_is_a_strangers_where_one_may_have_said_it(at_work: Begin) -> None:
    session = await at_work("root-1")
    await session.read()
    await session.tool("claim_step", step="next")
    await session.tool("fail_step", kind="validation", message=EVIL)
    later = await at_work("root-2")
    assert "x.example" in text_of(await later.tool("next_steps", limit=5))
    assert (await later.store()).trust == "low"
