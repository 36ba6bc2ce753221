"""Opening of a workspace, and the parts of an open one.

workspace.yaml          the declaration
prompts/ …              files of the workspace, as declared
.workspace/rows.db      the tables and their history (none of it with a PostgreSQL URL)
.workspace/contents/    files of snapshots, by hash
.workspace/dumps/       copies of the database
"""

from __future__ import annotations

import contextlib
import functools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import sqlalchemy as sa

from agent_memory.errors import ConfigurationError, DeclarationError, ReadOnlyError, StorageError
from agent_memory.files.atomic import make_private_folder, replace_file, translated
from agent_memory.journal.codec import advise_upgrade
from agent_memory.redaction import SecretRedactor, redact_value
from agent_memory.settings.installation import installed_version
from agent_memory.workspace.database.engine import FILE, PostgresDatabase, SqliteDatabase, WorkspaceDatabase
from agent_memory.workspace.database.history import ChangeAuthor, Transaction
from agent_memory.workspace.database.schema import RowState, Schema, WordIndex, build_schema
from agent_memory.workspace.declaration.json_schemas import find_new_refused_patterns
from agent_memory.workspace.declaration.model import DECLARATION, Declaration, canonical_json
from agent_memory.workspace.declaration.parser import find_additions, read_declaration
from agent_memory.workspace.rows.claims import LeaseTable, RowCaller
from agent_memory.workspace.rows.row_reader import RowReader
from agent_memory.workspace.rows.row_values import ValueCodec, clean_name
from agent_memory.workspace.rows.row_writer import ProposalFlags, RowWriter
from agent_memory.workspace.step_transitions import StepTransitions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from agent_memory.models.clock import Clock
    from agent_memory.workspace.step_plan import Step

HIDDEN: Final = ".workspace"
URL_VARIABLE: Final = "AGENT_MEMORY_WORKSPACE_URL"
_FORMAT: Final = "2"
_BEFORE_TRUST: Final = "1"
"""Format without the trust of rows."""
OnEvent: TypeAlias = "Callable[[str, dict[str, Any]], None]"
"""Receives the name of an event, and its fields."""
NOBODY: Final = RowCaller()
_NAMES: Final = 1_000
"""Cached clean names: redacting one takes a tenth of the time of a write."""


@dataclass(frozen=True, slots=True)
class OpenWorkspace:
    """Open workspace: folder, declaration, database."""

    folder: Path
    declaration: Declaration
    database: WorkspaceDatabase
    schema: Schema
    words: WordIndex

    @property
    def hidden(self) -> Path:
        """Folder of our own files."""
        return self.folder / HIDDEN


