"""The tables of a database: those that are declared, and the workspace's own, whose names begin with `ws_`.

Every declared table has `id`, the declared columns, `created_at`, `updated_at` and what says whether a row is shown.
SQLite gets STRICT tables (https://sqlite.org/stricttables.html), which know INTEGER, REAL and TEXT.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final

import sqlalchemy as sa

if TYPE_CHECKING:
    from agent_memory.workspace.declaration import Column, Declaration, Table

WHOLE: Final = sa.Integer().with_variant(sa.BigInteger(), "postgresql")
NUMBER: Final[sa.types.TypeEngine[float]] = sa.REAL().with_variant(sa.Double(), "postgresql")
TEXT: Final[sa.types.TypeEngine[str]] = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
"""Texts are ordered by the numbers of their characters: as SQLite does, whatever language a server is set to."""
_TYPES: Final[dict[str, Any]] = {"integer": WHOLE, "real": NUMBER, "boolean": WHOLE}
_MAX_NAME: Final = 63
"""Bytes of a name in PostgreSQL; longer ones it would cut."""


class State(IntEnum):
    """Whether a row is shown.

    SHOWN to all; PENDING and PENDING_PROPOSAL: of an attempt that goes on, shown to that alone, the second not even
    there; ASIDE: taken back, kept for the history; PROPOSAL: another row has the same unique value and came first.
    """

    SHOWN = 0
    PENDING = 1
    ASIDE = 2
    PROPOSAL = 3
    PENDING_PROPOSAL = 4


LOW: Final = "low"
"""What `ws_trust` says of a row in which a stranger's words may be; of others it says nothing."""
STEPS: Final = "ws_steps"
"""How far the steps are: the one table of the workspace's own that has a history, and so comes back with a snapshot."""


@dataclass(frozen=True, slots=True)
class Schema:
    """All tables of a workspace, as SQLAlchemy knows them."""

    metadata: sa.MetaData
    declared: dict[str, sa.Table]
    meta: sa.Table
    history: sa.Table
    texts: sa.Table
    steps: sa.Table
    leases: sa.Table
    marks: sa.Table

    def versioned(self, name: str) -> sa.Table:
        """Return a table that has a history, by its name."""
        return self.steps if name == STEPS else self.declared[name]


def schema_of(declaration: Declaration, namespace: str | None = None) -> Schema:
    """Return the tables of a declaration.

    Args:
        declaration: What is declared.
        namespace: The PostgreSQL schema that they are in.
    """
    metadata = sa.MetaData(schema=namespace)
    declared = {name: _declared(metadata, name, table) for name, table in declaration.tables.items()}
    return Schema(
        metadata=metadata,
        declared=declared,
        meta=_strict("ws_meta", metadata, _text("key", primary_key=True), _text("value", nullable=False)),
        history=_history(metadata),
        texts=_strict("ws_texts", metadata, _text("hash", primary_key=True), _text("content", nullable=False)),
        steps=_steps(metadata),
        leases=_leases(metadata),
        marks=_marks(metadata),
    )


def _declared(metadata: sa.MetaData, name: str, table: Table) -> sa.Table:
    columns = [
        _column(each, column, metadata.schema) for each, column in table.columns.items() if each not in _OWN_TIMES
    ]
    made = _strict(
        name,
        metadata,
        sa.Column("id", WHOLE, primary_key=True),
        *columns,
        _text("created_at", nullable=False),
        _text("updated_at", nullable=False),
        sa.Column("ws_state", WHOLE, nullable=False),
        sa.Column("ws_version", WHOLE, nullable=False),
        _text("ws_step"),
        sa.Column("ws_attempt", WHOLE),
        sa.Column("ws_ordinal", WHOLE),
        _text("ws_trust"),
        sa.UniqueConstraint("ws_step", "ws_attempt", "ws_ordinal", name=index_name("once", name)),
    )
    shown = made.c.ws_state == int(State.SHOWN)
    for each in table.unique_columns():
        sa.Index(
            index_name("unique", name, each), made.c[each], unique=True, sqlite_where=shown, postgresql_where=shown
        )
    indexed = {*table.index, *(each for each, column in table.columns.items() if column.references)}
    for each in sorted(indexed - set(table.unique_columns()) - _OWN_TIMES):
        # A hash index takes texts of any length; a B-tree of PostgreSQL refuses a row with a text of 3 kB.
        kind = "hash" if isinstance(made.c[each].type, sa.Text) else "btree"
        sa.Index(index_name("index", name, each), made.c[each], postgresql_using=kind)
    return made


