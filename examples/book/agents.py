"""The thirteen agents: which tools each may see, and what its scripted model does with them.

A model is a generator: it yields a call of a tool, is sent the answer, and returns what it says at the end. What it
writes is made from what it reads; what it knows besides stands in `lines.yaml`.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import yaml

if TYPE_CHECKING:
    from collections.abc import Callable

HERE: Final = Path(__file__).parent
SHORTEST_DRAFT: Final = 40
"""Words that the writer asks of a draft."""
_SENTENCE: Final = re.compile(r"(?<=[.!?])\"?\s+(?=[A-Z\"])")


class Call(NamedTuple):
    """A call of a tool."""

    tool: str
    arguments: dict[str, Any]


Answer = dict[str, Any]
Model = Generator[Call, Answer, str]
Row = dict[str, Any]


@cache
def lines() -> dict[int, dict[str, Any]]:
    """Return what the models know of each chapter."""
    known: dict[int, dict[str, Any]] = yaml.safe_load((HERE / "lines.yaml").read_text("utf-8"))["chapters"]
    return known


def text_of(chapter: int) -> tuple[str, str]:
    """Return the title and the text of a chapter's source."""
    title, _, text = (HERE / "text" / f"{chapter}.txt").read_text("utf-8").partition("\n\n")
    return title.strip(), " ".join(text.split())


def sentences(text: str) -> list[str]:
    """Return the sentences of a text."""
    return [each.strip() for each in _SENTENCE.split(text) if each.strip()]


def _row(chapter: int, *columns: str) -> Generator[Call, Answer, Row]:
    answer = yield Call("get_chapter", {"chapter_num": chapter, "columns": list(columns)})
    return dict(answer["row"])


def _field(chapter: int, field: str, value: Any) -> Call:
    return Call("save_chapter_field", {"chapter_num": chapter, "field": field, "value": value})


def librarian(chapter: int) -> Model:
    """Take the text in."""
    title, text = text_of(chapter)
    yield _field(chapter, "title", title)
    yield _field(chapter, "original_text", text)
    return f"{title}: {len(text.split())} words."


def analyst(chapter: int) -> Model:
    """Find stories, quotes, a tactic and terms."""
    text = (yield from _row(chapter, "original_text"))["original_text"]
    quotes = re.findall(r'"([^"]+)"', text)
    yield _field(chapter, "analysis_stories", sentences(text)[:1])
    yield _field(chapter, "analysis_quotes", quotes)
    known = lines()[chapter]
    moral = sentences(text)[-1]
    yield Call("save_tactic", {"tactic": {**known["tactic"], "source_chapter": chapter, "source_quote": moral}})
    for term, definition in known["terms"].items():
        yield Call("add_glossary_term", {"term": term, "definition": definition, "introduced_in_chapter": chapter})
    yield Call(
        "log_decision",
        {
            "agent": "analyst",
            "chapter": chapter,
            "type": "include",
            "subject": known["tactic"]["name"],
            "decision": "taken in",
            "reasoning": f"The chapter ends with it: {moral}",
            "confidence": "high",
        },
    )
    return f"{len(quotes)} quotes, {len(known['terms'])} terms."


def transformer(chapter: int) -> Model:
    """Put the story on a roof."""
    text = (yield from _row(chapter, "original_text"))["original_text"]
    for word, other in lines()[chapter]["words"].items():
        text = re.sub(rf"\b{word}\b", other, text)
    yield _field(chapter, "transformed_content", text)
    (tactic,) = (yield Call("get_tactics_for_chapter", {"chapter_num": chapter}))["rows"]
    roofing = lines()[chapter]["roofing"]
    fields = {"roofing_context": roofing["context"], "roofing_example": roofing["example"]}
    yield Call("update_tactic", {"id": tactic["id"], "fields": fields})
    return "The story stands on a roof."


def outliner(chapter: int) -> Model:
    """Outline the chapter after those before it."""
    before = yield Call("get_all_chapter_summaries", {})
    title = (yield from _row(chapter, "title"))["title"]
    told = ", ".join(row["title"] for row in before["rows"] if row["title"]) or "nothing"
    outline = f"1. {title}, told on a roof\n2. What a roofer takes from it\nTold before: {told}"
    yield _field(chapter, "outline", outline)
    return "Two sections."


