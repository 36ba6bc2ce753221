"""Columns as they are selected: those that are kept, and those that show whether a phase is done."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

if TYPE_CHECKING:
    from agent_memory.workspace.database import Schema
    from agent_memory.workspace.declaration import Declaration, Table


def column_of(declaration: Declaration, schema: Schema, table: str, name: str) -> sa.ColumnElement[Any]:
    """Return a column of a table; 1 or 0 for one that shows whether all steps of a phase are done for the row."""
    source, declared = schema.declared[table], declaration.tables[table]
    column = declared.columns.get(name)
    if column is None or column.done is None:
        return source.c[name]
    phase, steps = declaration.phase(column.done), schema.steps
    key: sa.ColumnElement[str] = sa.literal("")
    if phase.over is not None:
        key = sa.cast(source.c[declared.key or "id"], sa.String)
    names = [sa.literal(f"{phase.name}/{each.agent}/").concat(key) for each in phase.agents]
    done = sa.select(sa.func.count()).select_from(steps).where(steps.c.name.in_(names), steps.c.status == "done")
    return sa.case((done.scalar_subquery() == len(names), 1), else_=0)


def columns_of(table: Table) -> list[str]:
    """Return the names of the columns of a whole row, as it is shown."""
    return ["id", *table.columns, *(("created_at",) if "created_at" not in table.columns else ())]
