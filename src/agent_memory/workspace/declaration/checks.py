"""Checks of a declaration beyond its shape.

Names must exist, references must not form a circle, and nothing may be declared that a database, JSON Schema or a file
system refuses later, when rows exist.
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
    ROW_TOOLS,
    STEP_TOOLS,
    Column,
    Declaration,
    Table,
    ToolSpec,
    canonical_json,
    is_snapshot_name,
    list_tool_names,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_LocatedFault = tuple[tuple[str | int, ...], str]
_RESERVED: Final = "ws_"
_FITS: Final[dict[str, type | tuple[type, ...]]] = {
    "text": str,
    "integer": int,
    "real": (int, float),
    "boolean": bool,
    "timestamp": str,
    "file": str,
}
_TIMES: Final = OWN_COLUMNS - {"id"}
_MAX_COLUMNS: Final = 1_000
"""Columns of a table: SQLite allows 2,000 (https://sqlite.org/limits.html), PostgreSQL at most 1,600."""
_MAX_SEARCHED: Final = 32
"""Searched columns: PostgreSQL stores the definition of an index in one row of 8 kB."""
_SYSTEM_COLUMNS: Final = frozenset({"ctid", "xmin", "xmax", "cmin", "cmax", "tableoid"})
"""https://www.postgresql.org/docs/current/ddl-system-columns.html"""
_NO_WORDS: Final = frozenset({"rank", "rowid"})
"""Names of columns that FTS5 keeps for itself (https://sqlite.org/fts5.html)."""
_KEYS: Final = ("text", "integer")
_SNAPSHOT_BYTES: Final = 80
"""Bytes of a declared name of a snapshot; file names add `before-`, `@2` and `.db`."""
_TRIED: Final[tuple[Any, ...]] = (None, True, 1, "a", [], ["a"], {}, {"a": 1})
_FAILURE_TYPES: Final = ("transient", "validation", "quality")
_LOG_COLUMNS: Final[dict[str, dict[str, tuple[str, ...]]]] = {
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
"""Columns that the workspace writes into its logs, and their types."""


def find_limit_faults(declaration: Declaration) -> Iterator[_LocatedFault]:
    """Yield place and text of each fault that would occur later."""
    if declaration.workspace.startswith("pg_") or declaration.workspace == "information_schema":
        yield ("workspace",), f"workspace: {declaration.workspace!r} is a name that PostgreSQL keeps for itself"
    for name, table in declaration.tables.items():
        yield from _check_table_limits(name, table)
        for column_name, column in table.columns.items():
            here = ("tables", name, "columns", column_name)
            longest = MAX_UNIQUE_CHARS if column_name in table.unique_columns() else MAX_TEXT_CHARS
            for fault in (*_check_column_limits(table, column_name, column), *_check_default(column, longest)):
                yield here, f"tables.{name}.columns.{column_name}{fault}"
    yield from _check_file_names(declaration)
    for log, column_types in _LOG_COLUMNS.items():
        yield from _check_log(declaration, log, column_types)


def _check_file_names(declaration: Declaration) -> Iterator[_LocatedFault]:
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


def find_schema_faults(schema: dict[str, Any]) -> Iterator[str]:
    """Yield the faults of a JSON Schema: form, references, patterns."""
    try:
        canonical_json(schema)
        check_schema(schema)
    except (TypeError, ValueError):
        yield "it holds a value that JSON has not (a date, NaN, or names of several types)"
        return
    except jsonschema.SchemaError as error:
        yield error.message
        return
    named = list(_iter_names(schema, ("$ref", "$dynamicRef", "$recursiveRef")))
    if any(not reference.startswith("#") for reference in named):
        yield "$ref may only name a part of the same schema (#/…): nothing is fetched"
        return
    if any(_iter_names(schema, ("$id",))):
        yield "$id is not read: a schema stands in the declaration alone"
        return
    resolver = Registry[Any]().resolver_with_root(DRAFT202012.create_resource(schema))
    try:
        for reference in named:
            resolver.lookup(reference)
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


def _iter_names(value: Any, keywords: tuple[str, ...]) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            if key in keywords and isinstance(inner, str):
                yield inner
            yield from _iter_names(inner, keywords)
    elif isinstance(value, list):
        for inner in value:
            yield from _iter_names(inner, keywords)


def _check_table_limits(name: str, table: Table) -> Iterator[_LocatedFault]:
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
    for column_name in table.search:
        column = table.columns.get(column_name)
        if column_name in _NO_WORDS:
            yield (*here, "search"), f"tables.{name}.search: SQLite searches no column called {column_name}"
        elif column is not None and column.references is not None:
            yield (*here, "search"), f"tables.{name}.search: {column_name} is a reference; it has no words of its own"


def _check_column_limits(table: Table, name: str, column: Column) -> Iterator[str]:
    if name in _SYSTEM_COLUMNS:
        yield ": PostgreSQL keeps this name for itself"
    if column.unique and (column.type in ("json", "boolean") or name in OWN_COLUMNS):
        yield ".unique: only texts, numbers and references can be unique"
    if column.enum and column.references is not None:
        yield ".enum: a reference is one of the rows of its table"
    if table.kind == "log" and column.unique:
        yield ".unique: a log keeps every row"


def _check_default(column: Column, longest: int) -> Iterator[str]:
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
        yield from _check_json_default(column)


def _check_json_default(column: Column) -> Iterator[str]:
    try:
        text = canonical_json(column.default)
    except (TypeError, ValueError):
        yield ".default: it is not JSON (a date, NaN, or names of several types)"
        return
    if "\\u0000" in text.replace("\\\\", ""):
        yield ".default: it holds a NUL character, which no text has"
    schema = column.json_schema
    if schema is not None and not any(find_schema_faults(schema)):
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


def _check_log(declaration: Declaration, log: str, column_types: dict[str, tuple[str, ...]]) -> Iterator[_LocatedFault]:
    """Yield faults of a log that the workspace could not write."""
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
    # Rows that no step wrote are flagged, too; they have no row of a phase.
    worked_on = {phase.over for phase in declaration.phases} if log != "issues" else {None}
    for column_name, column in table.columns.items():
        here = ("tables", name, "columns", column_name)
        label = f"tables.{name}.columns.{column_name}: the workspace writes into this log"
        if column_name in column_types:
            missing = set(values.get(column_name, ())) - set(column.enum) if column.enum else set()
            if column.type not in column_types[column_name] or column.references is not None:
                yield here, f"{label}, and this must be {' or '.join(column_types[column_name])}"
            elif column.enum and (missing or column.type == "integer" or column_name not in values):
                yield here, f"{label}, and this enum lacks {', '.join(sorted(missing)) or 'what it may write'}"
            elif column.json_schema is not None and not _allows_texts(column.json_schema):
                yield here, f"{label} a list of texts, which this schema does not allow"
        elif column.required and column.default is None and {column.references} - {None} != worked_on:
            yield here, f"{label}, and has no value for this: do not require it, or give a default"


def _allows_texts(schema: dict[str, Any]) -> bool:
    if any(find_schema_faults(schema)) or any(find_refused_patterns(schema)):
        return True  # reported already, or checked when a text is written
    return find_fault(schema, []) is None and find_fault(schema, ["a"]) is None


def find_faults(declaration: Declaration) -> Iterator[_LocatedFault]:
    """Yield place and text of each fault."""
    for name, table in declaration.tables.items():
        yield from _check_table(declaration, name, table)
    yield from _find_circles(declaration)
    yield from _check_phases(declaration)
    for name in ("retries", "validations"):
        log = getattr(declaration.logs, name)
        if log is not None and (log not in declaration.tables or declaration.tables[log].kind != "log"):
            yield ("logs", name), f"logs.{name}: {log!r} is no table of kind log"
    flags = declaration.tables.get(declaration.logs.issues or "")
    if declaration.logs.issues is not None and (flags is None or flags.kind == "singleton" or flags.unique_columns()):
        reason = f"{declaration.logs.issues!r} is no table of kind rows or log without a key and unique columns"
        yield ("logs", "issues"), f"logs.issues: {reason}"
    for name, pattern in declaration.files.items():
        parts = PurePosixPath(pattern).parts
        if not parts or pattern.startswith(("/", "~")) or ".." in parts or "\\" in pattern:
            yield ("files", name), f"files.{name}: a pattern stays inside the workspace: no /, ~ or .. at its beginning"
        elif parts[0].startswith("."):
            yield ("files", name), f"files.{name}: folders that begin with a dot are not the workspace's"
    yield from find_tool_faults(declaration)
    yield from find_limit_faults(declaration)


def _check_table(declaration: Declaration, name: str, table: Table) -> Iterator[_LocatedFault]:
    here: tuple[str | int, ...] = ("tables", name)
    if name.startswith(_RESERVED):
        yield here, f"tables.{name}: names that begin with {_RESERVED} are the workspace's own"
    yield from _check_named_columns(name, table)
    if table.belongs_to in table.columns and table.columns[table.belongs_to].references is None:
        yield (*here, "belongs_to"), f"tables.{name}.belongs_to: {table.belongs_to} references no table"
    if table.kind != "rows" and table.lock:
        yield (*here, "lock"), f"tables.{name}.lock: only rows can be locked, not a {table.kind}"
    if table.kind == "singleton" and table.key:
        yield (*here, "key"), f"tables.{name}.key: a singleton is one row; it needs no key"
    for column_name, column in table.columns.items():
        yield from _check_column(declaration, name, column_name)
        yield from _check_column_values((*here, "columns", column_name), f"tables.{name}.columns.{column_name}", column)
        if table.kind == "singleton" and column.required and column.default is None:
            reason = "a singleton is there from the beginning: give a default, or do not require it"
            yield (*here, "columns", column_name), f"tables.{name}.columns.{column_name}: {reason}"


def _check_named_columns(name: str, table: Table) -> Iterator[_LocatedFault]:
    here: tuple[str | int, ...] = ("tables", name)
    columns = list(table.columns)
    for field in ("key", "belongs_to"):
        named = getattr(table, field)
        if named is not None and named not in columns:
            yield (*here, field), f"tables.{name}.{field}: no column {named!r}; there are {', '.join(table.columns)}"
    for field in ("search", "index"):
        for named in getattr(table, field):
            if named not in columns:
                yield (*here, field), f"tables.{name}.{field}: no column {named!r}; there are {', '.join(columns)}"
    for column in table.search:
        if column in columns and table.columns[column].type not in ("text", "json"):
            yield (*here, "search"), f"tables.{name}.search: {column} is no text"


def _check_column(declaration: Declaration, table: str, name: str) -> Iterator[_LocatedFault]:
    column = declaration.tables[table].columns[name]
    here: tuple[str | int, ...] = ("tables", table, "columns", name)
    label = f"tables.{table}.columns.{name}"
    if name == "id" or name.startswith(_RESERVED):
        yield here, f"{label}: this name is the workspace's own"
    if name in _TIMES and column.type != "timestamp":
        yield here, f"{label}: it is set by the workspace; declare it as a timestamp, or leave it out"
    if column.references is not None and column.references not in declaration.tables:
        yield here, f"{label}: references {column.references!r}, which is no table"
    if column.references is not None and column.type not in ("integer", "text"):
        yield here, f"{label}: a reference is an integer or a text"
    if column.enum and column.type not in ("text", "integer"):
        yield here, f"{label}: only text and integers have an enum"
    if column.done is not None:
        yield from ((here, f"{label}: {reason}") for reason in _find_done_faults(declaration, table, column))


def _find_done_faults(declaration: Declaration, table: str, column: Column) -> Iterator[str]:
    """Yield reasons why a column cannot show a finished phase."""
    phase = next((item for item in declaration.phases if item.name == column.done), None)
    if phase is None:
        yield f"done: {column.done!r} is no phase"
    elif phase.over not in (None, table):
        yield f"done: {column.done} works on rows of {phase.over}"
    elif phase.over is None and declaration.tables[table].kind == "log":
        yield "done: a log does not change"
    if column.type != "boolean" or column.required or column.unique or column.default is not None or column.write:
        yield "done: it is worked out, so it is a boolean and nothing else is said of it"


def _check_column_values(here: tuple[str | int, ...], label: str, column: Column) -> Iterator[_LocatedFault]:
    if column.json_schema is not None:
        if column.type != "json":
            yield here, f"{label}: only json columns have a schema"
        else:
            yield from ((here, f"{label}.schema: {item}") for item in find_schema_faults(column.json_schema))
    if column.enum and column.default is not None and column.default not in column.enum:
        yield here, f"{label}.default: {column.default!r} is not in the enum"
    fitting = _FITS.get(column.type)
    odd = isinstance(column.default, bool) and column.type != "boolean"
    if column.default is not None and fitting is not None and (odd or not isinstance(column.default, fitting)):
        yield here, f"{label}.default: {column.default!r} is no {column.type}"
    if column.enum and any(not isinstance(item, str if column.type == "text" else int) for item in column.enum):
        yield here, f"{label}.enum: a value is no {column.type}"


def _find_circles(declaration: Declaration) -> Iterator[_LocatedFault]:
    """Yield tables that reference themselves through others.

    A table may reference its own rows, unless the column is required.
    """
    needs = {
        name: {c.references for c in table.columns.values() if c.references and (c.references != name or c.required)}
        for name, table in declaration.tables.items()
    }
    done: set[str] = set()
    for start in needs:
        path: list[str] = []
        circle = _find_circle(start, needs, path, done)
        if circle:
            yield ("tables", circle[0]), f"tables reference each other in a circle: {' → '.join(circle)}"
            return


def _find_circle(name: str, needs: dict[str, set[str]], path: list[str], done: set[str]) -> list[str]:
    if name in path:
        return [*path[path.index(name) :], name]
    if name in done:
        return []
    path.append(name)
    for inner in sorted(needs.get(name, ())):
        circle = _find_circle(inner, needs, path, done)
        if circle:
            return circle
    path.pop()
    done.add(name)
    return []


def _check_phases(declaration: Declaration) -> Iterator[_LocatedFault]:
    names: dict[str, int] = {}
    for number, phase in enumerate(declaration.phases):
        here: tuple[str | int, ...] = ("phases", number)
        table = declaration.tables.get(phase.over or "")
        if phase.over is not None and table is None:
            yield here, f"phases.{phase.name}.over: {phase.over!r} is no table"
        elif table is not None and (table.kind != "rows" or table.key is None):
            yield (
                here,
                f"phases.{phase.name}.over: {phase.over} needs kind rows and a key, by which its steps are named",
            )
        if phase.over is None and (phase.order == "in_order" or phase.reads != "all" or phase.after == "row"):
            yield here, f"phases.{phase.name}: order, reads and after need `over`, a table whose rows are worked on"
        agents = [phase_agent.agent for phase_agent in phase.agents]
        if len(set(agents)) != len(agents):
            yield here, f"phases.{phase.name}.agents: an agent stands here twice"
        for phase_agent in phase.agents:
            unknown = [name for name in phase_agent.produces if table is None or name not in table.columns]
            if unknown:
                fault = f"{phase_agent.agent} produces {unknown[0]!r}, which is no column of its table"
                yield here, f"phases.{phase.name}: {fault}"
        if phase.snapshot is not None and names.setdefault(phase.snapshot, number) != number:
            yield here, f"phases.{phase.name}.snapshot: another phase makes {phase.snapshot!r} already"


_WRITING: Final = ("save", "update", "log")


def find_tool_faults(declaration: Declaration) -> Iterator[_LocatedFault]:
    """Yield place and text of each fault of the tools."""
    taken = dict.fromkeys((*STEP_TOOLS, *ROW_TOOLS), "every workspace")
    for name, table in declaration.tables.items():
        for tool in list_tool_names(name, table):
            if tool in taken:
                reason = f"its tool {tool} would be called as one of {taken[tool]}; say `one:`, what one row is called"
                yield ("tables", name), f"tables.{name}: {reason}"
            taken[tool] = name
    for name, spec in declaration.tools.items():
        here: tuple[str | int, ...] = ("tools", name)
        if name in (*STEP_TOOLS, *ROW_TOOLS):
            yield here, f"tools.{name}: every workspace has a tool of this name"
        if spec.table not in declaration.tables:
            yield (*here, "table"), f"tools.{name}.table: {spec.table!r} is no table"
        else:
            yield from (
                (here, f"tools.{name}: {reason}") for reason in _check_tool(spec, declaration.tables[spec.table])
            )


def _check_tool(tool: ToolSpec, table: Table) -> Iterator[str]:
    read = {*tool.where, *tool.columns, *((tool.filled,) if tool.filled else ())}
    unknown = sorted(read - set(table.columns) - OWN_COLUMNS)
    unknown += sorted({*tool.arguments, *tool.constants} - set(table.written_columns()))
    if unknown:
        yield f"{tool.table} has no column {unknown[0]!r} for this"
    if tool.operation == "search" and not table.search:
        yield f"{tool.table} declares no columns to search"
    if (tool.operation == "log") != (table.kind == "log") and tool.operation in _WRITING:
        yield f"{tool.table} is {'a' if table.kind == 'log' else 'no'} log: its rows are {_describe_writing(table)}"
    yield from _check_row_tool(tool, table)
    arguments = [argument for argument in (tool.key, tool.item, tool.field, tool.fields) if argument]
    arguments += [*tool.where.values(), *tool.arguments.values(), *([tool.value_argument] if tool.field else [])]
    twice = sorted({argument for argument in arguments if arguments.count(argument) > 1})
    if twice:
        yield f"two arguments are called {twice[0]!r}"
    missing = sorted(set(tool.optional) - set(arguments))
    if missing:
        yield f"optional: there is no argument {missing[0]!r}"


def _check_row_tool(tool: ToolSpec, table: Table) -> Iterator[str]:
    one_row = tool.operation in ("get", "update", "ending")
    names_row = tool.key is not None or tool.value is not None
    if one_row and not names_row and table.kind != "singleton":
        yield "it needs `key`, the argument that names the row, or `value`, the row's key"
    if not one_row and names_row:
        yield f"key and value name one row, which {tool.operation} does not take"
    if tool.value is not None and (
        tool.key is not None or table.key is None or table.columns[table.key].type != "text"
    ):
        yield "value is the key of a row where the key is a text and no argument names it"
    if tool.bare and len(tool.columns) != 1:
        yield "a bare answer is that of one column"
    lists = [name for name in tool.columns if name in table.columns and table.columns[name].type == "json"]
    if tool.operation == "ending" and not (
        tool.item and tool.key and len(lists) == len(tool.columns) == 1 and table.key
    ):
        yield "an ending needs `key`, `item` and one column of type json, of a table with a key"
    writes = tool.arguments or tool.constants or tool.field or tool.fields
    if tool.operation in _WRITING and not writes:
        yield "it writes nothing: name arguments, field, fields or constants"
    if tool.operation not in _WRITING and writes:
        yield f"arguments, field, fields and constants are written, and {tool.operation} only reads"
    if tool.operation != "list" and (tool.where or tool.filled):
        yield "where and filled choose the rows of a list"


def _describe_writing(table: Table) -> str:
    return (
        "added with `log` and never changed" if table.kind == "log" else "added with `save` and changed with `update`"
    )
