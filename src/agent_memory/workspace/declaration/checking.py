"""What a declaration must be beyond its shape: names that exist, references without a circle, values that fit."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

from agent_memory.workspace.declaration.limits import limits_of, schema_faults
from agent_memory.workspace.declaration.model import OWN_COLUMNS, Column, Declaration, Table
from agent_memory.workspace.declaration.tools import tool_faults

if TYPE_CHECKING:
    from collections.abc import Iterator

_Found = tuple[tuple[str | int, ...], str]
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


def faults_of(declaration: Declaration) -> Iterator[_Found]:
    """Yield the place and the fault of everything that is wrong."""
    for name, table in declaration.tables.items():
        yield from _table(declaration, name, table)
    yield from _circles(declaration)
    yield from _phases(declaration)
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
    yield from tool_faults(declaration)
    yield from limits_of(declaration)


def _table(declaration: Declaration, name: str, table: Table) -> Iterator[_Found]:
    here: tuple[str | int, ...] = ("tables", name)
    if name.startswith(_RESERVED):
        yield here, f"tables.{name}: names that begin with {_RESERVED} are the workspace's own"
    yield from _named_columns(name, table)
    if table.belongs_to in table.columns and table.columns[table.belongs_to].references is None:
        yield (*here, "belongs_to"), f"tables.{name}.belongs_to: {table.belongs_to} references no table"
    if table.kind != "rows" and table.lock:
        yield (*here, "lock"), f"tables.{name}.lock: only rows can be locked, not a {table.kind}"
    if table.kind == "singleton" and table.key:
        yield (*here, "key"), f"tables.{name}.key: a singleton is one row; it needs no key"
    for column_name, column in table.columns.items():
        yield from _column(declaration, name, column_name)
        yield from _column_values((*here, "columns", column_name), f"tables.{name}.columns.{column_name}", column)
        if table.kind == "singleton" and column.required and column.default is None:
            reason = "a singleton is there from the beginning: give a default, or do not require it"
            yield (*here, "columns", column_name), f"tables.{name}.columns.{column_name}: {reason}"


def _named_columns(name: str, table: Table) -> Iterator[_Found]:
    here: tuple[str | int, ...] = ("tables", name)
    known = list(table.columns)
    for field in ("key", "belongs_to"):
        named = getattr(table, field)
        if named is not None and named not in known:
            yield (*here, field), f"tables.{name}.{field}: no column {named!r}; there are {', '.join(table.columns)}"
    for field in ("search", "index"):
        for named in getattr(table, field):
            if named not in known:
                yield (*here, field), f"tables.{name}.{field}: no column {named!r}; there are {', '.join(known)}"
    for column in table.search:
        if column in known and table.columns[column].type not in ("text", "json"):
            yield (*here, "search"), f"tables.{name}.search: {column} is no text"


def _column(declaration: Declaration, table: str, name: str) -> Iterator[_Found]:
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
        yield from ((here, f"{label}: {reason}") for reason in _not_shown(declaration, table, column))


def _not_shown(declaration: Declaration, table: str, column: Column) -> Iterator[str]:
    """Yield why a column cannot show whether a phase is done."""
    phase = next((each for each in declaration.phases if each.name == column.done), None)
    if phase is None:
        yield f"done: {column.done!r} is no phase"
    elif phase.over not in (None, table):
        yield f"done: {column.done} works on rows of {phase.over}"
    elif phase.over is None and declaration.tables[table].kind == "log":
        yield "done: a log does not change"
    if column.type != "boolean" or column.required or column.unique or column.default is not None or column.write:
        yield "done: it is worked out, so it is a boolean and nothing else is said of it"


def _column_values(here: tuple[str | int, ...], label: str, column: Column) -> Iterator[_Found]:
    if column.json_schema is not None:
        if column.type != "json":
            yield here, f"{label}: only json columns have a schema"
        else:
            yield from ((here, f"{label}.schema: {each}") for each in schema_faults(column.json_schema))
    if column.enum and column.default is not None and column.default not in column.enum:
        yield here, f"{label}.default: {column.default!r} is not in the enum"
    fitting = _FITS.get(column.type)
    odd = isinstance(column.default, bool) and column.type != "boolean"
    if column.default is not None and fitting is not None and (odd or not isinstance(column.default, fitting)):
        yield here, f"{label}.default: {column.default!r} is no {column.type}"
    if column.enum and any(not isinstance(each, str if column.type == "text" else int) for each in column.enum):
        yield here, f"{label}.enum: a value is no {column.type}"


def _circles(declaration: Declaration) -> Iterator[_Found]:
    """Yield tables that must exist before themselves; a table may name its own rows, unless the column is required."""
    needs = {
        name: {c.references for c in table.columns.values() if c.references and (c.references != name or c.required)}
        for name, table in declaration.tables.items()
    }
    done: set[str] = set()
    for start in needs:
        path: list[str] = []
        found = _circle(start, needs, path, done)
        if found:
            yield ("tables", found[0]), f"tables reference each other in a circle: {' → '.join(found)}"
            return


def _circle(name: str, needs: dict[str, set[str]], path: list[str], done: set[str]) -> list[str]:
    if name in path:
        return [*path[path.index(name) :], name]
    if name in done:
        return []
    path.append(name)
    for inner in sorted(needs.get(name, ())):
        found = _circle(inner, needs, path, done)
        if found:
            return found
    path.pop()
    done.add(name)
    return []


def _phases(declaration: Declaration) -> Iterator[_Found]:
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
        agents = [each.agent for each in phase.agents]
        if len(set(agents)) != len(agents):
            yield here, f"phases.{phase.name}.agents: an agent stands here twice"
        for each in phase.agents:
            unknown = [one for one in each.produces if table is None or one not in table.columns]
            if unknown:
                yield (
                    here,
                    f"phases.{phase.name}: {each.agent} produces {unknown[0]!r}, which is no column of its table",
                )
        if phase.snapshot is not None and names.setdefault(phase.snapshot, number) != number:
            yield here, f"phases.{phase.name}.snapshot: another phase makes {phase.snapshot!r} already"
