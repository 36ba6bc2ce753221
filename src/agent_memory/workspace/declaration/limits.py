"""What a declaration must not say although its shape is right: what a database, JSON Schema or a file system refuses.

Found when it is read, so that nothing that passes fails later, when rows are there.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Final

import jsonschema
from referencing import Registry
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

from agent_memory.workspace.declaration.json_schemas import (
    PatternError,
    check_schema,
    find_fault,
    find_refused_patterns,
    make_validator,
)
from agent_memory.workspace.declaration.model import (
    LARGEST_INTEGER,
    MAX_TEXT_CHARS,
    MAX_UNIQUE_CHARS,
    OWN_COLUMNS,
    Column,
    Declaration,
    Table,
    canonical_json,
    is_snapshot_name,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_Found = tuple[tuple[str | int, ...], str]
_MAX_COLUMNS: Final = 1_000
"""Columns of a table: SQLite takes 2,000 (https://sqlite.org/limits.html), PostgreSQL 1,600 at most, fewer of texts."""
_MAX_SEARCHED: Final = 32
"""Columns whose words are searched: PostgreSQL keeps the definition of an index in one row of 8 kB."""
_SYSTEM_COLUMNS: Final = frozenset({"ctid", "xmin", "xmax", "cmin", "cmax", "tableoid"})
"""https://www.postgresql.org/docs/current/ddl-system-columns.html"""
_NO_WORDS: Final = frozenset({"rank", "rowid"})
"""Names of columns that FTS5 keeps for itself (https://sqlite.org/fts5.html)."""
_KEYS: Final = ("text", "integer")
_SNAPSHOT_BYTES: Final = 80
"""Bytes of a declared name of a snapshot: `before-`, `@2` and `.db` are added to it in names of files."""
_TRIED: Final[tuple[Any, ...]] = (None, True, 1, "a", [], ["a"], {}, {"a": 1})
_FAILURE_TYPES: Final = ("transient", "validation", "quality")
_TOLD: Final[dict[str, dict[str, tuple[str, ...]]]] = {
    "retries": {
        "agent_name": ("text",),
        "phase": ("text", "integer"),
        "attempt_number": ("integer",),
        "failure_type": ("text",),
        "failure_message": ("text",),
        "outcome": ("text",),
    },
    "validations": {
        "validator_name": ("text",),
        "phase": ("text", "integer"),
        "passed": ("boolean",),
        "failures": ("json",),
    },
    "issues": {"description": ("text",), "flagged_by": ("text",)},
}
"""What the workspace writes into its logs, and the types of columns that take it."""


def limits_of(declaration: Declaration) -> Iterator[_Found]:
    """Yield the place and the fault of everything that would fail later."""
    if declaration.workspace.startswith("pg_") or declaration.workspace == "information_schema":
        yield ("workspace",), f"workspace: {declaration.workspace!r} is a name that PostgreSQL keeps for itself"
    for name, table in declaration.tables.items():
        yield from _table(name, table)
        for column_name, column in table.columns.items():
            here = ("tables", name, "columns", column_name)
            longest = MAX_UNIQUE_CHARS if column_name in table.unique_columns() else MAX_TEXT_CHARS
            for fault in (*_column(table, column_name, column), *_default(column, longest)):
                yield here, f"tables.{name}.columns.{column_name}{fault}"
    yield from _file_names(declaration)
    for log, told in _TOLD.items():
        yield from _log(declaration, log, told)


def _file_names(declaration: Declaration) -> Iterator[_Found]:
    for number, phase in enumerate(declaration.phases):
        wanted = phase.snapshot
        if wanted is None:
            continue
        if not is_snapshot_name(wanted) or "@" in wanted or len(wanted.encode()) > _SNAPSHOT_BYTES:
            allowed = f"letters, digits and _.- are allowed, {_SNAPSHOT_BYTES} bytes, no dot at the beginning"
            yield ("phases", number, "snapshot"), f"phases.{phase.name}.snapshot: {allowed}"
    for name, pattern in declaration.files.items():
        parts = PurePosixPath(pattern).parts
        if "\0" in pattern or any("**" in part and part != "**" for part in parts):
            yield ("files", name), f"files.{name}: ** stands for folders and must be a part of its own: a/**/b"


def schema_faults(schema: dict[str, Any]) -> Iterator[str]:
    """Yield what is wrong with a JSON Schema: its form, its references, or that it cannot be decided."""
    try:
        canonical_json(schema)
        check_schema(schema)
    except (TypeError, ValueError):
        yield "it holds a value that JSON has not (a date, NaN, or names of several types)"
        return
    except jsonschema.SchemaError as error:
        yield error.message
        return
    named = list(_named(schema, ("$ref", "$dynamicRef", "$recursiveRef")))
    if any(not each.startswith("#") for each in named):
        yield "$ref may only name a part of the same schema (#/…): nothing is fetched"
        return
    if any(_named(schema, ("$id",))):
        yield "$id is not read: a schema stands in the declaration alone"
        return
    resolver = Registry[Any]().resolver_with_root(DRAFT202012.create_resource(schema))
    try:
        for each in named:
            resolver.lookup(each)
        _try_values(schema)
    except Unresolvable as error:
        yield f"$ref names nothing in it: {error.ref}"
    except RecursionError:
        yield "$ref leads back to itself"
    except PatternError as error:
        yield str(error)


def _try_values(schema: dict[str, Any]) -> None:
    """Check a value of each type by a schema."""
    if not any(find_refused_patterns(schema)):
        validator = make_validator(schema)
        for value in _TRIED:
            list(validator.iter_errors(value))


def _named(value: Any, keywords: tuple[str, ...]) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            if key in keywords and isinstance(inner, str):
                yield inner
            yield from _named(inner, keywords)
    elif isinstance(value, list):
        for inner in value:
            yield from _named(inner, keywords)


def _table(name: str, table: Table) -> Iterator[_Found]:
    here: tuple[str | int, ...] = ("tables", name)
    if name.startswith("sqlite_"):
        yield here, f"tables.{name}: names that begin with sqlite_ are SQLite's own"
    if len(table.columns) > _MAX_COLUMNS:
        yield here, f"tables.{name}: {len(table.columns):,} columns; there may be {_MAX_COLUMNS:,}"
    key = table.columns.get(table.key or "")
    if key is not None and (key.type not in _KEYS or key.references is not None or table.key in OWN_COLUMNS):
        yield (*here, "key"), f"tables.{name}.key: rows are named by a text or an integer of their own"
    if len(table.search) > _MAX_SEARCHED:
        yield (*here, "search"), f"tables.{name}.search: at most {_MAX_SEARCHED} columns"
    for field in ("search", "index"):
        names = getattr(table, field)
        if len(set(names)) != len(names):
            yield (*here, field), f"tables.{name}.{field}: a column stands here twice"
    for each in table.search:
        column = table.columns.get(each)
        if each in _NO_WORDS:
            yield (*here, "search"), f"tables.{name}.search: SQLite searches no column called {each}"
        elif column is not None and column.references is not None:
            yield (*here, "search"), f"tables.{name}.search: {each} is a reference; it has no words of its own"


def _column(table: Table, name: str, column: Column) -> Iterator[str]:
    if name in _SYSTEM_COLUMNS:
        yield ": PostgreSQL keeps this name for itself"
    if column.unique and (column.type in ("json", "boolean") or name in OWN_COLUMNS):
        yield ".unique: only texts, numbers and references can be unique"
    if column.enum and column.references is not None:
        yield ".enum: a reference is one of the rows of its table"
    if table.kind == "log" and column.unique:
        yield ".unique: a log keeps every row"


def _default(column: Column, longest: int) -> Iterator[str]:
    value = column.default
    if value is None:
        return
    if column.references is not None or column.type == "file":
        yield f".default: a {'reference' if column.references else 'file'} has none: what it names may not be there"
    elif isinstance(value, str) and column.type in ("text", "timestamp"):
        if len(value) > longest:
            yield f".default: a text may have {longest:,} characters; this has {len(value):,}"
        if "\0" in value:
            yield ".default: it holds a NUL character, which no text has"
        if column.type == "timestamp" and not _is_moment(value):
            yield f".default: {value!r} is no moment such as 2026-03-01T12:00:00+00:00"
    elif isinstance(value, int | float) and column.type in ("integer", "real"):
        if abs(value) > LARGEST_INTEGER if column.type == "integer" else not _is_finite(value):
            yield f".default: {value!r} is too large"
    elif column.type == "json":
        yield from _json_default(column)


def _json_default(column: Column) -> Iterator[str]:
    try:
        text = canonical_json(column.default)
    except (TypeError, ValueError):
        yield ".default: it is not JSON (a date, NaN, or names of several types)"
        return
    if "\\u0000" in text.replace("\\\\", ""):
        yield ".default: it holds a NUL character, which no text has"
    schema = column.json_schema
    if schema is not None and not any(schema_faults(schema)):
        try:
            is_fitting = find_fault(schema, column.default) is None
        except PatternError as error:
            yield f".default: {error}"
        else:
            if not is_fitting:
                yield ".default: it does not fit the schema"


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer that no float can be
        return False


def _is_moment(value: str) -> bool:
    try:
        datetime.fromisoformat(value).astimezone(UTC)
    except (ValueError, OverflowError):
        return False
    return True


def _log(declaration: Declaration, log: str, told: dict[str, tuple[str, ...]]) -> Iterator[_Found]:
    """Yield why the workspace could not write into a log: said now, not when a step fails."""
    name = getattr(declaration.logs, log)
    table = declaration.tables.get(name or "")
    if table is None:
        return
    values: dict[str, Iterable[str]] = {
        "failure_type": _FAILURE_TYPES,
        "outcome": ("fail",),
        "agent_name": {agent.agent for phase in declaration.phases for agent in phase.agents},
        "phase": {phase.name for phase in declaration.phases},
    }
    values["flagged_by"] = {*values["agent_name"], "workspace"}
    # What no step wrote is flagged, too, and then there is no row that was worked on.
    worked_on = {phase.over for phase in declaration.phases} if log != "issues" else {None}
    for column_name, column in table.columns.items():
        here = ("tables", name, "columns", column_name)
        label = f"tables.{name}.columns.{column_name}: the workspace writes into this log"
        if column_name in told:
            missing = set(values.get(column_name, ())) - set(column.enum) if column.enum else set()
            if column.type not in told[column_name] or column.references is not None:
                yield here, f"{label}, and this must be {' or '.join(told[column_name])}"
            elif column.enum and (missing or column.type == "integer" or column_name not in values):
                yield here, f"{label}, and this enum lacks {', '.join(sorted(missing)) or 'what it may write'}"
            elif column.json_schema is not None and not _takes_texts(column.json_schema):
                yield here, f"{label} a list of texts, which this schema does not allow"
        elif column.required and column.default is None and {column.references} - {None} != worked_on:
            yield here, f"{label}, and has no value for this: do not require it, or give a default"


def _takes_texts(schema: dict[str, Any]) -> bool:
    if any(schema_faults(schema)) or any(find_refused_patterns(schema)):
        return True  # reported already, or checked when a text is written
    return find_fault(schema, []) is None and find_fault(schema, ["a"]) is None
