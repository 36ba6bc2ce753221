"""Reading of rows as a caller sees them.

A caller sees shown rows, rows of its own attempt, and of others what its phase reads.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import sqlalchemy as sa

from agent_memory.errors import RowNotFoundError, ValidationError
from agent_memory.redaction import quoted
from agent_memory.workspace.database.schema import LOW, RowState, Schema, WordIndex
from agent_memory.workspace.declaration.model import OWN_COLUMNS, Declaration, Table
from agent_memory.workspace.rows.row_values import ValueCodec, normalize_unique

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from agent_memory.workspace.rows.claims import RowCaller

MAX_ROWS: Final = 10_000
_MAX_QUERY: Final = 10_000
"""Maximum characters of a query, as in a search of memories."""
_LARGEST_REAL: Final = sys.float_info.max
_COMPARED: Final[dict[str, tuple[Any, str]]] = {
    "integer": (int, "an integer"),
    "real": (int | float, "a number"),
    "boolean": (bool, "true or false"),
    **dict.fromkeys(("text", "json", "timestamp", "file"), (str, "a text")),
}
_OWN_TYPES: Final = {"id": "integer", "created_at": "timestamp", "updated_at": "timestamp"}


@dataclass(frozen=True, slots=True)
class RowPage:
    """Rows of a page, and their total number."""

    rows: list[dict[str, Any]]
    total: int


@dataclass(frozen=True, slots=True)
class RowReader:
    """Reader of rows, within a transaction of the caller.

    Args:
        declaration: Declaration of the workspace.
        schema: Tables of the workspace.
        values: Codec of the values of each table.
        words: Word indexes of the tables.
    """

    declaration: Declaration
    schema: Schema
    values: Mapping[str, ValueCodec]
    words: WordIndex

    def table(self, name: str) -> sa.Table:
        """Return a declared table.

        Raises:
            ValidationError: It does not exist.
        """
        if name not in self.schema.declared:
            table_names = ", ".join(self.schema.declared)
            raise ValidationError(f"No table {quoted(name)}; there are {table_names}.", code="unknown_table")
        return self.schema.declared[name]

    def one(
        self, connection: sa.Connection, table: str, key: Any, caller: RowCaller, columns: Sequence[str] = ()
    ) -> dict[str, Any]:
        """Return a row by its key, or by id without one.

        Raises:
            RowNotFoundError: It does not exist, or the caller's phase may not see it.
        """
        condition = self.table(table).c.id == self.row_id(connection, table, key, caller)
        rows = self._load_rows(connection, table, [condition], caller, columns, limit=1)
        if not rows:
            raise RowNotFoundError(f"{table} has no row {quoted(key)}.")
        return rows[0]

    def row_id(
        self, connection: sa.Connection, table: str, key: Any, caller: RowCaller, *, all_rows: bool = False
    ) -> int:
        """Return the id of a row by its key.

        `all_rows` includes every shown row, whatever the phase reads.

        Raises:
            RowNotFoundError: It does not exist.
        """
        source = self.table(table)
        return int(self._load_first(connection, table, key, caller, [source.c.id], all_rows=all_rows)[0])

    def load_stored(self, connection: sa.Connection, table: str, key: Any, caller: RowCaller) -> dict[str, Any]:
        """Return a stored row by its key, hidden columns included.

        Raises:
            RowNotFoundError: It does not exist, or the caller's phase may not see it.
        """
        return dict(self._load_first(connection, table, key, caller, [self.table(table)])._mapping)  # noqa: SLF001 - public in spite of its name

    def _load_first(
        self,
        connection: sa.Connection,
        table: str,
        key: Any,
        caller: RowCaller,
        wanted: list[Any],
        *,
        all_rows: bool = False,
    ) -> sa.Row[Any]:
        source = self.table(table)
        seen = build_shown_condition(source, caller) if all_rows else self._build_visible(table, caller)
        name_conditions = self.name_conditions(table, key)
        order = [
            source.c.ws_state.desc(),
            *([sa.case((name_conditions[0], 0), else_=1)] if len(name_conditions) > 1 else []),
        ]
        statement = sa.select(*wanted).where(sa.or_(*name_conditions), seen).order_by(*order).limit(1)  # its own first
        row = connection.execute(statement).first()
        if row is None:
            raise RowNotFoundError(f"{table} has no row {quoted(key)}.")
        return row

    def many(  # noqa: PLR0913 - each narrows the answer, and all are optional
        self,
        connection: sa.Connection,
        table: str,
        caller: RowCaller,
        *,
        where: Mapping[str, Any] | None = None,
        filled: str | None = None,
        columns: Sequence[str] = (),
        limit: int = MAX_ROWS,
        offset: int = 0,
    ) -> RowPage:
        """Return matching rows in the order of key or id.

        Args:
            connection: Connection in a transaction.
            table: Name of the table.
            caller: Reader of the rows.
            where: Value that each named column must have.
            filled: Column that must have a value.
            columns: Columns to return; all if empty.
            limit: Maximum number of rows, up to 10,000.
            offset: Number of rows to skip.
        """
        source = self.table(table)
        conditions = [
            self._build_equals(connection, table, name, value, caller) for name, value in (where or {}).items()
        ]
        if filled is not None:
            self._check_columns(table, [filled])
            conditions.append(self._get_column(table, filled).is_not(None))
        rows = self._load_rows(connection, table, conditions, caller, columns, limit=limit, offset=offset)
        total = len(rows)
        if offset or len(rows) == limit:
            counted = (
                sa.select(sa.func.count()).select_from(source).where(*conditions, self._build_visible(table, caller))
            )
            total = int(connection.execute(counted).scalar_one())
        return RowPage(rows, total)

    def search(
        self,
        connection: sa.Connection,
        table: str,
        query: str,
        caller: RowCaller,
        columns: Sequence[str] = (),
        limit: int = 20,
    ) -> list[dict[str, Any]]:
        """Return rows with words of `query`, the best first.

        Raises:
            ValidationError: The table declares no columns for search, or `query` has more than 10,000 characters.
        """
        source = self.table(table)
        if not self.declaration.tables[table].search:
            raise ValidationError(f"{table} declares no columns to search.", code="not_searchable")
        if len(query) > _MAX_QUERY:
            raise ValidationError(
                f"A search has at most {_MAX_QUERY:,} characters; this has {len(query):,}.", code="too_long"
            )
        if not any(character.isalnum() for character in query):
            return []
        matches, rank = self.words.matching(connection, source, query)
        statement, names = self._select(table, columns)
        statement = statement.join(matches, matches.c.id == source.c.id)
        statement = (
            statement.where(self._build_visible(table, caller)).order_by(rank, source.c.id).limit(_clamp_limit(limit))
        )
        return self._render_rows(table, names, connection.execute(statement), caller)

    def proposals(self, connection: sa.Connection, table: str, caller: RowCaller) -> list[dict[str, Any]]:
        """Return the proposals of a table, as `many` does."""
        source = self.table(table)
        statement, names = self._select(table, ())
        reach = self._build_reach(table, caller)
        statement = statement.where(source.c.ws_state == int(RowState.PROPOSAL), reach).order_by(source.c.id)
        return self._render_rows(table, names, connection.execute(statement), caller)

    def name_conditions(self, table: str, key: Any) -> list[sa.ColumnElement[bool]]:
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
        stored = normalize_unique(key) if isinstance(key, str) and kind == "text" else key
        return [source.c[name] == form for form in dict.fromkeys((key, stored))]

    def _build_equals(
        self, connection: sa.Connection, table: str, name: str, value: Any, caller: RowCaller
    ) -> sa.ColumnElement[bool]:
        self._check_columns(table, [name])
        column = self.declaration.tables[table].columns.get(name)
        if value is None:
            return self._get_column(table, name).is_(None)
        if column is not None and column.references is not None:
            value = self.row_id(connection, column.references, value, caller, all_rows=True)
        else:
            value = _convert_compared(table, name, column.type if column is not None else _OWN_TYPES[name], value)
        same = {value: None}
        if column is not None and column.type == "text" and name in self.declaration.tables[table].unique_columns():
            same[normalize_unique(value)] = None
        condition: sa.ColumnElement[bool] = self._get_column(table, name).in_(list(same))
        return condition

    def _load_rows(
        self,
        connection: sa.Connection,
        table: str,
        conditions: Sequence[sa.ColumnElement[bool]],
        caller: RowCaller,
        columns: Sequence[str],
        *,
        limit: int,
        offset: int = 0,
    ) -> list[dict[str, Any]]:
        source, declared = self.table(table), self.declaration.tables[table]
        statement, names = self._select(table, columns)
        statement = statement.where(*conditions, self._build_visible(table, caller)).order_by(
            *_list_order(source, declared.key)
        )
        statement = statement.limit(_clamp_limit(limit)).offset(max(0, offset))
        return self._render_rows(table, names, connection.execute(statement), caller)

    def _select(self, table: str, columns: Sequence[str]) -> tuple[sa.Select[Any], list[str]]:
        """Return a selection of columns, and their names.

        References are selected by the keys of their rows. The trust of the row comes last.
        """
        source, declared = self.table(table), self.declaration.tables[table]
        self._check_columns(table, columns)
        names = list(columns) or list_shown_columns(declared)
        wanted: list[Any] = []
        joined: sa.FromClause = source
        for name in names:
            target = declared.columns[name].references if name in declared.columns else None
            key = self.declaration.tables[target].key if target else None
            if target is None or key is None:
                wanted.append(self._get_column(table, name).label(name))
            else:
                referenced = self.schema.declared[target].alias(f"of_{name}")
                joined = joined.outerjoin(referenced, source.c[name] == referenced.c.id)
                wanted.append(referenced.c[key].label(name))
        return sa.select(*wanted, source.c.ws_trust).select_from(joined), names

    def _render_rows(
        self, table: str, names: Sequence[str], rows: Iterable[Sequence[Any]], caller: RowCaller
    ) -> list[dict[str, Any]]:
        """Return rows as callers see them.

        The last value of each is its trust, which is reported to `caller`.
        """
        readers, rendered = self.values[table].list_readers(names), list[dict[str, Any]]()
        for row in rows:
            shown = dict(zip(names, row, strict=False))
            for name, read in readers.items():
                if shown[name] is not None:
                    shown[name] = read(shown[name])
            if row[-1] == LOW and caller.on_low is not None:
                caller.on_low(table, shown)
            rendered.append(shown)
        return rendered

    def _build_visible(self, table: str, caller: RowCaller) -> sa.ColumnElement[bool]:
        """Return the condition for rows that the caller sees."""
        return sa.and_(build_shown_condition(self.schema.declared[table], caller), self._build_reach(table, caller))

    def _build_reach(self, table: str, caller: RowCaller) -> sa.ColumnElement[bool]:
        """Return the condition for rows that the caller's phase reads."""
        source, claim = self.schema.declared[table], caller.claim
        if claim is None or claim.phase is None or claim.row_id is None:
            return sa.true()
        phase = self.declaration.phase(claim.phase)
        if phase.reads == "all" or phase.over is None:
            return sa.true()
        over = self.schema.declared[phase.over]
        key = self.declaration.tables[phase.over].key or "id"
        if table == phase.over:
            earlier: sa.ColumnElement[bool] = source.c[key] <= claim.key
            return source.c.id == claim.row_id if phase.reads == "own" else earlier
        owner = find_owner_column(self.declaration, table, phase.over)
        if owner is None:
            return sa.true()
        belongs = source.c[owner] == claim.row_id
        if phase.reads == "earlier":
            belongs = source.c[owner].in_(sa.select(over.c.id).where(over.c[key] <= claim.key))
        return sa.or_(belongs, source.c[owner].is_(None))

    def _get_column(self, table: str, name: str) -> sa.ColumnElement[Any]:
        """Return a column; one for a finished phase is 1 or 0."""
        source, declared = self.schema.declared[table], self.declaration.tables[table]
        column = declared.columns.get(name)
        if column is None or column.done is None:
            return source.c[name]
        phase, steps = self.declaration.phase(column.done), self.schema.steps
        key: sa.ColumnElement[str] = sa.literal("")
        if phase.over is not None:
            key = sa.cast(source.c[declared.key or "id"], sa.String)
        names = [sa.literal(f"{phase.name}/{phase_agent.agent}/").concat(key) for phase_agent in phase.agents]
        done = sa.select(sa.func.count()).select_from(steps).where(steps.c.name.in_(names), steps.c.status == "done")
        return sa.case((done.scalar_subquery() == len(names), 1), else_=0)

    def _check_columns(self, table: str, columns: Sequence[str]) -> None:
        declared = self.declaration.tables[table]
        for name in columns:
            if name not in declared.columns and name not in OWN_COLUMNS:
                names = ", ".join(["id", *declared.columns])
                raise ValidationError(
                    f"{table} has no column {quoted(name)}; there are {names}.", code="unknown_column"
                )


