"""Exports of ChatGPT, Claude, Gemini and Letta: conversations, memories, projects."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from agent_memory.errors import ValidationError
from agent_memory.knowledge.intake.drafts import UNKNOWN, ReceivedDocument, ReceivedTurn, SkippedPart
from agent_memory.knowledge.intake.file_formats import read_export
from agent_memory.knowledge.intake.session_logs import UnknownShapeError
from agent_memory.knowledge.intake.turns import (
    FileConversation,
    collect_text,
    make_turns,
    parse_moment,
    repair_text,
    to_list,
    to_mapping,
)
from agent_memory.knowledge.sources.documents import read_html
from agent_memory.knowledge.sources.json_records import iter_elements, read_list
from agent_memory.knowledge.sources.source_files import LEFT_OUT, ImportedFact, ImportPart, cut_statements
from agent_memory.models import as_utc, to_text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from agent_memory.knowledge.sources.source_files import SourceFile, SourceTree

    _DatedTurns = tuple[datetime, list[ReceivedTurn]]

MEMORY_KEYS: Final = frozenset({"conversations_memory", "project_memories", "memory_files"})
PROJECT_KEYS: Final = frozenset({"prompt_template", "docs"})
_GEMINI_NAMES: Final = ("Gemini", "Bard")
_PROMPTED: Final = "Prompted "
"""Start of a prompt's title in an export in English; in other languages it stays."""


def read_conversations(file: SourceFile, tree: SourceTree) -> Iterator[ImportPart]:
    """Yield the conversations of an export, one at a time."""
    was_broken = False
    fields, listed = read_list(file, "conversations")
    for record in listed if fields else iter_elements(file):
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
        fields = to_mapping(entry)
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


# -- Gemini -----------------------------------------------------------------------------------------------------------


def is_gemini_activity(record: Any) -> bool:
    """Return True for an entry of Gemini's activity in Takeout."""
    fields = to_mapping(record)
    products = [fields.get("header"), *(fields.get("products") or ())] if {"title", "time"} <= fields.keys() else []
    return any(isinstance(name, str) and name.startswith(_GEMINI_NAMES) for name in products)


def read_gemini(file: SourceFile, tree: SourceTree) -> Iterator[ImportPart]:  # noqa: ARG001 - of all readers
    """Yield prompts and answers of Gemini, a conversation for each day.

    Entries of other activity, such as a choice of a draft, are left out.
    """
    day, entries = "", list["_DatedTurns"]()
    for record in iter_elements(file):
        place = f"entry {record.number}"
        said_at = parse_moment(record.value.get("time")) if isinstance(record.value, dict) else None
        if said_at is None or not is_gemini_activity(record.value):
            yield SkippedPart(place)
            continue
        turns = _read_gemini_entry(record.value, said_at)
        if not turns:
            yield SkippedPart(place, LEFT_OUT)
            continue
        if entries and f"{said_at:%Y-%m-%d}" != day:
            yield _build_gemini_day(day, entries)
            entries = []
        day = f"{said_at:%Y-%m-%d}"
        entries.append((said_at, turns))
    if entries:
        yield _build_gemini_day(day, entries)


def _read_gemini_entry(entry: dict[str, Any], said_at: datetime) -> list[ReceivedTurn]:
    """Return the prompt and the answer of an entry, or nothing."""
    named = [detail for detail in to_list(entry.get("details")) if isinstance(detail, dict)]
    words = {detail.get("name"): detail.get("value") for detail in named}
    answers = entry.get("safeHtmlItem")
    if "Request" in words:
        texts = [("user", words["Request"]), ("assistant", words.get("Response"))]
    elif isinstance(answers, list) and answers:
        pages = [item.get("html") for item in answers if isinstance(item, dict)]
        answer = "\n\n".join(read_html(page)[1] for page in pages if isinstance(page, str))
        texts = [("user", str(entry["title"]).removeprefix(_PROMPTED)), ("assistant", answer)]
    else:
        return []
    spoken = [(role, repair_text(text).strip()) for role, text in texts if isinstance(text, str)]
    return [ReceivedTurn(text, role, said_at=said_at) for role, text in spoken if text]


