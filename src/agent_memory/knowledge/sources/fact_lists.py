"""Memories of the MCP memory server, of mem0, and pasted lists."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from agent_memory.knowledge.intake.drafts import ReceivedDocument, SkippedPart
from agent_memory.knowledge.intake.turns import parse_moment, repair_text, to_mapping
from agent_memory.knowledge.sources.import_parts import LEFT_OUT, ImportedFact, ImportPart, strip_bullet
from agent_memory.knowledge.sources.json_records import iter_elements, iter_lines
from agent_memory.models.identifiers import CATEGORIES
from agent_memory.models.record import MAX_TAG_CHARS, MAX_TAGS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime

    from agent_memory.knowledge.sources.source_files import SourceFile, SourceTree

GRAPH: Final = "knowledge_graph"
"""Type of a document with relations of an untrusted graph."""
_RELATIONS_AT_ONCE: Final = 50
_MEM0_KNOWN: Final = frozenset({"memory", "created_at", "updated_at", "categories", "hash", "score"})
_MEMORY_KNOWN: Final = frozenset({
    "content", "content_hash", "created_at", "created_at_iso", "tags", "temporal", "updated_at", "updated_at_iso",
})  # fmt: skip
_ENDED: Final = frozenset({"archived", "deleted", "superseded"})
"""States of a PAM memory that no longer holds."""
_MEM0_LISTS: Final = ("results", "memories")
_DATED: Final = re.compile(r"\s*(?:[-*•]\s+)?\[(\d{4}-\d\d-\d\d|unknown)\]\s*[-–—]\s*(\S.*)", re.IGNORECASE)  # noqa: RUF001
"""A line such as `[2026-01-03] - Prefers metric units`."""
_STAMPED: Final = re.compile(r"\s*(?:[-*•]\s+)?\[([^\[\]\n]{2,40})\]\s*[-–—]\s*(\S.*)")  # noqa: RUF001
"""The same with any words for the date, next to lines with dates."""
_FENCE: Final = re.compile(r"\s*(?:`{3,}|~{3,})")
_HEADING: Final = re.compile(r"\s*(?:#{1,6}\s+(.+)|\*\*([^*]+)\*\*:?)\s*")


def clean_tags(*values: Any) -> tuple[str, ...]:
    """Return the texts of lists, or of texts with commas, as tags."""
    words = [part for value in values for part in (value.split(",") if isinstance(value, str) else _list(value))]
    tags = (repair_text(str(word)).strip().lstrip("#")[:MAX_TAG_CHARS] for word in words if isinstance(word, str | int))
    return tuple(dict.fromkeys(tag for tag in tags if tag))[:MAX_TAGS]


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def read_graph(file: SourceFile, tree: SourceTree) -> Iterator[ImportPart]:  # noqa: ARG001 - of all readers
    """Yield observations of a `memory.jsonl` as facts, relations as documents."""
    relations: list[dict[str, str]] = []
    for place, kind, value in _iter_graph(file):
        if kind == "entity" and isinstance(value.get("name"), str):
            yield from _read_entity(value, place)
        elif kind == "relation" and all(isinstance(value.get(key), str) for key in ("from", "to", "relationType")):
            relations.append(value)
        else:
            yield SkippedPart(place)
    for start in range(0, len(relations), _RELATIONS_AT_ONCE):
        yield build_relations(relations[start : start + _RELATIONS_AT_ONCE])


def _iter_graph(file: SourceFile) -> Iterator[tuple[str, Any, Any]]:
    """Yield place, type and value of a graph's entries."""
    graph = next(iter_elements(file)).value
    if not isinstance(graph, dict) or "entities" not in graph:
        for record in iter_lines(file):
            fields = to_mapping(record.value)
            kind = "entity" if "entityType" in fields else "relation" if "relationType" in fields else None
            yield f"line {record.number}", kind, record.value
        return
    for kind, key in (("entity", "entities"), ("relation", "relations")):
        for number, value in enumerate(_list(graph.get(key)), 1):
            yield f"{kind} {number}", kind if isinstance(value, dict) else None, value


def _read_entity(value: Mapping[str, Any], place: str) -> Iterator[ImportPart]:
    name, kind = repair_text(value["name"]), value.get("entityType")
    metadata = {"entity": name} | ({"entity_type": kind} if isinstance(kind, str) and kind else {})
    if not _list(value.get("observations")):
        yield SkippedPart(f"{name} without observations", LEFT_OUT)
    for entry in _list(value.get("observations")):
        observation = entry.get("content") if isinstance(entry, dict) else entry
        if isinstance(observation, str) and observation.strip():
            words = repair_text(observation).strip()
            text = words if name.casefold() in words.casefold() else f"{name}: {words}"
            yield ImportedFact(text, place, tags=clean_tags([kind]), metadata=metadata)
        else:
            yield SkippedPart(f"an observation of {place}")


def build_relations(relations: Sequence[Mapping[str, Any]]) -> ReceivedDocument:
    """Build a document that declares relations."""
    declared, lines = [], []
    for relation in relations:
        start, end = repair_text(relation["from"]), repair_text(relation["to"])
        name = re.sub(r"[^a-z0-9_]+", "_", relation["relationType"].lower()).strip("_") or "related_to"
        declared.append({"from": start, "to": end, "type": name})
        lines.append(f"- {start} {relation['relationType'].replace('_', ' ')} {end}")
    return ReceivedDocument("\n".join(lines), "Relations", GRAPH, metadata={"relations": declared})


