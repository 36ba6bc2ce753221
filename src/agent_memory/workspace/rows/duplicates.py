"""Which of several rows with the same unique value is shown: the first by the order of steps, never by the clock.

So a run that was killed and resumed ends with the same rows as one that was not, and none of them is lost: the others
are kept as proposals.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import sqlalchemy as sa

from agent_memory.workspace.database import LOW, State, Transaction
from agent_memory.workspace.database.history import in_parts
from agent_memory.workspace.rows.naming import unique_form

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from agent_memory.workspace.declaration import Declaration

_SETTLED: Final = (int(State.SHOWN), int(State.PROPOSAL))
_Key = tuple[int, str]
_Order = tuple[bool, int, _Key, int, int, int]
_WHOLE: Final[_Key] = (0, "")


def get_unique_key(value: Any) -> Any:
    """Return the comparison key of a unique value; see `unique_form`."""
    return unique_form(value) if isinstance(value, str) else value


def kept_forms(transaction: Transaction, table: sa.Table, column: str, values: Iterable[Any]) -> list[Any]:
    """Return all stored forms of values, of older versions too.

    Older versions did not trim texts. Their forms are looked up once, and again after a restore.
    """
    name = f"ws_forms.{column}"
    if table.info.get(name, (None,))[0] != transaction.epoch:
        older_forms: dict[str, list[str]] = {}
        if isinstance(table.c[column].type, sa.Text):
            distinct_values = sa.select(table.c[column]).where(table.c[column].is_not(None)).distinct()
            for value in transaction.connection.execute(distinct_values).scalars():
                if (form := unique_form(value)) != value:
                    older_forms.setdefault(form, []).append(value)
        table.info[name] = (transaction.epoch, older_forms)
    older = table.info[name][1]
    return [
        form
        for value in values
        for form in dict.fromkeys((value, get_unique_key(value), *older.get(get_unique_key(value), ())))
    ]


def is_taken(
    transaction: Transaction,
    table: sa.Table,
    columns: Iterable[str],
    row: Mapping[str, Any],
    *,
    by_others: int | None = None,
) -> int | None:
    """Return the id of a row, shown or pending in the same attempt, that has a unique value of `row`; or None."""
    same = _same(transaction, table, columns, row)
    if not same:
        return None
    writer = transaction.writer
    is_own = sa.and_(
        table.c.ws_state == int(State.PENDING), table.c.ws_step == writer.step, table.c.ws_attempt == writer.attempt
    )
    is_present = (
        sa.or_(table.c.ws_state == int(State.SHOWN), is_own) if writer.step else table.c.ws_state == int(State.SHOWN)
    )
    is_other = sa.true() if by_others is None else table.c.id != by_others
    statement = sa.select(table.c.id).where(sa.or_(*same), is_present, is_other).limit(1)
    row_id = transaction.connection.execute(statement).scalar()
    return None if row_id is None else int(row_id)


def rivals(transaction: Transaction, table: sa.Table, columns: Iterable[str], row: Mapping[str, Any]) -> set[int]:
    """Return the ids of proposals that may take the place of a row whose values are free now."""
    same = _same(transaction, table, columns, row)
    if not same:
        return set()
    waiting = sa.and_(sa.or_(*same), table.c.ws_state == int(State.PROPOSAL), table.c.id != row["id"])
    return set(transaction.connection.execute(sa.select(table.c.id).where(waiting)).scalars())


def _same(
    transaction: Transaction, table: sa.Table, columns: Iterable[str], row: Mapping[str, Any]
) -> list[sa.ColumnElement[bool]]:
    values = {name: row[name] for name in columns if row.get(name) is not None}
    return [table.c[name].in_(kept_forms(transaction, table, name, [value])) for name, value in values.items()]


def settle(transaction: Transaction, declaration: Declaration, name: str, ids: Iterable[int]) -> None:
    """Decide anew which rows are shown among `ids` and all others that share a unique value with one of them.

    Rows of `ids` that are pending count as finished. Rows without unique columns are simply shown.
    """
    table, columns = transaction.schema.declared[name], declaration.tables[name].unique_columns()
    finished = set(ids)
    rows = _sharing(transaction, table, columns, finished) if columns else _by_id(transaction, table, finished)
    taken: set[tuple[str, Any]] = set()
    decided: list[tuple[dict[str, Any], State]] = []
    # What an older version showed though it is the same now, but for its ends, stays; new rows find it taken.
    stays = [row for row in rows.values() if row["ws_state"] == State.SHOWN and _is_older(row, columns)]
    older = {value for row in stays for value in _values(row, columns)}
    for row in sorted(rows.values(), key=lambda item: _order(declaration, item)):
        values = _values(row, columns)
        is_new = row["ws_state"] != State.SHOWN
        if row in stays:
            decided.append((row, State.SHOWN))
            continue
        decided.append((row, State.PROPOSAL if values & taken or (is_new and values & older) else State.SHOWN))
        taken |= values
    # What is no longer shown goes first: the database refuses two shown rows of one value even for a moment.
    for row, state in sorted(decided, key=lambda item: item[1] == State.SHOWN):
        transaction.update(name, row, {"ws_state": int(state)}, op="settle")


def _values(row: Mapping[str, Any], columns: Iterable[str]) -> set[tuple[str, Any]]:
    return {(name, get_unique_key(row[name])) for name in columns if row[name] is not None}


def _is_older(row: Mapping[str, Any], columns: Iterable[str]) -> bool:
    """Return True if an older version wrote a unique text differently."""
    return any(get_unique_key(row[name]) != row[name] for name in columns if row[name] is not None)


def _sharing(transaction: Transaction, table: sa.Table, columns: list[str], ids: set[int]) -> dict[int, dict[str, Any]]:
    rows = _by_id(transaction, table, ids)
    looked_for: set[tuple[str, Any]] = set()
    while True:
        wanted = {(name, row[name]) for row in rows.values() for name in columns if row[name] is not None}
        more: dict[int, dict[str, Any]] = {}
        for name in columns:
            values = sorted(value for unique_column, value in wanted - looked_for if unique_column == name)
            for batch in in_parts(kept_forms(transaction, table, name, values)):
                same = sa.and_(table.c[name].in_(batch), table.c.ws_state.in_(_SETTLED))
                more |= _rows(transaction, table, same)
        looked_for |= wanted
        if not more.keys() - rows.keys():
            return rows
        rows = more | rows


def _by_id(transaction: Transaction, table: sa.Table, ids: Iterable[int]) -> dict[int, dict[str, Any]]:
    found: dict[int, dict[str, Any]] = {}
    for some in in_parts(sorted(ids)):
        found |= _rows(transaction, table, table.c.id.in_(some))
    return found


def _rows(transaction: Transaction, table: sa.Table, where: sa.ColumnElement[bool]) -> dict[int, dict[str, Any]]:
    return {row["id"]: dict(row) for row in transaction.connection.execute(sa.select(table).where(where)).mappings()}


def _order(declaration: Declaration, row: Mapping[str, Any]) -> _Order:
    """Return what rows are ordered by: phase, the row worked on, agent, ordinal; what no step wrote comes first.

    What may be a stranger's words comes after all others: low trust takes the place of nothing.
    """
    is_low = row["ws_trust"] == LOW
    if row["ws_step"] is None:
        return (is_low, -1, _WHOLE, 0, 0, row["id"])
    number, key, agent = step_order(declaration, row["ws_step"])
    return (is_low, number, key, agent, row["ws_ordinal"] or 0, row["id"])


def step_order(declaration: Declaration, step: str) -> tuple[int, _Key, int]:
    """Return the place of a step among all: number of its phase, key of its row, number of its agent.

    A phase may have worked on other rows, or on none, when the step was done: its key need not fit those of now.
    """
    name, agent, key = step.split("/", 2)
    numbers = {phase.name: number for number, phase in enumerate(declaration.phases)}
    if name not in numbers:
        return (len(numbers), (0, key), 0)
    phase = declaration.phases[numbers[name]]
    agents = [each.agent for each in phase.agents]
    place = agents.index(agent) if agent in agents else len(agents)
    if phase.over is None:
        return (numbers[name], _WHOLE, place)
    column = declaration.tables[phase.over].columns[declaration.tables[phase.over].key or ""]
    return (numbers[name], (int(key), "") if column.type == "integer" and _is_integer(key) else (0, key), place)


def _is_integer(key: str) -> bool:
    digits = key.removeprefix("-")
    return digits.isascii() and digits.isdigit()
