"""The history of all rows: every change as the columns it set, numbered in the order of commits.

A row at any moment is the fold of its entries up to then. An entry that brings an older value back (an undoing, a
restore) names for each column the entry that first set this value, its origin: so it stays known whose value it is.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeVar

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from agent_memory.workspace.database.schema import LOW, STEPS, Schema, State
from agent_memory.workspace.declaration import canonical_json

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

_LONG: Final = 512
"""Characters from which on a text is kept once, by its SHA-256."""
_TEXT: Final = "$text"
_DECLARED: Final = "declared"
"""The change by which a column came with a default: a row had that before, too, where it had no other value."""
_PART: Final = 500
"""Values in one `IN (…)`: SQLite before 3.32 takes 999 parameters, later ones 32,766, PostgreSQL 65,535."""
_Value = TypeVar("_Value")
_INSERTION: Final = "insertion"
_TIMES: Final = frozenset({"created_at", "updated_at"})
_WRITTEN: Final = frozenset({"insert", "update"})
"""Changes that bring words of the writer's; others bring back, or show, what is there."""


@dataclass(frozen=True, slots=True)
class Writer:
    """Who writes.

    Attributes:
        agent: Its name.
        session: The session it runs in.
        step: The step it works on, and which attempt at it this is.
        is_low: A stranger's words may be in what it writes.
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
        origins: Column → number of the entry that first set this value, where that is not this one.
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
    """A row as a number of entries leave it: values, and the number of the entry each came from."""

    values: dict[str, Any] = field(default_factory=dict)
    origins: dict[str, int] = field(default_factory=dict)

    def add(self, entry: HistoryEntry) -> None:
        """Take one more entry into account."""
        self.values.update(entry.changed)
        self.origins.update({name: entry.origins.get(name, entry.seq) for name in entry.changed})

    def add_missing(self, entry: HistoryEntry) -> None:
        """Take from a later entry only what is not known yet: defaults of columns that came since."""
        for name, value in entry.changed.items():
            if name not in self.values:
                self.values[name], self.origins[name] = value, entry.seq


@dataclass(slots=True)
class Transaction:
    """Changes of rows, each with an entry in the history.

    Attributes:
        connection: In a transaction of a writer.
        epoch: How often the workspace was restored.
        at: The time of every change in it, as ISO 8601 in UTC.
        proposed: Tables in which a row became or stopped being a proposal.
        shown: Tables in which a row was added to those that are shown.
    """

    connection: sa.Connection
    schema: Schema
    writer: Writer
    epoch: int
    at: str
    proposed: set[str] = field(default_factory=set)
    shown: set[str] = field(default_factory=set)

    def insert(self, table: str, values: Mapping[str, Any], op: str = "insert") -> int:
        """Add a row; return its id."""
        into = self.schema.versioned(table)
        row = {**values, "ws_version": 1, **self._trust(op)}
        if "created_at" in into.c:
            row |= {"created_at": self.at, "updated_at": self.at}
        row_id = int(self.connection.execute(_insertion(into), row).scalar_one())
        if row.get("ws_state") == State.PROPOSAL:
            self.proposed.add(table)
        if row.get("ws_state") == State.SHOWN:
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
        """Change columns of a row; return whether any value is another one now.

        Args:
            table: Its table.
            row: The row as it is, hidden columns included.
            values: Columns to set; a long text may be given as `{"$text": sha256}`.
            op: What kind of change it is.
            origins: For columns whose values come back: which entry set them first.
        """
        column_values = {name: value for name, value in values.items() if name in row}
        changed = {name: value for name, value in column_values.items() if not _equal(row[name], value)}
        if not changed:
            return False
        if "ws_state" in changed and State.PROPOSAL in (row["ws_state"], changed["ws_state"]):
            self.proposed.add(table)
        if op == "settle" and changed.get("ws_state") == State.SHOWN:
            self.shown.add(table)
        # Also where the row is of low trust already: when the change before is taken back, this one still stands.
        changed |= self._trust(op)
        into = self.schema.versioned(table)
        new = {name: self.whole(value) for name, value in changed.items()}
        new["ws_version"] = row["ws_version"] + 1
        if "updated_at" in into.c:
            new["updated_at"] = self.at
        # Names of columns are names of parameters too; those that begin with ws_ are in no declaration.
        here = into.c.id == sa.bindparam("ws_id", row["id"])
        self.connection.execute(sa.update(into).where(here).values(new))
        self._record(table, row["id"], op, {**new, **changed}, dict(origins or {}))
        return True

    def _trust(self, op: str) -> dict[str, Any]:
        """Return the trust that a change gives its row: the lowest of all who wrote it, so it is never raised."""
        return {"ws_trust": LOW} if self.writer.is_low and op in _WRITTEN else {}

    def declare(self, table: str, column: str, value: Any) -> None:
        """Write down that all rows of a table have a new column with this default."""
        source, history = self.schema.versioned(table), self.schema.history
        told = sa.literal(canonical_json({"v": {column: self._shortened(value)}}))
        fields = (
            sa.literal(table),
            source.c.id,
            sa.literal(_DECLARED),
            told,
            sa.literal(self.epoch),
            sa.literal(self.at),
        )
        names = ["tbl", "row_id", "op", "changed", "epoch", "at"]
        self.connection.execute(sa.insert(history).from_select(names, sa.select(*fields).order_by(source.c.id)))

    def _record(self, table: str, row_id: int, op: str, changed: dict[str, Any], origins: dict[str, int]) -> None:
        told = {"v": {name: self._shortened(value) for name, value in changed.items()}}
        kept = {name: seq for name, seq in origins.items() if name in changed}
        if kept:
            told["o"] = kept
        self.connection.execute(
            sa.insert(self.schema.history),
            {
                "tbl": table,
                "row_id": row_id,
                "op": op,
                "changed": canonical_json(told),
                "agent": self.writer.agent,
                "session": self.writer.session,
                "step": self.writer.step,
                "attempt": self.writer.attempt,
                "epoch": self.epoch,
                "at": self.at,
            },
        )

    def _shortened(self, value: Any) -> Any:
        if not isinstance(value, str) or len(value) <= _LONG:
            return value
        name = sha256_of(value)
        insert = postgresql.insert if self.connection.dialect.name == "postgresql" else sqlite.insert
        statement = insert(self.schema.texts).values(hash=name, content=value).on_conflict_do_nothing()
        self.connection.execute(statement)
        return {_TEXT: name}

    def whole(self, value: Any) -> Any:
        """Return a value of the history, a long text as the text itself."""
        return whole_text(self.connection, self.schema, value)


def _insertion(table: sa.Table) -> Any:
    """Return the statement that adds a row; kept with the table, since making it takes as long as carrying it out."""
    if _INSERTION not in table.info:
        table.info[_INSERTION] = sa.insert(table).returning(table.c.id)
    return table.info[_INSERTION]


def whole_text(connection: sa.Connection, schema: Schema, value: Any) -> Any:
    """Return a value of the history, a long text as the text itself."""
    if not isinstance(value, dict):
        return value
    texts = schema.texts
    return connection.execute(sa.select(texts.c.content).where(texts.c.hash == value[_TEXT])).scalar_one()


def in_parts(values: Sequence[_Value]) -> Iterator[Sequence[_Value]]:
    """Yield values in parts that fit into one `IN (…)`."""
    for start in range(0, len(values), _PART):
        yield values[start : start + _PART]


def sha256_of(text: str) -> str:
    """Return the SHA-256 of a text, as 64 hexadecimal digits."""
    return hashlib.sha256(text.encode()).hexdigest()


def _equal(stored: Any, value: Any) -> bool:
    """Tell whether a column has this value already; `value` may be a long text by its hash."""
    if isinstance(value, dict):
        return isinstance(stored, str) and len(stored) > _LONG and sha256_of(stored) == value[_TEXT]
    return type(stored) is type(value) and stored == value


def last_seq(connection: sa.Connection, schema: Schema) -> int:
    """Return the number of the last change; 0 before the first."""
    return int(connection.execute(sa.select(sa.func.coalesce(sa.func.max(schema.history.c.seq), 0))).scalar_one())


def entries(connection: sa.Connection, schema: Schema, *conditions: sa.ColumnElement[bool]) -> Iterator[HistoryEntry]:
    """Yield entries of the history, row by row, each row's in their order."""
    history = schema.history
    wanted = sa.select(history).where(*conditions).order_by(history.c.tbl, history.c.row_id, history.c.seq)
    for each in connection.execute(wanted):
        told = json.loads(each.changed)
        yield HistoryEntry(
            each.seq, each.tbl, each.row_id, each.op, told["v"], told.get("o", {}),
            each.agent, each.session, each.step, each.attempt, each.at,
        )  # fmt: skip