def read_mem0(file: SourceFile, tree: SourceTree) -> Iterator[ImportPart]:  # noqa: ARG001 - of all readers
    """Yield the memories of a mem0 export with dates and categories."""
    number = 0
    for record in iter_elements(file):
        for value in list_mem0(record.value):
            number += 1
            text = value.get("memory") if isinstance(value, dict) else None
            if not isinstance(text, str) or not text.strip():
                yield SkippedPart(f"memory {number}")
                continue
            said_at = parse_moment(value.get("updated_at")) or parse_moment(value.get("created_at"))
            metadata = {f"mem0_{key}": part for key, part in value.items() if part and key not in _MEM0_KNOWN}
            yield ImportedFact(
                repair_text(text).strip(), f"memory {number}", said_at, tags=clean_tags(value.get("categories")),
                metadata=metadata,
            )  # fmt: skip
        if record.is_broken:
            number += 1
            yield SkippedPart(f"memory {number}")
        yield from _read_mem0_relations(record.value)


def _read_mem0_relations(value: Any) -> Iterator[ImportPart]:
    """Yield the relations of a graph memory as a document."""
    listed = _list(value.get("relations")) if isinstance(value, dict) else []
    named = [relation for relation in listed if isinstance(relation, dict)]
    relations = [
        {
            "from": part.get("source"),
            "relationType": part.get("relationship"),
            "to": part.get("destination") or part.get("target"),
        }
        for part in named
    ]
    complete = [relation for relation in relations if all(isinstance(end, str) for end in relation.values())]
    for start in range(0, len(complete), _RELATIONS_AT_ONCE):
        yield build_relations(complete[start : start + _RELATIONS_AT_ONCE])
    if len(complete) < len(listed):
        yield SkippedPart(f"{len(listed) - len(complete)} relations")


def list_mem0(value: Any) -> list[Any]:
    """Return the memories in an element of a mem0 export."""
    if not isinstance(value, dict):
        return []
    return next((value[key] for key in _MEM0_LISTS if isinstance(value.get(key), list)), [value])


def read_memories(file: SourceFile, tree: SourceTree) -> Iterator[ImportPart]:  # noqa: ARG001 - of all readers
    """Yield memories of mcp-memory-service or of a PAM store.

    Deleted and superseded ones are left out.
    """
    for record in iter_elements(file):
        values = record.value.get("memories") if isinstance(record.value, dict) else None
        if not isinstance(values, list):
            yield SkippedPart("the list of memories")
            continue
        for number, value in enumerate(values, 1):
            text = value.get("content") if isinstance(value, dict) else None
            if not isinstance(text, str) or not text.strip():
                yield SkippedPart(f"memory {number}")
            elif value.get("deleted_at") or value.get("status") in _ENDED:
                yield SkippedPart(f"memory {number}", LEFT_OUT)
            else:
                yield read_memory(value, text, f"memory {number}")


def read_memory(value: Mapping[str, Any], text: str, place: str) -> ImportedFact:
    """Return a memory of mcp-memory-service or of a PAM store."""
    temporal = value.get("temporal")
    times = {**value, **temporal} if isinstance(temporal, dict) else value
    moments = (parse_moment(times.get(key)) for key in ("created_at", "created_at_iso"))
    said_at = next((moment for moment in moments if moment is not None), None)
    kind = value.get("memory_type") or value.get("type")
    category = kind if kind in CATEGORIES else "note"
    rest = {key: part for key, part in value.items() if part and key not in _MEMORY_KNOWN}
    metadata = {"original": rest} if rest else {}
    return ImportedFact(
        repair_text(text).strip(), place, said_at, category, clean_tags(value.get("tags")), metadata=metadata
    )


def has_dated_lines(text: str) -> bool:
    """Return True if a line has the form `[date] - text`."""
    return any(_DATED.fullmatch(line) for line in text.split("\n"))


def read_list(file: SourceFile, tree: SourceTree) -> Iterator[ImportPart]:  # noqa: ARG001 - of all readers
    """Yield a fact for each line, with its date.

    If some lines have the form `[date] - text`, a line below one goes on with it, and others are left out.
    """
    text = repair_text(file.read_text())
    is_dated, section, fact = has_dated_lines(text), "", None
    for number, line in enumerate(text.split("\n"), 1):
        entry, heading = _STAMPED.fullmatch(line) if is_dated else None, _HEADING.fullmatch(line)
        is_next = entry is None and fact is not None and is_dated and bool(line.strip())
        if is_next and heading is None and not _FENCE.match(line) and fact is not None:
            fact = replace(fact, text=f"{fact.text}\n{line.strip()}")
            continue
        if fact is not None:
            yield fact
        fact = None
        if heading is not None:
            section = (heading[1] or heading[2]).strip().rstrip(":")
        elif entry is not None:
            said_at = parse_moment(entry[1]) if _DATED.fullmatch(line) else None
            fact = _make_fact(entry[2].strip(), f"line {number}", said_at, section)
            if said_at is None and entry[1].casefold() != "unknown":
                fact = replace(fact, metadata={**fact.metadata, "date": entry[1]})
        elif is_dated and line.strip() and not _FENCE.match(line):
            yield SkippedPart(f"line {number}", LEFT_OUT)
        elif line.strip() and not _FENCE.match(line):
            yield _make_fact(strip_bullet(line), f"line {number}", None, section)
    if fact is not None:
        yield fact


def _make_fact(text: str, place: str, said_at: datetime | None, section: str) -> ImportedFact:
    return ImportedFact(text, place, said_at, metadata={"section": section} if section else {})
