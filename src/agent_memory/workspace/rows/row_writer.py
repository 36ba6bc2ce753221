"""Writer of rows: permission, checks, redaction, history."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from agent_memory.errors import ConflictError, NotAllowedError, ValidationError
from agent_memory.redaction import quoted
from agent_memory.workspace.database.schema import RowState
from agent_memory.workspace.rows.proposals import find_rivals, find_taken, get_unique_key, settle_rows
from agent_memory.workspace.rows.row_reader import RowReader, find_owner_column

if TYPE_CHECKING:
    from agent_memory.workspace.database.history import Transaction
    from agent_memory.workspace.declaration.model import Declaration, Table
    from agent_memory.workspace.rows.claims import LeaseTable, RowCaller
    from agent_memory.workspace.rows.row_values import EncodedRow, ValueCodec


@dataclass(frozen=True, slots=True)
class SavedRow:
    """Result of a write.

    Attributes:
        row_id: ID of the row.
        proposal: True if another row with the same unique value came first, so this one is not shown.
        redacted: Kinds of secrets that were removed.
        changed: True if a value differs now.
    """

    row_id: int
    proposal: bool = False
    redacted: tuple[str, ...] = ()
    changed: bool = True


@dataclass(frozen=True, slots=True)
class PreparedRow:
    """Checked and redacted values of a write."""

    table: str
    encoded: EncodedRow
    caller: RowCaller


@dataclass(frozen=True, slots=True)
class RowWriter:
    """Writer of rows, within a transaction of the caller."""

    declaration: Declaration
    values: Mapping[str, ValueCodec]
    reader: RowReader
    leases: LeaseTable

    def prepare(self, table: str, values: Mapping[str, Any], caller: RowCaller, *, is_complete: bool) -> PreparedRow:
        """Check and redact values, before the transaction.

        That takes most of the time of a write.

        Args:
            table: Name of the table.
            values: Value of each column.
            caller: Writer of the row.
            is_complete: True for a new row, False for changes.

        Raises:
            ValidationError: A value does not fit.
            NotAllowedError: The caller may not write this.
        """
        self.reader.table(table)
        declared = self.declaration.tables[table]
        if not isinstance(values, Mapping):
            raise ValidationError("A row is written as columns with their values. Nothing was written.", code="invalid")
        if not is_complete and declared.kind == "log":
            raise NotAllowedError(f"{table} is a log: its rows are added and never changed. Nothing was written.")
        self._check_permission(table, declared, values, caller)
        owned_values = self._add_owner(table, values, caller, is_complete=is_complete)
        return PreparedRow(table, self.values[table].encode(owned_values, is_complete=is_complete), caller)

    def add(self, transaction: Transaction, prepared: PreparedRow) -> SavedRow:
        """Add a row.

        Raises:
            RowNotFoundError: A row that it refers to does not exist.
            LeaseError: The caller's claim has ended.
        """
        table, caller, claim = prepared.table, prepared.caller, prepared.caller.claim
        source, declared = self.reader.table(table), self.declaration.tables[table]
        self.leases.check(transaction, claim)
        row = prepared.encoded.values | self._resolve_references(
            transaction, table, prepared.encoded.references, caller
        )
        taken = find_taken(transaction, source, declared.unique_columns(), row)
        if claim is not None and claim.step is not None:
            row |= {
                "ws_step": claim.step,
                "ws_attempt": claim.attempt,
                "ws_ordinal": _next_ordinal(transaction, source, claim.step, claim.attempt),
                "ws_state": int(RowState.PENDING if taken is None else RowState.PENDING_PROPOSAL),
            }
        else:
            row["ws_state"] = int(RowState.SHOWN if taken is None else RowState.PROPOSAL)
        row_id = transaction.insert(table, row)
        return SavedRow(row_id, proposal=taken is not None, redacted=prepared.encoded.redacted)

    def change(
        self, transaction: Transaction, key: Any, prepared: PreparedRow, expected: Mapping[str, Any] | None = None
    ) -> SavedRow:
        """Change columns of a row.

        Args:
            transaction: Transaction of the change.
            key: Key of the row, or its ID if the table has no key.
            prepared: New values of the row.
            expected: Value that each named column must still have.

        Raises:
            RowNotFoundError: No such row.
            ConflictError: A value is not the expected one any more, or belongs to another row.
            LeaseError: The caller's claim has ended, or another one holds the row.
        """
        table, caller = prepared.table, prepared.caller
        source, declared = self.reader.table(table), self.declaration.tables[table]
        self.leases.check(transaction, caller.claim)
        stored = self.reader.load_stored(transaction.connection, table, key, caller)
        if declared.lock:
            self.leases.check_row(transaction, table, stored["id"], key, caller.claim)
        if expected:
            self._check_expected(transaction, table, stored, expected, caller)
        row = prepared.encoded.values | self._resolve_references(
            transaction, table, prepared.encoded.references, caller
        )
        new = {name: row[name] for name in declared.unique_columns() if name in row and row[name] != stored[name]}
        if new and find_taken(transaction, source, new, new, by_others=stored["id"]) is not None:
            raise ConflictError(
                f"Another row of {table} has this {' and this '.join(new)} already. Nothing was written.",
                recovery="Change that row, or choose another value.",
            )
        changed = transaction.update(table, stored, row)
        if new and stored["ws_state"] == RowState.SHOWN:
            waiting = find_rivals(transaction, source, declared.unique_columns(), stored)
            settle_rows(transaction, self.declaration, table, waiting)
        return SavedRow(stored["id"], redacted=prepared.encoded.redacted, changed=changed)

    def _check_permission(self, table: str, declared: Table, values: Mapping[str, Any], caller: RowCaller) -> None:
        if caller.acting is None:
            return
        if declared.write and caller.acting not in declared.write:
            raise _build_forbidden_error(f"{table} is written by {', '.join(declared.write)}", caller.acting)
        for name in values:
            column = declared.columns.get(name)
            if column is not None and column.write and caller.acting not in column.write:
                raise _build_forbidden_error(f"{table}.{name} is written by {', '.join(column.write)}", caller.acting)

    def _add_owner(
        self, table: str, values: Mapping[str, Any], caller: RowCaller, *, is_complete: bool
    ) -> Mapping[str, Any]:
        """Return values with the owner row, where it is required."""
        claim = caller.claim
        if claim is None or claim.phase is None or claim.row_id is None:
            return values
        phase = self.declaration.phase(claim.phase)
        owner = find_owner_column(self.declaration, table, phase.over or "")
        if owner is None or phase.reads != "own" or not (is_complete or owner in values):
            return values
        if values.get(owner) != claim.key and not (is_complete and values.get(owner) is None):
            raise NotAllowedError(
                f"In phase {phase.name} each step writes rows of its own {phase.over} row alone: {owner} must be "
                f"{claim.key!r}, not {quoted(values[owner])}. Nothing was written."
            )
        return {**values, owner: claim.key}

    def _resolve_references(
        self, transaction: Transaction, table: str, references: Mapping[str, Any], caller: RowCaller
    ) -> dict[str, int]:
        """Return the IDs of referenced rows."""
        columns = self.declaration.tables[table].columns
        return {
            name: self.reader.row_id(
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
        caller: RowCaller,
    ) -> None:
        wanted = self.values[table].encode(expected, is_complete=False)
        then = wanted.values | self._resolve_references(transaction, table, wanted.references, caller)
        unique = self.declaration.tables[table].unique_columns()
        now = {name: get_unique_key(stored[name]) if name in unique else stored[name] for name in then}
        changed_names = [name for name, value in then.items() if now[name] != value]
        if changed_names:
            raise ConflictError(
                f"This row of {table} has changed: {', '.join(changed_names)} is no longer what was "
                "expected. Nothing was written.",
                recovery="Read the row again, then decide.",
            )


def _next_ordinal(transaction: Transaction, source: sa.Table, step: str | None, attempt: int) -> int:
    highest = sa.select(sa.func.coalesce(sa.func.max(source.c.ws_ordinal), 0))
    statement = highest.where(source.c.ws_step == step, source.c.ws_attempt == attempt)
    return int(transaction.connection.execute(statement).scalar_one()) + 1


def _build_forbidden_error(rule: str, agent: str) -> NotAllowedError:
    return NotAllowedError(f"{rule}, not by {quoted(agent)}. Nothing was written.")