def recent(
    connection: sa.Connection,
    schema: Schema,
    keys: Mapping[str, str],
    table: str | None,
    row_id: int | None,
    step: str | None,
    limit: int,
) -> list[dict[str, Any]]:
    """Return changes, the newest first, with the names of the columns that each set, none of the hidden ones.

    `key` names the row as it is called now: the name of a step, the key of a row, its id where it has none. `trust` is
    low for changes that brought what may be a stranger's words, else None.
    """
    history = schema.history
    named = {"tbl": table, "row_id": row_id, "step": step}
    conditions = [history.c[name] == value for name, value in named.items() if value is not None]
    found = connection.execute(sa.select(history).where(*conditions).order_by(history.c.seq.desc()).limit(limit)).all()
    called = {
        name: _called(connection, schema, name, key, {each.row_id for each in found if each.tbl == name})
        for name, key in {**keys, STEPS: "name"}.items()
    }
    return [
        {
            "seq": each.seq, "at": each.at, "table": each.tbl, "row_id": each.row_id, "op": each.op,
            "key": called.get(each.tbl, {}).get(each.row_id, each.row_id),
            "columns": [name for name in json.loads(each.changed)["v"] if name[:3] != "ws_" and name not in _TIMES],
            "agent": each.agent, "session": each.session, "step": each.step, "attempt": each.attempt,
            "trust": json.loads(each.changed)["v"].get("ws_trust"),
        }
        for each in found
    ]  # fmt: skip


