"""JSON Schema of what tools take: keys, columns, mappings of columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_memory.workspace.declaration import Column, Declaration, Table

_KINDS: Final = {
    "text": {"type": "string"},
    "integer": {"type": "integer"},
    "real": {"type": "number"},
    "boolean": {"type": "boolean"},
    "json": {"description": "any JSON"},
    "timestamp": {"type": "string", "format": "date-time"},
    "file": {"type": "string", "description": "path of a file that is there, relative to the workspace's folder"},
}
LIMIT: Final = {
    "type": "integer", "minimum": 1, "maximum": 1000, "description": "at most so many rows", "x-count": True,
}  # fmt: skip
"""`x-count` marks what says how much to answer; it is not shown."""
OFFSET: Final = {"type": "integer", "minimum": 0, "description": "rows to leave out at the beginning", "x-count": True}
QUERY: Final = {"type": "string", "description": "words to look for; a row that has any of them is found"}
BEGIN: Final = {
    "type": "integer", "minimum": 0, "description": "begin texts at this character, to read on", "x-count": True,
}  # fmt: skip


def of_column(declaration: Declaration, column: Column) -> dict[str, Any]:
    """Return what an argument for a column must be."""
    schema: dict[str, Any] = dict(_KINDS[column.type])
    own = column.json_schema
    if own is not None:
        # Pointers inside it would lead elsewhere from here; the value is checked against all of it when written.
        schema = {"type": own["type"]} if "$ref" in str(own) and isinstance(own.get("type"), str) else dict(own)
        if not isinstance(schema.get("type"), str):
            schema.pop("type", None)
    if column.enum:
        schema["enum"] = list(column.enum)
    said = [column.description or schema.get("description", "")]
    if column.references is not None:
        said.append(f"{declaration.tables[column.references].key or 'id'} of a row of {column.references}")
    text = "; ".join(each for each in said if each)
    return {**schema, "description": text} if text else schema


def of_key(declaration: Declaration, table: str) -> dict[str, Any]:
    """Return what names a row of a table."""
    declared = declaration.tables[table]
    if declared.key is None:
        return {"type": "integer", "description": f"id of a row of {table}"}
    kind = _KINDS[declared.columns[declared.key].type]["type"]
    return {"type": kind, "description": f"{declared.key} of a row of {table}"}


def of_names(table: Table) -> dict[str, Any]:
    """Return what a choice of columns to answer is."""
    return {
        "type": "array",
        "items": {"type": "string", "enum": ["id", *table.columns]},
        "description": "columns to answer; all when left out",
    }


def of_values(declaration: Declaration, table: str, names: Iterable[str], said: str) -> dict[str, Any]:
    """Return what a mapping of columns to values is."""
    columns = declaration.tables[table].columns
    properties = {name: of_column(declaration, columns[name]) for name in names}
    return {"type": "object", "properties": properties, "additionalProperties": False, "description": said}
