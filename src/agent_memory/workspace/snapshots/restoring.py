"""Restoring: what was changed after a snapshot gets the values it had then, as new changes. Nothing is cut off."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import sqlalchemy as sa

from agent_memory.workspace.database import STEPS, HistoryEntry, State, Transaction
from agent_memory.workspace.database.history import NOT_THERE, FoldedRow, folded, rows_changed, stored_row

if TYPE_CHECKING:
    from agent_memory.workspace.declaration import Declaration

_NEVER: Final = frozenset({"ws_version", "created_at", "updated_at"})
_STEP_NOT_THERE: Final[dict[str, Any]] = {
    "status": "open",
    "done_attempt": None,
    "failures": 0,
    "message": None,
    "ws_trust": None,
}


def restore_rows(transaction: Transaction, declaration: Declaration, seq: int) -> int:
    """Give all rows the values that they had after the change `seq`; return how many are different now."""
    history = transaction.schema.history
    changed = rows_changed(transaction.connection, transaction.schema, history.c.seq > seq)
    work = [(table, row_id, *_then(declaration, changes, seq, table)) for (table, row_id), changes in changed.items()]
    out_of_the_way = _set_aside(transaction, declaration, work)
    count = 0
    for table, row_id, values, origins in work:
        stored = stored_row(transaction.connection, transaction.schema, table, row_id)
        before = stored | ({"ws_state": int(State.SHOWN)} if (table, row_id) in out_of_the_way else {})
        count += transaction.update(table, before, values, op="restore", origins=origins)
        if (table, row_id) in out_of_the_way and values.get("ws_state") == State.SHOWN:
            source = transaction.schema.declared[table]
            shown = sa.update(source).where(source.c.id == row_id).values(ws_state=int(State.SHOWN))
            transaction.connection.execute(shown)
    return count


def _then(
    declaration: Declaration, changes: list[HistoryEntry], seq: int, table: str
) -> tuple[dict[str, Any], dict[str, int]]:
    """Return the values that a row had, and their origins; of a singleton that was not there yet: its first ones."""
    then = folded(changes, seq)
    if then is None and table != STEPS and declaration.tables[table].kind == "singleton":
        then = folded(changes, changes[0].seq)
    if then is None:
        return (dict(_STEP_NOT_THERE) if table == STEPS else dict(NOT_THERE)), {}
    now = folded(changes) or FoldedRow()
    values = {name: then.values.get(name) for name in now.values if name not in _NEVER}
    return values, {name: then.origins[name] for name in values if name in then.origins}


def _set_aside(
    transaction: Transaction,
    declaration: Declaration,
    work: list[tuple[str, int, dict[str, Any], dict[str, int]]],
) -> set[tuple[str, int]]:
    """Take shown rows of tables with unique columns out of the way: on its way back a value may be there twice."""
    moved: set[tuple[str, int]] = set()
    by_table: dict[str, list[int]] = {}
    for table, row_id, _, _ in work:
        if table != STEPS and declaration.tables[table].unique_columns():
            by_table.setdefault(table, []).append(row_id)
    for table, ids in by_table.items():
        source = transaction.schema.declared[table]
        for start in range(0, len(ids), 500):
            some = source.c.id.in_(ids[start : start + 500])
            shown = sa.and_(some, source.c.ws_state == int(State.SHOWN))
            found = transaction.connection.execute(sa.select(source.c.id).where(shown)).scalars()
            moved.update((table, row_id) for row_id in found)
            aside = sa.update(source).where(shown).values(ws_state=int(State.ASIDE))
            transaction.connection.execute(aside)
    return moved
