"""History of all rows, one entry for each change.

A row at any moment is the fold of its entries up to then. An entry that brings an older value back (an undo, a
restore) names for each column the entry that first set this value, its origin. So the author of a value stays known.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeVar

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from agent_memory.workspace.database.schema import LOW, STEPS, RowState, Schema
from agent_memory.workspace.declaration.model import canonical_json

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

_LONG: Final = 512
"""Longer texts are stored once, by SHA-256."""
_TEXT: Final = "$text"
_DECLARED: Final = "declared"
"""Operation that adds a column with a default; rows have it from their beginning."""
_BATCH: Final = 500
"""Values in one `IN (…)`: SQLite before 3.32 takes 999 parameters, later ones 32,766, PostgreSQL 65,535."""
_Value = TypeVar("_Value")
_INSERTION: Final = "insertion"
_TIMES: Final = frozenset({"created_at", "updated_at"})
_WRITTEN: Final = frozenset({"insert", "update"})
"""Operations that store words of the author; others restore or show existing ones."""


@dataclass(frozen=True, slots=True)
class ChangeAuthor:
    """Author of a change.

    Attributes:
        agent: Name of the agent.
        session: Session that it runs in.
        step: Step that it works on.
        attempt: Number of the attempt at the step.
        is_low: True if untrusted words may be in the change.
    """

    agent: str | None = None
    session: str | None = None
    step: str | None = None
    attempt: int | None = None
    is_low: bool = False


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One change of one row.

    Attributes:
        changed: Column → value; a long text as `{"$text": sha256}`.
        origins: Column → number of the entry that first set this value, if it is another one.
    """

    seq: int
    table: str
    row_id: int
    op: str
    changed: dict[str, Any]
    origins: dict[str, int]
    agent: str | None
    session: str | None
    step: str | None
    attempt: int | None
    at: str


@dataclass(slots=True)
class FoldedRow:
    """Row after a number of entries: values, and their origins."""

    values: dict[str, Any] = field(default_factory=dict)
    origins: dict[str, int] = field(default_factory=dict)

    def add(self, entry: HistoryEntry) -> None:
        """Apply one more entry."""
        self.values.update(entry.changed)
        self.origins.update({name: entry.origins.get(name, entry.seq) for name in entry.changed})

    def add_missing(self, entry: HistoryEntry) -> None:
        """Add only unknown values of a later entry: defaults of new columns."""
        for name, value in entry.changed.items():
            if name not in self.values:
                self.values[name], self.origins[name] = value, entry.seq


