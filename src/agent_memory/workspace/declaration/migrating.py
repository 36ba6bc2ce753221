"""From one declaration to the next: what only adds is carried out; of anything else it is said why not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent_memory.errors import DeclarationError
from agent_memory.workspace.declaration.json_schemas import find_new_refused_patterns, find_refused_patterns
from agent_memory.workspace.declaration.model import OWN_COLUMNS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_memory.workspace.declaration.model import Column, Declaration, Table


@dataclass(frozen=True, slots=True)
class Additions:
    """What a new declaration adds: tables, and columns as (table, column)."""

    tables: tuple[str, ...] = ()
    columns: tuple[tuple[str, str], ...] = ()


def additions(old: Declaration, new: Declaration) -> Additions:
    """Return the tables and columns that `new` has and `old` has not.

    Phases, tools, files, indexes, descriptions and who may write may change as they like: no row depends on them.

    Raises:
        DeclarationError: Rows that are there might not fit the new one; the message has every reason.
    """
    reasons = list(_reasons(old, new))
    if reasons:
        raise DeclarationError(
            "The declaration was changed in a way that the rows there are might not fit:\n" + "\n".join(reasons),
            code="declaration_changed",
            recovery="Take these changes back, or export the workspace, begin a new one and import what fits.",
        )
    tables = tuple(name for name in new.tables if name not in old.tables)
    columns = tuple(
        (name, column)
        for name, table in new.tables.items()
        if name in old.tables
        for column in table.columns
        if column not in old.tables[name].columns and column not in OWN_COLUMNS  # which every table has already
    )
    return Additions(tables, columns)


def _reasons(old: Declaration, new: Declaration) -> Iterator[str]:
    yield from (f"- {column}: {reason}" for column, reason in find_new_refused_patterns(new, old))
    if old.workspace != new.workspace:
        yield f"- workspace: it was {old.workspace!r} and is {new.workspace!r} now"
    for name, table in old.tables.items():
        if name not in new.tables:
            yield f"- tables.{name} is gone; its rows would be lost"
        else:
            yield from _changes(name, table, new.tables[name])


def _changes(name: str, old: Table, new: Table) -> Iterator[str]:
    if old.kind != new.kind:
        yield f"- tables.{name}.kind: it was {old.kind} and is {new.kind} now"
    if old.key != new.key:
        yield f"- tables.{name}.key: rows were named by {old.key}, and would be by {new.key}"
    for column, was in old.columns.items():
        here = f"tables.{name}.columns.{column}"
        if column not in new.columns and column not in OWN_COLUMNS:
            yield f"- {here} is gone; its values would be lost"
        elif column in new.columns:
            yield from (f"- {here}: {reason}" for reason in _narrower(was, new.columns[column]))
    for column, added in new.columns.items():
        if column not in old.columns and added.required and added.default is None:
            yield f"- tables.{name}.columns.{column} is required, and rows that are there have no value: give a default"
        if column not in old.columns and added.unique:
            yield f"- tables.{name}.columns.{column} is unique; a column that is added later cannot be"


def _narrower(old: Column, new: Column) -> Iterator[str]:
    if old.type != new.type:
        yield f"it was {old.type} and is {new.type} now"
    if old.references != new.references:
        yield f"it referenced {old.references or 'nothing'}, and would {new.references or 'nothing'}"
    if new.required and not old.required:
        yield "it is required now, and rows may have no value"
    if new.unique != old.unique:
        yield "it is unique now, and rows may have the same value" if new.unique else "it was unique and is not now"
    if new.enum and not (old.enum and set(old.enum) <= set(new.enum)):
        gone = ", ".join(str(each) for each in old.enum if each not in new.enum)
        yield f"its enum no longer has {gone}" if old.enum else "it has an enum now, and rows may have other values"
    if new.json_schema not in (None, old.json_schema) and not any(find_refused_patterns(old.json_schema)):
        yield "its schema is another one, and values may not fit it"
