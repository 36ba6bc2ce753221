"""Notes of people and agents: instruction files, memory folders, Markdown, vaults."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Final

from agent_memory.knowledge.intake.document_index import describe_path, read_front_matter
from agent_memory.knowledge.intake.drafts import FORMAT, ReceivedDocument, SkippedPart
from agent_memory.knowledge.intake.file_formats import read_talk
from agent_memory.knowledge.intake.turns import find_past_day, repair_text
from agent_memory.knowledge.passages.structure import find_body
from agent_memory.knowledge.sources.fact_lists import clean_tags
from agent_memory.knowledge.sources.import_parts import ImportedFact, ImportPart, cut_statements
from agent_memory.models import utc_now
from agent_memory.models.clock import FILE_TIME

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from agent_memory.knowledge.sources.source_files import SourceFile, SourceTree

RULE_NAMES: Final = frozenset({
    "agents.md", "agents.override.md", "claude.md", "claude.local.md", "gemini.md", "copilot-instructions.md",
    ".clinerules", ".cursorrules", ".windsurfrules",
})  # fmt: skip
INDEX_NAME: Final = "MEMORY.md"
_MAX_IMPORTS: Final = 5
"""Files in a row that instruction files may name, as in Claude Code."""
_IMPORT: Final = re.compile(r"\s*(?:[-*+]\s+)?@(\S+)\s*")
"""Line that imports another file: `@docs/more.md`."""
_LINK: Final = re.compile(r"\]\(([^()\s]+)\)|\[\[([^\[\]|#]+)")
_WIKI_LINK: Final = re.compile(r"(?<!!)\[\[([^\[\]|#\n]+)")
_TAG: Final = re.compile(r"(?<![\w/#&])#([\w/-]*[^\W\d_][\w/-]*)")
_FIELD: Final = re.compile(r"^[ \t]*(?:[-*][ \t]+)?([A-Za-z][\w -]{0,40})::[ \t]+(\S.*)$", re.MULTILINE)
_TASK: Final = re.compile(r"^[ \t]*[-*+] \[(.)\] (\S.*)$", re.MULTILINE)
_DUE: Final = re.compile(r"📅\s*(\d{4}-\d\d-\d\d)")
_CODE: Final = re.compile(r"^(```|~~~).*?^\1|`[^`\n]*`", re.MULTILINE | re.DOTALL)
_MAX_VALUES: Final = 50
_MAX_VALUE: Final = 300
_FEEDBACK: Final = "feedback"
"""Type of a Claude Code memory that says how the agent is to work."""


def read_rules(file: SourceFile, tree: SourceTree) -> Iterator[ImportPart]:
    """Yield the rules of an instruction file and its imports."""
    yield from _read_rules(file, tree, _find_project(file), ())


def _read_rules(file: SourceFile, tree: SourceTree, project: str, outer: tuple[str, ...]) -> Iterator[ImportPart]:
    text = repair_text(file.read_text())
    fields = _read_fields(text)
    metadata = {
        FILE_TIME: True,
        "file": file.name,
        **{key: fields[key] for key in ("description", "globs") if fields.get(key)},
    }
    for statement in cut_statements(text, "lines" if not file.suffix else "whole"):
        place = f"line {statement.line}" + (f" of {file.name}" if outer else "")
        lines = statement.text.split("\n")
        targets = [named[1] for line in lines if (named := _IMPORT.fullmatch(line))]
        rest = "\n".join(line for line in lines if not _IMPORT.fullmatch(line)).strip()
        if rest:
            values = metadata | statement.metadata
            yield ImportedFact(rest, place, file.changed_at, "preference", project=project, metadata=values)
        for target in targets:
            linked = tree.find_linked(file, target) if len(outer) < _MAX_IMPORTS else None
            if linked is None or linked.name in {*outer, file.name}:
                yield SkippedPart(f"{place}: @{target}", "not_followed")
            else:
                yield from _read_rules(linked, tree, project, (*outer, file.name))


def _read_fields(text: str) -> dict[str, str]:
    """Return the `key: value` lines of front matter, not only YAML."""
    lines = text[4 : find_body(text)].split("\n")
    pairs = [line.partition(":") for line in lines if ":" in line and not line.startswith((" ", "#"))]
    return {key.strip(): value.strip().strip("\"'")[:_MAX_VALUE] for key, _, value in pairs if value.strip()}


def _find_project(file: SourceFile) -> str:
    """Return the name of an instruction file's project folder."""
    parents = [] if file.path is None else [folder.name for folder in file.path.parents]
    while parents and (parents[0].startswith(".") or (len(parents) > 1 and parents[1].startswith("."))):
        parents = parents[1:]
    return parents[0][:100] if parents else ""


