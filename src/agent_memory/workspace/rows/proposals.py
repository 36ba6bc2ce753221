"""Decisions between rows with the same unique value.

The first by the order of steps is shown, never by the clock.

So a killed and resumed run ends with the same rows as an uninterrupted one. No row is lost: the others are kept as
proposals. A declared table can have a flag row for each proposal, so that someone decides between them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import sqlalchemy as sa

from agent_memory.workspace.database.history import ChangeAuthor, Transaction, iter_batches
from agent_memory.workspace.database.schema import LOW, RowState
from agent_memory.workspace.rows.row_values import ValueCodec, normalize_unique

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from agent_memory.workspace.declaration.model import Declaration

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
