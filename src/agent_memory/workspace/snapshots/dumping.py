"""A copy of the whole SQLite database, for moving and for disaster: at one moment, beside writers, and checked.

A copy by pages begins anew whenever somebody writes, and a copy of the file is damaged; what is made here is read in
one transaction, which was begun while nobody wrote (https://sqlite.org/backup.html; both measured).
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sqlite3
from typing import TYPE_CHECKING, Final

from agent_memory.errors import DiskFullError, StorageError
from agent_memory.files.atomic import make_private_folder, sync_file, sync_folder, translated

if TYPE_CHECKING:
    from pathlib import Path

_BLOCK: Final = 1 << 20


class Dump:
    """A database held at one moment, to be copied.

    Args:
        file: The database. Nobody may write while this is made.
    """

    def __init__(self, file: Path) -> None:
        self._source = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
        self._source.execute("BEGIN")
        self._source.execute("SELECT count(*) FROM ws_meta").fetchone()

    def write(self, path: Path, seq: int) -> str:
        """Copy it; return the SHA-256 of the file.

        Args:
            path: The file, which is there at the end, whole, or not at all.
            seq: The last change that it must have.

        Raises:
            StorageError: The copy is not whole, or cannot be written.
        """
        make_private_folder(path.parent)
        unfinished = path.with_suffix(".part")
        with translated(path, "write"):
            unfinished.unlink(missing_ok=True)
            os.close(os.open(unfinished, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
            try:
                with contextlib.closing(sqlite3.connect(unfinished, isolation_level=None)) as target:
                    target.execute("PRAGMA synchronous = OFF")
                    self._source.backup(target, pages=-1)
                    target.execute("PRAGMA journal_mode = DELETE")
                    check_dump(target, seq)
                digest = _sha256(unfinished)
                unfinished.replace(path)
                sync_folder(path.parent)
            except sqlite3.Error as error:
                unfinished.unlink(missing_ok=True)
                raise _refused(error, path) from None
            except BaseException:
                unfinished.unlink(missing_ok=True)
                raise
        return digest

    def close(self) -> None:
        """Let the moment go."""
        self._source.close()


def _refused(error: sqlite3.Error, path: Path) -> StorageError:
    if getattr(error, "sqlite_errorname", "") == "SQLITE_FULL":
        return DiskFullError(f"There is no room for {path.name}; the mark of the snapshot in the history is whole.")
    return StorageError(
        f"The copy {path.name} could not be written: {error}. The mark of the snapshot in the history is whole.",
        code="dump_failed",
        path=path,
    )


def check_dump(connection: sqlite3.Connection, seq: int) -> None:
    """Check that a copy is whole.

    Raises:
        StorageError: It is not.
    """
    said = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    last = connection.execute("SELECT coalesce(max(seq), 0) FROM ws_history").fetchone()[0]
    if said != "ok" or last != seq:
        raise StorageError(
            f"The copy of the database is not whole ({said}; its last change is {last}, not {seq}).",
            code="dump_damaged",
            recovery="Make the snapshot again; its mark in the history is whole.",
        )


def verify_dump(path: Path, sha256: str | None) -> str | None:
    """Return what is wrong with a copy, as a sentence; None where nothing is. Without a hash it was never finished."""
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
