"""Memories of other programs: graphs, lists, CSV, and SQLite stores.

A database is read as a copy, and only its plain tables: a view may be a query without an end.
"""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import sqlite3
import tempfile
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agent_memory.errors import ValidationError
from agent_memory.knowledge.intake.drafts import ReceivedDocument, SkippedPart
from agent_memory.knowledge.intake.turns import collect_text, parse_moment, repair_text, to_list, to_mapping
from agent_memory.knowledge.sources.json_records import iter_elements, iter_lines
from agent_memory.knowledge.sources.source_files import LEFT_OUT, MAX_TEXT_BYTES, ImportedFact, ImportPart, strip_bullet
from agent_memory.models import as_utc, utc_now
from agent_memory.models.identifiers import CATEGORIES
from agent_memory.models.record import MAX_TAG_CHARS, MAX_TAGS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

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
    words = [part for value in values for part in (value.split(",") if isinstance(value, str) else to_list(value))]
    tags = (repair_text(str(word)).strip().lstrip("#")[:MAX_TAG_CHARS] for word in words if isinstance(word, str | int))
    return tuple(dict.fromkeys(tag for tag in tags if tag))[:MAX_TAGS]


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
        for number, value in enumerate(to_list(graph.get(key)), 1):
            yield f"{kind} {number}", kind if isinstance(value, dict) else None, value


def _read_entity(value: Mapping[str, Any], place: str) -> Iterator[ImportPart]:
    name, kind = repair_text(value["name"]), value.get("entityType")
    metadata = {"entity": name} | ({"entity_type": kind} if isinstance(kind, str) and kind else {})
    if not to_list(value.get("observations")):
        yield SkippedPart(f"{name} without observations", LEFT_OUT)
    for entry in to_list(value.get("observations")):
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
    listed = to_list(value.get("relations")) if isinstance(value, dict) else []
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


SQLITE_START: Final = "SQLite format 3\0"
MEMORY_COLUMNS: Final = frozenset({"content", "content_hash", "tags"})
STORE_COLUMNS: Final = frozenset({"prefix", "key", "value"})

_TEXT_KEYS: Final = ("text", "content", "memory", "fact", "data", "value")
"""Keys of a stored value that hold its words."""
COLUMN_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "text": ("content", "text", "memory", "note", "fact"),
    "date": ("date", "created_at", "created", "timestamp", "time"),
    "tags": ("tags", "tag", "labels"),
    "category": ("category", "type"),
    "project": ("project",),
}
"""Names of columns by what they hold, the preferred first."""
_DELIMITERS: Final = ",;\t|"
_MAX_VALUES: Final = 50


@contextmanager
def _opened_copy(file: SourceFile) -> Iterator[sqlite3.Connection]:
    """Open a private copy of a database, with its log of changes."""
    with tempfile.TemporaryDirectory(prefix="agent-memory-") as folder:
        copy = Path(folder, "copy.db")
        with file.open_stream() as stream, copy.open("wb") as target:
            shutil.copyfileobj(stream, target)
        log = None if file.path is None else file.path.with_name(f"{file.path.name}-wal")
        if log is not None and log.is_file() and not log.is_symlink():
            shutil.copyfile(log, f"{copy}-wal")
        with closing(sqlite3.connect(copy, check_same_thread=False)) as database:  # rows are read in several threads
            database.row_factory = sqlite3.Row
            database.execute("PRAGMA trusted_schema = OFF")
            database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_TEXT_BYTES)
            yield database


def has_table(file: SourceFile, table: str, columns: frozenset[str]) -> bool:
    """Return True if a database has a plain table, or is damaged."""
    try:
        with _opened_copy(file) as database:
            return _is_plain(database, table) and columns <= {
                row["name"] for row in database.execute("SELECT name FROM pragma_table_info(?)", (table,))
            }
    except sqlite3.Error:  # the reader reports it
        return True


def _is_plain(database: sqlite3.Connection, table: str) -> bool:
    """Return True for a table, False for a view or virtual table."""
    query = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ? AND rootpage > 0"
    return database.execute(query, (table,)).fetchone() is not None


