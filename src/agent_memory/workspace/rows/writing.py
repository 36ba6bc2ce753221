"""The one way in which rows are added and changed: allowed, checked, cleaned, written, and written down."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from agent_memory.errors import ConflictError, NotAllowedError, ValidationError
from agent_memory.redaction import quoted
from agent_memory.workspace.database import State, Transaction
from agent_memory.workspace.rows.duplicates import get_unique_key, is_taken, rivals, settle
from agent_memory.workspace.rows.sight import owner_column

if TYPE_CHECKING:
    from agent_memory.workspace.declaration import Declaration, Table
    from agent_memory.workspace.rows.claim import Caller
    from agent_memory.workspace.rows.leases import Leases
    from agent_memory.workspace.rows.reading import RowReading
    from agent_memory.workspace.rows.values import Encoded, Values


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


@dataclass(frozen=True, slots=True)
class Prepared:
    """Values that may be written: checked and cleaned."""

    table: str
    encoded: Encoded
    caller: Caller


class Writing:
    """Writes rows of a workspace, within a transaction of the caller's."""

    def __init__(
        self, declaration: Declaration, values: Mapping[str, Values], reading: RowReading, leases: Leases
    ) -> None:
        self._declaration = declaration
        self._values = values
        self._reading = reading
        self._leases = leases

    def prepare(self, table: str, values: Mapping[str, Any], caller: Caller, *, whole: bool) -> Prepared:
        """Check and clean values, which takes most of the time of a write and no turn at the database.

        Args:
            table: The table.
            values: Column → value.
            caller: Who writes.
            whole: They are a new row, not changes of one.

        Raises:
            ValidationError: A value does not fit.
            NotAllowedError: The caller may not write this.
        """
        self._reading.table(table)
        declared = self._declaration.tables[table]
        if not isinstance(values, Mapping):
            raise ValidationError("A row is written as columns with their values. Nothing was written.", code="invalid")
        if not whole and declared.kind == "log":
            raise NotAllowedError(f"{table} is a log: its rows are added and never changed. Nothing was written.")
        self._allow(table, declared, values, caller)
        given = self._with_owner(table, values, caller, whole=whole)
        return Prepared(table, self._values[table].encoded(given, whole=whole), caller)

    def add(self, transaction: Transaction, prepared: Prepared) -> Saved:
        """Add a row.

        Raises:
            RowNotFoundError: A row that it refers to is not there.
            LeaseError: The caller's claim has ended.
        """
        table, caller, claim = prepared.table, prepared.caller, prepared.caller.claim
        source, declared = self._reading.table(table), self._declaration.tables[table]
        self._leases.check(transaction, claim)
        row = prepared.encoded.values | self._resolved(transaction, table, prepared.encoded.references, caller)
        taken = is_taken(transaction, source, declared.unique_columns(), row)
        if claim is not None and claim.step is not None:
            row |= {
                "ws_step": claim.step,
                "ws_attempt": claim.attempt,
                "ws_ordinal": _next_ordinal(transaction, source, claim.step, claim.attempt),
                "ws_state": int(State.PENDING if taken is None else State.PENDING_PROPOSAL),
            }
        else:
            row["ws_state"] = int(State.SHOWN if taken is None else State.PROPOSAL)
        row_id = transaction.insert(table, row)
        return Saved(row_id, proposal=taken is not None, redacted=prepared.encoded.redacted)

    def change(
        self, transaction: Transaction, key: Any, prepared: Prepared, expected: Mapping[str, Any] | None = None
    ) -> Saved:
        """Change columns of a row.

        Args:
            transaction: What it is part of.
            key: Of the row, or its id where the table has no key.
            prepared: What it gets.
            expected: Column → value that it must still have.

        Raises:
            RowNotFoundError: There is no such row.
            ConflictError: A value is not the expected one any more, or is another row's.
            LeaseError: The caller's claim has ended, or another one holds the row.
        """
        table, caller = prepared.table, prepared.caller
        source, declared = self._reading.table(table), self._declaration.tables[table]
        self._leases.check(transaction, caller.claim)
        stored = self._reading.stored(transaction.connection, table, key, caller)
        if declared.lock:
            self._leases.check_row(transaction, table, stored["id"], key, caller.claim)
        if expected:
            self._check_expected(transaction, table, stored, expected, caller)
        row = prepared.encoded.values | self._resolved(transaction, table, prepared.encoded.references, caller)
        new = {name: row[name] for name in declared.unique_columns() if name in row and row[name] != stored[name]}
        if new and is_taken(transaction, source, new, new, by_others=stored["id"]) is not None:
            raise ConflictError(
                f"Another row of {table} has this {' and this '.join(new)} already. Nothing was written.",
                recovery="Change that row, or choose another value.",
            )
        changed = transaction.update(table, stored, row)
        if new and stored["ws_state"] == State.SHOWN:
            waiting = rivals(transaction, source, declared.unique_columns(), stored)
            settle(transaction, self._declaration, table, waiting)
        return Saved(stored["id"], redacted=prepared.encoded.redacted, changed=changed)

    def _allow(self, table: str, declared: Table, values: Mapping[str, Any], caller: Caller) -> None:
        if caller.acting is None:
            return
        if declared.write and caller.acting not in declared.write:
            raise _forbidden(f"{table} is written by {', '.join(declared.write)}", caller.acting)
        for name in values:
            column = declared.columns.get(name)
            if column is not None and column.write and caller.acting not in column.write:
                raise _forbidden(f"{table}.{name} is written by {', '.join(column.write)}", caller.acting)

    def _with_owner(self, table: str, values: Mapping[str, Any], caller: Caller, *, whole: bool) -> Mapping[str, Any]:
        """Return values with the row they belong to, where the caller's phase writes rows of its own alone."""
        claim = caller.claim
        if claim is None or claim.phase is None or claim.row_id is None:
            return values
        phase = self._declaration.phase(claim.phase)
        owner = owner_column(self._declaration, table, phase.over or "")
        if owner is None or phase.reads != "own" or not (whole or owner in values):
            return values
        if values.get(owner) != claim.key and not (whole and values.get(owner) is None):
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
        self,
        transaction: Transaction,
        table: str,
        stored: Mapping[str, Any],
        expected: Mapping[str, Any],
        caller: Caller,
    ) -> None:
        wanted = self._values[table].encoded(expected, whole=False)
        then = wanted.values | self._resolved(transaction, table, wanted.references, caller)
        unique = self._declaration.tables[table].unique_columns()
        now = {name: get_unique_key(stored[name]) if name in unique else stored[name] for name in then}
        changed_names = [name for name, value in then.items() if now[name] != value]
        if changed_names:
            raise ConflictError(
                f"This row of {table} was changed meanwhile: {', '.join(changed_names)} is no longer what was "
                "expected. Nothing was written.",
                recovery="Read the row again, then decide.",
            )


def _next_ordinal(transaction: Transaction, source: sa.Table, step: str | None, attempt: int) -> int:
    highest = sa.select(sa.func.coalesce(sa.func.max(source.c.ws_ordinal), 0))
    statement = highest.where(source.c.ws_step == step, source.c.ws_attempt == attempt)
    return int(transaction.connection.execute(statement).scalar_one()) + 1


def _forbidden(rule: str, agent: str) -> NotAllowedError:
    return NotAllowedError(f"{rule}, not by {quoted(agent)}. Nothing was written.")