@dataclass(slots=True)
class Transaction:
    """Changes of rows, each with an entry in the history.

    Attributes:
        connection: Connection in a transaction of a writer.
        epoch: Number of times that the workspace was restored.
        at: Time of all its changes, as ISO 8601 in UTC.
        proposed: Tables in which a row became or stopped being a proposal.
        shown: Tables in which a row was added to the shown ones.
    """

    connection: sa.Connection
    schema: Schema
    writer: ChangeAuthor
    epoch: int
    at: str
    proposed: set[str] = field(default_factory=set)
    shown: set[str] = field(default_factory=set)

    def insert(self, table: str, values: Mapping[str, Any], op: str = "insert") -> int:
        """Add a row; return its id."""
        into = self.schema.get_versioned_table(table)
        row = {**values, "ws_version": 1, **self._trust(op)}
        if "created_at" in into.c:
            row |= {"created_at": self.at, "updated_at": self.at}
        row_id = int(self.connection.execute(_get_insertion(into), row).scalar_one())
        if row.get("ws_state") == RowState.PROPOSAL:
            self.proposed.add(table)
        if row.get("ws_state") == RowState.SHOWN:
            self.shown.add(table)
        self._record(table, row_id, op, {name: value for name, value in row.items() if value is not None}, {})
        return row_id

    def update(
        self,
        table: str,
        row: Mapping[str, Any],
        values: Mapping[str, Any],
        op: str = "update",
        origins: Mapping[str, int] | None = None,
    ) -> bool:
        """Change columns of a row; return True if a value differs now.

        Args:
            table: Name of its table.
            row: Row before the change, hidden columns included.
            values: Columns to set; a long text may be given as `{"$text": sha256}`.
            op: Kind of the change.
            origins: Entries that first set values that come back, by column.
        """
        column_values = {name: value for name, value in values.items() if name in row}
        changed = {name: value for name, value in column_values.items() if not _is_equal(row[name], value)}
        if not changed:
            return False
        if "ws_state" in changed and RowState.PROPOSAL in (row["ws_state"], changed["ws_state"]):
            self.proposed.add(table)
        if op == "settle" and changed.get("ws_state") == RowState.SHOWN:
            self.shown.add(table)
        # Also for a row of low trust: this change remains when the earlier one is undone.
        changed |= self._trust(op)
        into = self.schema.get_versioned_table(table)
        new = {name: self.load_value(value) for name, value in changed.items()}
        new["ws_version"] = row["ws_version"] + 1
        if "updated_at" in into.c:
            new["updated_at"] = self.at
        # Names of columns are names of parameters too; those that begin with ws_ are in no declaration.
        here = into.c.id == sa.bindparam("ws_id", row["id"])
        self.connection.execute(sa.update(into).where(here).values(new))
        self._record(table, row["id"], op, {**new, **changed}, dict(origins or {}))
        return True

    def _trust(self, op: str) -> dict[str, Any]:
        """Return the trust of a change, which is never raised."""
        return {"ws_trust": LOW} if self.writer.is_low and op in _WRITTEN else {}

    def declare(self, table: str, column: str, value: Any) -> None:
        """Record a new column with a default for all rows."""
        source, history = self.schema.get_versioned_table(table), self.schema.history
        content = sa.literal(canonical_json({"v": {column: self._shorten(value)}}))
        fields = (
            sa.literal(table),
            source.c.id,
            sa.literal(_DECLARED),
            content,
            sa.literal(self.epoch),
            sa.literal(self.at),
        )
        names = ["tbl", "row_id", "op", "changed", "epoch", "at"]
        self.connection.execute(sa.insert(history).from_select(names, sa.select(*fields).order_by(source.c.id)))

    def _record(self, table: str, row_id: int, op: str, changed: dict[str, Any], origins: dict[str, int]) -> None:
        content = {"v": {name: self._shorten(value) for name, value in changed.items()}}
        kept_origins = {name: seq for name, seq in origins.items() if name in changed}
        if kept_origins:
            content["o"] = kept_origins
        author = {name: getattr(self.writer, name) for name in ("agent", "session", "step", "attempt")}
        values = {"tbl": table, "row_id": row_id, "op": op, "changed": canonical_json(content), **author}
        self.connection.execute(sa.insert(self.schema.history), {**values, "epoch": self.epoch, "at": self.at})

    def _shorten(self, value: Any) -> Any:
        if not isinstance(value, str) or len(value) <= _LONG:
            return value
        name = hash_text(value)
        insert = postgresql.insert if self.connection.dialect.name == "postgresql" else sqlite.insert
        statement = insert(self.schema.texts).values(hash=name, content=value).on_conflict_do_nothing()
        self.connection.execute(statement)
        return {_TEXT: name}

    def load_value(self, value: Any) -> Any:
        """Return a value of the history, a long text in full."""
        return load_text(self.connection, self.schema, value)


def _get_insertion(table: sa.Table) -> Any:
    """Return the cached statement that adds a row; building it is slow."""
    if _INSERTION not in table.info:
        table.info[_INSERTION] = sa.insert(table).returning(table.c.id)
    return table.info[_INSERTION]


def load_text(connection: sa.Connection, schema: Schema, value: Any) -> Any:
    """Return a value of the history, a long text in full."""
    if not isinstance(value, dict):
        return value
    texts = schema.texts
    return connection.execute(sa.select(texts.c.content).where(texts.c.hash == value[_TEXT])).scalar_one()


def iter_batches(values: Sequence[_Value]) -> Iterator[Sequence[_Value]]:
    """Yield values in batches that fit into one `IN (…)`."""
    for start in range(0, len(values), _BATCH):
        yield values[start : start + _BATCH]


def hash_text(text: str) -> str:
    """Return the SHA-256 of a text, as 64 hexadecimal digits."""
    return hashlib.sha256(text.encode()).hexdigest()


def _is_equal(stored: Any, value: Any) -> bool:
    """Return True if a column has this value, hashed or not."""
    if isinstance(value, dict):
        return isinstance(stored, str) and len(stored) > _LONG and hash_text(stored) == value[_TEXT]
    return type(stored) is type(value) and stored == value


