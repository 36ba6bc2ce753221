"""Rows as an agent sees them: those that are shown, those of its own attempt, and no more than its phase reads."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import sqlalchemy as sa

from agent_memory.errors import RowNotFoundError, ValidationError
from agent_memory.redaction import quoted
from agent_memory.workspace.database import LOW, Schema, State, Words
from agent_memory.workspace.declaration import OWN_COLUMNS, Declaration
from agent_memory.workspace.rows.columns import column_of, columns_of
from agent_memory.workspace.rows.naming import unique_form
from agent_memory.workspace.rows.sight import seen_by, shown_to, within_reach

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from agent_memory.workspace.rows.claim import Caller
    from agent_memory.workspace.rows.values import Values

MAX_ROWS: Final = 10_000
_MAX_QUERY: Final = 10_000
"""Characters of a search, as of one among memories."""
_LARGEST_REAL: Final = sys.float_info.max
_COMPARED: Final[dict[str, tuple[Any, str]]] = {
    "integer": (int, "an integer"),
    "real": (int | float, "a number"),
    "boolean": (bool, "true or false"),
    **dict.fromkeys(("text", "json", "timestamp", "file"), (str, "a text")),
}
_OWN_TYPES: Final = {"id": "integer", "created_at": "timestamp", "updated_at": "timestamp"}


@dataclass(frozen=True, slots=True)
class Page:
    """Some rows, and how many there are in all."""

    rows: list[dict[str, Any]]
    total: int


class RowReading:
    """Reads the rows of a workspace, within a transaction of the caller's.

    Args:
        declaration: What is declared.
        schema: Its tables.
        values: How values of each table are shown.
        words: Its indexes of words.
    """

    def __init__(self, declaration: Declaration, schema: Schema, values: Mapping[str, Values], words: Words) -> None:
        self.declaration = declaration
        self.schema = schema
        self._values = values
        self._words = words

    def table(self, name: str) -> sa.Table:
        """Return a declared table.

        Raises:
            ValidationError: There is none of this name.
        """
        if name not in self.schema.declared:
            there = ", ".join(self.schema.declared)
            raise ValidationError(f"There is no table {quoted(name)}; there are {there}.", code="unknown_table")
        return self.schema.declared[name]

    def one(
        self, connection: sa.Connection, table: str, key: Any, caller: Caller, columns: Sequence[str] = ()
    ) -> dict[str, Any]:
        """Return a row by its key, or by its id where the table has no key.

        Raises:
            RowNotFoundError: There is none, or the caller's phase may not see it.
        """
        condition = self.table(table).c.id == self.row_id(connection, table, key, caller)
        rows = self._rows(connection, table, [condition], caller, columns, limit=1)
        if not rows:
            raise RowNotFoundError(f"{table} has no row {quoted(key)}.")
        return rows[0]

    def row_id(self, connection: sa.Connection, table: str, key: Any, caller: Caller, *, all_rows: bool = False) -> int:
        """Return the id of a row by its key; of any shown row, whatever the phase reads, if `all_rows`.

        Raises:
            RowNotFoundError: There is none.
        """
        source = self.table(table)
        return int(self._found(connection, table, key, caller, [source.c.id], all_rows=all_rows)[0])

    def stored(self, connection: sa.Connection, table: str, key: Any, caller: Caller) -> dict[str, Any]:
        """Return a row by its key as the database keeps it, hidden columns included.

        Raises:
            RowNotFoundError: There is none, or the caller's phase may not see it.
        """
        return dict(self._found(connection, table, key, caller, [self.table(table)])._mapping)  # noqa: SLF001 - public in spite of its name

    def _found(
        self,
        connection: sa.Connection,
        table: str,
        key: Any,
        caller: Caller,
        wanted: list[Any],
        *,
        all_rows: bool = False,
    ) -> sa.Row[Any]:
        source = self.table(table)
        seen = shown_to(source, caller) if all_rows else self._seen(table, caller)
        named = self.named(table, key)
        order = [source.c.ws_state.desc(), *([sa.case((named[0], 0), else_=1)] if len(named) > 1 else [])]
        statement = sa.select(*wanted).where(sa.or_(*named), seen).order_by(*order).limit(1)  # its own first
        row = connection.execute(statement).first()
        if row is None:
            raise RowNotFoundError(f"{table} has no row {quoted(key)}.")
        return row

    def many(  # noqa: PLR0913 - each narrows the answer, and all are optional
        self,
        connection: sa.Connection,
        table: str,
        caller: Caller,
        *,
        where: Mapping[str, Any] | None = None,
        filled: str | None = None,
        columns: Sequence[str] = (),
        limit: int = MAX_ROWS,
        offset: int = 0,
    ) -> Page:
        """Return the rows whose columns equal `where`, in the order of their key or id.

        Args:
            connection: In a transaction.
            table: The table.
            caller: Who asks.
            where: Column → value.
            filled: Only rows in which this column has a value.
            columns: What is returned of each; all where it is empty.
            limit: At most so many, up to 10,000.
            offset: How many are left out at the beginning.
        """
        source = self.table(table)
        conditions = [self._equals(connection, table, name, value, caller) for name, value in (where or {}).items()]
        if filled is not None:
            _check_columns(self.declaration, table, [filled])
            conditions.append(column_of(self.declaration, self.schema, table, filled).is_not(None))
        rows = self._rows(connection, table, conditions, caller, columns, limit=limit, offset=offset)
        total = len(rows)
        if offset or len(rows) == limit:
            counted = sa.select(sa.func.count()).select_from(source).where(*conditions, self._seen(table, caller))
            total = int(connection.execute(counted).scalar_one())
        return Page(rows, total)

    def search(
        self,
        connection: sa.Connection,
        table: str,
        query: str,
        caller: Caller,
        columns: Sequence[str] = (),
        limit: int = 20,
    ) -> list[dict[str, Any]]:
        """Return the rows that have words of `query` in the columns declared for search, the best first.

        Raises:
            ValidationError: The table declares none, or `query` has more than 10,000 characters.
        """
        source = self.table(table)
        if not self.declaration.tables[table].search:
            raise ValidationError(f"{table} declares no columns to search.", code="not_searchable")
        if len(query) > _MAX_QUERY:
            raise ValidationError(
                f"A search has at most {_MAX_QUERY:,} characters; this has {len(query):,}.", code="too_long"
            )
        if not any(each.isalnum() for each in query):
            return []
        found, rank = self._words.matching(connection, source, query)
        statement, names = self._select(table, columns)
        statement = statement.join(found, found.c.id == source.c.id)
        statement = statement.where(self._seen(table, caller)).order_by(rank, source.c.id).limit(_bounded(limit))
        return self._shown(table, names, connection.execute(statement), caller)

    def proposals(self, connection: sa.Connection, table: str, caller: Caller) -> list[dict[str, Any]]:
        """Return the rows that are kept beside another one with the same unique value, as `many` does."""
        source = self.table(table)
        statement, names = self._select(table, ())
        reach = within_reach(self.declaration, self.schema, table, caller)
        statement = statement.where(source.c.ws_state == int(State.PROPOSAL), reach).order_by(source.c.id)
        return self._shown(table, names, connection.execute(statement), caller)

    def named(self, table: str, key: Any) -> list[sa.ColumnElement[bool]]:
        """Return alternative conditions for the row of a key.

        They compare the key as the caller wrote it, and as it is stored.
        """
        source, declared = self.table(table), self.declaration.tables[table]
        if declared.kind == "singleton":
            return [sa.true()]
        name = declared.key or "id"
        kind = "integer" if name == "id" else declared.columns[name].type
        if isinstance(key, bool) or not isinstance(key, int if kind == "integer" else str):
            example = "a number" if kind == "integer" else "a text"
            raise ValidationError(f"A row of {table} is named by its {name}, {example}.", code="wrong_key")
        stored = unique_form(key) if isinstance(key, str) and kind == "text" else key
        return [source.c[name] == form for form in dict.fromkeys((key, stored))]

    def _equals(
        self, connection: sa.Connection, table: str, name: str, value: Any, caller: Caller
    ) -> sa.ColumnElement[bool]:
        _check_columns(self.declaration, table, [name])
        column = self.declaration.tables[table].columns.get(name)
        if value is None:
            return column_of(self.declaration, self.schema, table, name).is_(None)
        if column is not None and column.references is not None:
            value = self.row_id(connection, column.references, value, caller, all_rows=True)
        else:
            value = _compared(table, name, column.type if column is not None else _OWN_TYPES[name], value)
        same = {value: None}
        if column is not None and column.type == "text" and name in self.declaration.tables[table].unique_columns():
            same[unique_form(value)] = None
        condition: sa.ColumnElement[bool] = column_of(self.declaration, self.schema, table, name).in_(list(same))
        return condition

    def _rows(
        self,
        connection: sa.Connection,
        table: str,
        conditions: Sequence[sa.ColumnElement[bool]],
        caller: Caller,
        columns: Sequence[str],
        *,
        limit: int,
        offset: int = 0,
    ) -> list[dict[str, Any]]:
        source, declared = self.table(table), self.declaration.tables[table]
        statement, names = self._select(table, columns)
        statement = statement.where(*conditions, self._seen(table, caller)).order_by(*_order(source, declared.key))
        statement = statement.limit(_bounded(limit)).offset(max(0, offset))
        return self._shown(table, names, connection.execute(statement), caller)

    def _select(self, table: str, columns: Sequence[str]) -> tuple[sa.Select[Any], list[str]]:
        """Return a selection of columns, references by the keys of their rows, then the trust; and these names."""
        source, declared = self.table(table), self.declaration.tables[table]
        _check_columns(self.declaration, table, columns)
        names = list(columns) or columns_of(declared)
        wanted: list[Any] = []
        joined: sa.FromClause = source
        for name in names:
            target = declared.columns[name].references if name in declared.columns else None
            key = self.declaration.tables[target].key if target else None
            if target is None or key is None:
                wanted.append(column_of(self.declaration, self.schema, table, name).label(name))
            else:
                other = self.schema.declared[target].alias(f"of_{name}")
                joined = joined.outerjoin(other, source.c[name] == other.c.id)
                wanted.append(other.c[key].label(name))
        return sa.select(*wanted, source.c.ws_trust).select_from(joined), names

    def _shown(
        self, table: str, names: Sequence[str], rows: Iterable[Sequence[Any]], caller: Caller
    ) -> list[dict[str, Any]]:
        """Return rows as people and agents see them; the last value of each is its trust, which `caller` is told."""
        readers, found = self._values[table].readers(names), list[dict[str, Any]]()
        for row in rows:
            shown = dict(zip(names, row, strict=False))
            for name, read in readers.items():
                if shown[name] is not None:
                    shown[name] = read(shown[name])
            if row[-1] == LOW and caller.on_low is not None:
                caller.on_low(table, shown)
            found.append(shown)
        return found

    def _seen(self, table: str, caller: Caller) -> sa.ColumnElement[bool]:
        return seen_by(self.declaration, self.schema, table, caller)


def _order(source: sa.Table, key: str | None) -> list[sa.ColumnElement[Any]]:
    """Return the order of rows, one that is the same on every database; rows without a key are the first."""
    if key is None:
        return [source.c.id]
    by_key = sa.nulls_first(source.c[key]) if source.c[key].nullable else source.c[key]
    return [by_key, source.c.ws_state.desc(), source.c.id]


def _check_columns(declaration: Declaration, table: str, columns: Sequence[str]) -> None:
    declared = declaration.tables[table]
    for name in columns:
        if name not in declared.columns and name not in OWN_COLUMNS:
            there = ", ".join(["id", *declared.columns])
            raise ValidationError(f"{table} has no column {quoted(name)}; there are {there}.", code="unknown_column")


def _compared(table: str, name: str, kind: str, value: Any) -> Any:
    """Return a value as the database compares it with a column."""
    wanted = _COMPARED[kind]
    if isinstance(value, bool) != (kind == "boolean") or not isinstance(value, wanted[0]):
        raise ValidationError(f"{table}.{name} is compared with {wanted[1]}.", code="wrong_value")
    if kind == "real" and not -_LARGEST_REAL <= value <= _LARGEST_REAL:
        raise ValidationError(f"{table}.{name} is compared with a finite number.", code="wrong_value")
    return int(value) if kind == "boolean" else value


def _bounded(limit: int) -> int:
    return max(1, min(limit, MAX_ROWS))
