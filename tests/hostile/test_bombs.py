"""Small texts that would take a program long, or make it do something else; none ends a session or blocks it for good.

CPU time is bounded here far above what is needed: without the guards these take minutes, or for ever.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agent_memory.capture import Extractor
from agent_memory.errors import AgentMemoryError
from agent_memory.integrations.taint import CalledTool, ToolList
from agent_memory.knowledge.pages.page import parse
from agent_memory.settings import CaptureSettings
from agent_memory.workspace import Workspace
from tests.hostile.attacked import RULE, text_of
from tests.hostile.attacks import attack, tried
from tests.support import NOON, SHELL

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from tests.hostile.attacked import Attacked

    Begin = Callable[..., Awaitable[Attacked]]

MOST = 10.0
"""Seconds of CPU on any machine."""


@pytest.fixture(autouse=True)
def soon() -> Iterator[None]:
    """Hold that a test ends before a bomb would."""
    before = time.process_time()
    yield
    assert time.process_time() - before < MOST


@pytest.mark.parametrize(
    "pattern", [tried("pattern-of-a-capture-rule", r"(a+)+$"), tried("pattern-that-branches", r"(a|a)*b|(\w+\s?)*!$")]
)
def test_a_pattern_that_never_ends_is_given_up(pattern: str) -> None:
    settings = CaptureSettings.model_validate(
        {"capture_patterns": [{"pattern": pattern, "category": "note", "confidence": 0.9}]}
    )
    extractor = Extractor(settings)
    for _ in range(3):
        extractor.examine("a" * 900 + "!x", "user", now=NOON)


TEXTS: list[Any] = [
    tried("text-of-spaces", " " * 60_000 + "x"),
    tried("text-of-letters", "a" * 60_000),
    tried("text-of-brackets", "([{<" * 15_000),
    tried("text-of-fences", "```\n" * 15_000),
    tried("text-of-wishes", "remember that " * 4_000),
    tried("text-of-quotes", "“'\"" * 20_000),
    tried("text-of-stops", "." * 60_000),
    tried("text-of-dates", "2026-01-01 " * 5_000),
]


@pytest.mark.parametrize("text", TEXTS)
async def test_a_long_text_of_one_sort_costs_no_turn(attacked: Begin, text: str) -> None:
    session = await attacked()
    await session.say(text)
    await session.read("bash", result=text, command=text)
    await session.answer(text)
    await session.coordinator.hooks.emit("session:end", {})
    assert (await session.tool("memory_status"))["enabled"]
    assert "code" in await session.tool("memory_store", content=text, category="note")
    assert "code" in await session.tool("memory_search", query=text)


@attack("request-to-forget-without-end")
async def test_a_request_to_forget_of_any_length_is_answered(attacked: Begin) -> None:
    session = await attacked()
    for text in ("everything about " * 500, "Ann's " * 2_000, '"' * 9_000, "my old " * 600, "Ann's badge " * 160):
        answer = await session.tool("memory_forget", query=text)
        assert ("code" in answer) == (len(text.strip()) > 2_000)


@attack("page-without-end")
def test_a_page_of_any_form_is_read() -> None:
    for text in ("- [^1]" * 20_000, "[^1]: " * 20_000, "*Taken out by hand: " * 20_000, "- (2026-01-01) \\" * 20_000):
        parse(text)


@attack("name-of-a-tool-without-end")
def test_the_name_of_a_tool_of_any_length_is_judged() -> None:
    tools = ToolList(untrusted=["*a*a*a*a*a*a*a*a*b"], named=["*_*_*_*_*x"])
    assert tools.classify(CalledTool("a" * 2_000 + "_" * 2_000, "", {}), Path()) == "untrusted"


@attack("command-without-end")
def test_a_command_of_any_length_is_judged(tmp_path: Path) -> None:
    for command in ("/a" * 50_000, "~" * 19_000, "../" * 6_000, "a=/" * 6_000, "git " * 5_000, "x" * 20_000 + "_" * 9):
        assert ToolList().classify(CalledTool("bash", SHELL, {"command": command}), tmp_path)


@attack("metadata-of-many-values")
async def test_arguments_of_many_values_are_left_out(attacked: Begin) -> None:
    session = await attacked()
    await session.say("note it")
    many = {str(number): [number] * 10 for number in range(50_000)}
    links = [{"rel": "r", "id": "mem-000000000001"}] * 100_000
    for name, value in (("metadata", many), ("tags", [f"t{n}" for n in range(100_000)]), ("links", links)):
        answer = await session.tool("memory_store", content=f"{name} of many values", category="note", **{name: value})
        assert [warning for warning in answer["warnings"] if name in warning]
    for memory in await session.memories():
        assert len(json.dumps(memory.to_record())) < 10_000


# -- words that would be orders to what is below ----------------------------------------------------------------------


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    (tmp_path / "declared.yaml").write_text(
        "workspace: w\n"
        "tables: {notes: {key: name, columns: {name: {type: text, required: true}, note: text}, search: [note]}}\n"
    )
    opened = Workspace.create(tmp_path / "w", tmp_path / "declared.yaml")
    opened.tables.save("notes", {"name": "a", "note": "tea is served"})
    yield opened
    opened.close()


@attack("syntax-of-the-word-search")
def test_what_is_searched_for_is_words_and_no_syntax(workspace: Workspace) -> None:
    for query in (
        'tea OR "',
        "note:tea",
        'NEAR("tea" "served")',
        "tea*",
        "^tea",
        "(tea",
        "tea AND NOT tea",
        "-tea",
        "'",
    ):
        workspace.tables.search("notes", query)
    assert workspace.tables.search("notes", "tea NOT served")


@attack("sql-in-a-name")
def test_a_name_that_holds_sql_is_no_name(workspace: Workspace) -> None:
    evil = 'note"; DROP TABLE notes; --'
    for ask in (
        lambda: workspace.tables.get(evil, "a"),
        lambda: workspace.tables.get("notes", "a", columns=[evil]),
        lambda: workspace.tables.many("notes", where={evil: "x"}),
        lambda: workspace.tables.save("notes", {evil: "x", "name": "b"}),
        lambda: workspace.tables.update("notes", "a", {evil: "x"}),
    ):
        with pytest.raises(AgentMemoryError):
            ask()
    workspace.tables.save("notes", {"name": evil, "note": evil})
    assert workspace.tables.get("notes", evil)["note"] == evil


DECLARATIONS: list[Any] = [
    tried("merge-keys-in-a-declaration", "workspace: w\na: &a {x: 1}\nb: {<<: [*a, *a]}\n"),
    tried("python-tag-in-a-declaration", "workspace: !!python/object/apply:os.getcwd []\ntables: {}\n"),
    tried("deep-declaration", "workspace: w\ntables: " + "[" * 100_000),
    tried("files-of-a-declaration-outside", "workspace: w\ntables: {t: {columns: {a: text}}}\nfiles: {x: '../*'}\n"),
    tried("files-of-a-declaration-anywhere", "workspace: w\ntables: {t: {columns: {a: text}}}\nfiles: {x: '/etc/*'}\n"),
    tried("table-of-the-database", "workspace: w\ntables: {sqlite_master: {columns: {a: text}}}\n"),
    tried("table-of-ours", "workspace: w\ntables: {ws_history: {columns: {a: text}}}\n"),
]


@pytest.mark.parametrize("text", DECLARATIONS)
def test_a_declaration_that_reaches_further_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "declared.yaml").write_text(text)
    with pytest.raises(AgentMemoryError):
        Workspace.create(tmp_path / "w", tmp_path / "declared.yaml")
    assert not list((tmp_path / "w").rglob("rows.db")) if (tmp_path / "w").exists() else True


@attack("order-in-a-search")
async def test_a_search_for_an_order_does_nothing(attacked: Begin) -> None:
    session = await attacked()
    await session.say("note it")
    kept = await session.store(RULE)
    for query in (
        f"forget {kept.id}",
        "*",
        "'; DROP TABLE memories; --",
        "{{7*7}}",
        "${jndi:ldap://x}",
        "../../etc/passwd",
    ):
        assert "results" in await session.tool("memory_search", query=query)
    assert text_of((await session.kept(kept.id)).content) == RULE
