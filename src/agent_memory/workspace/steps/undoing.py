"""Taking back what steps wrote, forward: every change of theirs that still stands gets the value before it.

What others wrote since stays: a value is taken back only where it is still the one that the step set.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from agent_memory.workspace.database import STEPS, Entry, State, Transaction
from agent_memory.workspace.database.history import NOT_THERE, folded, in_parts, rows_changed, stored_row
from agent_memory.workspace.rows.duplicates import settle

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from agent_memory.workspace.declaration import Declaration

_RECKONED: frozenset[str] = frozenset({"ws_version", "updated_at", "created_at"})
"""What a change sets by itself."""


@dataclass(frozen=True, slots=True)
class Undone:
    """How many rows were set aside, and how many got values back."""

    aside: int = 0
    changed: int = 0


def undo(
    transaction: Transaction, declaration: Declaration, steps: Collection[str], attempts: Collection[int] | None = None
) -> Undone:
    """Take back what these steps wrote.

    Args:
        transaction: What it is part of.
        declaration: What is declared.
        steps: Names of steps.
        attempts: Of these attempts alone; of all where it is None.
    """
    history = transaction.schema.history
    theirs = [history.c.step.in_(list(steps)), history.c.tbl != STEPS]
    if attempts is not None:
        theirs.append(history.c.attempt.in_(list(attempts)))
    aside = changed = 0
    unsettled: dict[str, set[int]] = {}

    def is_theirs(entry: Entry) -> bool:
        return entry.step in steps and (attempts is None or entry.attempt in attempts)

    for (table, row_id), changes in rows_changed(transaction.connection, transaction.schema, *theirs).items():
        row = stored_row(transaction.connection, transaction.schema, table, row_id)
        inserted = is_theirs(changes[0])
        values, origins = (dict(NOT_THERE), {}) if inserted else _before(changes, is_theirs)
        if "ws_state" in values and not inserted:
            values.pop("ws_state")  # decided anew with all rows of the same value
            unsettled.setdefault(table, set()).add(row_id)
        if (
            not inserted
            and values.keys() & set(declaration.tables[table].unique_columns())
            and row["ws_state"] == State.SHOWN
        ):
            # Another row may have taken the value meanwhile, and one may wait for the value that is given up.
            values["ws_state"] = int(State.PROPOSAL)
            unsettled.setdefault(table, set()).update({row_id}, _rivals(transaction, declaration, table, row))
        if row["ws_state"] in (State.SHOWN, State.PROPOSAL) and inserted:
            unsettled.setdefault(table, set()).update(_rivals(transaction, declaration, table, row))
        if transaction.update(table, row, values, op="undo", origins=origins):
            aside += inserted
            changed += not inserted
    for table, ids in unsettled.items():
        settle(transaction, declaration, table, ids - _set_aside(transaction, table, ids))
    return Undone(aside, changed)


def _before(changes: Sequence[Entry], is_theirs: Any) -> tuple[dict[str, Any], dict[str, int]]:
    """Return the values, and their origins, that a row has without what was theirs; only those that differ."""
    by_seq = {entry.seq: entry for entry in changes}
    now = folded(changes)
    values: dict[str, Any] = {}
    origins: dict[str, int] = {}
    for name, origin in (now.origins if now else {}).items():
        if name in _RECKONED:
            continue
        seq = origin
        while (entry := by_seq.get(seq)) is not None and is_theirs(entry):
            earlier = folded(changes, seq - 1)
            seq = earlier.origins.get(name, 0) if earlier else 0
            values[name] = earlier.values.get(name) if earlier else None
        if name in values and seq:
            origins[name] = seq
    return values, origins


def _rivals(transaction: Transaction, declaration: Declaration, table: str, row: dict[str, Any]) -> set[int]:
    """Return the ids of proposals that may take the place of a row."""
    source = transaction.schema.declared[table]
    same = [source.c[name] == row[name] for name in declaration.tables[table].unique_columns() if row[name] is not None]
    if not same:
        return set()
    statement = sa.select(source.c.id).where(sa.or_(*same), source.c.ws_state == int(State.PROPOSAL))
    return set(transaction.connection.execute(statement).scalars()) - {row["id"]}


def _set_aside(transaction: Transaction, table: str, ids: set[int]) -> set[int]:
    source = transaction.schema.declared[table]
    found: set[int] = set()
    for some in in_parts(sorted(ids)):
        aside = sa.and_(source.c.id.in_(some), source.c.ws_state == int(State.ASIDE))
        found.update(transaction.connection.execute(sa.select(source.c.id).where(aside)).scalars())
    return found
