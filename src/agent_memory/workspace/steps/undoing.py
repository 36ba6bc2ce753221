"""Taking back what steps wrote, forward: every change of theirs that still stands gets the value before it.

What others wrote since stays: a value is taken back only where it is still the one that the step set.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import sqlalchemy as sa

from agent_memory.workspace.database import STEPS, HistoryEntry, State, Transaction
from agent_memory.workspace.database.history import NOT_THERE, folded, in_parts, rows_changed, stored_row
from agent_memory.workspace.rows.duplicates import rivals, settle

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from agent_memory.workspace.declaration import Declaration

_Told: TypeAlias = Callable[[HistoryEntry], bool]
_RECKONED: frozenset[str] = frozenset({"ws_version", "updated_at", "created_at"})
"""What a change sets by itself."""


@dataclass(frozen=True, slots=True)
class UndoneStep:
    """How many rows were set aside, and how many got values back."""

    aside: int = 0
    changed: int = 0


def undo(
    transaction: Transaction, declaration: Declaration, steps: Collection[str], attempts: Collection[int] | None = None
) -> UndoneStep:
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
    standing = _standing(transaction)

    def is_theirs(entry: HistoryEntry) -> bool:
        return entry.step in steps and (attempts is None or entry.attempt in attempts)

    def is_void(entry: HistoryEntry) -> bool:
        return is_theirs(entry) or (entry.step is not None and (entry.step, entry.attempt) not in standing)

    for (table, row_id), changes in rows_changed(transaction.connection, transaction.schema, *theirs).items():
        row = stored_row(transaction.connection, transaction.schema, table, row_id)
        inserted = is_theirs(changes[0])
        values, origins = (dict(NOT_THERE), {}) if inserted else _before(changes, is_theirs, is_void)
        unsettled.setdefault(table, set()).update(
            _to_settle(transaction, declaration, table, row, values, inserted=inserted)
        )
        if transaction.update(table, row, values, op="undo", origins=origins):
            aside += inserted
            changed += not inserted
    for table, ids in unsettled.items():
        settle(transaction, declaration, table, ids - _set_aside(transaction, table, ids))
    return UndoneStep(aside, changed)


def _to_settle(
    transaction: Transaction,
    declaration: Declaration,
    table: str,
    row: Mapping[str, Any],
    values: dict[str, Any],
    *,
    inserted: bool,
) -> set[int]:
    """Return the ids of rows of which it is to be decided anew whether they are shown; `values` no longer says it."""
    unique = declaration.tables[table].unique_columns()
    found: set[int] = set()
    gives_up = inserted and row["ws_state"] in (State.SHOWN, State.PROPOSAL)
    if not inserted and "ws_state" in values:
        values.pop("ws_state")
        found.add(row["id"])
    if not inserted and values.keys() & set(unique) and row["ws_state"] == State.SHOWN:
        values["ws_state"] = int(State.PROPOSAL)  # until then: another row may have taken its value meanwhile
        found.add(row["id"])
        gives_up = True
    return found | (rivals(transaction, transaction.schema.declared[table], unique, row) if gives_up else set())


def _before(changes: Sequence[HistoryEntry], is_theirs: _Told, is_void: _Told) -> tuple[dict[str, Any], dict[str, int]]:
    """Return the values, and their origins, that a row has without what was theirs; only those that differ.

    What stood before theirs and was taken back in the meantime does not return with it.
    """
    by_seq = {entry.seq: entry for entry in changes}
    now = folded(changes)
    values: dict[str, Any] = {}
    origins: dict[str, int] = {}
    for name, origin in (now.origins if now else {}).items():
        if name in _RECKONED:
            continue
        seq = origin
        told = is_theirs
        while (entry := by_seq.get(seq)) is not None and told(entry):
            told = is_void
            earlier = folded(changes, seq - 1)
            seq = earlier.origins.get(name, 0) if earlier else 0
            values[name] = earlier.values.get(name) if earlier else None
        if name in values and seq:
            origins[name] = seq
    return values, origins


def _standing(transaction: Transaction) -> set[tuple[str, int | None]]:
    """Return the attempts at steps whose writes stand: those that are done, and the last one at each of the others."""
    steps, leases = transaction.schema.steps, transaction.schema.leases
    done = transaction.connection.execute(sa.select(steps.c.name, steps.c.done_attempt).where(steps.c.status == "done"))
    found = {(row.name, row.done_attempt) for row in done}
    held = leases.c.name.startswith("step:", autoescape=True) & leases.c.owner.is_not(None)
    claimed = transaction.connection.execute(sa.select(leases.c.name, leases.c.attempt).where(held))
    return found | {(row.name.removeprefix("step:"), row.attempt) for row in claimed}


def _set_aside(transaction: Transaction, table: str, ids: set[int]) -> set[int]:
    source = transaction.schema.declared[table]
    found: set[int] = set()
    for some in in_parts(sorted(ids)):
        aside = sa.and_(source.c.id.in_(some), source.c.ws_state == int(State.ASIDE))
        found.update(transaction.connection.execute(sa.select(source.c.id).where(aside)).scalars())
    return found