def _iter_rows(file: SourceFile, table: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the stored columns of a table's rows, numbered.

    Computed columns could be endless.

    Raises:
        ValidationError: The database is damaged (`damaged_file`).
    """
    try:
        with _opened_copy(file) as database:
            stored = database.execute("SELECT name FROM pragma_table_xinfo(?) WHERE hidden = 0", (table,))
            columns = ", ".join('"{}"'.format(row["name"].replace('"', '""')) for row in stored)
            for number, row in enumerate(database.execute(f"SELECT {columns} FROM {table}"), 1):  # noqa: S608 - quoted
                yield number, dict(row)
    except sqlite3.Error as error:
        raise ValidationError(f"{file.name} is damaged: {error}.", code="damaged_file") from None


def read_memory_table(file: SourceFile, tree: SourceTree) -> Iterator[ImportPart]:  # noqa: ARG001 - of all readers
    """Yield the memories of mcp-memory-service, without deleted ones."""
    for number, row in _iter_rows(file, "memories"):
        place = f"row {number}"
        values: dict[str, Any] = {
            key: value for key, value in row.items() if isinstance(value, str | int | float) and key != "id"
        }
        if row.get("deleted_at"):
            yield SkippedPart(place, LEFT_OUT)
        elif isinstance(row["content"], str) and row["content"].strip():
            values["metadata"] = _load_json(values.get("metadata")) or values.get("metadata")
            yield read_memory(values, row["content"], place)
        else:
            yield SkippedPart(place)


def read_langgraph_store(file: SourceFile, tree: SourceTree) -> Iterator[ImportPart]:  # noqa: ARG001 - of all readers
    """Yield the values of a LangGraph store that hold a text."""
    for number, row in _iter_rows(file, "store"):
        place, value = f"row {number}", _load_json(row["value"])
        text = _find_text(value)
        expires_at = _parse_utc(row.get("expires_at"))
        if value is None:
            yield SkippedPart(place)
        elif not text or (expires_at is not None and expires_at <= utc_now()):
            yield SkippedPart(place, LEFT_OUT)
        else:
            metadata = {"namespace": str(row["prefix"]), "key": str(row["key"])}
            said_at = _parse_utc(row.get("updated_at")) or _parse_utc(row.get("created_at"))
            yield ImportedFact(text, place, said_at, metadata=metadata)


def _find_text(value: Any) -> str:
    """Return the words of a stored value, or ""."""
    if isinstance(value, dict):
        inner = next((value[key] for key in _TEXT_KEYS if isinstance(value.get(key), str | dict)), None)
        if inner is not None:
            return _find_text(inner)
        pairs = {str(key): part for key, part in value.items() if isinstance(part, str | int | float)}
        return "\n".join(f"{key}: {part}" for key, part in pairs.items() if not isinstance(part, bool))
    return collect_text(value).strip()


def _load_json(value: Any) -> Any:
    try:
        return json.loads(value) if isinstance(value, str | bytes) else None
    except (ValueError, RecursionError):
        return None


def _parse_utc(value: Any) -> datetime | None:
    """Return a moment; SQLite has times in UTC, without an offset."""
    moment = parse_moment(value)
    return None if moment is None else as_utc(moment if moment.tzinfo else moment.replace(tzinfo=UTC))


def read_csv(file: SourceFile, tree: SourceTree) -> Iterator[ImportPart]:
    """Yield a fact for each row, other columns as metadata.

    Raises:
        ValidationError: No column holds the text (`no_text_column`).
    """
    text = repair_text(file.read_text())
    first_line = text.partition("\n")[0]
    rows = csv.reader(io.StringIO(text), delimiter=max(_DELIMITERS, key=first_line.count))
    header = [name.strip() for name in next(rows, [])]
    unknown = [
        name for name in tree.columns.values() if name.casefold() not in {column.casefold() for column in header}
    ]
    if unknown:
        detail = f"has no column {', '.join(unknown)}; it has {', '.join(header)}"
        yield SkippedPart("", "unknown_column", detail)
        return
    columns = _map_columns(header, tree.columns)
    if "text" not in columns:
        raise ValidationError(
            f"No column of {file.name} holds the text.",
            code="no_text_column",
            recovery=f"Add --columns text=NAME. Columns: {', '.join(header)}.",
        )
    while True:
        try:
            row = next(rows)
        except StopIteration:
            return
        except csv.Error:
            yield SkippedPart(f"line {rows.line_num}")
            continue
        if any(value.strip() for value in row):
            yield _read_csv_row(dict(zip(header, row, strict=False)), columns, f"line {rows.line_num}")


def parse_columns(text: str) -> dict[str, str]:
    """Return columns by content from `KEY=COLUMN,KEY=COLUMN`.

    Raises:
        ValueError: A part has no column, or its key is not one of a memory.
    """
    pairs = [part.partition("=") for part in text.split(",") if part.strip()]
    columns = {key.strip(): name.strip() for key, _, name in pairs}
    if any(not name or key not in COLUMN_NAMES for key, name in columns.items()):
        raise ValueError(f"write KEY=COLUMN with the keys {', '.join(COLUMN_NAMES)}")
    return columns


def _map_columns(header: list[str], named: Mapping[str, str]) -> dict[str, str]:
    """Return columns by content, from a map or by usual names."""
    folded = {name.casefold(): name for name in reversed(header)}
    usual = {key: next((folded[name] for name in names if name in folded), None) for key, names in COLUMN_NAMES.items()}
    chosen = {**usual, **{key: folded.get(name.casefold()) for key, name in named.items()}}
    return {key: name for key, name in chosen.items() if name is not None}


def _read_csv_row(row: Mapping[str, str], columns: Mapping[str, str], place: str) -> ImportPart:
    values = {key: row.get(name, "").strip() for key, name in columns.items()}
    if not values["text"]:
        return SkippedPart(place, "no_text")
    date = values.get("date", "")
    said_at = parse_moment(date)
    used = {name for key, name in columns.items() if key != "date" or said_at}
    used -= set() if values.get("category", "") in CATEGORIES else {columns.get("category", "")}
    metadata = {name: value for name, value in row.items() if name and name not in used and value.strip()}
    category = values.get("category", "")
    return ImportedFact(
        values["text"], place, said_at, category if category in CATEGORIES else "note",
        clean_tags(values.get("tags", "").replace(";", ",")), values.get("project", "")[:100],
        dict([*metadata.items()][:_MAX_VALUES]), "" if said_at or not date else "has no readable date",
    )  # fmt: skip
