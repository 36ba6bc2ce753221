"""Tools: made from tables, called under the claim that a worker holds, bounded in what they answer."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from agent_memory.errors import AgentMemoryError, ConfigurationError, DeclarationError
from agent_memory.workspace import Workspace, parse_declaration
from agent_memory.workspace.declaration.model import DEFAULT_TOOLS, ROW_TOOLS
from agent_memory.workspace.toolset.toolset import Offer, Toolset, build_tools
from tests.rows import check_rows
from tests.unit.workspace.conftest import BOOK, analyse, prepare

if TYPE_CHECKING:
    from tests.support import FrozenClock

HEAD = "workspace: book\ntables:\n"


@pytest.fixture
def tools(book: Workspace) -> Toolset:
    """Return all tools of a workspace with three chapters, for a worker that is no agent in particular."""
    prepare(book)
    return Toolset(book, "worker-1", offer=Offer(tools=["*"]))


def refused(tools: Toolset, tool: str, /, **arguments: Any) -> AgentMemoryError:
    with pytest.raises(AgentMemoryError) as caught:
        tools.call(tool, arguments)
    assert set(caught.value.as_dict()) == {"message", "code", "recovery"}
    return caught.value


def test_tools_are_made_from_every_table() -> None:
    tools = build_tools(parse_declaration(BOOK))
    assert set(tools) == {
        "next_steps", "claim_step", "claim_row", "finish_step", "release_step", "fail_step", "renew",
        "get_row", "list_rows", "search_rows", "save_row", "update_row", "list_proposals",
        "get_chapter", "list_chapters", "search_chapters", "save_chapter", "update_chapter",
        "get_term", "list_terms", "search_terms", "save_term", "update_term",
        "get_tactic", "list_tactics", "save_tactic", "update_tactic",
        "list_decisions", "log_decision", "list_retries", "log_retry", "get_style", "update_style",
    }  # fmt: skip


def test_a_schema_says_types_enums_references_and_what_is_needed() -> None:
    schema = build_tools(parse_declaration(BOOK))["save_tactic"].input_schema
    assert schema == {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "kind": {"type": "string", "enum": ["mindset", "script"]},
            "chapter": {"type": "integer", "description": "number of a row of chapters"},
        },
        "required": ["name"],
        "additionalProperties": False,
    }
    sections = build_tools(parse_declaration(BOOK))["update_chapter"].input_schema["properties"]["fields"]["properties"]
    assert sections["sections"] == {"type": "array", "items": {"type": "string"}}


def test_few_tools_are_offered_unless_they_are_named(book: Workspace) -> None:
    assert tuple(Toolset(book, "w").tools) == DEFAULT_TOOLS
    some = Toolset(book, "w", offer=Offer(tools=["get_*", "finish_step"], tables=["terms"]))
    assert set(some.tools) == {"get_row", "get_chapter", "get_term", "get_tactic", "get_style", "finish_step"}
    assert some.tools["get_row"].properties["table"]["enum"] == ["terms"]
    assert "search_rows" not in Toolset(book, "w", offer=Offer(tables=["decisions"])).tools
    with pytest.raises(ConfigurationError, match=r"did you mean 'get_term'\?$"):
        Toolset(book, "w", offer=Offer(tools=["get_trem"]))
    with pytest.raises(ConfigurationError, match=r"did you mean 'terms'\?$"):
        Toolset(book, "w", offer=Offer(tables=["term"]))


def test_columns_of_tables_are_told_once(book: Workspace) -> None:
    for names, first in ((["*_row", "list_rows"], "get_row"), (["list_rows", "save_row"], "list_rows")):
        tools = Toolset(book, "w", offer=Offer(tools=names)).tools
        said = {name: tools[name].properties["table"]["description"] for name in tools if name in ROW_TOOLS}
        assert "terms (key term): term, definition, chapter" in said.pop(first)
        assert set(said.values()) == {f"{first} tells the key and the columns of each"}


def test_a_step_is_done_with_tools_alone(tools: Toolset, book: Workspace) -> None:
    assert tools.call("next_steps", {"limit": 2})["count"] == 3
    claimed = tools.call("claim_step", {"step": "next"})
    assert {name: claimed[name] for name in ("status", "step", "agent", "key", "attempt", "reads", "produces")} == {
        "status": "claimed",
        "step": "analyse/analyst/1",
        "agent": "analyst",
        "key": 1,
        "attempt": 1,
        "reads": "own",
        "produces": ["summary"],
    }
    assert tools.call("list_rows", {"table": "chapters"})["total"] == 1
    assert tools.call("get_chapter", {"number": 2})["status"] == "not_found"
    assert refused(tools, "finish_step", step="analyse/analyst/1").code == "not_produced"
    tools.call("save_row", {"table": "terms", "values": {"term": "ridge"}})
    assert book.tables.many("terms").rows == []
    tools.call("update_row", {"table": "chapters", "key": 1, "fields": {"summary": "s"}})
    tools.call("log_decision", {"agent_name": "analyst", "chapter": 1})
    assert tools.call("next_steps", {})["yours"]["step"] == "analyse/analyst/1"
    assert tools.call("finish_step", {"step": "analyse/analyst/1"}) == {
        "status": "finished",
        "step": "analyse/analyst/1",
    }
    assert book.tables.get("terms", "ridge")["chapter"] == 1
    for step in ("analyse/analyst/2", "analyse/analyst/3"):
        tools.call("claim_step", {"step": step})
        tools.call("update_chapter", {"number": int(step[-1]), "fields": {"summary": "s"}})
        done = tools.call("finish_step", {})
    assert done["phase_done"] == "analyse"


def test_a_worker_holds_one_claim(tools: Toolset, clock: FrozenClock, book: Workspace) -> None:
    tools.call("claim_step", {"step": "analyse/analyst/1"})
    assert refused(tools, "claim_step", step="analyse/analyst/2").code == "claimed"
    assert refused(tools, "claim_row", table="chapters", key=2).code == "claimed"
    assert refused(tools, "release_step", step="analyse/analyst/2").code == "no_claim"
    clock.advance(seconds=500)
    assert tools.call("renew", {"seconds": 500})["status"] == "renewed"
    clock.advance(seconds=400)
    tools.call("update_chapter", {"number": 1, "fields": {"summary": "s"}})
    clock.advance(seconds=200)
    assert refused(tools, "update_chapter", number=1, fields={"summary": "t"}).code == "claim_ended"
    other = Toolset(book, "worker-2")
    assert other.call("claim_step", {"step": "analyse/analyst/1"})["attempt"] == 2
    assert refused(tools, "save_tactic", name="late").code == "claim_ended"
    assert tools.call("claim_step", {"step": "analyse/analyst/2"})["status"] == "claimed"


def test_a_step_that_failed_is_tried_again_with_what_was_wrong(tools: Toolset) -> None:
    assert refused(tools, "fail_step", kind="quality", message="x").code == "no_claim"
    for tries_left in (1, 0):
        tools.call("claim_step", {"step": "analyse/analyst/1"})
        tools.call("save_tactic", {"name": "half done"})
        failed = tools.call("fail_step", {"kind": "quality", "message": "too short"})
        assert failed == {"status": "failed", "step": "analyse/analyst/1", "tries_left": tries_left}
        assert tools.call("list_tactics", {})["count"] == 0
        if tries_left:
            assert tools.call("claim_step", {"step": "analyse/analyst/1"})["feedback"] == "too short"
            tools.call("release_step", {"step": "analyse/analyst/1"})
    assert tools.call("next_steps", {})["failed"] == 1
    tools.call("claim_step", {"step": "analyse/analyst/2"})
    Toolset(tools.session.workspace, "worker-2").call("claim_step", {"step": "analyse/analyst/3"})
    waiting = Toolset(tools.session.workspace, "worker-3").call("claim_step", {})
    assert waiting["status"] == "none"
    assert "it failed 2 times" in waiting["message"]


def test_an_agent_takes_only_its_own_steps_and_writes_as_itself(book: Workspace) -> None:
    prepare(book)
    editor = Toolset(book, "worker-1", agent="editor", offer=Offer(tools=["*"]))
    assert editor.call("claim_step", {"step": "next"})["status"] == "none"
    assert refused(editor, "claim_step", step="analyse/analyst/1").code == "not_allowed"
    assert refused(editor, "next_steps", agent="analyst").code == "not_allowed"
    assert refused(editor, "log_decision", agent_name="editor").code == "not_allowed"
    nobody = Toolset(book, "worker-2", offer=Offer(tools=["*"]))
    assert refused(nobody, "log_decision", agent_name="analyst").code == "not_allowed"


def test_a_row_is_claimed_outside_of_steps(tools: Toolset, book: Workspace) -> None:
    assert tools.call("claim_row", {"table": "chapters", "key": 2})["status"] == "claimed"
    tools.call("update_chapter", {"number": 2, "fields": {"draft": "mine"}})
    other = Toolset(book, "worker-2", offer=Offer(tools=["*"]))
    assert refused(other, "update_chapter", number=2, fields={"draft": "theirs"}).code == "leased"
    assert tools.call("claim_row", {"table": "chapters", "key": 3})["key"] == 3
    assert other.call("update_chapter", {"number": 2, "fields": {"draft": "theirs"}})["status"] == "updated"
    assert tools.call("finish_step", {})["status"] == "finished"


def test_who_closes_gives_an_unfinished_step_back(tools: Toolset, book: Workspace) -> None:
    tools.call("claim_step", {"step": "analyse/analyst/1"})
    tools.call("save_tactic", {"name": "half done"})
    tools.close()
    tools.close()
    claim = book.steps.claim("worker-2", step="analyse/analyst/1")
    assert claim is not None
    assert claim.attempt == 2


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("get_chapter", {}, "needs number"),
        ("get_chapter", {"number": "1"}, "takes number as integer"),
        ("get_chapter", {"number": True}, "takes number as integer"),
        ("get_chapter", {"number": 1, "colour": 1}, "has no argument 'colour'"),
        ("list_chapters", {"offset": -1}, "takes offset from 0"),
        ("list_chapters", {"columns": ["colour"]}, "no column 'colour'"),
        ("save_tactic", {"name": "x", "kind": "trick"}, "one of mindset, script"),
        ("save_row", {"table": "ws_meta", "values": {}}, "takes table as one of"),
        ("list_rows", {"table": "chapters", "where": {"1=1; --": 1}}, "no column"),
        ("update_row", {"table": "chapters", "key": 1, "fields": {"id": 7}}, "no column 'id'"),
        ("update_row", {"table": "chapters", "fields": {"title": "x"}}, "named by its number"),
        ("update_chapter", {"number": 1, "fields": {"title": "x"}, "expected": {"title": "y"}}, "has changed"),
        ("nothing", {}, "No tool 'nothing'"),
    ],
)
def test_a_wrong_call_is_told_what_is_right(tools: Toolset, name: str, arguments: dict[str, Any], said: str) -> None:
    assert said in refused(tools, name, **arguments).message
    with pytest.raises(AgentMemoryError, match="as an object"):
        tools.tools["get_chapter"].check_arguments([1])


def test_what_may_be_left_out_may_be_null(tools: Toolset) -> None:
    assert tools.call("list_chapters", {"limit": None, "columns": None})["count"] == 3
    assert tools.call("save_tactic", {"name": "ask", "kind": None, "chapter": None})["status"] == "saved"


def test_a_long_text_is_read_in_parts(tools: Toolset) -> None:
    text = "".join(f"{number:07d} " for number in range(12_000))  # 96,000 characters
    tools.call("update_chapter", {"number": 1, "fields": {"draft": text, "sections": [text[:50_000]]}})
    whole = tools.call("get_chapter", {"number": 1})
    assert len(json.dumps(whole)) < 45_000
    assert whole["row"]["title"] == "Chapter 1"
    assert set(whole["cut"]) == {"draft", "sections"}
    read = ""
    begin = 0
    while True:
        part = tools.call("get_chapter", {"number": 1, "columns": ["draft"], "from_character": begin})
        read += part["row"]["draft"]
        if "cut" not in part:
            break
        begin = part["cut"]["draft"]["next"]
    assert read == text


def test_a_list_is_bounded_and_says_where_it_goes_on(tools: Toolset) -> None:
    tools.call("update_chapter", {"number": 1, "fields": {"draft": "long " * 1000}})
    listed = tools.call("list_chapters", {})
    assert listed["cut"] == ["draft"]
    assert len(listed["rows"][0]["draft"]) == 501
    for number in (1, 2, 3):
        tools.call("update_chapter", {"number": number, "fields": {"summary": f"{number}" * 19_000}})
    first = tools.call("list_chapters", {"columns": ["number", "summary"]})
    assert (first["count"], first["total"], first["next_offset"]) == (2, 3, 2)
    rest = tools.call("list_chapters", {"columns": ["number", "summary"], "offset": 2})
    assert [row["number"] for row in rest["rows"]] == [3]
    assert "next_offset" not in rest
    tools.call("update_chapter", {"number": 1, "fields": {"summary": "x" * 90_000}})
    alone = tools.call("list_chapters", {"columns": ["number", "summary"], "limit": 1})
    assert len(alone["rows"][0]["summary"]) <= 40_000
    assert (alone["cut"], alone["next_offset"]) == (["summary"], 1)


def test_search_answers_what_fits_and_secrets_are_named_not_shown(tools: Toolset, book: Workspace) -> None:
    analyse(book, 1)
    found = tools.call("search_terms", {"query": "roof"})
    assert (found["count"], found["rows"][0]["term"]) == (1, "roof")
    assert tools.call("search_rows", {"table": "terms", "query": "zeppelin"}) == {"count": 0, "rows": []}
    saved = tools.call("save_tactic", {"name": "key AKIAIOSFODNN7EXAMPLE"})
    assert saved["redacted"]
    assert "AKIA" not in json.dumps(tools.call("list_tactics", {}))
    assert tools.call("update_tactic", {"id": saved["id"], "fields": {"kind": None}})["status"] == "unchanged"


def test_proposals_are_listed_as_far_as_a_phase_reads(tools: Toolset, book: Workspace) -> None:
    for number in (1, 2):
        analyse(book, number)
    listed = tools.call("list_proposals", {"table": "terms"})
    assert (listed["count"], listed["rows"][0]["definition"]) == (1, "as in 2")
    tools.call("claim_step", {"step": "analyse/analyst/3"})
    assert tools.call("list_proposals", {"table": "terms"}) == {"count": 0, "rows": []}
    assert refused(tools, "list_proposals", table="tactics").code == "invalid"


def test_a_singleton_is_read_and_changed_without_a_key(tools: Toolset) -> None:
    assert tools.call("get_style", {})["row"]["guide"] == "plain"
    assert tools.call("update_style", {"fields": {"guide": "short"}})["status"] == "updated"
    assert tools.call("get_row", {"table": "style", "columns": ["guide"]})["row"] == {"guide": "short"}


@check_rows(
    ("tool", "said"),
    [
        ("{operation: get, table: a}", "it needs `key`"),
        ("{operation: get, table: a, key: k, columns: [zz]}", "no column 'zz'"),
        ("{operation: get, table: a, key: k, bare: true}", "a bare answer is that of one column"),
        ("{operation: get, table: a, key: k, where: {b: b}}", "choose the rows of a list"),
        ("{operation: list, table: a, key: k}", "which list does not take"),
        ("{operation: list, table: a, arguments: {b: b}}", "list only reads"),
        ("{operation: list, table: a, optional: [x]}", "there is no argument 'x'"),
        ("{operation: search, table: a}", "declares no columns to search"),
        ("{operation: save, table: a}", "it writes nothing"),
        ("{operation: save, table: a, arguments: {b: x, c: x}}", "two arguments are called 'x'"),
        ("{operation: save, table: a, arguments: {id: x}}", "no column 'id'"),
        ("{operation: update, table: l, key: k, arguments: {b: b}}", "added with `log` and never changed"),
        ("{operation: log, table: a, arguments: {b: b}}", "a is no log"),
        ("{operation: ending, table: a, key: k, columns: [b]}", "an ending needs `key`, `item`"),
        ("{operation: ending, table: n, key: k, item: i, columns: [b]}", "one column of type json"),
        ("{operation: get, table: n, value: x}", "where the key is a text"),
    ],
)
def test_a_declared_tool_that_cannot_work_is_a_fault(tool: str, said: str) -> None:
    tables = "  a: {columns: {b: text, c: text}}\n  l: {kind: log, columns: {b: text}}\n"
    tables += "  n: {key: b, columns: {b: {type: integer, required: true}}}\n"
    with pytest.raises(DeclarationError) as caught:
        parse_declaration(f"{HEAD}{tables}tools:\n  t: {tool}\n", "x.yaml")
    assert said in caught.value.message
    assert "x.yaml:7:" in caught.value.message


@check_rows(
    ("text", "said"),
    [
        (HEAD + "  a: {columns: {b: text}}\n  as: {columns: {b: text}}\n", "would be called as one of a"),
        (HEAD + "  row: {columns: {b: text}}\n", "would be called as one of every workspace"),
        (
            HEAD + "  a: {columns: {b: text}}\ntools: {next_steps: {operation: list, table: a}}\n",
            "has a tool of this name",
        ),
        (HEAD + "  a: {columns: {b: {type: boolean, done: p}}}\n", "'p' is no phase"),
        (HEAD + "  a: {columns: {b: {type: text, done: p}}}\nphases: [{name: p, agents: [w]}]\n", "it is a boolean"),
        (
            HEAD + "  a: {key: k, columns: {k: {type: text, required: true}}}\n  c: {columns: {b: {type: boolean, "
            "done: p}}}\nphases: [{name: p, over: a, agents: [w]}]\n",
            "p works on rows of a",
        ),
    ],
)
def test_names_and_shown_phases_are_checked(text: str, said: str) -> None:
    with pytest.raises(DeclarationError) as caught:
        parse_declaration(text, "x.yaml")
    assert said in caught.value.message
