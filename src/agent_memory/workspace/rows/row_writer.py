"""Writer of rows, and decisions between rows with the same unique value.

The first by the order of steps is shown, never by the clock. So a killed and resumed run ends with the same rows as an
uninterrupted one. No row is lost: the others are kept as proposals. A declared table can have a flag row for each
proposal, so that someone decides between them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import sqlalchemy as sa

from agent_memory.errors import ConflictError, NotAllowedError, ValidationError
from agent_memory.redaction import quoted
from agent_memory.workspace.database.history import ChangeAuthor, Transaction, iter_batches
from agent_memory.workspace.database.schema import LOW, RowState
from agent_memory.workspace.rows.row_reader import RowReader, find_owner_column
from agent_memory.workspace.rows.row_values import ValueCodec, normalize_unique

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_memory.workspace.declaration.model import Declaration, Table
    from agent_memory.workspace.rows.claims import LeaseTable, RowCaller
    from agent_memory.workspace.rows.row_values import EncodedRow

_SETTLED: Final = (int(RowState.SHOWN), int(RowState.PROPOSAL))
_Key = tuple[int, str]
_Order = tuple[bool, int, _Key, int, int, int]
_WHOLE: Final[_Key] = (0, "")


def get_unique_key(value: Any) -> Any:
    """Return the comparison key of a unique value; see `normalize_unique`."""
    return normalize_unique(value) if isinstance(value, str) else value


def list_stored_forms(transaction: Transaction, table: sa.Table, column: str, values: Iterable[Any]) -> list[Any]:
    """Return all stored forms of values, also those of older versions.

    Older versions did not trim texts. Their forms are looked up once, and again after a restore.
    """
    name = f"ws_forms.{column}"
    if table.info.get(name, (None,))[0] != transaction.epoch:
        older_forms: dict[str, list[str]] = {}
        if isinstance(table.c[column].type, sa.Text):
            distinct_values = sa.select(table.c[column]).where(table.c[column].is_not(None)).distinct()
            for value in transaction.connection.execute(distinct_values).scalars():
                if (form := normalize_unique(value)) != value:
                    older_forms.setdefault(form, []).append(value)
        table.info[name] = (transaction.epoch, older_forms)
    older = table.info[name][1]
    return [
        form
        for value in values
        for form in dict.fromkeys((value, get_unique_key(value), *older.get(get_unique_key(value), ())))
    ]


def find_taken(
    transaction: Transaction,
    table: sa.Table,
    columns: Iterable[str],
    row: Mapping[str, Any],
    *,
    by_others: int | None = None,
) -> int | None:
    """Return the ID of a row that shares a unique value.

    Shown rows count, and pending ones of the same attempt.
    """
    same = _match_values(transaction, table, columns, row)
    if not same:
        return None
    writer = transaction.writer
    is_own = sa.and_(
        table.c.ws_state == int(RowState.PENDING), table.c.ws_step == writer.step, table.c.ws_attempt == writer.attempt
    )
    is_present = (
        sa.or_(table.c.ws_state == int(RowState.SHOWN), is_own)
        if writer.step
        else table.c.ws_state == int(RowState.SHOWN)
    )
    is_other = sa.true() if by_others is None else table.c.id != by_others
    statement = sa.select(table.c.id).where(sa.or_(*same), is_present, is_other).limit(1)
    row_id = transaction.connection.execute(statement).scalar()
    return None if row_id is None else int(row_id)


def find_rivals(transaction: Transaction, table: sa.Table, columns: Iterable[str], row: Mapping[str, Any]) -> set[int]:
    """Return the ids of proposals that may replace a row."""
    same = _match_values(transaction, table, columns, row)
    if not same:
        return set()
    waiting = sa.and_(sa.or_(*same), table.c.ws_state == int(RowState.PROPOSAL), table.c.id != row["id"])
    return set(transaction.connection.execute(sa.select(table.c.id).where(waiting)).scalars())


def _match_values(
    transaction: Transaction, table: sa.Table, columns: Iterable[str], row: Mapping[str, Any]
) -> list[sa.ColumnElement[bool]]:
    values = {name: row[name] for name in columns if row.get(name) is not None}
    return [table.c[name].in_(list_stored_forms(transaction, table, name, [value])) for name, value in values.items()]


def settle_rows(transaction: Transaction, declaration: Declaration, name: str, ids: Iterable[int]) -> None:
    """Decide again which rows with a shared unique value are shown.

    Pending rows of `ids` count as finished. Rows without unique columns are simply shown.

    Args:
        transaction: Transaction of the change.
        declaration: Declaration of the workspace.
        name: Name of the table.
        ids: Rows to decide on, with all rows that share a value.
    """
    table, columns = transaction.schema.declared[name], declaration.tables[name].unique_columns()
    finished = set(ids)
    rows = (
        _load_sharing(transaction, table, columns, finished) if columns else _load_by_id(transaction, table, finished)
    )
    taken: set[tuple[str, Any]] = set()
    decided: list[tuple[dict[str, Any], RowState]] = []
    # Rows that an older version showed although they are the same without their ends stay; their value is taken.
    stays = [row for row in rows.values() if row["ws_state"] == RowState.SHOWN and _is_older(row, columns)]
    older = {value for row in stays for value in _list_values(row, columns)}
    for row in sorted(rows.values(), key=lambda item: _get_order(declaration, item)):
        values = _list_values(row, columns)
        is_new = row["ws_state"] != RowState.SHOWN
        if row in stays:
            decided.append((row, RowState.SHOWN))
            continue
        decided.append((row, RowState.PROPOSAL if values & taken or (is_new and values & older) else RowState.SHOWN))
        taken |= values
    # Rows that are hidden come first: the database refuses two shown rows of one value even for a moment.
    for row, state in sorted(decided, key=lambda item: item[1] == RowState.SHOWN):
        transaction.update(name, row, {"ws_state": int(state)}, op="settle")


def _list_values(row: Mapping[str, Any], columns: Iterable[str]) -> set[tuple[str, Any]]:
    return {(name, get_unique_key(row[name])) for name in columns if row[name] is not None}


def _is_older(row: Mapping[str, Any], columns: Iterable[str]) -> bool:
    """Return True if an older version stored a unique text differently."""
    return any(get_unique_key(row[name]) != row[name] for name in columns if row[name] is not None)


def _load_sharing(
    transaction: Transaction, table: sa.Table, columns: list[str], ids: set[int]
) -> dict[int, dict[str, Any]]:
    rows = _load_by_id(transaction, table, ids)
    looked_for: set[tuple[str, Any]] = set()
    while True:
        wanted = {(name, row[name]) for row in rows.values() for name in columns if row[name] is not None}
        more: dict[int, dict[str, Any]] = {}
        for name in columns:
            values = sorted(value for unique_column, value in wanted - looked_for if unique_column == name)
            for batch in iter_batches(list_stored_forms(transaction, table, name, values)):
                same = sa.and_(table.c[name].in_(batch), table.c.ws_state.in_(_SETTLED))
                more |= _load_rows(transaction, table, same)
        looked_for |= wanted
        if not more.keys() - rows.keys():
            return rows
        rows = more | rows


def _load_by_id(transaction: Transaction, table: sa.Table, ids: Iterable[int]) -> dict[int, dict[str, Any]]:
    rows: dict[int, dict[str, Any]] = {}
    for batch in iter_batches(sorted(ids)):
        rows |= _load_rows(transaction, table, table.c.id.in_(batch))
    return rows


def _load_rows(transaction: Transaction, table: sa.Table, where: sa.ColumnElement[bool]) -> dict[int, dict[str, Any]]:
    return {row["id"]: dict(row) for row in transaction.connection.execute(sa.select(table).where(where)).mappings()}


def _get_order(declaration: Declaration, row: Mapping[str, Any]) -> _Order:
    """Return the sort key of a row: phase, its row, agent, ordinal.

    Rows that no step wrote come first, rows of low trust last: untrusted words replace nothing.
    """
    is_low = row["ws_trust"] == LOW
    if row["ws_step"] is None:
        return (is_low, -1, _WHOLE, 0, 0, row["id"])
    number, key, agent = get_step_order(declaration, row["ws_step"])
    return (is_low, number, key, agent, row["ws_ordinal"] or 0, row["id"])


def get_step_order(declaration: Declaration, step: str) -> tuple[int, _Key, int]:
    """Return phase number, row key and agent number of a step.

    A phase may have had other rows, or none, when the step was done, so its key need not fit the present table.
    """
    name, agent, key = step.split("/", 2)
    numbers = {phase.name: number for number, phase in enumerate(declaration.phases)}
    if name not in numbers:
        return (len(numbers), (0, key), 0)
    phase = declaration.phases[numbers[name]]
    agents = [phase_agent.agent for phase_agent in phase.agents]
    place = agents.index(agent) if agent in agents else len(agents)
    if phase.over is None:
        return (numbers[name], _WHOLE, place)
    column = declaration.tables[phase.over].columns[declaration.tables[phase.over].key or ""]
    return (numbers[name], (int(key), "") if column.type == "integer" and _is_integer(key) else (0, key), place)


def _is_integer(key: str) -> bool:
    digits = key.removeprefix("-")
    return digits.isascii() and digits.isdigit()


_NAMED: Final = "ws_proposal/{table}/{row_id}"
"""Step of a flag: three parts like the name of a step, but not a declarable name."""
WORKSPACE: Final = "workspace"
"""Author of the flags of rows that no agent wrote."""


@dataclass(frozen=True, slots=True)
class ProposalFlags:
    """Flags of proposals, within a transaction of the caller.

    A flag exists exactly while its row is a proposal. It belongs to no step.
    """

    declaration: Declaration
    values: Mapping[str, ValueCodec]

    def flag(self, transaction: Transaction) -> None:
        """Add, show and hide flags for tables with changed proposals."""
        if self.declaration.logs.issues is None or not transaction.proposed:
            return
        unowned = replace(transaction, writer=ChangeAuthor())  # of no step: undoing a step decides again
        for table in sorted(transaction.proposed):
            self._flag(unowned, table, self.declaration.logs.issues)

    def _flag(self, transaction: Transaction, table: str, flags: str) -> None:
        source, into = transaction.schema.declared[table], transaction.schema.declared[flags]
        waiting = sa.select(source).where(source.c.ws_state == int(RowState.PROPOSAL)).order_by(source.c.id)
        proposals = {
            _NAMED.format(table=table, row_id=row["id"]): dict(row)
            for row in transaction.connection.execute(waiting).mappings()
        }
        prefix = _NAMED.format(table=table, row_id="")
        flagged = sa.select(into).where(into.c.ws_step.startswith(prefix, autoescape=True)).order_by(into.c.id)
        flags_by_step = {row["ws_step"]: dict(row) for row in transaction.connection.execute(flagged).mappings()}
        for name, row in flags_by_step.items():
            state = RowState.SHOWN if name in proposals else RowState.ASIDE
            transaction.update(flags, row, {"ws_state": int(state)}, op="settle")
        for name, row in proposals.items():
            if name not in flags_by_step:
                values = self._build_flag(transaction, table, row, flags)
                hidden = {"ws_state": int(RowState.SHOWN), "ws_step": name, "ws_attempt": 0, "ws_ordinal": 0}
                hidden["ws_trust"] = row["ws_trust"]
                transaction.insert(flags, {**values, **hidden})

    def _build_flag(self, transaction: Transaction, table: str, row: Mapping[str, Any], flags: str) -> dict[str, Any]:
        """Return the columns of a new flag, from the proposal alone."""
        declared, columns = self.declaration.tables[table], self.declaration.tables[flags].columns
        uniques = [
            str(row[column_name])
            for column_name in declared.unique_columns()
            if row[column_name] is not None and not declared.columns[column_name].references
        ]
        step = (row["ws_step"] or "//").split("/", 2)
        texts = {
            "description": f"{' '.join([table, *uniques])}: another row came first; this one is kept as a proposal.",
            "flagged_by": step[1] or WORKSPACE,
        }
        encoded = self.values[flags].encode({name: texts[name] for name in texts if name in columns}, is_complete=True)
        return {**encoded.values, **self._find_references(transaction, step, flags)}

    def _find_references(self, transaction: Transaction, step: list[str], flags: str) -> dict[str, int]:
        """Return references to the row of the step, if declared."""
        phase = next((phase_item for phase_item in self.declaration.phases if phase_item.name == step[0]), None)
        if phase is None or phase.over is None:
            return {}
        over, key = transaction.schema.declared[phase.over], self.declaration.tables[phase.over].key or "id"
        here = sa.and_(sa.cast(over.c[key], sa.Text()) == step[2], over.c.ws_state == int(RowState.SHOWN))
        row_id = transaction.connection.execute(sa.select(over.c.id).where(here)).scalar()
        columns = self.declaration.tables[flags].columns.items()
        return {name: row_id for name, column in columns if column.references == phase.over and row_id is not None}


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
        row = self._resolve(transaction, table, prepared.encoded, caller)
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
        row = self._resolve(transaction, table, prepared.encoded, caller)
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

    def _resolve(self, transaction: Transaction, table: str, encoded: EncodedRow, caller: RowCaller) -> dict[str, Any]:
        """Return stored values, with the IDs of referenced rows."""
        columns, connection = self.declaration.tables[table].columns, transaction.connection
        return encoded.values | {
            name: self.reader.row_id(connection, columns[name].references or "", value, caller, all_rows=True)
            for name, value in encoded.references.items()
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
        then = self._resolve(transaction, table, wanted, caller)
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
