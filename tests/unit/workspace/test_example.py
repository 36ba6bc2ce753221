"""examples/book/book.yaml: eleven tables as they were specified, ten phases, and 29 tools by their names."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from agent_memory.errors import AgentMemoryError
from agent_memory.workspace import Caller, Workspace, read_declaration
from agent_memory.workspace.toolset.toolset import Offer, Toolset, build_tools
from tests.rows import check_rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support import FrozenClock

BOOK = Path(__file__).parents[3] / "examples" / "book" / "book.yaml"

PRINTED: dict[str, tuple[str, ...]] = {
    "get_chapter": ("chapter_num",),
    "get_chapter_summary": ("chapter_num",),
    "get_all_chapter_summaries": (),
    "get_previous_section_ending": ("chapter_num", "section_num"),
    "get_tactics_for_chapter": ("chapter_num",),
    "search_tactics": ("query",),
    "get_tactics_by_category": ("category",),
    "get_glossary": (),
    "get_term": ("term",),
    "get_refs_for_chapter": ("chapter_num",),
    "get_refs_to_chapter": ("chapter_num",),
    "get_book_structure": (),
    "get_style_guide": (),
    "get_spanish_glossary": (),
    "get_diagrams_for_chapter": ("chapter_num",),
    "save_chapter_field": ("chapter_num", "field", "value"),
    "update_chapter_status": ("chapter_num", "status"),
    "save_tactic": ("tactic",),
    "update_tactic": ("id", "fields"),
    "add_glossary_term": ("term", "definition"),
    "add_spanish_term": ("term", "spanish_term", "spanish_definition"),
    "save_cross_ref": ("from_ch", "to_ch", "reason", "location_hint"),
    "mark_ref_verified": ("ref_id",),
    "save_diagram_spec": ("chapter", "type", "spec"),
    "save_diagram_file": ("id", "file_path"),
    "save_diagram_caption": ("id", "caption_en", "caption_es"),
    "log_decision": ("agent", "type", "subject", "decision", "reasoning", "confidence"),  # chapter: none for the book
    "flag_issue": ("type", "severity", "description", "location", "flagged_by"),
    "resolve_issue": ("id", "resolution", "resolved_by"),
}

COLUMNS = {
    "chapters": "chapter_number title original_text analysis_stories analysis_quotes transformed_content outline "
    "sections draft summary edited_text final_text spanish_text quality_score quality_breakdown "
    "quality_recommendations status phase_1_complete phase_2_complete "
    "phase_3_complete phase_4_complete phase_5_complete phase_6_complete "
    "phase_7_complete phase_8_complete created_at updated_at",
    "tactics": "name description source_chapter source_quote original_context category subcategory roofing_context "
    "roofing_example used_in_chapters created_at",
    "glossary": "term definition introduced_in_chapter usage_notes spanish_term spanish_definition created_at",
    "cross_refs": "from_chapter to_chapter reason location_hint reference_text verified created_at",
    "diagrams": "chapter diagram_type title specification code file_path caption_en caption_es placement_location "
    "render_valid created_at",
    "decisions": "agent_name chapter decision_type subject decision reasoning confidence alternatives created_at",
    "issues": "chapter issue_type severity description location flagged_by resolved resolution resolved_by created_at "
    "resolved_at",
    "validation_log": "validator_name chapter phase passed failures created_at",
    "retry_log": "agent_name chapter attempt_number failure_type failure_message feedback_given outcome created_at",
    "prompt_versions": "agent_type version_number prompt_file_path changes_summary chapters_used_on avg_quality_score "
    "validation_pass_rate retry_rate active created_at",
    "book_context": "key value updated_at",
}


@pytest.fixture
def book(tmp_path: Path, clock: FrozenClock) -> Iterator[Workspace]:
    """Return the example, with three chapters, the style guide and the structure."""
    workspace = Workspace.create(tmp_path / "book", BOOK, clock=clock)
    for number in (1, 2, 3):
        workspace.tables.save("chapters", {"chapter_number": number, "title": f"Chapter {number}"})
    workspace.tables.save("book_context", {"key": "style_guide", "value": "Short sentences."})
    yield workspace
    workspace.close()


@pytest.fixture
def tools(book: Workspace, clock: FrozenClock) -> Toolset:
    """Return all its tools, for a worker that is no agent in particular."""
    return Toolset(book, "worker-1", offer=Offer(tools=["*"]), clock=clock)


def test_tables_have_the_columns_that_were_specified() -> None:
    declaration = read_declaration(BOOK)
    assert {name: list(table.columns) for name, table in declaration.tables.items()} == {
        name: columns.split() for name, columns in COLUMNS.items()
    }


def test_phases_are_ten_and_four_make_snapshots() -> None:
    phases = read_declaration(BOOK).phases
    assert {number: each.snapshot for number, each in enumerate(phases, 1) if each.snapshot} == {
        number: f"SNAPSHOT_PHASE_{number}" for number in (1, 3, 7, 10)
    }
    assert [(each.order, each.reads) for each in phases[:3]] == [("parallel", "own")] * 3
    later = [each for each in phases[3:] if each.over]
    assert [(each.order, each.reads) for each in later] == [("in_order", "earlier")] * 5
    assert len(phases) == 10


@check_rows("name", PRINTED)
def test_a_tool_has_the_name_and_the_arguments_that_were_specified(name: str) -> None:
    declaration = read_declaration(BOOK)
    assert name in declaration.tools
    tool = build_tools(declaration)[name]
    assert sorted(tool.needed) == sorted(PRINTED[name])
    if name in ("log_decision", "flag_issue"):
        assert "chapter" in tool.properties


def test_every_tool_has_a_schema_that_asks_for_something_and_words_for_a_model() -> None:
    tools = build_tools(read_declaration(BOOK))
    assert len(tools) > 29 + 7 + 5
    for tool in tools.values():
        schema = tool.input_schema
        jsonschema.Draft202012Validator.check_schema(schema)
        assert schema["required"], tool.name
        assert set(schema["required"]) <= set(schema["properties"])
        assert tool.description.strip(), tool.name


def test_a_chapter_is_written_and_read_by_the_names_of_the_book(tools: Toolset) -> None:
    call = tools.call
    assert call("save_chapter_field", {"chapter_num": 1, "field": "summary", "value": "A roof begins."}) == {
        "status": "updated",
        "table": "chapters",
        "id": 1,
    }
    assert call("update_chapter_status", {"chapter_num": 1, "status": "analysis"})["status"] == "updated"
    assert call("get_chapter", {"chapter_num": 1})["row"]["status"] == "analysis"
    assert call("get_chapter_summary", {"chapter_num": 1}) == {"status": "found", "value": "A roof begins."}
    assert call("get_chapter_summary", {"chapter_num": 2}) == {"status": "empty", "value": None}
    assert call("get_chapter_summary", {"chapter_num": 9})["status"] == "not_found"
    assert call("get_all_chapter_summaries", {}) == {
        "total": 1,
        "count": 1,
        "rows": [{"chapter_number": 1, "title": "Chapter 1", "summary": "A roof begins."}],
    }
    assert call("get_style_guide", {}) == {"status": "found", "value": "Short sentences."}
    assert call("get_book_structure", {})["status"] == "not_found"


@pytest.mark.parametrize("field", ["chapter_number", "id", "phase_1_complete", "draft; DROP TABLE chapters", "colour"])
def test_a_field_that_is_no_column_to_write_is_refused(tools: Toolset, field: str) -> None:
    with pytest.raises(AgentMemoryError) as caught:
        tools.call("save_chapter_field", {"chapter_num": 1, "field": field, "value": "x"})
    assert caught.value.code == "invalid"
    assert "draft" in caught.value.message


def test_the_end_of_what_comes_before_a_section_is_told(tools: Toolset) -> None:
    sections = ["One. " + "word " * 300 + "end of one", "end of two"]
    tools.call("save_chapter_field", {"chapter_num": 1, "field": "sections", "value": sections})
    ending = tools.call("get_previous_section_ending", {"chapter_num": 1, "section_num": 2})
    assert ending["of"] == {"chapter_number": 1, "item": 1}
    assert ending["ending"].endswith("end of one")
    assert ending["ending"].startswith("word ")
    assert 900 < len(ending["ending"]) <= 1000
    before = tools.call("get_previous_section_ending", {"chapter_num": 2, "section_num": 1})
    assert before == {"status": "found", "of": {"chapter_number": 1, "item": 2}, "ending": "end of two"}
    for chapter, section in ((1, 1), (1, 4), (2, 2), (3, 1)):
        asked = {"chapter_num": chapter, "section_num": section}
        assert tools.call("get_previous_section_ending", asked)["status"] == "none", asked
    assert tools.call("get_previous_section_ending", {"chapter_num": 9, "section_num": 1})["status"] == "not_found"


def test_the_end_of_what_is_no_list_is_refused(book: Workspace) -> None:
    text = BOOK.read_text().replace("columns: [sections]", "columns: [quality_breakdown]")
    (book.folder / "workspace.yaml").write_text(text)
    again = Workspace.open(book.folder)
    again.tables.update("chapters", 1, {"quality_breakdown": {"tone": 1}})
    tools = Toolset(again, "worker-1", offer=Offer(tools=["get_*"]))
    with pytest.raises(AgentMemoryError, match="is no list of texts"):
        tools.call("get_previous_section_ending", {"chapter_num": 1, "section_num": 2})
    again.close()


def test_tactics_terms_references_and_diagrams(tools: Toolset, book: Workspace) -> None:
    call = tools.call
    tactic = call("save_tactic", {"tactic": {"name": "Ask twice", "source_chapter": 2, "category": "script"}})
    assert call("update_tactic", {"id": tactic["id"], "fields": {"used_in_chapters": [1, 3]}})["status"] == "updated"
    for found in (
        call("get_tactics_for_chapter", {"chapter_num": 2}),
        call("get_tactics_by_category", {"category": "script"}),
        call("search_tactics", {"query": "ask the owner"}),
    ):
        assert found["count"] == 1
        assert found["rows"][0]["used_in_chapters"] == [1, 3]
    assert call("get_tactics_by_category", {"category": "mindset"}) == {"total": 0, "count": 0, "rows": []}

    assert call("add_glossary_term", {"term": "ridge", "definition": "top"})["status"] == "saved"
    assert call("add_glossary_term", {"term": "ridge", "definition": "edge"})["status"] == "proposal"
    assert call("get_spanish_glossary", {})["count"] == 0
    call("add_spanish_term", {"term": "ridge", "spanish_term": "cumbrera", "spanish_definition": "parte alta"})
    assert call("get_spanish_glossary", {})["rows"] == [
        {"term": "ridge", "spanish_term": "cumbrera", "spanish_definition": "parte alta"}
    ]
    assert call("get_term", {"term": "ridge"})["row"]["definition"] == "top"
    assert call("get_term", {"term": "eave"})["status"] == "not_found"
    assert call("get_glossary", {"limit": 5})["total"] == 1

    ref = call("save_cross_ref", {"from_ch": 1, "to_ch": 3, "reason": "later", "location_hint": "end"})
    assert call("get_refs_for_chapter", {"chapter_num": 1})["rows"][0]["id"] == ref["id"]
    assert call("get_refs_to_chapter", {"chapter_num": 3})["count"] == 1
    assert call("get_refs_to_chapter", {"chapter_num": 1})["count"] == 0
    with pytest.raises(AgentMemoryError, match="written by cross_ref_checker"):
        call("mark_ref_verified", {"ref_id": ref["id"]})
    checker = Toolset(book, "worker-2", agent="cross_ref_checker", offer=Offer(tools=["mark_ref_verified"]))
    assert checker.call("mark_ref_verified", {"ref_id": ref["id"]})["status"] == "updated"

    drawn = call("save_diagram_spec", {"chapter": 1, "type": "funnel", "spec": {"steps": [1, 2]}})
    (book.folder / "diagrams").mkdir()
    (book.folder / "diagrams" / "1.svg").write_text("<svg/>")
    call("save_diagram_file", {"id": drawn["id"], "file_path": "diagrams/1.svg", "render_valid": True})
    call("save_diagram_caption", {"id": drawn["id"], "caption_en": "Steps", "caption_es": "Pasos"})
    [row] = call("get_diagrams_for_chapter", {"chapter_num": 1})["rows"]
    assert (row["specification"], row["render_valid"], row["caption_es"]) == ({"steps": [1, 2]}, True, "Pasos")
    for path in ("../secret", "/etc/passwd", "diagrams/../../x", "diagrams/2.svg"):
        with pytest.raises(AgentMemoryError, match=r"inside the workspace|not there"):
            call("save_diagram_file", {"id": drawn["id"], "file_path": path})


def test_decisions_and_issues(tools: Toolset, clock: FrozenClock) -> None:
    decided = {
        "agent": "analyst", "chapter": 1, "type": "include", "subject": "s", "decision": "yes", "reasoning": "r",
        "confidence": "high",
    }  # fmt: skip
    assert tools.call("log_decision", decided)["status"] == "saved"
    with pytest.raises(AgentMemoryError, match="confidence"):
        tools.call("log_decision", {**decided, "confidence": "sure"})
    flagged = {
        "chapter": None, "type": "tone", "severity": "minor", "description": "d", "location": "l", "flagged_by": "e",
    }  # fmt: skip
    issue = tools.call("flag_issue", flagged)
    tools.call("resolve_issue", {"id": issue["id"], "resolution": "softened", "resolved_by": "editor"})
    [row] = tools.call("list_issues", {"resolved": True})["rows"]
    assert row["resolved_at"] == clock().isoformat()
    assert row["chapter"] is None


def test_whether_a_phase_is_done_is_shown_and_not_written(tools: Toolset, book: Workspace) -> None:
    def flags(number: int) -> list[Any]:
        row = book.tables.get("chapters", number)
        return [row[f"phase_{each}_complete"] for each in (1, 2)]

    assert flags(1) == [False, False]
    tools.call("claim_step", {"step": "prepare/librarian/1"})
    tools.call("save_chapter_field", {"chapter_num": 1, "field": "original_text", "value": "Once."})
    assert flags(1) == [False, False]
    tools.call("finish_step")
    assert (flags(1), flags(2)) == ([True, False], [False, False])
    assert [row["chapter_number"] for row in book.tables.many("chapters", where={"phase_1_complete": True}).rows] == [1]
    assert tools.call("list_chapters", {"phase_1_complete": False, "columns": ["chapter_number"]})["count"] == 2
    book.resume_from_chapter(1, "prepare")
    assert flags(1) == [False, False]
    with pytest.raises(AgentMemoryError, match="no column"):
        book.tables.update("chapters", 1, {"phase_1_complete": True})


def test_a_phase_of_the_whole_book_is_shown_in_every_chapter(book: Workspace) -> None:
    produced: dict[str, dict[str, Any]] = {
        "librarian": {"original_text": "o"},
        "analyst": {"analysis_stories": [], "analysis_quotes": []},
        "transformer": {"transformed_content": "t"},
        "outliner": {"outline": "o"},
        "writer": {"sections": ["s"], "draft": "d"},
        "summary_writer": {"summary": "s"},
        "editor": {"edited_text": "e"},
        "quality_reviewer": {"quality_score": 0.9, "final_text": "f"},
    }
    phases = [each.name for each in book.declaration.phases[:7]]
    while (claim := book.steps.claim("worker")) is not None and claim.phase in phases:
        if values := produced.get(claim.agent or ""):
            book.tables.update("chapters", claim.key, values, Caller(claim.agent, claim=claim))
        book.steps.finish(claim)
    assert [each.name for each in book.snapshots.all()] == [f"SNAPSHOT_PHASE_{number}" for number in (1, 3, 7)]
    assert [row["phase_7_complete"] for row in book.tables.many("chapters").rows] == [True] * 3
    assert [row["phase_8_complete"] for row in book.tables.many("chapters").rows] == [False] * 3


WRITTEN: dict[str, dict[str, Any]] = {
    "librarian": {"original_text": "Once."},
    "analyst": {"analysis_stories": [], "analysis_quotes": []},
    "transformer": {"transformed_content": "Now."},
    "outliner": {"outline": "o"},
    "writer": {"sections": ["s"], "draft": "d"},
    "summary_writer": {"summary": "A roof begins."},
}


def work(tools: Toolset) -> None:
    """Do one step that was claimed, with the tools of the book."""
    claim = tools.session.get_claim()
    for field, value in WRITTEN[claim.agent or ""].items():
        tools.call("save_chapter_field", {"chapter_num": claim.key, "field": field, "value": value})
    tools.call("add_glossary_term", {"term": "roof", "definition": f"as in chapter {claim.key}"})
    tools.call("finish_step", {})


def test_workers_at_the_same_time_are_in_nobodys_way(book: Workspace) -> None:
    """Phases 1 to 3: six workers, each with a workspace of its own, on three chapters."""

    def run(number: int, agent: str) -> int:
        own, done = Workspace.open(book.folder), 0
        tools = Toolset(own, f"worker-{number}", agent=agent, offer=Offer(tools=["*"]))
        for _ in range(2_000):  # a worker that died would leave the others waiting
            claimed = tools.call("claim_step", {"step": "next"})
            if claimed["status"] == "claimed":
                work(tools)
                done += 1
            elif claimed["done"] == 3:
                break
            else:
                time.sleep(0.005)  # others are at it
        own.close()
        return done

    agents = ["librarian", "analyst", "transformer"] * 2
    with ThreadPoolExecutor(len(agents)) as pool:
        assert sum(pool.map(run, range(len(agents)), agents)) == 9
    first = [each for each in book.steps.all() if each.phase in ("prepare", "analyse", "transform")]
    assert [(each.status, each.attempts) for each in first] == [("done", 1)] * 9
    assert [each.name for each in book.snapshots.all()] == ["SNAPSHOT_PHASE_1", "SNAPSHOT_PHASE_3"]
    assert book.tables.get("glossary", "roof")["definition"] == "as in chapter 1"
    assert {row["definition"][-1] for row in book.tables.proposals("glossary")} == {"1", "2", "3"}


def test_a_chapter_is_written_after_the_one_before_and_reads_its_summary(tools: Toolset) -> None:
    while (claimed := tools.call("claim_step", {"step": "next"}))["phase"] != "write":
        work(tools)
    steps = []
    while claimed["phase"] == "write":
        steps.append((claimed["key"], claimed["agent"]))
        if claimed["agent"] == "outliner":
            read = tools.call("get_all_chapter_summaries", {})
            assert [row["chapter_number"] for row in read["rows"]] == list(range(1, claimed["key"]))
            later = tools.call("get_chapter", {"chapter_num": claimed["key"] + 1})
            assert later["status"] == "not_found"
        work(tools)
        claimed = tools.call("claim_step", {"step": "next"})
    assert steps == [(number, agent) for number in (1, 2, 3) for agent in ("outliner", "writer", "summary_writer")]