class WorkspaceCore:
    """Parts of an open workspace.

    Args:
        opened: The open workspace.
        on_event: Called for every change, with the event's name and fields without the text of rows.

    Attributes:
        name: Returns the stored form of an author's name; errors as `clean_name`.
    """

    def __init__(self, opened: OpenWorkspace, on_event: OnEvent | None) -> None:
        self.opened = opened
        self.declaration = opened.declaration
        self.redactor = SecretRedactor()
        self._on_event = on_event
        self.name = functools.lru_cache(_NAMES)(functools.partial(clean_name, self.redactor))
        meta = opened.schema.meta
        self._meta = sa.select(meta.c.value).where(meta.c.key == sa.bindparam("name"))
        tables = opened.declaration.tables
        self.values = {name: ValueCodec(name, table, self.redactor, opened.folder) for name, table in tables.items()}
        self.leases = LeaseTable()
        self.reader = RowReader(opened.declaration, opened.schema, self.values, opened.words)
        self.writer = RowWriter(opened.declaration, self.values, self.reader, self.leases)
        self._flagging = ProposalFlags(opened.declaration, self.values)
        self.working = StepTransitions(opened.declaration, self.reader, self.writer, self.leases)

    @contextlib.contextmanager
    def reading(self) -> Iterator[Transaction]:
        """Read one state of the workspace in the block."""
        with self.opened.database.reading() as connection:
            yield self._transaction(connection, ChangeAuthor())

    @contextlib.contextmanager
    def changing(self, caller: RowCaller) -> Iterator[Transaction]:
        """Write alone; the block is committed as a whole or not."""
        writer = caller.as_writer()
        agent = None if writer.agent is None else self.name("agent", writer.agent)
        session = None if writer.session is None else self.name("session", writer.session)
        with self.opened.database.writing() as connection:
            transaction = self._transaction(connection, replace(writer, agent=agent, session=session))
            yield transaction
            self.working.reopen_for_rows(transaction)
            self._flagging.flag(transaction)

    def steps(self) -> list[Step]:
        """Return all steps."""
        with self.reading() as transaction:
            return self.working.steps(transaction)

    def ready(self, agent: str | None = None) -> list[Step]:
        """Return the steps that can run now, of one agent or all."""
        return [step for step in self.steps() if step.status == "ready" and agent in (None, step.agent)]

    def meta(self, connection: sa.Connection, key: str) -> str:
        """Return a stored property of the workspace."""
        return str(connection.execute(self._meta, {"name": key}).scalar_one())

    def set_meta(self, connection: sa.Connection, key: str, value: str) -> None:
        """Store a property of the workspace."""
        meta = self.opened.schema.meta
        connection.execute(sa.update(meta).where(meta.c.key == key).values(value=value))

    def make_singletons(self) -> None:
        """Add the missing rows of singletons."""
        wanted = [name for name, table in self.declaration.tables.items() if table.kind == "singleton"]
        with self.opened.database.reading() as connection:
            missing = [name for name in wanted if not self._has_row(connection, name)]
        if not missing:
            return
        with self.changing(NOBODY) as transaction:
            for name in missing:
                if not self._has_row(transaction.connection, name):
                    encoded = self.values[name].encode({}, is_complete=True)
                    transaction.insert(name, {**encoded.values, "ws_state": int(RowState.SHOWN)})

    def emit(self, event: str, caller: RowCaller, **fields: Any) -> None:
        """Emit an event about a change."""
        if self._on_event is not None:
            self._on_event(event, {"workspace": self.declaration.workspace, "agent": caller.agent, **fields})

    def _transaction(self, connection: sa.Connection, writer: ChangeAuthor) -> Transaction:
        epoch = int(self.meta(connection, "epoch"))
        now = self.opened.database.now(connection).isoformat(timespec="microseconds")
        return Transaction(connection, self.opened.schema, writer, epoch, now)

    def _has_row(self, connection: sa.Connection, table: str) -> bool:
        source = self.opened.schema.declared[table]
        return connection.execute(sa.select(source.c.id).limit(1)).first() is not None


def found_from(start: Path) -> Path:
    """Return the folder of the workspace that contains `start`.

    Raises:
        ConfigurationError: It is in none.
    """
    for folder in (start, *start.parents):
        if (folder / DECLARATION).is_file() and (folder / HIDDEN).is_dir():
            return folder
    raise ConfigurationError(
        f"No workspace at {start} or above it.",
        code="no_workspace",
        recovery="Go into its folder, name it with --at, or begin one: `agent-memory workspace init FILE`.",
    )


def create_in_folder(folder: Path, declaration: Path, url: str | None, clock: Clock | None) -> OpenWorkspace:
    """Create a workspace in a folder.

    Raises:
        DeclarationError: The declaration is wrong.
        ConfigurationError: There is a workspace in this folder.
    """
    declared = read_declaration(declaration)
    _check_patterns(declared, declaration.name)
    _check_secrets(declared, declaration.read_text(encoding="utf-8"))
    if (folder / HIDDEN).exists():
        raise _build_exists_error(folder)
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
            (folder / HIDDEN).mkdir(mode=0o700)  # only one of several concurrent calls creates it
        except FileExistsError:
            raise _build_exists_error(folder) from None
    if not target.exists():
        with translated(target, "write"):
            replace_file(target, declaration.read_bytes(), durable=True)
    return _open(folder, declared, url, clock, exists=False)


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


