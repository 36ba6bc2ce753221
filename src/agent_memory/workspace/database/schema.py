"""Tables of a database, and its word indexes.

Our own tables begin with `ws_`.

Every declared table has `id`, the declared columns, `created_at`, `updated_at` and the state of the row. SQLite gets
STRICT tables (https://sqlite.org/stricttables.html), which know INTEGER, REAL and TEXT.

Search by words is done by the database itself, so it is right after every change and restore. SQLite: FTS5 over the
table (https://sqlite.org/fts5.html), filled by triggers, ranked by BM25. PostgreSQL: an index on `to_tsvector`, ranked
by `ts_rank`. A row with any of the words is found; rows with more of them come first. Both end a word at any other
character than letters and digits, remove accents (é is e), and stem by Porter's algorithm. So both find the same rows;
their order may differ.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final

import sqlalchemy as sa

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_memory.workspace.declaration.model import Column, Declaration, Table

WHOLE: Final = sa.Integer().with_variant(sa.BigInteger(), "postgresql")
NUMBER: Final[sa.types.TypeEngine[float]] = sa.REAL().with_variant(sa.Double(), "postgresql")
TEXT: Final[sa.types.TypeEngine[str]] = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
"""Texts are ordered by code points, as in SQLite, whatever the language of the server."""
_WORD: Final = re.compile(r"\w+")
_MAX_WORDS: Final = 40
_INDEXED: Final = 150_000
"""Characters that PostgreSQL indexes of a row, in equal parts of its columns: a tsvector has no more than a megabyte,
and a word of one letter takes ten bytes (https://www.postgresql.org/docs/current/textsearch-limitations.html)."""
_STEMS: Final = "ws_stems"
_CONFIGURATION: Final = "ws_words"
_CONFIGURED: Final = sa.text(
    "SELECT 1 FROM pg_ts_config JOIN pg_namespace ON pg_namespace.oid = cfgnamespace "
    "WHERE nspname = :schema AND cfgname = :name"
)
_MARKS: Final = r"[\u0300-\u036f]+"
"""Combining marks, separate characters in NFD."""
_BETWEEN: Final = r"[\u0001-/:-@\[-`\u007b-\u00a9\u00ab-\u00b1\u00b6-\u00b8\u00bb\u00bf\u2000-\u206f\u3000-\u303f]+"
"""Punctuation that PostgreSQL's parser would read as part of addresses, paths and compounds."""
_TYPES: Final[dict[str, Any]] = {"integer": WHOLE, "real": NUMBER, "boolean": WHOLE}
_MAX_NAME: Final = 63
"""Bytes of a name in PostgreSQL, which cuts longer ones."""


class RowState(IntEnum):
    """State of a row.

    `SHOWN`: visible to all. `PENDING`: visible to its running attempt. `PENDING_PROPOSAL`: visible to none. `ASIDE`:
    undone, kept for the history. `PROPOSAL`: another row has the same unique value and came first.
    """

    SHOWN = 0
    PENDING = 1
    ASIDE = 2
    PROPOSAL = 3
    PENDING_PROPOSAL = 4


LOW: Final = "low"
"""Value of `ws_trust` for a row that may hold untrusted words; else it is empty."""
STEPS: Final = "ws_steps"
"""Progress of the steps: the only table of ours with a history, so a snapshot restores it."""


@dataclass(frozen=True, slots=True)
class Schema:
    """All tables of a workspace, as SQLAlchemy objects."""

    metadata: sa.MetaData
    declared: dict[str, sa.Table]
    meta: sa.Table
    history: sa.Table
    texts: sa.Table
    steps: sa.Table
    leases: sa.Table
    marks: sa.Table

    def get_versioned_table(self, name: str) -> sa.Table:
        """Return a table with a history, by name."""
        return self.steps if name == STEPS else self.declared[name]


def build_schema(declaration: Declaration, namespace: str | None = None) -> Schema:
    """Build the tables of a declaration.

    Args:
        declaration: Declaration of the workspace.
        namespace: PostgreSQL schema of the tables.
    """
    metadata = sa.MetaData(schema=namespace)
    declared = {name: _build_declared_table(metadata, name, table) for name, table in declaration.tables.items()}
    return Schema(
        metadata=metadata,
        declared=declared,
        meta=_build_own_table(metadata, "ws_meta"),
        history=_build_history(metadata),
        texts=_build_own_table(metadata, "ws_texts"),
        steps=_build_steps(metadata),
        leases=_build_own_table(metadata, "ws_leases"),
        marks=_build_own_table(metadata, "ws_marks"),
    )


def _build_declared_table(metadata: sa.MetaData, name: str, table: Table) -> sa.Table:
    columns = [
        _build_column(column_name, column, metadata.schema)
        for column_name, column in table.columns.items()
        if column_name not in _OWN_TIMES
    ]
    built = sa.Table(
        name,
        metadata,
        sa.Column("id", WHOLE, primary_key=True),
        *columns,
        sa.Column("created_at", TEXT, nullable=False),
        sa.Column("updated_at", TEXT, nullable=False),
        sa.Column("ws_state", WHOLE, nullable=False),
        sa.Column("ws_version", WHOLE, nullable=False),
        sa.Column("ws_step", TEXT),
        sa.Column("ws_attempt", WHOLE),
        sa.Column("ws_ordinal", WHOLE),
        sa.Column("ws_trust", TEXT),
        sa.UniqueConstraint("ws_step", "ws_attempt", "ws_ordinal", name=get_index_name("once", name)),
        sqlite_strict=True,
    )
    shown = built.c.ws_state == int(RowState.SHOWN)
    for column_name in table.unique_columns():
        sa.Index(
            get_index_name("unique", name, column_name),
            built.c[column_name],
            unique=True,
            sqlite_where=shown,
            postgresql_where=shown,
        )
    indexed = {*table.index, *(column_name for column_name, column in table.columns.items() if column.references)}
    for column_name in sorted(indexed - set(table.unique_columns()) - _OWN_TIMES):
        # A hash index takes texts of any length; a B-tree of PostgreSQL refuses a row with a text of 3 kB.
        kind = "hash" if isinstance(built.c[column_name].type, sa.Text) else "btree"
        sa.Index(get_index_name("index", name, column_name), built.c[column_name], postgresql_using=kind)
    return built


_OWN_TIMES: Final = frozenset({"created_at", "updated_at"})


def get_index_name(kind: str, table: str, column: str = "") -> str:
    """Return the unique name of an index.

    Declared names have no dot, so `a`.`b_c` and `a_b`.`c` differ. A name that is too long ends in its hash.
    """
    full_name = f"ws_{kind}_{table}" + (f".{column}" if column else "")
    if len(full_name) <= _MAX_NAME:
        return full_name
    digest = hashlib.sha256(full_name.encode()).hexdigest()[:16]
    return f"{full_name[: _MAX_NAME - 17]}_{digest}"


def _build_column(name: str, column: Column, namespace: str | None) -> sa.Column[Any]:
    if column.references is not None:
        target = ".".join(filter(None, (namespace, column.references, "id")))
        return sa.Column(name, WHOLE, sa.ForeignKey(target), nullable=not column.required)
    return sa.Column(name, _TYPES.get(column.type, TEXT), nullable=not column.required)


_OWN_TABLES: Final = {
    "ws_meta": "key text primary, value text required",
    "ws_texts": "hash text primary, content text required",
    "ws_history": (
        "seq whole primary, tbl text required, row_id whole required, op text required, changed text required, "
        "agent text, session text, step text, attempt whole, epoch whole required, at text required"
    ),
    STEPS: (
        "id whole primary, name text required, status text required, done_attempt whole, failures whole required, "
        "message text, ws_trust text, ws_version whole required"
    ),
    "ws_leases": (
        "name text primary, owner text, fence whole required, attempt whole required, epoch whole required, "
        "expires_at text"
    ),
    "ws_marks": (
        "name text primary, seq whole required, epoch whole required, declaration text required, "
        "manifest text required, made_by text, made_at text required, dump text, dump_sha256 text"
    ),
}
"""Columns of our own tables: name, type, and `primary` or `required`."""


def _build_own_table(metadata: sa.MetaData, name: str, **options: Any) -> sa.Table:
    columns: list[sa.Column[Any]] = []
    for specification in _OWN_TABLES[name].split(", "):
        column_name, kind, *rule = specification.split()
        column_type = TEXT if kind == "text" else WHOLE
        columns.append(sa.Column(column_name, column_type, primary_key=rule == ["primary"], nullable=not rule))
    return sa.Table(name, metadata, *columns, sqlite_strict=True, **options)


def _build_history(metadata: sa.MetaData) -> sa.Table:
    history = _build_own_table(metadata, "ws_history", sqlite_autoincrement=True)
    sa.Index("ws_history_row", history.c.tbl, history.c.row_id, history.c.seq)
    sa.Index("ws_history_step", history.c.step, history.c.attempt)
    return history


def _build_steps(metadata: sa.MetaData) -> sa.Table:
    steps = _build_own_table(metadata, STEPS)
    sa.Index("ws_steps_name", steps.c.name, unique=True)
    return steps


class WordIndex:
    """Word indexes of the tables of a workspace."""

    def __init__(self, declaration: Declaration, namespace: str | None) -> None:
        self._columns = {name: table.search for name, table in declaration.tables.items() if table.search}
        self._namespace = namespace

    def are_current(self, connection: sa.Connection) -> bool:
        """Return True if a PostgreSQL schema can stem words.

        Schemas of older versions cannot.
        """
        if connection.dialect.name != "postgresql" or not self._columns:
            return True
        return self._is_configured(connection)

    def create(self, connection: sa.Connection) -> None:
        """Create missing indexes, and rebuild those with other columns."""
        for table, columns in self._columns.items():
            if connection.dialect.name == "postgresql":
                self._create_configuration(connection)
                self._create_postgres(connection, table, columns)
            else:
                _create_sqlite(connection, table, columns)

    def matching(
        self, connection: sa.Connection, table: sa.Table, query: str
    ) -> tuple[sa.FromClause, sa.ColumnElement[float]]:
        """Return id and rank of rows with any word of `query`.

        A smaller rank is better.
        """
        words = _WORD.findall(query)[:_MAX_WORDS]
        if connection.dialect.name == "postgresql":
            return self._matching_postgres(table, words)
        return _matching_sqlite(table, words)

    def _create_postgres(self, connection: sa.Connection, table: str, columns: Sequence[str]) -> None:
        name = f'"{self._namespace}"."{table}"'
        index = get_index_name("words", table)
        connection.exec_driver_sql(f'DROP INDEX IF EXISTS "{self._namespace}"."{index}"')
        vector = self._vector(columns)
        connection.exec_driver_sql(f'CREATE INDEX "{index}" ON {name} USING gin ({vector})')

    def _matching_postgres(self, table: sa.Table, words: list[str]) -> tuple[sa.FromClause, sa.ColumnElement[float]]:
        vector: sa.ColumnClause[str] = sa.literal_column(self._vector(self._columns[table.name]))
        bare = (re.sub(_MARKS, "", unicodedata.normalize("NFD", word)) for word in words)
        query = sa.func.to_tsquery(sa.literal_column(f"'{self._configuration}'::regconfig"), " | ".join(bare))
        rank = (-sa.func.ts_rank(vector, query)).label("rank")
        matches = sa.select(table.c.id.label("id"), rank).where(vector.op("@@")(query)).subquery("found")
        return matches, matches.c.rank

    @property
    def _configuration(self) -> str:
        return f'"{self._namespace}"."{_CONFIGURATION}"'

    def _is_configured(self, connection: sa.Connection) -> bool:
        named = {"schema": self._namespace, "name": _CONFIGURATION}
        return connection.execute(_CONFIGURED, named).first() is not None

    def _create_configuration(self, connection: sa.Connection) -> None:
        """Create the text search configuration: `simple`, with Porter stems."""
        if self._is_configured(connection):
            return
        stems = f'"{self._namespace}"."{_STEMS}"'
        connection.exec_driver_sql(f"CREATE TEXT SEARCH DICTIONARY {stems} (TEMPLATE = snowball, LANGUAGE = porter)")
        connection.exec_driver_sql(f"CREATE TEXT SEARCH CONFIGURATION {self._configuration} (COPY = simple)")
        connection.exec_driver_sql(
            f"ALTER TEXT SEARCH CONFIGURATION {self._configuration} "
            f"ALTER MAPPING FOR asciiword, word, numword WITH {stems}"
        )

    def _vector(self, columns: Sequence[str]) -> str:
        part = _INDEXED // len(columns)
        full_text = " || ' ' || ".join(f"left(coalesce(\"{column}\", ''), {part})" for column in columns)
        bare = f"regexp_replace(normalize({full_text}, NFD), '{_MARKS}', '', 'g')"
        return f"to_tsvector('{self._configuration}'::regconfig, regexp_replace({bare}, '{_BETWEEN}', ' ', 'g'))"


def _create_sqlite(connection: sa.Connection, table: str, columns: Sequence[str]) -> None:
    """Create the FTS5 table of a table.

    Names come from the declaration, which allows only letters, digits and `_`.
    """
    index = f"ws_words_{table}"
    listed = ", ".join(f'"{name}"' for name in columns)
    definition = (
        f"CREATE VIRTUAL TABLE \"{index}\" USING fts5({listed}, content='{table}', content_rowid='id', "
        'tokenize="porter unicode61 remove_diacritics 2")'
    )
    existing = connection.exec_driver_sql("SELECT sql FROM sqlite_master WHERE name = ?", (index,)).scalar()
    if existing == definition:
        return
    for name in ("insert", "update"):
        connection.exec_driver_sql(f'DROP TRIGGER IF EXISTS "{index}_{name}"')
    connection.exec_driver_sql(f'DROP TABLE IF EXISTS "{index}"')
    connection.exec_driver_sql(definition)
    connection.exec_driver_sql(f'INSERT INTO "{index}" ("{index}") VALUES (\'rebuild\')')  # noqa: S608 - a declared name
    new = ", ".join(f'new."{name}"' for name in columns)
    old = ", ".join(f'old."{name}"' for name in columns)
    add = f'INSERT INTO "{index}" (rowid, {listed}) VALUES (new.id, {new});'  # noqa: S608 - declared names
    drop = f'INSERT INTO "{index}" ("{index}", rowid, {listed}) VALUES (\'delete\', old.id, {old});'  # noqa: S608 - declared names
    connection.exec_driver_sql(f'CREATE TRIGGER "{index}_insert" AFTER INSERT ON "{table}" BEGIN {add} END')
    connection.exec_driver_sql(
        f'CREATE TRIGGER "{index}_update" AFTER UPDATE OF {listed} ON "{table}" BEGIN {drop} {add} END'
    )


def _matching_sqlite(table: sa.Table, words: list[str]) -> tuple[sa.FromClause, sa.ColumnElement[float]]:
    index = sa.table(f"ws_words_{table.name}", sa.column("rowid"), sa.column("rank"))
    any_word = " OR ".join(f'"{word}"' for word in words)
    matches = sa.text(f'"ws_words_{table.name}" MATCH :ws_query').bindparams(ws_query=any_word)
    ranked = sa.select(index.c.rowid.label("id"), index.c.rank.label("rank")).where(matches).subquery("found")
    return ranked, ranked.c.rank
