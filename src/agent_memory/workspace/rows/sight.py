"""What a caller sees: rows that are shown, those of its own attempt, and of others what its phase reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

from agent_memory.workspace.database import Schema, State

if TYPE_CHECKING:
    from agent_memory.workspace.declaration import Declaration
    from agent_memory.workspace.rows.claim import Caller


def seen_by(declaration: Declaration, schema: Schema, table: str, caller: Caller) -> sa.ColumnElement[bool]:
    """Return the condition that holds for rows that the caller sees."""
    return sa.and_(shown_to(schema.declared[table], caller), within_reach(declaration, schema, table, caller))


def within_reach(declaration: Declaration, schema: Schema, table: str, caller: Caller) -> sa.ColumnElement[bool]:
    """Return the condition that holds for rows, shown or not, of what the phase of the caller reads."""
    source, claim = schema.declared[table], caller.claim
    if claim is None or claim.phase is None or claim.row_id is None:
        return sa.true()
    phase = declaration.phase(claim.phase)
    if phase.reads == "all" or phase.over is None:
        return sa.true()
    over = schema.declared[phase.over]
    key = declaration.tables[phase.over].key or "id"
    if table == phase.over:
        earlier: sa.ColumnElement[bool] = source.c[key] <= claim.key
        return source.c.id == claim.row_id if phase.reads == "own" else earlier
    owner = owner_column(declaration, table, phase.over)
    if owner is None:
        return sa.true()
    belongs = source.c[owner] == claim.row_id
    if phase.reads == "earlier":
        belongs = source.c[owner].in_(sa.select(over.c.id).where(over.c[key] <= claim.key))
    return sa.or_(belongs, source.c[owner].is_(None))


def owner_column(declaration: Declaration, table: str, over: str) -> str | None:
    """Return the column that says to which row of `over` a row of `table` belongs; None where it belongs to none."""
    declared = declaration.tables[table]
    candidates = [name for name, column in declared.columns.items() if column.references == over]
    return declared.belongs_to if declared.belongs_to in candidates else next(iter(candidates), None)


def shown_to(source: sa.Table, caller: Caller) -> sa.ColumnElement[bool]:
    """Return the condition that holds for rows that are shown, and those of the caller's own attempt."""
    shown = source.c.ws_state == int(State.SHOWN)
    claim = caller.claim
    if claim is None or claim.step is None:
        return shown
    own = sa.and_(source.c.ws_state == int(State.PENDING), source.c.ws_step == claim.step)
    return sa.or_(shown, sa.and_(own, source.c.ws_attempt == claim.attempt))


def pending_in(connection: sa.Connection, source: sa.Table) -> int:
    """Return how many rows of a table are of attempts that are not finished."""
    states = (int(State.PENDING), int(State.PENDING_PROPOSAL))
    counted = sa.select(sa.func.count()).select_from(source).where(source.c.ws_state.in_(states))
    return int(connection.execute(counted).scalar_one())