def _build_exists_error(folder: Path) -> ConfigurationError:
    return ConfigurationError(
        f"There is a workspace in {folder} already; nothing was changed.",
        code="exists",
        recovery="Choose another folder, or open this one with `agent-memory workspace status`.",
    )


def open_folder(folder: Path, url: str | None, clock: Clock | None) -> OpenWorkspace:
    """Open the workspace of a folder, and apply additions to its declaration.

    Raises:
        ConfigurationError: It does not exist.
        DeclarationError: The declaration is wrong, or was changed in a way that rows might not fit.
        StorageError: The database is missing, empty or damaged.
    """
    if not (folder / HIDDEN).is_dir():
        raise ConfigurationError(
            f"No workspace in {folder}.",
            code="no_workspace",
            recovery="Begin one there with `agent-memory workspace init FILE`.",
        )
    if url is None:
        _check_database(folder / HIDDEN / FILE)
    return _open(folder, read_declaration(folder / DECLARATION), url, clock, exists=True)


def _check_database(file: Path) -> None:
    """Check that the database exists, so that no empty one replaces it."""
    log = file.with_name(f"{file.name}-wal")
    if not any(path.is_file() and path.stat().st_size for path in (file, log)):
        raise StorageError(
            f"The database of this workspace, {HIDDEN}/{FILE}, is missing or empty; no new one was created.",
            code="no_database",
            recovery=f"Copy one of {HIDDEN}/dumps there. If its rows are in PostgreSQL, set {URL_VARIABLE}; "
            f"if it was never used, remove {HIDDEN} and begin again.",
            path=file,
        )


def _open(folder: Path, declared: Declaration, url: str | None, clock: Clock | None, *, exists: bool) -> OpenWorkspace:
    folder = folder.resolve()
    database: WorkspaceDatabase
    if url is None:
        database = SqliteDatabase(folder / HIDDEN, clock=clock)
    else:
        database = PostgresDatabase(url, declared.workspace, clock=clock)
    schema = build_schema(declared, database.namespace)
    opened = OpenWorkspace(folder, declared, database, schema, WordIndex(declared, database.namespace))
    try:
        if not _is_current(opened):
            with database.writing() as connection:
                _make_namespace(opened, connection, exists=exists)
                _make_current(opened, connection)
    except BaseException:
        database.close()
        raise
    return opened


def _is_current(opened: OpenWorkspace) -> bool:
    """Return True if the tables match the declaration."""
    with opened.database.reading() as connection:
        if not sa.inspect(connection).has_table("ws_meta", schema=opened.database.namespace):
            return False
        meta = {name: _load_meta(connection, opened.schema, name) for name in ("format", "fingerprint")}
        is_same = meta == {"format": _FORMAT, "fingerprint": opened.declaration.fingerprint()}
        return is_same and opened.words.are_current(connection)


def _make_namespace(opened: OpenWorkspace, connection: sa.Connection, *, exists: bool) -> None:
    """Create the PostgreSQL schema of a workspace, or check that it exists.

    Raises:
        StorageError: It is missing: another name, or another database.
    """
    namespace = opened.database.namespace
    if namespace is None:
        return
    if exists and not sa.inspect(connection).has_table("ws_meta", schema=namespace):
        raise StorageError(
            f"The PostgreSQL database has no workspace {namespace!r}; nothing was begun in its place.",
            code="no_database",
            recovery=f"If `workspace` was changed in {DECLARATION}, give it its name back; if the URL is that of "
            f"another database, correct {URL_VARIABLE}; if it was never used, remove {HIDDEN} and begin again.",
        )
    connection.execute(sa.schema.CreateSchema(namespace, if_not_exists=True))


