"""Exports of ChatGPT and Claude: conversations, memories, projects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from agent_memory.errors import ValidationError
from agent_memory.knowledge.intake.drafts import ReceivedDocument, SkippedPart
from agent_memory.knowledge.intake.file_formats import read_export
from agent_memory.knowledge.intake.session_logs import UnknownShapeError
from agent_memory.knowledge.intake.turns import collect_text, parse_moment, repair_text
from agent_memory.knowledge.sources.import_parts import ImportedFact, ImportPart, cut_statements
from agent_memory.knowledge.sources.json_records import iter_elements

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_memory.knowledge.sources.source_files import SourceFile, SourceTree

MEMORY_KEYS: Final = frozenset({"conversations_memory", "project_memories", "memory_files"})
PROJECT_KEYS: Final = frozenset({"prompt_template", "docs"})


def read_conversations(file: SourceFile, tree: SourceTree) -> Iterator[ImportPart]:
    """Yield the conversations of an export, one at a time."""
    was_broken = False
    for record in iter_elements(file):
        place = f"conversation {record.number}"
        try:
            parts = None if record.is_broken else read_export([record.value], tree.name)
        except UnknownShapeError:
            parts = None
        if parts is not None:
            yield from (SkippedPart(place, part.code) if isinstance(part, SkippedPart) else part for part in parts)
        elif not was_broken:  # what follows a broken one may be the rest of it
            yield SkippedPart(place)
        was_broken = record.is_broken or (parts is None and was_broken)


def read_api_messages(file: SourceFile, tree: SourceTree) -> Iterator[ImportPart]:  # noqa: ARG001 - of all readers
    """Yield the conversation in messages of an API.

    Raises:
        ValidationError: A role is at an unknown place (`unknown_form`).
    """
    for record in iter_elements(file):
        try:
            parts = read_export(record.value, file.base_name)
        except UnknownShapeError:
            raise ValidationError(f"{file.name} has roles at an unknown place.", code="unknown_form") from None
        yield from parts or [SkippedPart("the list of messages")]


def read_claude_memories(file: SourceFile, tree: SourceTree) -> Iterator[ImportPart]:
    """Yield the memories of a Claude export, one for each statement."""
    names = dict(_list_project_names(tree))
    for record in iter_elements(file):
        if not isinstance(record.value, dict):
            yield SkippedPart(f"account {record.number}")
            continue
        for place, project, text in _list_memory_texts(record.value, names):
            if not isinstance(text, str):
                yield SkippedPart(place)
                continue
            for statement in cut_statements(repair_text(text), "sentences"):
                yield ImportedFact(
                    statement.text, f"{place}, line {statement.line}", project=project, metadata=statement.metadata
                )


def _list_memory_texts(account: dict[str, Any], names: dict[str, str]) -> Iterator[tuple[str, str, Any]]:
    """Yield place, project and text of each memory of an account."""
    if account.get("conversations_memory") is not None:
        yield "conversations_memory", "", account["conversations_memory"]
    projects = account.get("project_memories") or {}
    for key, text in projects.items() if isinstance(projects, dict) else [("project_memories", None)]:
        yield f"project_memories {key}", names.get(key, str(key)), text
    files = account.get("memory_files") or []
    for number, entry in enumerate(files if isinstance(files, list) else [None], 1):
        fields = entry if isinstance(entry, dict) else {}
        yield str(fields.get("path") or f"memory_files {number}"), "", fields.get("content")


def _list_project_names(tree: SourceTree) -> Iterator[tuple[str, str]]:
    for file in tree.files.values():
        if file.suffix == ".json" and "project" in file.name:
            for record in iter_elements(file):
                if isinstance(record.value, dict) and isinstance(name := record.value.get("name"), str):
                    yield str(record.value.get("uuid")), name


def read_claude_projects(file: SourceFile, tree: SourceTree) -> Iterator[ImportPart]:  # noqa: ARG001 - of all readers
    """Yield instructions of projects as facts, their files as documents."""
    for record in iter_elements(file):
        project = record.value
        if not isinstance(project, dict):
            yield SkippedPart(f"project {record.number}")
            continue
        name = repair_text(str(project.get("name") or project.get("uuid") or ""))[:100]
        said_at = parse_moment(project.get("updated_at")) or parse_moment(project.get("created_at"))
        if instructions := collect_text(project.get("prompt_template")).strip():
            yield ImportedFact(instructions, f"project {name}", said_at, "preference", project=name)
        docs = project.get("docs") or []
        for number, doc in enumerate(docs if isinstance(docs, list) else [None], 1):
            text = collect_text(doc.get("content")) if isinstance(doc, dict) else ""
            if not text.strip():
                yield SkippedPart(f"document {number} of project {name}")
                continue
            title = str(doc.get("filename") or doc.get("uuid") or "")
            yield ReceivedDocument(
                text, title, said_at=parse_moment(doc.get("created_at")), metadata={"project": name} if name else {}
            )
