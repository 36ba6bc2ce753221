"""Search by words in declared columns, kept by the database itself: so it is right after every change, restores too.

SQLite: FTS5 over the table (https://sqlite.org/fts5.html), filled by triggers, ranked by BM25. PostgreSQL: an index on
`to_tsvector`, ranked by `ts_rank`. A row is found that has any of the words; those that have more of them come first.

Both take what stands between letters and digits as the end of a word, leave marks of letters out (é is e), and stem by
Porter's algorithm (https://tartarus.org/martin/PorterStemmer/), so both find the same rows; their order may differ.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, Final

import sqlalchemy as sa

from agent_memory.workspace.database.schema import index_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_memory.workspace.declaration import Declaration

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
"""Marks that are a character of their own in NFD."""
_BETWEEN: Final = r"[\u0001-/:-@\[-`\u007b-\u00a9\u00ab-\u00b1\u00b6-\u00b8\u00bb\u00bf\u2000-\u206f\u3000-\u303f]+"
"""Punctuation of which the parser of PostgreSQL would make addresses, paths and words with a hyphen."""


class Words:
    """The indexes of words of a workspace."""

    def __init__(self, declaration: Declaration, namespace: str | None) -> None:
        self._columns = {name: table.search for name, table in declaration.tables.items() if table.search}
        self._namespace = namespace

    def are_current(self, connection: sa.Connection) -> bool:
        """Tell whether a PostgreSQL schema has what stems its words; one that was made before has not."""
        if connection.dialect.name != "postgresql" or not self._columns:
            return True
        return self._is_configured(connection)

    def create(self, connection: sa.Connection) -> None:
        """Make the indexes that are missing, and those anew whose columns changed."""
        for table, columns in self._columns.items():
            if connection.dialect.name == "postgresql":
                self._create_configuration(connection)
                self._create_postgres(connection, table, columns)
            else:
                _create_sqlite(connection, table, columns)

    def matching(
        self, connection: sa.Connection, table: sa.Table, query: str
    ) -> tuple[sa.FromClause, sa.ColumnElement[float]]:
        """Return what to join: rows of (id, rank) that have a word of `query`; the smaller the rank, the better."""
        words = _WORD.findall(query)[:_MAX_WORDS]
        if connection.dialect.name == "postgresql":
            return self._matching_postgres(table, words)
        return _matching_sqlite(table, words)

    def _create_postgres(self, connection: sa.Connection, table: str, columns: Sequence[str]) -> None:
        name = f'"{self._namespace}"."{table}"'
        index = index_name("words", table)
        connection.exec_driver_sql(f'DROP INDEX IF EXISTS "{self._namespace}"."{index}"')
        vector = self._vector(columns)
        connection.exec_driver_sql(f'CREATE INDEX "{index}" ON {name} USING gin ({vector})')

    def _matching_postgres(self, table: sa.Table, words: list[str]) -> tuple[sa.FromClause, sa.ColumnElement[float]]:
        vector: sa.ColumnClause[str] = sa.literal_column(self._vector(self._columns[table.name]))
        bare = (re.sub(_MARKS, "", unicodedata.normalize("NFD", word)) for word in words)
        query = sa.func.to_tsquery(sa.literal_column(f"'{self._configuration}'::regconfig"), " | ".join(bare))
        rank = (-sa.func.ts_rank(vector, query)).label("rank")
        found = sa.select(table.c.id.label("id"), rank).where(vector.op("@@")(query)).subquery("found")
        return found, found.c.rank

    @property
    def _configuration(self) -> str:
        return f'"{self._namespace}"."{_CONFIGURATION}"'

    def _is_configured(self, connection: sa.Connection) -> bool:
        named = {"schema": self._namespace, "name": _CONFIGURATION}
        return connection.execute(_CONFIGURED, named).first() is not None

    def _create_configuration(self, connection: sa.Connection) -> None:
        """Make what turns texts into stems: as `simple`, but words by Porter's algorithm; no word is left out."""
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
        whole = " || ' ' || ".join(f"left(coalesce(\"{each}\", ''), {part})" for each in columns)
        bare = f"regexp_replace(normalize({whole}, NFD), '{_MARKS}', '', 'g')"
        return f"to_tsvector('{self._configuration}'::regconfig, regexp_replace({bare}, '{_BETWEEN}', ' ', 'g'))"


def _create_sqlite(connection: sa.Connection, table: str, columns: Sequence[str]) -> None:
    """Make the FTS5 table of a table; names come from the declaration, which allows letters, digits and `_` alone."""
    index = f"ws_words_{table}"
    listed = ", ".join(f'"{each}"' for each in columns)
    wanted = (
        f"CREATE VIRTUAL TABLE \"{index}\" USING fts5({listed}, content='{table}', content_rowid='id', "
        'tokenize="porter unicode61 remove_diacritics 2")'
    )
    there = connection.exec_driver_sql("SELECT sql FROM sqlite_master WHERE name = ?", (index,)).scalar()
    if there == wanted:
        return
    for each in ("insert", "update"):
        connection.exec_driver_sql(f'DROP TRIGGER IF EXISTS "{index}_{each}"')
    connection.exec_driver_sql(f'DROP TABLE IF EXISTS "{index}"')
    connection.exec_driver_sql(wanted)
    connection.exec_driver_sql(f'INSERT INTO "{index}" ("{index}") VALUES (\'rebuild\')')  # noqa: S608 - a declared name
    new = ", ".join(f'new."{each}"' for each in columns)
    old = ", ".join(f'old."{each}"' for each in columns)
    add = f'INSERT INTO "{index}" (rowid, {listed}) VALUES (new.id, {new});'  # noqa: S608 - declared names
    drop = f'INSERT INTO "{index}" ("{index}", rowid, {listed}) VALUES (\'delete\', old.id, {old});'  # noqa: S608 - declared names
    connection.exec_driver_sql(f'CREATE TRIGGER "{index}_insert" AFTER INSERT ON "{table}" BEGIN {add} END')
    connection.exec_driver_sql(
        f'CREATE TRIGGER "{index}_update" AFTER UPDATE OF {listed} ON "{table}" BEGIN {drop} {add} END'
    )


def _matching_sqlite(table: sa.Table, words: list[str]) -> tuple[sa.FromClause, sa.ColumnElement[float]]:
    index = sa.table(f"ws_words_{table.name}", sa.column("rowid"), sa.column("rank"))
    asked = " OR ".join(f'"{word}"' for word in words)
    matches = sa.text(f'"ws_words_{table.name}" MATCH :ws_query').bindparams(ws_query=asked)
    found = sa.select(index.c.rowid.label("id"), index.c.rank.label("rank")).where(matches).subquery("found")
    return found, found.c.rank