def _list_order(source: sa.Table, key: str | None) -> list[sa.ColumnElement[Any]]:
    """Return an order of rows that is the same on every database."""
    if key is None:
        return [source.c.id]
    by_key = sa.nulls_first(source.c[key]) if source.c[key].nullable else source.c[key]
    return [by_key, source.c.ws_state.desc(), source.c.id]


def _convert_compared(table: str, name: str, kind: str, value: Any) -> Any:
    """Return a value as the database compares it with a column."""
    wanted = _COMPARED[kind]
    if isinstance(value, bool) != (kind == "boolean") or not isinstance(value, wanted[0]):
        raise ValidationError(f"{table}.{name} is compared with {wanted[1]}.", code="wrong_value")
    if kind == "real" and not -_LARGEST_REAL <= value <= _LARGEST_REAL:
        raise ValidationError(f"{table}.{name} is compared with a finite number.", code="wrong_value")
    return int(value) if kind == "boolean" else value


def _clamp_limit(limit: int) -> int:
    return max(1, min(limit, MAX_ROWS))


def list_shown_columns(table: Table) -> list[str]:
    """Return the names of the columns of a row that is shown."""
    return ["id", *table.columns, *(("created_at",) if "created_at" not in table.columns else ())]


def find_owner_column(declaration: Declaration, table: str, over: str) -> str | None:
    """Return the column that references `over`, or None."""
    declared = declaration.tables[table]
    candidates = [name for name, column in declared.columns.items() if column.references == over]
    return declared.belongs_to if declared.belongs_to in candidates else next(iter(candidates), None)


def build_shown_condition(source: sa.Table, caller: RowCaller) -> sa.ColumnElement[bool]:
    """Return the condition for shown rows, and those of the caller's attempt."""
    is_shown = source.c.ws_state == int(RowState.SHOWN)
    claim = caller.claim
    if claim is None or claim.step is None:
        return is_shown
    is_own = sa.and_(source.c.ws_state == int(RowState.PENDING), source.c.ws_step == claim.step)
    return sa.or_(is_shown, sa.and_(is_own, source.c.ws_attempt == claim.attempt))


def count_pending(connection: sa.Connection, source: sa.Table) -> int:
    """Return the number of rows of unfinished attempts."""
    states = (int(RowState.PENDING), int(RowState.PENDING_PROPOSAL))
    counted = sa.select(sa.func.count()).select_from(source).where(source.c.ws_state.in_(states))
    return int(connection.execute(counted).scalar_one())
