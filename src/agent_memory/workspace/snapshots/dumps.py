"""Copies of the whole SQLite database, for moving and for disasters.

A copy by pages restarts whenever another process writes, and a copy of the file is damaged. So a copy is read in one
transaction that began while nothing was written (https://sqlite.org/backup.html; both measured).

A snapshot with a copy names it from the beginning; the hash of the copy is added when it is written. So a name without
a hash means that a copy is missing. One process writes copies at a time, and the next one writes what a dead one left.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sqlite3
from typing import TYPE_CHECKING, Final

import sqlalchemy as sa

from agent_memory.errors import BusyError, DiskFullError, StorageError
from agent_memory.files.atomic import make_private_folder, open_private, sync_file, sync_folder, translated
from agent_memory.files.lock import WAIT_SECONDS, file_lock
from agent_memory.workspace.core import NOBODY, WorkspaceCore
from agent_memory.workspace.database.history import Transaction, get_last_seq
from agent_memory.workspace.snapshots import marks

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

    from agent_memory.workspace.snapshots.marks import Snapshot

_BLOCK: Final = 1 << 20
_LOCK: Final = "dumps.lock"
_PART: Final = ".part"


class Dump:
    """Database at one moment, to be copied.

    Args:
        file: File of the database; nothing may write during this call.
    """

    def __init__(self, file: Path) -> None:
        self._source = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
        self._source.execute("BEGIN")
        self._source.execute("SELECT count(*) FROM ws_meta").fetchone()

    def write(self, path: Path, seq: int) -> str:
        """Write the copy; return the SHA-256 of the file.

        Args:
            path: Target file, which then exists as a whole or not at all.
            seq: Number of the last change that it must have.

        Raises:
            StorageError: The copy is not complete, or cannot be written.
        """
        make_private_folder(path.parent)
        partial = path.with_suffix(".part")
        with translated(path, "write"):
            partial.unlink(missing_ok=True)
            os.close(os.open(partial, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
            try:
                with contextlib.closing(sqlite3.connect(partial, isolation_level=None)) as target:
                    target.execute("PRAGMA synchronous = OFF")
                    self._source.backup(target, pages=-1)
                    target.execute("PRAGMA journal_mode = DELETE")
                    check_dump(target, seq)
                digest = _sha256(partial)
                partial.replace(path)
                sync_folder(path.parent)
            except sqlite3.Error as error:
                partial.unlink(missing_ok=True)
                raise _build_error(error, path) from None
            except BaseException:
                partial.unlink(missing_ok=True)
                raise
        return digest

    def close(self) -> None:
        """End the transaction."""
        self._source.close()


def _build_error(error: sqlite3.Error, path: Path) -> StorageError:
    if getattr(error, "sqlite_errorname", "") == "SQLITE_FULL":
        return DiskFullError(f"No space for {path.name}; the mark of the snapshot in the history is whole.")
    return StorageError(
        f"The copy {path.name} could not be written: {error}. The mark of the snapshot in the history is whole.",
        code="dump_failed",
        path=path,
    )


def check_dump(connection: sqlite3.Connection, seq: int) -> None:
    """Check that a copy is complete.

    Raises:
        StorageError: It is not.
    """
    report = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    last = connection.execute("SELECT coalesce(max(seq), 0) FROM ws_history").fetchone()[0]
    if report != "ok" or last != seq:
        raise StorageError(
            f"The copy of the database is not whole ({report}; its last change is {last}, not {seq}).",
            code="dump_damaged",
            recovery="Make the snapshot again; its mark in the history is whole.",
        )


def verify_dump(path: Path, sha256: str | None) -> str | None:
    """Return the fault of a copy as a sentence, or None.

    A copy without a hash was never finished.
    """
    if sha256 is None:
        return "The copy of the database was not finished; the mark in the history is whole."
    try:
        return None if _sha256(path, sync=False) == sha256 else "The copy of the database is not what was written."
    except OSError as error:
        return f"The copy of the database cannot be read: {error.strerror}."


def _sha256(path: Path, *, sync: bool = True) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        if sync:
            sync_file(stream.fileno())
        while block := stream.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


Held = Dump | tuple[str, str]
"""Database at one moment, or name and SHA-256 of a copy of the same state."""


class DumpStore:
    """Copies of the database for snapshots; none with PostgreSQL."""

    def __init__(self, core: WorkspaceCore) -> None:
        self._core = core
        self._opened = core.opened
        self.folder = self._opened.hidden / "dumps"
        self._lock = self._opened.hidden / _LOCK

    def hold(self, transaction: Transaction, made: Snapshot) -> Held | None:
        """Return the present database, while nothing may write.

        The snapshot names the copy from now on.
        """
        file = self._opened.database.file
        if file is None:
            return None
        held = self._find_same(transaction, made) or Dump(file)
        self._note(transaction, made.name, f"{made.name}.db", None)
        return held

    def write(self, name: str, held: Held, seq: int) -> None:
        """Write a held copy, and close it.

        Raises:
            StorageError: It cannot be written; the snapshot names it as missing.
        """
        if isinstance(held, tuple):
            with self._core.changing(NOBODY) as transaction:
                self._note(transaction, name, *held)
            return
        try:
            with self._locked(WAIT_SECONDS):
                self._write(name, held, seq)
        finally:
            held.close()

    def list_unfinished(self) -> list[str]:
        """Return the snapshots with a missing copy."""
        table = self._opened.schema.marks
        missing = sa.select(table.c.name).where(table.c.dump.is_not(None), table.c.dump_sha256.is_(None))
        with self._opened.database.reading() as connection:
            return list(connection.execute(missing.order_by(table.c.seq, table.c.name)).scalars())

    def make_up(self) -> None:
        """Write missing copies of the present database, which includes the earlier moments.

        Does nothing while another process writes one. A failure is reported by event, and the copy stays missing.
        """
        if self._opened.database.file is None or not self.list_unfinished():
            return
        with contextlib.suppress(BusyError), self._locked(0):
            for name in self.list_unfinished():
                with self._core.changing(NOBODY) as transaction:
                    seq = get_last_seq(transaction.connection, transaction.schema)
                    held = Dump(self._opened.database.file)
                with contextlib.closing(held), self.reporting(name):
                    self._write(name, held, seq)

    @contextlib.contextmanager
    def reporting(self, name: str) -> Iterator[None]:
        """Report errors of a copy by event instead of raising them."""
        try:
            yield
        except StorageError as error:
            self._core.emit("workspace:dump_failed", NOBODY, snapshot=name, code=error.code)

    def sweep(self, named: Collection[str | None]) -> int:
        """Delete unnamed copies; return their number.

        Unfinished ones stay while a process writes one.
        """
        if not self.folder.is_dir():
            return 0
        removed = 0
        with contextlib.ExitStack() as stack:
            is_alone = True
            try:
                stack.enter_context(self._locked(0))
            except BusyError:
                is_alone = False
            for path in sorted(self.folder.iterdir()):
                if path.name not in named and (is_alone or path.suffix != _PART):
                    path.unlink(missing_ok=True)
                    removed += 1
        return removed

    def _write(self, name: str, held: Dump, seq: int) -> None:
        digest = held.write(self.folder / f"{name}.db", seq)
        with self._core.changing(NOBODY) as transaction:
            self._note(transaction, name, f"{name}.db", digest)

    def _note(self, transaction: Transaction, name: str, dump: str, digest: str | None) -> None:
        table = self._opened.schema.marks
        values = {"dump": dump, "dump_sha256": digest}
        transaction.connection.execute(sa.update(table).where(table.c.name == name).values(values))

    def _find_same(self, transaction: Transaction, made: Snapshot) -> tuple[str, str] | None:
        """Return the copy that another snapshot has of the same state."""
        for snapshot in reversed(marks.list_all(transaction.connection, self._opened.schema)):
            if (
                snapshot.seq == made.seq
                and snapshot.dump
                and snapshot.dump_sha256
                and (self.folder / snapshot.dump).exists()
            ):
                return snapshot.dump, snapshot.dump_sha256
        return None

    @contextlib.contextmanager
    def _locked(self, wait: float) -> Iterator[None]:
        with file_lock(self._lock, lambda: open_private(self._lock, os.O_RDWR | os.O_CREAT), wait):
            yield
