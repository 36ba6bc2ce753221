"""Where a workspace is, and how it is begun and opened: a folder with its declaration, its files, and `.workspace/`.

workspace.yaml          what is declared
prompts/ …              files of the workspace, as declared
.workspace/rows.db      the tables and their history (none of it with a PostgreSQL URL)
.workspace/contents/    files of snapshots, by hash
.workspace/dumps/       copies of the database
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import sqlalchemy as sa

from agent_memory.errors import ConfigurationError, DeclarationError, ReadOnlyError, StorageError
from agent_memory.files.atomic import make_private_folder, replace_file, translated
from agent_memory.models.clock import as_utc
from agent_memory.redaction import SecretRedactor, redact_value
from agent_memory.workspace.database import (
    Database,
    PostgresDatabase,
    Schema,
    SqliteDatabase,
    Transaction,
    Words,
    Writer,
    schema_of,
)
from agent_memory.workspace.database.engine import FILE
from agent_memory.workspace.declaration import Declaration, additions, canonical_json, read_declaration
from agent_memory.workspace.declaration.json_schemas import find_new_refused_patterns
from agent_memory.workspace.snapshots import DECLARATION

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from agent_memory.models.clock import Clock
    from agent_memory.workspace.declaration import Column

HIDDEN: Final = ".workspace"
URL_VARIABLE: Final = "AGENT_MEMORY_WORKSPACE_URL"
_FORMAT: Final = "2"
_BEFORE_TRUST: Final = "1"
"""The format in which no row had a trust."""


@dataclass(frozen=True, slots=True)
class OpenWorkspace:
    """A workspace that is open."""

    folder: Path
    declaration: Declaration
    database: Database
    schema: Schema
    words: Words

    @property
    def hidden(self) -> Path:
        """The folder of what is the workspace's own."""
        return self.folder / HIDDEN


def found_from(start: Path) -> Path:
    """Return the folder of the workspace that `start` is in.

    Raises:
        ConfigurationError: It is in none.
    """
    for folder in (start, *start.parents):
        if (folder / DECLARATION).is_file() and (folder / HIDDEN).is_dir():
            return folder
    raise ConfigurationError(
        f"There is no workspace at {start} or above it.",
        code="no_workspace",
        recovery="Go into its folder, name it with --at, or begin one: `agent-memory workspace init FILE`.",
    )


def begin(folder: Path, declaration: Path, url: str | None, clock: Clock | None) -> OpenWorkspace:
    """Begin a workspace in a folder.

    Raises:
        DeclarationError: The declaration is wrong.
        ConfigurationError: There is a workspace in this folder.
    """
    declared = read_declaration(declaration)
    _check_patterns(declared, declaration.name)
    _check_secrets(declared, declaration.read_text(encoding="utf-8"))
    if (folder / HIDDEN).exists():
        raise _begun(folder)
    make_private_folder(folder)
    target = folder / DECLARATION
    if target.exists() and target.resolve() != declaration.resolve():
        raise ConfigurationError(
            f"There is another {DECLARATION} in {folder}; nothing was changed.",
            code="exists",
            recovery="Choose another folder, or begin the workspace with that file.",
        )
    with translated(folder / HIDDEN, "create"):
        try:
            (folder / HIDDEN).mkdir(mode=0o700)  # one of those that begin at the same moment makes it
        except FileExistsError:
            raise _begun(folder) from None
    if not target.exists():
        with translated(target, "write"):
            replace_file(target, declaration.read_bytes(), durable=True)
    return _opened(folder, declared, url, clock, begun=False)


def _check_patterns(declared: Declaration, name: str) -> None:
    faults = [f"{name}: {column}: {reason}" for column, reason in find_new_refused_patterns(declared)]
    if faults:
        raise DeclarationError(
            "\n".join(faults),
            code="slow_pattern",
            recovery="Write these patterns without look-around and back-references: "
            "https://github.com/google/re2/wiki/Syntax",
        )


def _check_secrets(declared: Declaration, text: str = "", old: Declaration | None = None) -> None:
    """Refuse a declaration with a secret in a value or comment.

    Args:
        declared: Declaration to check.
        text: Its YAML text, for comments.
        old: Declaration of the existing workspace; what it holds is accepted.

    Raises:
        DeclarationError: It holds one; the place is named.
    """
    redactor = SecretRedactor()
    old_texts = set(_list_texts(old)) if old else set()
    comments = [("a comment", line) for line in text.splitlines() if "#" in line]
    for place, value in [*_list_texts(declared), *comments]:
        if (place, value) in old_texts:
            continue
        label = place.rpartition(".")[0].rpartition(".")[2] if place.endswith(".default") else ""
        if kinds := redact_value({label: value}, redactor)[1]:
            raise DeclarationError(
                f"The declaration holds a secret ({kinds[0]}) in {place}; nothing was written.",
                code="secret_in_declaration",
                recovery="Remove it from the file. Give a program its secrets by environment variables.",
            )