def _build_gemini_day(day: str, entries: list[_DatedTurns]) -> FileConversation:
    """Return the conversation of a day, oldest entry first."""
    entries = sorted(entries, key=lambda entry: as_utc(entry[0]))
    turns = [turn for _, entry in entries for turn in entry]
    return FileConversation(f"Gemini {day}", f"gemini:{to_text(entries[0][0])}", turns, entries[0][0], "gemini")


# -- Letta ------------------------------------------------------------------------------------------------------------


def read_letta(file: SourceFile, tree: SourceTree) -> Iterator[ImportPart]:  # noqa: ARG001 - of all readers
    """Yield memory blocks and messages of agent files.

    Persona, read-only blocks, tools and system texts are left out.
    """
    for record in iter_elements(file):
        value = to_mapping(record.value)
        agents = value.get("agents")
        if not isinstance(agents, list):
            yield SkippedPart("the list of agents")
            continue
        said_at = parse_moment(value.get("created_at"))
        for number, block in enumerate(to_list(value.get("blocks")), 1):
            yield from _read_letta_block(block, f"block {number}", said_at)
        for number, agent in enumerate(agents, 1):
            messages = agent.get("messages") if isinstance(agent, dict) else None
            if isinstance(messages, list):
                yield _build_letta_talk(str(agent.get("name") or ""), messages)
            else:
                yield SkippedPart(f"agent {number}")


def _read_letta_block(block: Any, place: str, said_at: datetime | None) -> Iterator[ImportPart]:
    text, label = (block.get("value"), block.get("label")) if isinstance(block, dict) else (None, None)
    if not isinstance(text, str) or not isinstance(label, str):
        yield SkippedPart(place)
    elif label == "persona" or block.get("read_only"):
        yield SkippedPart(f"{place} ({label})", LEFT_OUT)
    else:
        for statement in cut_statements(repair_text(text), "sentences"):
            metadata = {"block": label, **statement.metadata}
            yield ImportedFact(statement.text, f"{place}, line {statement.line}", said_at, metadata=metadata)


def _build_letta_talk(name: str, messages: list[Any]) -> FileConversation:
    turns = [turn for message in messages if isinstance(message, dict) for turn in _read_letta_message(message)]
    first = turns[0] if turns else ReceivedTurn("")
    key = hashlib.sha256(first.text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return FileConversation(name, f"letta:{name}:{key}", turns, first.said_at, "letta")


def _read_letta_message(message: dict[str, Any]) -> list[ReceivedTurn]:
    """Return the turns of a message, with events as a tool's."""
    said_at, role = parse_moment(message.get("created_at")), message.get("role")
    role = role if role in {"user", "assistant", "tool"} else "system" if role == "system" else UNKNOWN
    turns = [turn for turn in make_turns(message.get("content"), role, said_at=said_at) if role != "system"]
    if role == "user":
        turns = [_unpack_letta_event(turn) for turn in turns]
    for call in to_list(message.get("tool_calls")) if role == "assistant" else []:
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict) and function.get("name") == "send_message":
            words = _load_object(function.get("arguments")).get("message")
            turns += make_turns(words, role, said_at=said_at) if isinstance(words, str) else []
    return [turn for turn in turns if turn.text.strip()]


def _unpack_letta_event(turn: ReceivedTurn) -> ReceivedTurn:
    """Return a packed user message's words, or a tool's event."""
    event = _load_object(turn.text)
    if turn.role != "user" or "type" not in event:
        return turn
    if event["type"] == "user_message" and isinstance(event.get("message"), str):
        return replace(turn, text=event["message"])
    return replace(turn, role="tool")


def _load_object(text: Any) -> dict[str, Any]:
    try:
        value = json.loads(text) if isinstance(text, str) and text.lstrip().startswith("{") else None
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