def get_last_seq(connection: sa.Connection, schema: Schema) -> int:
    """Return the number of the last change; 0 before the first."""
    return int(connection.execute(sa.select(sa.func.coalesce(sa.func.max(schema.history.c.seq), 0))).scalar_one())


def iter_entries(
    connection: sa.Connection, schema: Schema, *conditions: sa.ColumnElement[bool]
) -> Iterator[HistoryEntry]:
    """Yield entries of the history, by row and then in order."""
    history = schema.history
    statement = sa.select(history).where(*conditions).order_by(history.c.tbl, history.c.row_id, history.c.seq)
    for row in connection.execute(statement):
        content = json.loads(row.changed)
        yield HistoryEntry(
            row.seq, row.tbl, row.row_id, row.op, content["v"], content.get("o", {}),
            row.agent, row.session, row.step, row.attempt, row.at,
        )  # fmt: skip


def list_recent_changes(
    connection: sa.Connection,
    schema: Schema,
    keys: Mapping[str, str],
    table: str | None,
    row_id: int | None,
    step: str | None,
    limit: int,
) -> list[dict[str, Any]]:
    """Return changes, the newest first, with the visible columns that each set.

    `key` is the present name of the row: name of a step, key of a row, or its id. `trust` is low for changes that may
    hold untrusted words, else None.
    """
    history = schema.history
    filters = {"tbl": table, "row_id": row_id, "step": step}
    conditions = [history.c[name] == value for name, value in filters.items() if value is not None]
    changes = connection.execute(
        sa.select(history).where(*conditions).order_by(history.c.seq.desc()).limit(limit)
    ).all()
    row_names = {
        name: _list_row_names(
            connection, schema, name, key, {change.row_id for change in changes if change.tbl == name}
        )
        for name, key in {**keys, STEPS: "name"}.items()
    }
    return [
        {
            "seq": change.seq, "at": change.at, "table": change.tbl, "row_id": change.row_id, "op": change.op,
            "key": row_names.get(change.tbl, {}).get(change.row_id, change.row_id),
            "columns": [name for name in json.loads(change.changed)["v"] if name[:3] != "ws_" and name not in _TIMES],
            "agent": change.agent, "session": change.session, "step": change.step, "attempt": change.attempt,
            "trust": json.loads(change.changed)["v"].get("ws_trust"),
        }
        for change in changes
    ]  # fmt: skip


def _list_row_names(
    connection: sa.Connection, schema: Schema, table: str, key: str, ids: Collection[int]
) -> dict[int, Any]:
    source, names = schema.get_versioned_table(table), dict[int, Any]()
    for batch in iter_batches(sorted(ids)):
        statement = sa.select(source.c.id, source.c[key]).where(source.c.id.in_(batch))
        names |= {row[0]: row[1] for row in connection.execute(statement)}
    return names


def find_changed_rows(
    connection: sa.Connection, schema: Schema, *conditions: sa.ColumnElement[bool]
) -> dict[tuple[str, int], list[HistoryEntry]]:
    """Return all entries of rows with a matching entry."""
    history = schema.history
    touched = sa.select(history.c.tbl, history.c.row_id).where(*conditions).distinct().subquery()
    entries_by_row: dict[tuple[str, int], list[HistoryEntry]] = {}
    joined = sa.select(history.c.seq).join(
        touched, sa.and_(history.c.tbl == touched.c.tbl, history.c.row_id == touched.c.row_id)
    )
    for entry in iter_entries(connection, schema, history.c.seq.in_(joined)):
        entries_by_row.setdefault((entry.table, entry.row_id), []).append(entry)
    return entries_by_row


def fold_entries(changes: Iterable[HistoryEntry], seq: int | None = None) -> FoldedRow | None:
    """Return a row after its entries up to `seq`, or None."""
    row: FoldedRow | None = None
    for entry in changes:
        if seq is not None and entry.seq > seq:
            if row is not None and entry.op == _DECLARED:
                row.add_missing(entry)
            continue
        row = row or FoldedRow()
        row.add(entry)
    return row


def load_row(connection: sa.Connection, schema: Schema, table: str, row_id: int) -> dict[str, Any]:
    """Return a row with all its columns."""
    source = schema.get_versioned_table(table)
    row = connection.execute(sa.select(source).where(source.c.id == row_id)).mappings().one()
    return dict(row)


NOT_THERE: Final = {"ws_state": int(RowState.ASIDE)}
"""Values of a row that did not exist at a restored moment: rows are never deleted."""