def _list_texts(declared: Declaration) -> list[tuple[str, Any]]:
    """Return place and value of each text and number of a declaration."""
    return list(_walk(declared.model_dump(mode="json", by_alias=True, exclude_defaults=True), ""))


def _walk(value: Any, place: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _walk(inner, f"{place}.{name}" if place else str(name))
    elif isinstance(value, list):
        for inner in value:
            yield from _walk(inner, place)
    elif not isinstance(value, bool) and not place.endswith(".pattern"):
        yield place, value


def _begun(folder: Path) -> ConfigurationError:
    return ConfigurationError(
        f"There is a workspace in {folder} already; nothing was changed.",
        code="exists",
        recovery="Choose another folder, or open this one with `agent-memory workspace status`.",
    )


def open_place(folder: Path, url: str | None, clock: Clock | None) -> OpenWorkspace:
    """Open the workspace of a folder; its declaration, where it was changed, is carried out as far as it only adds.

    Raises:
        ConfigurationError: There is none.
        DeclarationError: The declaration is wrong, or was changed in a way that rows might not fit.
        StorageError: The database is gone, empty or damaged.
    """
    if not (folder / HIDDEN).is_dir():
        raise ConfigurationError(
            f"There is no workspace in {folder}.",
            code="no_workspace",
            recovery="Begin one there with `agent-memory workspace init FILE`.",
        )
    if url is None:
        _check_database(folder / HIDDEN / FILE)
    return _opened(folder, read_declaration(folder / DECLARATION), url, clock, begun=True)


def _check_database(file: Path) -> None:
    """Check that there is a database, before an empty one is made where it was."""
    log = file.with_name(f"{file.name}-wal")
    if not any(each.is_file() and each.stat().st_size for each in (file, log)):
        raise StorageError(
            f"The database of this workspace, {HIDDEN}/{FILE}, is gone or empty; nothing was begun in its place.",
            code="no_database",
            recovery=f"Copy one of {HIDDEN}/dumps there. If its rows are in PostgreSQL, set {URL_VARIABLE}; "
            f"if it was never used, remove {HIDDEN} and begin again.",
            path=file,
        )


def _opened(folder: Path, declared: Declaration, url: str | None, clock: Clock | None, *, begun: bool) -> OpenWorkspace:
    folder = folder.resolve()
    database: Database
    if url is None:
        database = SqliteDatabase(folder / HIDDEN, clock=clock)
    else:
        database = PostgresDatabase(url, declared.workspace, clock=clock)
    schema = schema_of(declared, database.namespace)
    opened = OpenWorkspace(folder, declared, database, schema, Words(declared, database.namespace))
    try:
        if not _is_current(opened):
            with database.writing() as connection:
                _make_namespace(opened, connection, begun=begun)
                _make_current(opened, connection)
    except BaseException:
        database.close()
        raise
    return opened


def _is_current(opened: OpenWorkspace) -> bool:
    """Tell whether the tables are those of the declaration."""
    with opened.database.reading() as connection:
        if not sa.inspect(connection).has_table("ws_meta", schema=opened.database.namespace):
            return False
        meta = {name: _meta(connection, opened.schema, name) for name in ("format", "fingerprint")}
        same = meta == {"format": _FORMAT, "fingerprint": opened.declaration.fingerprint()}
        return same and opened.words.are_current(connection)


def _make_namespace(opened: OpenWorkspace, connection: sa.Connection, *, begun: bool) -> None:
    """Make the PostgreSQL schema of a new workspace; check that the one of a workspace that was begun is there.

    Raises:
        StorageError: It is not: another name, or another database.
    """
    namespace = opened.database.namespace
    if namespace is None:
        return
    if begun and not sa.inspect(connection).has_table("ws_meta", schema=namespace):
        raise StorageError(
            f"The PostgreSQL database has no workspace {namespace!r}; nothing was begun in its place.",
            code="no_database",
            recovery=f"If `workspace` was changed in {DECLARATION}, give it its name back; if the URL is that of "
            f"another database, correct {URL_VARIABLE}; if it was never used, remove {HIDDEN} and begin again.",
        )
    connection.execute(sa.schema.CreateSchema(namespace, if_not_exists=True))


def _make_current(opened: OpenWorkspace, connection: sa.Connection) -> None:
    """Make what is missing: all of it in a new database, what the declaration adds in one that is there."""
    namespace, schema = opened.database.namespace, opened.schema
    text = canonical_json(opened.declaration.model_dump(mode="json", by_alias=True))
    if sa.inspect(connection).has_table("ws_meta", schema=namespace):
        stored = _meta(connection, schema, "format")
        if stored not in (_BEFORE_TRUST, _FORMAT):
            raise ReadOnlyError(
                f"This workspace has the format {stored}; this version knows {_FORMAT}. Nothing was changed.",
                recovery="Upgrade amplifier-bundle-agent-memory.",
            )
        old = Declaration.model_validate_json(_meta(connection, schema, "declaration") or "{}")
        if stored == _BEFORE_TRUST:
            _add_trust(
                connection, [schema.steps, *(schema.declared[name] for name in old.tables if name in schema.declared)]
            )
        _check_secrets(opened.declaration, old=old)
        _add_columns(opened, connection, old)
        schema.metadata.create_all(connection)
        current = {"format": _FORMAT, "declaration": text, "fingerprint": opened.declaration.fingerprint()}
        for name, value in current.items():
            connection.execute(sa.update(schema.meta).where(schema.meta.c.key == name).values(value=value))
    else:
        schema.metadata.create_all(connection)
        rows = {
            "format": _FORMAT,
            "declaration": text,
            "fingerprint": opened.declaration.fingerprint(),
            "epoch": "0",
            "restoring": "",
            "due": "",
        }
        connection.execute(sa.insert(schema.meta), [{"key": key, "value": value} for key, value in rows.items()])
    _make_indexes(opened, connection)
    opened.words.create(connection)


def _add_trust(connection: sa.Connection, tables: Iterable[sa.Table]) -> None:
    preparer = connection.dialect.identifier_preparer
    for table in tables:
        specification = sa.schema.CreateColumn(table.c.ws_trust).compile(dialect=connection.dialect)
        connection.exec_driver_sql(f"ALTER TABLE {preparer.format_table(table)} ADD COLUMN {specification}")


def _add_columns(opened: OpenWorkspace, connection: sa.Connection, old: Declaration) -> None:
    added = additions(old, opened.declaration)
    at = opened.database.now(connection).isoformat(timespec="microseconds")
    transaction = Transaction(
        connection, opened.schema, Writer(), int(_meta(connection, opened.schema, "epoch") or 0), at
    )
    preparer = connection.dialect.identifier_preparer
    for table, column in added.columns:
        source = opened.schema.declared[table]
        declared = opened.declaration.tables[table].columns[column]
        specification = _specification(connection, source.c[column], declared)
        connection.exec_driver_sql(f"ALTER TABLE {preparer.format_table(source)} ADD COLUMN {specification}")
        if declared.default is not None:
            transaction.declare(table, column, _kept_default(declared))


def _specification(connection: sa.Connection, column: sa.Column[Any], declared: Column) -> str:
    """Return a column as `ALTER TABLE … ADD COLUMN` takes it, with the default for rows that are there."""
    whole = str(sa.schema.CreateColumn(column).compile(dialect=connection.dialect))
    if declared.default is None:
        return whole
    literal = sa.literal(_kept_default(declared)).compile(
        dialect=connection.dialect, compile_kwargs={"literal_binds": True}
    )
    bare = whole.removesuffix(" NOT NULL")
    return f"{bare} DEFAULT {literal}{' NOT NULL' if bare != whole else ''}"


def _kept_default(declared: Column) -> Any:
    """Return the default of a column as the database keeps it."""
    default = declared.default
    if declared.type == "json":
        return canonical_json(default)
    if declared.type == "real":
        return float(default)
    if declared.type == "timestamp":
        return as_utc(datetime.fromisoformat(default)).isoformat()
    return int(default) if isinstance(default, bool) else default


def _make_indexes(opened: OpenWorkspace, connection: sa.Connection) -> None:
    for table in opened.schema.declared.values():
        for index in table.indexes:
            index.create(connection, checkfirst=True)


def _meta(connection: sa.Connection, schema: Schema, key: str) -> str | None:
    found: str | None = connection.execute(sa.select(schema.meta.c.value).where(schema.meta.c.key == key)).scalar()
    return found
