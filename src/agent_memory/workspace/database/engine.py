"""One database: SQLite in the workspace's folder, or PostgreSQL by a URL. Opens, reads, and writes one at a time.

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
from datetime import UTC
from typing import TYPE_CHECKING, Any, Final, Protocol

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
from agent_memory.models.clock import utc_now

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime
    from pathlib import Path

    from agent_memory.models.clock import Clock

FILE: Final = "rows.db"
_LOCK: Final = "rows.lock"
_OLDEST: Final = (3, 37)
"""The first SQLite with STRICT tables."""
_CACHE_KIB: Final = 16_384


class Database(Protocol):
    """What the rest of a workspace needs of a database.

    Attributes:
        engine: SQLAlchemy's.
        namespace: The PostgreSQL schema its tables are in; None on SQLite.
        file: The file it is, where it is one.
    """

    engine: sa.Engine
    namespace: str | None
    file: Path | None

    def reading(self) -> contextlib.AbstractContextManager[sa.Connection]:
        """Read one state of all tables, whatever others write meanwhile."""

    def writing(self) -> contextlib.AbstractContextManager[sa.Connection]:
        """Write alone; all of the block is there at its end, or nothing."""

    def now(self, connection: sa.Connection) -> datetime:
        """Return the time, of one clock for all who use the database."""

    def close(self) -> None:
        """Close all connections."""


class SqliteDatabase:
    """A file in a local folder, WAL, every commit synced.

    Raises:
        UnsupportedError: SQLite is older than 3.37, or the folder is on a file system that machines share.
    """

    namespace: str | None = None

    def __init__(self, folder: Path, *, clock: Clock | None = None, wait: float = WAIT_SECONDS) -> None:
        _check_version()
        make_private_folder(folder)
        _check_place(folder)
        self.file: Path | None = folder / FILE
        self._lock = folder / _LOCK
        self._clock = clock or utc_now
        self._wait = wait
        with translated(folder / FILE, "open"):
            _make_private(folder / FILE)
        self.engine = sa.create_engine(
            f"sqlite:///{folder / FILE}",
            connect_args={"check_same_thread": False, "timeout": wait},
            pool_size=4,
            max_overflow=16,
        )
        sa.event.listen(self.engine, "connect", _prepare)
        sa.event.listen(self.engine, "begin", _begin)

    @contextlib.contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """Read one state of all tables."""
        with _errors(self.file), self.engine.connect() as connection:
            yield connection

    @contextlib.contextmanager
    def writing(self) -> Iterator[sa.Connection]:
        """Write alone, after those who waited before.

        Raises:
            BusyError: Another process wrote for too long.
        """
        with (
            _errors(self.file),
            self.engine.connect().execution_options(ws_writes=True) as connection,
            file_lock(self._lock, self._open_lock, self._wait),
            connection.begin(),
        ):
            yield connection

    def now(self, connection: sa.Connection) -> datetime:
        """Return this machine's time: the database is on it."""
        del connection
        return self._clock()

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()

    def _open_lock(self) -> int:
        return open_private(self._lock, os.O_RDWR | os.O_CREAT)


class PostgresDatabase:
    """A schema of a PostgreSQL database, for workers on many machines.

    Args:
        url: `postgresql://…`; a password in it is shown nowhere.
        namespace: The schema.
    """

    file: Path | None = None

    def __init__(self, url: str, namespace: str, *, clock: Clock | None = None, wait: float = WAIT_SECONDS) -> None:
        self.namespace: str | None = namespace
        self._clock = clock
        self._wait = wait
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
    def reading(self) -> Iterator[sa.Connection]:
        """Read one state of all tables."""
        with _errors(None), self.engine.connect() as connection:
            yield connection.execution_options(isolation_level="REPEATABLE READ")

    @contextlib.contextmanager
    def writing(self) -> Iterator[sa.Connection]:
        """Write alone in this schema; every read in the block sees what was committed before it began."""
        with _errors(None), self.engine.begin() as connection:
            connection.execute(sa.text(f"SET LOCAL lock_timeout = {int(self._wait * 1000)}"))
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(sa.func.hashtextextended(self.namespace, 0))))
            yield connection

    def now(self, connection: sa.Connection) -> datetime:
        """Return the server's time, which is the same for workers on all machines."""
        if self._clock is not None:
            return self._clock()
        moment: datetime = connection.execute(sa.select(sa.func.clock_timestamp())).scalar_one()
        return moment.astimezone(UTC)

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()