_OWN_TIMES: Final = frozenset({"created_at", "updated_at"})


def index_name(kind: str, table: str, column: str = "") -> str:
    """Return the name of an index: no two are equal, and none is one that a declaration may give to a table.

    Names that are declared have no dot, so `a`.`b_c` and `a_b`.`c` differ; one that is too long ends in its hash.
    """
    whole = f"ws_{kind}_{table}" + (f".{column}" if column else "")
    if len(whole) <= _MAX_NAME:
        return whole
    digest = hashlib.sha256(whole.encode()).hexdigest()[:16]
    return f"{whole[: _MAX_NAME - 17]}_{digest}"


def _column(name: str, column: Column, namespace: str | None) -> sa.Column[Any]:
    if column.references is not None:
        target = ".".join(filter(None, (namespace, column.references, "id")))
        return sa.Column(name, WHOLE, sa.ForeignKey(target), nullable=not column.required)
    return sa.Column(name, _TYPES.get(column.type, TEXT), nullable=not column.required)


def _history(metadata: sa.MetaData) -> sa.Table:
    made = _strict(
        "ws_history",
        metadata,
        sa.Column("seq", WHOLE, primary_key=True),
        _text("tbl", nullable=False),
        sa.Column("row_id", WHOLE, nullable=False),
        _text("op", nullable=False),
        _text("changed", nullable=False),
        _text("agent"),
        _text("session"),
        _text("step"),
        sa.Column("attempt", WHOLE),
        sa.Column("epoch", WHOLE, nullable=False),
        _text("at", nullable=False),
        sqlite_autoincrement=True,
    )
    sa.Index("ws_history_row", made.c.tbl, made.c.row_id, made.c.seq)
    sa.Index("ws_history_step", made.c.step, made.c.attempt)
    return made


def _steps(metadata: sa.MetaData) -> sa.Table:
    made = _strict(
        STEPS,
        metadata,
        sa.Column("id", WHOLE, primary_key=True),
        _text("name", nullable=False),
        _text("status", nullable=False),
        sa.Column("done_attempt", WHOLE),
        sa.Column("failures", WHOLE, nullable=False),
        _text("message"),
        _text("ws_trust"),
        sa.Column("ws_version", WHOLE, nullable=False),
    )
    sa.Index("ws_steps_name", made.c.name, unique=True)
    return made


def _leases(metadata: sa.MetaData) -> sa.Table:
    return _strict(
        "ws_leases",
        metadata,
        _text("name", primary_key=True),
        _text("owner"),
        sa.Column("fence", WHOLE, nullable=False),
        sa.Column("attempt", WHOLE, nullable=False),
        sa.Column("epoch", WHOLE, nullable=False),
        _text("expires_at"),
    )


def _marks(metadata: sa.MetaData) -> sa.Table:
    return _strict(
        "ws_marks",
        metadata,
        _text("name", primary_key=True),
        sa.Column("seq", WHOLE, nullable=False),
        sa.Column("epoch", WHOLE, nullable=False),
        _text("declaration", nullable=False),
        _text("manifest", nullable=False),
        _text("made_by"),
        _text("made_at", nullable=False),
        _text("dump"),
        _text("dump_sha256"),
    )


def _text(name: str, **options: Any) -> sa.Column[Any]:
    return sa.Column(name, TEXT, **options)


def _strict(name: str, metadata: sa.MetaData, *parts: Any, **options: Any) -> sa.Table:
    return sa.Table(name, metadata, *parts, sqlite_strict=True, **options)