def read_agent_memory(file: SourceFile, tree: SourceTree) -> Iterator[ImportPart]:
    """Yield the memory in a file of a Claude Code memory folder.

    The index is read only where it names no file.
    """
    text = repair_text(file.read_text())
    if file.base_name == INDEX_NAME:
        for statement in cut_statements(text, "lines"):
            links = [target for pair in _LINK.findall(statement.text) for target in pair if target]
            if not any(tree.find_linked(file, name) for link in links for name in (link, f"{link}.md")):
                yield ImportedFact(
                    statement.text, f"line {statement.line}", file.changed_at, metadata={FILE_TIME: True}
                )
        return
    fields = _read_fields(text)
    kind = read_front_matter(text).document_type or _read_fields(text.replace("\n  ", "\n")).get("type", "")
    names = {key: fields[key] for key in ("name", "description") if fields.get(key)}
    words = text[find_body(text) :].strip()
    if words:
        metadata = {**names, **({"type": kind} if kind else {}), FILE_TIME: True}
        category = "preference" if kind == _FEEDBACK else "note"
        yield ImportedFact(words, "", file.changed_at, category, clean_tags([kind]), metadata=metadata)


def read_note(file: SourceFile, tree: SourceTree) -> Iterator[ImportPart]:
    """Yield a note as a document, or as a conversation."""
    text = repair_text(file.read_text())
    talk = read_talk(text, file.base_name)
    if talk is not None:
        yield talk
        return
    front_matter = read_front_matter(text)
    written_at = front_matter.written_at or find_past_day(file.base_name, file.changed_at or utc_now())
    place = describe_path(str(file.path)) if file.path is not None else {}
    marks = _read_marks(text[find_body(text) :]) if file.suffix in {".md", ".markdown"} else {}
    metadata = {
        FORMAT: "obsidian" if tree.is_vault else "markdown", **place, **front_matter.metadata, **marks,
        **({} if written_at else {FILE_TIME: True}),
    }  # fmt: skip
    tags = tuple(dict.fromkeys([*front_matter.tags, *metadata.pop("tags", ())]))[:_MAX_VALUES]
    yield ReceivedDocument(text, file.base_name, "document", written_at or file.changed_at, tags, metadata)


def _read_marks(body: str) -> dict[str, Any]:
    """Return tags, links, fields and dated tasks of a note."""
    words = _CODE.sub("", body)
    links = [PurePosixPath(link.strip()).name for link in _WIKI_LINK.findall(words)]
    fields = {key.strip(): value.strip()[:_MAX_VALUE] for key, value in _FIELD.findall(words)[:_MAX_VALUES]}
    values: Mapping[str, Any] = {
        "tags": list(clean_tags(_TAG.findall(words))),
        "links": list(dict.fromkeys(link[:_MAX_VALUE] for link in links if link))[:_MAX_VALUES],
        "fields": fields,
        "tasks": [
            {"text": task[:_MAX_VALUE], "is_done": mark in "xX", "due": due[1]}
            for mark, task in _TASK.findall(words)
            if (due := _DUE.search(task))
        ][:_MAX_VALUES],
    }
    return {name: value for name, value in values.items() if value}
