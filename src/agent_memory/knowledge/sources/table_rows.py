"""Memories in rows: SQLite stores of mcp-memory-service and LangGraph, and CSV.

A database is read as a copy, and only its plain tables: a view may be a query without an end.
"""

from __future__ import annotations

import csv
import io
import json
import shutil
import sqlite3
import tempfile
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agent_memory.errors import ValidationError
from agent_memory.knowledge.intake.drafts import SkippedPart
from agent_memory.knowledge.intake.turns import collect_text, parse_moment, repair_text
from agent_memory.knowledge.sources.fact_lists import clean_tags, read_memory
from agent_memory.knowledge.sources.import_parts import LEFT_OUT, ImportedFact, ImportPart
from agent_memory.knowledge.sources.source_files import MAX_TEXT_BYTES
from agent_memory.models import as_utc, utc_now
from agent_memory.models.identifiers import CATEGORIES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from agent_memory.knowledge.sources.source_files import SourceFile, SourceTree

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