def _called(connection: sa.Connection, schema: Schema, table: str, key: str, ids: Collection[int]) -> dict[int, Any]:
    source, found = schema.versioned(table), dict[int, Any]()
    for some in in_parts(sorted(ids)):
        named = sa.select(source.c.id, source.c[key]).where(source.c.id.in_(some))
        found |= {each[0]: each[1] for each in connection.execute(named)}
    return found


def rows_changed(
    connection: sa.Connection, schema: Schema, *conditions: sa.ColumnElement[bool]
) -> dict[tuple[str, int], list[HistoryEntry]]:
    """Return all entries of each row that has an entry for which the conditions hold: (table, id) → entries."""
    history = schema.history
    touched = sa.select(history.c.tbl, history.c.row_id).where(*conditions).distinct().subquery()
    found: dict[tuple[str, int], list[HistoryEntry]] = {}
    joined = sa.select(history.c.seq).join(
        touched, sa.and_(history.c.tbl == touched.c.tbl, history.c.row_id == touched.c.row_id)
    )
    for entry in entries(connection, schema, history.c.seq.in_(joined)):
        found.setdefault((entry.table, entry.row_id), []).append(entry)
    return found


def folded(changes: Iterable[HistoryEntry], seq: int | None = None) -> FoldedRow | None:
    """Return a row as its entries up to `seq` leave it; None where it did not exist yet."""
    row: FoldedRow | None = None
    for entry in changes:
        if seq is not None and entry.seq > seq:
            if row is not None and entry.op == _DECLARED:
                row.add_missing(entry)
            continue
        row = row or FoldedRow()
        row.add(entry)
    return row


def stored_row(connection: sa.Connection, schema: Schema, table: str, row_id: int) -> dict[str, Any]:
    """Return a row with all its columns."""
    source = schema.versioned(table)
    found = connection.execute(sa.select(source).where(source.c.id == row_id)).mappings().one()
    return dict(found)


NOT_THERE: Final = {"ws_state": int(State.ASIDE)}
"""What a row is set to that did not exist at a moment that comes back: rows are never deleted."""
