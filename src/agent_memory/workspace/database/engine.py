"""SQLite and PostgreSQL databases of a workspace.

SQLite's own waiting polls, and starves some of many writers for seconds. So writers wait for a lock of the kernel, in
their order, before they begin. PostgreSQL has advisory locks for that. Both make the numbers of the history follow the
order of commits.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import sqlite3
import stat
from abc import ABC, abstractmethod
from datetime import UTC
from typing import TYPE_CHECKING, Any, ClassVar, Final

import sqlalchemy as sa

from agent_memory.errors import (
    AgentMemoryError,
    BusyError,
    DiskFullError,
    ReadOnlyError,
    StorageError,
    UnsupportedError,
    ValidationError,
)
from agent_memory.files.atomic import make_private_folder, open_private, translated
from agent_memory.files.entries import shared_file_system
from agent_memory.files.lock import WAIT_SECONDS, file_lock
from agent_memory.models.clock import Clock, utc_now

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime
    from pathlib import Path


FILE: Final = "rows.db"
_LOCK: Final = "rows.lock"
_OLDEST: Final = (3, 37)
"""The first SQLite with STRICT tables."""
_CACHE_KIB: Final = 16_384


class WorkspaceDatabase(ABC):
    """Database of a workspace.

    Attributes:
        engine: Engine of SQLAlchemy.
        namespace: PostgreSQL schema of the tables; None on SQLite.
        file: File of the database; None on PostgreSQL.
    """

    engine: sa.Engine
    namespace: str | None = None
    file: Path | None = None
    _read_options: ClassVar[dict[str, Any]] = {}

    @contextlib.contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """Read one state of all tables, unaffected by other writers."""
        with _converting_errors(self.file), self.engine.connect() as connection:
            yield connection.execution_options(**self._read_options)

    @abstractmethod
    def writing(self) -> contextlib.AbstractContextManager[sa.Connection]:
        """Write alone; the block is committed as a whole or not."""

    @abstractmethod
    def now(self, connection: sa.Connection) -> datetime:
        """Return the time, by one clock for all users of the database."""

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()


class SqliteDatabase(WorkspaceDatabase):
    """SQLite file in WAL mode with every commit synced.

    Raises:
        UnsupportedError: SQLite is older than 3.37, or the folder is on a file system that machines share.
    """

    def __init__(self, folder: Path, *, clock: Clock | None = None) -> None:
        _check_version()
        make_private_folder(folder)
        _check_place(folder)
        self.file = folder / FILE
        self._lock = folder / _LOCK
        self._clock = clock or utc_now
        with translated(folder / FILE, "open"):
            _make_private(folder / FILE)
        self.engine = sa.create_engine(
            f"sqlite:///{folder / FILE}",
            connect_args={"check_same_thread": False, "timeout": WAIT_SECONDS},
            pool_size=4,
            max_overflow=16,
        )
        sa.event.listen(self.engine, "connect", _prepare)
        sa.event.listen(self.engine, "begin", _begin)

    @contextlib.contextmanager
    def writing(self) -> Iterator[sa.Connection]:
        """Write alone, after earlier waiters.

        Raises:
            BusyError: Another process wrote for too long.
        """
        with (
            _converting_errors(self.file),
            self.engine.connect().execution_options(ws_writes=True) as connection,
            file_lock(self._lock, self._open_lock, WAIT_SECONDS),
            connection.begin(),
        ):
            yield connection

    def now(self, connection: sa.Connection) -> datetime:
        """Return this machine's time: the database is on it."""
        del connection
        return self._clock()

    def _open_lock(self) -> int:
        return open_private(self._lock, os.O_RDWR | os.O_CREAT)


class PostgresDatabase(WorkspaceDatabase):
    """Schema of a PostgreSQL database, for workers on many machines.

    Args:
        url: Address, `postgresql://…`; a password in it is shown nowhere.
        namespace: Name of the PostgreSQL schema.
    """

    _read_options: ClassVar[dict[str, Any]] = {"isolation_level": "REPEATABLE READ"}

    def __init__(self, url: str, namespace: str, *, clock: Clock | None = None) -> None:
        self.namespace = namespace
        self._clock = clock
        try:
            address = sa.make_url(url).set(drivername="postgresql+psycopg")
            self.engine = sa.create_engine(address, pool_size=4, max_overflow=16, pool_pre_ping=True)
        except ModuleNotFoundError as error:
            raise UnsupportedError(
                "PostgreSQL needs the package psycopg, which is not installed; SQLite needs nothing more.",
                recovery="Install psycopg[binary], or leave the URL out.",
            ) from error
        except sa.exc.ArgumentError as error:
            raise UnsupportedError(
                "The URL of the database is none that SQLAlchemy reads.",
                recovery="Write it as postgresql://USER@HOST/DATABASE.",
            ) from error

    @contextlib.contextmanager
    def writing(self) -> Iterator[sa.Connection]:
        """Write alone in this schema.

        Every read in the block sees what was committed before it began.
        """
        with _converting_errors(None), self.engine.begin() as connection:
            connection.execute(sa.text(f"SET LOCAL lock_timeout = {int(WAIT_SECONDS * 1000)}"))
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(sa.func.hashtextextended(self.namespace, 0))))
            yield connection

    def now(self, connection: sa.Connection) -> datetime:
        """Return the server's time, the same for workers on all machines."""
        if self._clock is not None:
            return self._clock()
        moment: datetime = connection.execute(sa.select(sa.func.clock_timestamp())).scalar_one()
        return moment.astimezone(UTC)