def _make_current(opened: OpenWorkspace, connection: sa.Connection) -> None:
    """Create missing tables, columns and indexes."""
    namespace, schema = opened.database.namespace, opened.schema
    text = canonical_json(opened.declaration.model_dump(mode="json", by_alias=True))
    current = {"format": _FORMAT, "declaration": text, "fingerprint": opened.declaration.fingerprint()}
    if sa.inspect(connection).has_table("ws_meta", schema=namespace):
        stored = _load_meta(connection, schema, "format")
        if stored not in (_BEFORE_TRUST, _FORMAT):
            raise ReadOnlyError(
                f"This workspace has the format {stored}; agent-memory {installed_version()} knows {_FORMAT}. Nothing "
                "was changed.",
                recovery=advise_upgrade(),
            )
        old = Declaration.model_validate_json(_load_meta(connection, schema, "declaration") or "{}")
        if stored == _BEFORE_TRUST:
            _add_trust(
                connection, [schema.steps, *(schema.declared[name] for name in old.tables if name in schema.declared)]
            )
        _check_secrets(opened.declaration, old=old)
        _add_columns(opened, connection, old)
        schema.metadata.create_all(connection)
        for table in schema.declared.values():
            for index in table.indexes:
                index.create(connection, checkfirst=True)
        for name, value in current.items():
            connection.execute(sa.update(schema.meta).where(schema.meta.c.key == name).values(value=value))
    else:
        schema.metadata.create_all(connection)
        rows = current | {"epoch": "0", "restoring": "", "due": ""}
        connection.execute(sa.insert(schema.meta), [{"key": key, "value": value} for key, value in rows.items()])
    opened.words.create(connection)


def _add_trust(connection: sa.Connection, tables: Iterable[sa.Table]) -> None:
    preparer = connection.dialect.identifier_preparer
    for table in tables:
        specification = sa.schema.CreateColumn(table.c.ws_trust).compile(dialect=connection.dialect)
        connection.exec_driver_sql(f"ALTER TABLE {preparer.format_table(table)} ADD COLUMN {specification}")


def _add_columns(opened: OpenWorkspace, connection: sa.Connection, old: Declaration) -> None:
    added = find_additions(old, opened.declaration)
    now = opened.database.now(connection).isoformat(timespec="microseconds")
    transaction = Transaction(
        connection, opened.schema, ChangeAuthor(), int(_load_meta(connection, opened.schema, "epoch") or 0), now
    )
    preparer = connection.dialect.identifier_preparer
    for table, column in added.columns:
        source = opened.schema.declared[table]
        default = _get_stored_default(opened, table, column)
        specification = _render_column(connection, source.c[column], default)
        connection.exec_driver_sql(f"ALTER TABLE {preparer.format_table(source)} ADD COLUMN {specification}")
        if default is not None:
            transaction.declare(table, column, default)


def _render_column(connection: sa.Connection, column: sa.Column[Any], default: Any) -> str:
    """Return a column for `ALTER TABLE … ADD COLUMN`, with its default."""
    specification = str(sa.schema.CreateColumn(column).compile(dialect=connection.dialect))
    if default is None:
        return specification
    literal = sa.literal(default).compile(dialect=connection.dialect, compile_kwargs={"literal_binds": True})
    bare = specification.removesuffix(" NOT NULL")
    return f"{bare} DEFAULT {literal}{' NOT NULL' if bare != specification else ''}"


def _get_stored_default(opened: OpenWorkspace, table: str, column: str) -> Any:
    """Return the default of a column in its stored form, or None."""
    declared = opened.declaration.tables[table]
    default = declared.columns[column].default
    codec = ValueCodec(table, declared, SecretRedactor(), opened.folder)
    return None if default is None else codec.encode({column: default}, is_complete=False).values[column]


def _load_meta(connection: sa.Connection, schema: Schema, key: str) -> str | None:
    value: str | None = connection.execute(sa.select(schema.meta.c.value).where(schema.meta.c.key == key)).scalar()
    return value