def writer(chapter: int) -> Model:
    """Write the sections; the first try at the second chapter forgets one, and is told so by its own check."""
    row = yield from _row(chapter, "transformed_content", "outline")
    (tactic,) = (yield Call("get_tactics_for_chapter", {"chapter_num": chapter}))["rows"]
    yield Call("get_previous_section_ending", {"chapter_num": chapter, "section_num": 1})
    lesson = f"{tactic['name']}. {tactic['roofing_context']} {tactic['roofing_example']}"
    failed = yield Call("list_retry_log", {})
    is_first_try = not any(each["chapter"] == chapter for each in failed["rows"])
    sections = [lesson] if chapter == 2 and is_first_try else [row["transformed_content"], lesson]  # noqa: PLR2004
    draft = "\n\n".join(sections)
    if len(draft.split()) < SHORTEST_DRAFT:
        message = f"The draft has {len(draft.split())} words; {SHORTEST_DRAFT} are wanted. The story is missing."
        yield Call("fail_step", {"kind": "quality", "message": message})
        return message
    yield _field(chapter, "sections", sections)
    yield _field(chapter, "draft", draft)
    return f"{len(draft.split())} words."


def summary_writer(chapter: int) -> Model:
    """Sum up the draft by its first sentence and its last."""
    said = sentences((yield from _row(chapter, "draft"))["draft"])
    yield _field(chapter, "summary", f"{said[0]} {said[-1]}")
    return "Summed up."


def editor(chapter: int) -> Model:
    """Mark the terms of the glossary, and flag a sentence that is too long."""
    text = (yield from _row(chapter, "draft"))["draft"]
    for row in (yield Call("get_glossary", {}))["rows"]:
        text = re.sub(rf"\b{row['term']}\b", f"*{row['term']}*", text, count=1)
    longest = max(sentences(text), key=lambda each: len(each.split()))
    issue = {"chapter": chapter, "type": "flow", "severity": "minor", "location": longest[:40], "flagged_by": "editor"}
    yield Call("flag_issue", {**issue, "description": f"A sentence has {len(longest.split())} words."})
    yield _field(chapter, "edited_text", text)
    return "Edited."


def cross_ref_checker(chapter: int) -> Model:
    """Refer to the chapter before."""
    if chapter == 1:
        return "Nothing comes before the first chapter."
        yield  # this makes it a generator, as the others are
    before = (yield Call("get_chapter_summary", {"chapter_num": chapter - 1}))["value"]
    reference = {
        "from_ch": chapter,
        "to_ch": chapter - 1,
        "reason": f"Both are about how work goes on: {before}",
        "location_hint": "at the beginning",
        "reference_text": f"As chapter {chapter - 1} tells,",
    }
    saved = yield Call("save_cross_ref", reference)
    yield Call("mark_ref_verified", {"ref_id": saved["id"]})
    return "One reference, verified."


def diagram_designer(chapter: int) -> Model:
    """Specify a diagram and have it drawn."""
    known = lines()[chapter]
    spec = known["diagram"]
    saved = yield Call(
        "save_diagram_spec",
        {"chapter": chapter, "type": spec["type"], "title": spec["title"], "spec": spec, "placement_location": "end"},
    )
    drawn = yield Call("draw", {"name": f"chapter-{chapter}", "title": spec["title"], "steps": spec["steps"]})
    yield Call("save_diagram_file", {"id": saved["id"], "file_path": drawn["file_path"], "render_valid": True})
    caption = known["caption"]
    yield Call("save_diagram_caption", {"id": saved["id"], "caption_en": caption["en"], "caption_es": caption["es"]})
    return f"Drawn: {drawn['file_path']}."


def quality_reviewer(chapter: int) -> Model:
    """Join text, reference and diagram; settle what was flagged; give a score."""
    row = yield from _row(chapter, "title", "edited_text")
    references = (yield Call("get_refs_for_chapter", {"chapter_num": chapter}))["rows"]
    diagrams = (yield Call("get_diagrams_for_chapter", {"chapter_num": chapter}))["rows"]
    begun = [f"{each['reference_text']} patience is a tool." for each in references]
    drawn = [f"![{each['caption_en']}]({each['file_path']})" for each in diagrams]
    yield _field(chapter, "final_text", "\n\n".join([f"## {row['title']}", *begun, row["edited_text"], *drawn]))
    for issue in (yield Call("list_issues", {"resolved": False}))["rows"]:
        if issue["chapter"] == chapter:
            settled = {"resolution": "Kept: it is the author's.", "resolved_by": "quality_reviewer"}
            yield Call("resolve_issue", {"id": issue["id"], **settled})
    yield _field(chapter, "quality_score", 0.9)
    return "Good."