def _make_private(file: Path) -> None:
    """Create a file that only its owner may read, unless it exists.

    An existing file is not opened: closing any descriptor of a file drops all locks of this process on it (POSIX), also
    those of connections in use. Another process that closes its own would then remove the log that these write to.

    Raises:
        OSError: It cannot be created, or is not a regular file.
    """
    try:
        os.close(open_private(file, os.O_RDWR | os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        if not stat.S_ISREG(file.lstat().st_mode):
            raise OSError(errno.EINVAL, "it is no regular file", str(file)) from None


def _begin(connection: sa.Connection) -> None:
    """Begin as a writer if the connection writes.

    A reader that begins to write fails if another process wrote in between.
    """
    writes = connection.get_execution_options().get("ws_writes")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _prepare(connection: Any, record: object) -> None:
    """Set up a connection.

    Transactions are begun by `_begin`, as SQLAlchemy's notes on pysqlite advise.
    """
    del record
    connection.isolation_level = None
    cursor = connection.cursor()
    for pragma in (
        "journal_mode = WAL",
        "synchronous = FULL",
        "foreign_keys = ON",
        f"cache_size = -{_CACHE_KIB}",
        "temp_store = MEMORY",
    ):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _check_version() -> None:
    if sqlite3.sqlite_version_info < _OLDEST:
        raise UnsupportedError(
            f"This Python has SQLite {sqlite3.sqlite_version}; a workspace needs 3.37 or newer.",
            recovery="Use a newer Python, or a PostgreSQL database by its URL.",
        )


def _check_place(folder: Path) -> None:
    kind = shared_file_system(folder)
    if kind is not None:
        raise UnsupportedError(
            f"{folder} is on {kind}, a file system that machines share: SQLite would lose rows there. "
            "Nothing was written.",
            code="network_folder",
            recovery="Put the workspace on a local disk, or use a PostgreSQL database by its URL.",
        )


@contextlib.contextmanager
def _converting_errors(file: Path | None) -> Iterator[None]:
    """Convert errors of the database to ours, without text of statements."""
    try:
        yield
    except sa.exc.DBAPIError as error:
        raise _convert_error(error, file) from None
    except (UnicodeEncodeError, OverflowError):
        raise _build_value_error() from None
    except sa.exc.TimeoutError:
        raise BusyError("Every connection to the workspace's database is in use; nothing was written.") from None


def _build_read_only_error(code: str, reason: str, file: Path) -> StorageError:
    if code.startswith("SQLITE_READONLY"):
        return ReadOnlyError("The workspace's database cannot be written to; reading still works.", path=file)
    if os.access(file.parent, os.W_OK):
        return StorageError(f"The workspace's database cannot be opened ({reason}).", path=file)
    return ReadOnlyError(
        "The folder of the workspace's database cannot be written to, which SQLite does even to read.",
        recovery="Make .workspace writable, or copy the whole workspace to where it is.",
        path=file,
    )


def _build_value_error() -> ValidationError:
    return ValidationError(
        "This holds what no database keeps: a number of more than 64 bits, a NUL, or half of a surrogate pair. "
        "Nothing was written.",
        code="wrong_value",
    )


def _convert_error(error: sa.exc.DBAPIError, file: Path | None) -> AgentMemoryError:
    reason = re.sub(r"\s+", " ", str(error.orig)).strip()
    code = getattr(error.orig, "sqlite_errorname", None) or getattr(error.orig, "sqlstate", None) or ""
    if "cannot contain NUL" in reason or code == "22003":  # numeric_value_out_of_range
        return _build_value_error()
    if code.startswith("SQLITE_BUSY") or code in {"55P03", "40001"}:
        return BusyError("Other processes kept the workspace's database busy; nothing was written.")
    if code.startswith("SQLITE_FULL") or code == "53100":
        return DiskFullError("The disk of the workspace's database is full; nothing of this was written.")
    if code.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN")) and file is not None:
        return _build_read_only_error(code, reason, file)
    if code.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
        return StorageError(
            f"The workspace's database is damaged ({reason}).",
            code="damaged",
            recovery="Keep a copy of the folder .workspace. Then put one of .workspace/dumps in the place of rows.db, "
            "and remove rows.db-wal and rows.db-shm.",
            path=file,
        )
    return StorageError(f"The workspace's database refused this ({code or 'no code'}): {reason}", path=file)