def _make_private(file: Path) -> None:
    """Make a file that its owner alone may read, unless there is one.

    One that is there is not opened: to close any descriptor of a file drops all locks of this process on it, those of
    connections in use too (POSIX). Another process that closes its own would then remove the log that these write to.

    Raises:
        OSError: It cannot be made, or what is there is no regular file.
    """
    try:
        os.close(open_private(file, os.O_RDWR | os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        if not stat.S_ISREG(file.lstat().st_mode):
            raise OSError(errno.EINVAL, "it is no regular file", str(file)) from None


def _begin(connection: sa.Connection) -> None:
    """Begin as a writer where one is meant to: a reader that begins to write fails if another wrote in between."""
    writes = connection.get_execution_options().get("ws_writes")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _prepare(connection: Any, record: object) -> None:
    """Set up a connection: transactions are begun by us (see SQLAlchemy's notes on pysqlite)."""
    del record
    connection.isolation_level = None
    cursor = connection.cursor()
    for each in (
        "journal_mode = WAL",
        "synchronous = FULL",
        "foreign_keys = ON",
        f"cache_size = -{_CACHE_KIB}",
        "temp_store = MEMORY",
    ):
        cursor.execute(f"PRAGMA {each}")
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
def _errors(file: Path | None) -> Iterator[None]:
    """Turn what a database raises into errors of ours; the text of a statement never gets into one."""
    try:
        yield
    except sa.exc.DBAPIError as error:
        raise _translated(error, file) from None
    except (UnicodeEncodeError, OverflowError):
        raise _unkept() from None
    except sa.exc.TimeoutError:
        raise BusyError("Every connection to the workspace's database is in use; nothing was written.") from None


def _read_only(code: str, said: str, file: Path) -> StorageError:
    if code.startswith("SQLITE_READONLY"):
        return ReadOnlyError("The workspace's database cannot be written to; reading still works.", path=file)
    if os.access(file.parent, os.W_OK):
        return StorageError(f"The workspace's database cannot be opened ({said}).", path=file)
    return ReadOnlyError(
        "The folder of the workspace's database cannot be written to, which SQLite does even to read.",
        recovery="Make .workspace writable, or copy the whole workspace to where it is.",
        path=file,
    )


def _unkept() -> ValidationError:
    return ValidationError(
        "This holds what no database keeps: a number of more than 64 bits, a NUL, or half of a surrogate pair. "
        "Nothing was written.",
        code="wrong_value",
    )


def _translated(error: sa.exc.DBAPIError, file: Path | None) -> AgentMemoryError:
    said = re.sub(r"\s+", " ", str(error.orig)).strip()
    code = getattr(error.orig, "sqlite_errorname", None) or getattr(error.orig, "sqlstate", None) or ""
    if "cannot contain NUL" in said or code == "22003":  # numeric_value_out_of_range
        return _unkept()
    if code.startswith("SQLITE_BUSY") or code in {"55P03", "40001"}:
        return BusyError("Other processes kept the workspace's database busy; nothing was written.")
    if code.startswith("SQLITE_FULL") or code == "53100":
        return DiskFullError("The disk of the workspace's database is full; nothing of this was written.")
    if code.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN")) and file is not None:
        return _read_only(code, said, file)
    if code.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
        return StorageError(
            f"The workspace's database is damaged ({said}).",
            code="damaged",
            recovery="Keep a copy of the folder .workspace. Then put one of .workspace/dumps in the place of rows.db, "
            "and remove rows.db-wal and rows.db-shm.",
            path=file,
        )
    return StorageError(f"The workspace's database refused this ({code or 'no code'}): {said}", path=file)
