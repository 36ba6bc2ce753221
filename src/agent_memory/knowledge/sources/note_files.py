"""Notes of people and agents: instruction files, memory folders, Markdown, vaults."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Final

from agent_memory.knowledge.intake.document_index import describe_path, read_front_matter
from agent_memory.knowledge.intake.drafts import FORMAT, ReceivedDocument, SkippedPart
from agent_memory.knowledge.intake.file_formats import read_talk
from agent_memory.knowledge.intake.turns import find_past_day, parse_moment, repair_text
from agent_memory.knowledge.passages.sections import find_body
from agent_memory.knowledge.sources.fact_lists import build_relations, clean_tags
from agent_memory.knowledge.sources.source_files import LEFT_OUT, ImportedFact, ImportPart, cut_statements
from agent_memory.models import utc_now
from agent_memory.models.clock import FILE_TIME
from agent_memory.models.identifiers import CATEGORIES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime

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
_NOTE_LINK: Final = re.compile(r"\]\((?!\w+:)([^()\s]+)\.md(?:#[^()\s]*)?\)")
"""Markdown link to another note."""
_OBSERVATION: Final = re.compile(r"[-*] \[([^\[\]\n]{2,60})\] (\S.*)")
_RELATION: Final = re.compile(r"\s*[-*] (\w[\w -]{0,60}?) \[\[([^\[\]|\n]+)(?:\|[^\[\]\n]*)?\]\](?:\s+\([^()]+\))?\s*")
_OKF_RESERVED: Final = frozenset({"index.md", "log.md"})
_TAG: Final = re.compile(r"(?<![\w/#&])#([\w/-]*[^\W\d_][\w/-]*)")
_FIELD: Final = re.compile(r"^[ \t]*(?:[-*][ \t]+)?([A-Za-z][\w -]{0,40})::[ \t]+(\S.*)$", re.MULTILINE)
_TASK: Final = re.compile(r"^[ \t]*[-*+] \[(.)\] (\S.*)$", re.MULTILINE)
_INLINE_FIELD: Final = re.compile(r"[\[(]([A-Za-z][\w -]{0,40})::[ \t]++([^\s\[\]()][^\[\]()\n]*+)[\])]")
_DUE: Final = re.compile(r"(?:📅\s*|\bdue::\s*)(\d{4}-\d\d-\d\d)")
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
        words, fence, block = statement.text.partition("\n```")
        lines = words.split("\n")
        targets = [named[1] for line in lines if (named := _IMPORT.fullmatch(line))]
        rule = ("\n".join(line for line in lines if not _IMPORT.fullmatch(line)) + fence + block).strip()
        if rule:
            values = metadata | statement.metadata
            yield ImportedFact(rule, place, file.changed_at, "preference", project=project, metadata=values)
        for target in targets:
            linked = tree.find_linked(file, target) if len(outer) < _MAX_IMPORTS else None
            if linked is None or linked.name in {*outer, file.name}:
                code = "not_followed" if linked is None else LEFT_OUT
                yield SkippedPart(f"{place}: @{target}", code)
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
    yield talk if talk is not None else _read_document(text, file, tree)


def read_okf(file: SourceFile, tree: SourceTree) -> Iterator[ImportPart]:
    """Yield a concept of an Open Knowledge Format bundle as a document."""
    if file.base_name in _OKF_RESERVED:
        yield SkippedPart("the list of files", LEFT_OUT)
    else:
        yield _read_document(repair_text(file.read_text()), file, tree)


def read_graph_note(file: SourceFile, tree: SourceTree) -> Iterator[ImportPart]:
    """Yield observations of a basic-memory note as facts, relations as a document.

    The rest of the note is another document.
    """
    text = repair_text(file.read_text())
    body, fields, front_matter = find_body(text), _read_fields(text), read_front_matter(text)
    title, lines, relations = fields.get("title", file.base_name), list[str](), list[dict[str, str]]()
    said_at, first_line = front_matter.written_at or file.changed_at, text.count("\n", 0, body) + 1
    for number, line in enumerate(text[body:].split("\n"), first_line):
        if relation := _RELATION.fullmatch(line):
            relations.append({"from": title, "to": relation[2].strip(), "relationType": relation[1].strip()})
        elif observation := _OBSERVATION.fullmatch(line.strip()):
            metadata = {"entity": title} | ({} if front_matter.written_at else {FILE_TIME: True})
            yield _read_observation(observation, f"line {number}", said_at, metadata, front_matter.tags)
        else:
            lines.append(line)
    if relations:
        yield build_relations(relations)
    if any(line.strip() and not line.startswith("#") for line in lines):
        yield _read_document(text[:body] + "\n".join(lines), file, tree)


def _read_observation(
    observation: re.Match[str], place: str, said_at: datetime | None, metadata: dict[str, Any], tags: tuple[str, ...]
) -> ImportedFact:
    """Return the fact of a line `- [tip] Words #tag (context)`."""
    method, words = observation[1].strip(), observation[2]
    head, mark, context = words.removesuffix(")").rpartition(" (")
    words, context = (head, context) if mark and words.endswith(")") and ")" not in context else (words, "")
    own_tags = _TAG.findall(words)
    parts = words.split()
    while len(parts) > 1 and parts[-1].startswith("#"):
        parts.pop()
    words = " ".join(parts)
    text = words if metadata["entity"].casefold() in words.casefold() else f"{metadata['entity']}: {words}"
    values = metadata | {"observation": method} | ({"context": context} if context else {})
    category = method if method in CATEGORIES else "note"
    return ImportedFact(text, place, said_at, category, clean_tags(own_tags, list(tags)), metadata=values)


def _read_document(text: str, file: SourceFile, tree: SourceTree) -> ReceivedDocument:
    """Return a note as a document with tags, links and tasks."""
    front_matter = read_front_matter(text)
    stated_at = front_matter.written_at or parse_moment(_read_fields(text).get("timestamp"))
    written_at = stated_at or find_past_day(file.base_name, file.changed_at or utc_now())
    place = describe_path(str(file.path)) if file.path is not None else {}
    marks = _read_marks(text[find_body(text) :]) if file.suffix in {".md", ".markdown"} else {}
    metadata = {
        FORMAT: "obsidian" if tree.is_vault else "markdown",
        **({"file": file.name} if file.folder else {}), **place, **front_matter.metadata, **marks,
        **({} if written_at else {FILE_TIME: True}),
    }  # fmt: skip
    tags = tuple(dict.fromkeys([*front_matter.tags, *metadata.pop("tags", ())]))[:_MAX_VALUES]
    return ReceivedDocument(text, file.base_name, "document", written_at or file.changed_at, tags, metadata)


def _read_marks(body: str) -> dict[str, Any]:
    """Return tags, links, fields and dated tasks of a note."""
    words = _CODE.sub("", body)
    pairs = [*_FIELD.findall(words), *_INLINE_FIELD.findall(words)]
    targets = [*_WIKI_LINK.findall(words), *_NOTE_LINK.findall(words)]
    links = [PurePosixPath(link.strip()).name for link in targets]
    fields = {key.strip(): value.strip()[:_MAX_VALUE] for key, value in pairs[:_MAX_VALUES]}
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
