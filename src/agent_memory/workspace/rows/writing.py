"""The one way in which rows are added and changed: allowed, checked, cleaned, written, and written down."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from agent_memory.errors import ConflictError, NotAllowedError
from agent_memory.redaction import quoted
from agent_memory.workspace.database import State, Transaction
from agent_memory.workspace.database.history import stored_row
from agent_memory.workspace.rows.duplicates import is_taken
from agent_memory.workspace.rows.reading import Reading, owner_column

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_memory.workspace.declaration import Declaration, Table
    from agent_memory.workspace.rows.claim import Caller
    from agent_memory.workspace.rows.leases import Leases
    from agent_memory.workspace.rows.values import Values


@dataclass(frozen=True, slots=True)
class Saved:
    """What became of a row.

    Attributes:
        row_id: Its id.
        proposal: It is kept beside another row of the same unique value, which came first; so it is not shown.
        redacted: Kinds of secrets that were taken out of it.
        changed: Whether anything is different now.
    """

    row_id: int
    proposal: bool = False
    redacted: tuple[str, ...] = ()
    changed: bool = True


class Writing:
    """Writes rows of a workspace, within a transaction of the caller's."""

    def __init__(
        self, declaration: Declaration, values: Mapping[str, Values], reading: Reading, leases: Leases
    ) -> None:
        self._declaration = declaration
        self._values = values
        self._reading = reading
        self._leases = leases

    def save(self, transaction: Transaction, table: str, values: Mapping[str, Any], caller: Caller) -> Saved:
        """Add a row.

        Raises:
            ValidationError: A value does not fit.
            NotAllowedError: The caller may not write this table, or not rows that belong to others.
            LeaseError: The caller's claim has ended.
        """
        source, declared = self._reading.table(table), self._declaration.tables[table]
        self._allow(table, declared, values, caller)
        self._leases.check(transaction, caller.claim)
        if declared.kind == "singleton":
            return self.update(transaction, table, None, values, caller)
        encoded = self._values[table].encoded(self._with_owner(table, values, caller), whole=True)
        row = encoded.values | self._resolved(transaction, table, encoded.references, caller)
        claim = caller.claim
        of_step = claim is not None and claim.step is not None
        taken = is_taken(transaction, source, declared.unique_columns(), row)
        if of_step and claim is not None:
            row |= {
                "ws_step": claim.step,
                "ws_attempt": claim.attempt,
                "ws_ordinal": _next_ordinal(transaction, source, claim.step, claim.attempt),
                "ws_state": int(State.PENDING if taken is None else State.PENDING_PROPOSAL),
            }
        else:
            row["ws_state"] = int(State.SHOWN if taken is None else State.PROPOSAL)
        row_id = transaction.insert(table, row)
        return Saved(row_id, proposal=taken is not None, redacted=encoded.redacted)

    def update(
        self,
        transaction: Transaction,
        table: str,
        key: Any,
        values: Mapping[str, Any],
        caller: Caller,
        expected: Mapping[str, Any] | None = None,
    ) -> Saved:
        """Change columns of a row.

        Args:
            transaction: What it is part of.
            table: The table.
            key: Of the row, or its id where the table has no key.
            values: Column → value.
            caller: Who writes.
            expected: Column → value that it must still have.

        Raises:
            ValidationError: A value does not fit.
            RowNotFoundError: There is no such row.
            NotAllowedError: The caller may not write this, or the table is a log.
            ConflictError: A value is not the expected one any more.
            LeaseError: The caller's claim has ended, or another one holds the row.
        """
        source, declared = self._reading.table(table), self._declaration.tables[table]
        if declared.kind == "log":
            raise NotAllowedError(f"{table} is a log: its rows are added and never changed. Nothing was written.")
        self._allow(table, declared, values, caller)
        self._leases.check(transaction, caller.claim)
        row_id = self._reading.row_id(transaction.connection, table, key, caller)
        if declared.lock:
            self._leases.check_row(transaction, table, row_id, key, caller.claim)
        encoded = self._values[table].encoded(values, whole=False)
        row = encoded.values | self._resolved(transaction, table, encoded.references, caller)
        if expected:
            self._check_expected(transaction, table, key, expected, caller)
        others = [name for name in declared.unique_columns() if name in row]
        stored = stored_row(transaction.connection, transaction.schema, table, row_id)
        new = {name: row[name] for name in others if row[name] != stored[name]}
        if new and is_taken(transaction, source, new, new) is not None:
            raise ConflictError(
                f"Another row of {table} has this {' and this '.join(new)} already. Nothing was written.",
                recovery="Change that row, or choose another value.",
            )
        changed = transaction.update(table, stored, row)
        return Saved(row_id, redacted=encoded.redacted, changed=changed)

    def _allow(self, table: str, declared: Table, values: Mapping[str, Any], caller: Caller) -> None:
        if caller.agent is None:
            return
        if declared.write and caller.agent not in declared.write:
            raise _forbidden(f"{table} is written by {', '.join(declared.write)}", caller.agent)
        for name in values:
            column = declared.columns.get(name)
            if column is not None and column.write and caller.agent not in column.write:
                raise _forbidden(f"{table}.{name} is written by {', '.join(column.write)}", caller.agent)

    def _with_owner(self, table: str, values: Mapping[str, Any], caller: Caller) -> Mapping[str, Any]:
        """Return values with the row they belong to, where the caller's phase writes rows of its own alone."""
        claim = caller.claim
        if claim is None or claim.phase is None or claim.row_id is None:
            return values
        phase = self._declaration.phase(claim.phase)
        owner = owner_column(self._declaration, table, phase.over or "")
        if owner is None or phase.reads != "own":
            return values
        if values.get(owner) not in (None, claim.key):
            raise NotAllowedError(
                f"In phase {phase.name} each step writes rows of its own {phase.over} row alone: {owner} must be "
                f"{claim.key!r}, not {quoted(values[owner])}. Nothing was written."
            )
        return {**values, owner: claim.key}

    def _resolved(
        self, transaction: Transaction, table: str, references: Mapping[str, Any], caller: Caller
    ) -> dict[str, int]:
        """Return the ids of the rows that are referred to."""
        columns = self._declaration.tables[table].columns
        return {
            name: self._reading.row_id(
                transaction.connection, columns[name].references or "", value, caller, all_rows=True
            )
            for name, value in references.items()
        }

    def _check_expected(
        self, transaction: Transaction, table: str, key: Any, expected: Mapping[str, Any], caller: Caller
    ) -> None:
        now = self._reading.one(transaction.connection, table, key, caller, list(expected))
        other = [name for name, value in expected.items() if now[name] != value]
        if other:
            raise ConflictError(
                f"{table} {quoted(key)} was changed meanwhile: {', '.join(other)} is no longer what was expected. "
                "Nothing was written.",
                recovery="Read the row again and decide anew.",
            )


def _next_ordinal(transaction: Transaction, source: sa.Table, step: str | None, attempt: int) -> int:
    highest = sa.select(sa.func.coalesce(sa.func.max(source.c.ws_ordinal), 0))
    statement = highest.where(source.c.ws_step == step, source.c.ws_attempt == attempt)
    return int(transaction.connection.execute(statement).scalar_one()) + 1


def _forbidden(rule: str, agent: str) -> NotAllowedError:
    return NotAllowedError(f"{rule}, not by {quoted(agent)}. Nothing was written.")