def assembler(_chapter: int) -> Model:
    """Put the chapters together: once in English, once in Spanish."""
    rows = (yield Call("list_chapters", {"columns": ["chapter_number", "final_text", "spanish_text"]}))["rows"]
    rows.sort(key=lambda row: row["chapter_number"])
    is_spanish = all(row.get("spanish_text") for row in rows)
    column, key, title = (
        ("spanish_text", "book_es", "# Tres fábulas para techadores")
        if is_spanish
        else ("final_text", "book_en", "# Three fables for roofers")
    )
    text = "\n\n".join([title, *[row[column] for row in rows]])
    yield Call("save_book_context", {"key": key, "value": text})
    return f"{len(text.split())} words."


def translator(chapter: int) -> Model:
    """Translate the chapter and its terms."""
    known = lines()[chapter]
    text = (yield from _row(chapter, "final_text"))["final_text"]
    diagrams = re.findall(r"!\[[^\]]*\]\(([^)]*)\)", text)
    drawn = [f"![{known['caption']['es']}]({path})" for path in diagrams]
    yield _field(chapter, "spanish_text", "\n\n".join([f"## {known['title_es']}", *known["spanish"], *drawn]))
    for term, (spanish, definition) in known["terms_es"].items():
        yield Call("add_spanish_term", {"term": term, "spanish_term": spanish, "spanish_definition": definition})
    return f"{len(known['spanish'])} sentences."


def spanish_reviewer(chapter: int) -> Model:
    """Look for terms that have no Spanish one."""
    row = yield from _row(chapter, "spanish_text")
    terms = (yield Call("get_spanish_glossary", {}))["count"]
    review = {"agent": "spanish_reviewer", "chapter": chapter, "type": "review", "subject": "Spanish text"}
    words = len(row["spanish_text"].split())
    said = {"decision": "accepted", "reasoning": f"{words} words, {terms} terms.", "confidence": "medium"}
    yield Call("log_decision", {**review, **said})
    return "Accepted."


class Agent(NamedTuple):
    """What an agent does, and the tools that it may see besides those for its step."""

    model: Callable[[int], Model]
    tools: tuple[str, ...]


_CHAPTER: Final = ("get_chapter", "save_chapter_field")
AGENTS: Final[dict[str, Agent]] = {
    "librarian": Agent(librarian, ("save_chapter_field",)),
    "analyst": Agent(analyst, (*_CHAPTER, "save_tactic", "add_glossary_term", "log_decision")),
    "transformer": Agent(transformer, (*_CHAPTER, "get_tactics_for_chapter", "update_tactic")),
    "outliner": Agent(outliner, (*_CHAPTER, "get_all_chapter_summaries")),
    "writer": Agent(writer, (*_CHAPTER, "get_tactics_for_chapter", "get_previous_section_ending", "list_retry_log")),
    "summary_writer": Agent(summary_writer, _CHAPTER),
    "editor": Agent(editor, (*_CHAPTER, "get_glossary", "flag_issue")),
    "cross_ref_checker": Agent(cross_ref_checker, ("get_chapter_summary", "save_cross_ref", "mark_ref_verified")),
    "diagram_designer": Agent(diagram_designer, ("save_diagram_spec", "save_diagram_file", "save_diagram_caption")),
    "quality_reviewer": Agent(
        quality_reviewer,
        (*_CHAPTER, "get_refs_for_chapter", "get_diagrams_for_chapter", "list_issues", "resolve_issue"),
    ),
    "assembler": Agent(assembler, ("list_chapters", "save_book_context")),
    "translator": Agent(translator, (*_CHAPTER, "add_spanish_term")),
    "spanish_reviewer": Agent(spanish_reviewer, ("get_chapter", "get_spanish_glossary", "log_decision")),
}
