"""Files of snapshots: contents by hash, and copies of the whole database.

A content is written before the row that names it, so a process that dies in between leaves an unnamed one.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import sqlite3
import zlib
from pathlib import PurePath, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING, Final

import sqlalchemy as sa

from agent_memory.errors import BusyError, DiskFullError, StorageError
from agent_memory.files.atomic import (
    make_private_folder,
    open_private,
    read_file,
    replace_file,
    sync_file,
    sync_folder,
    translated,
)
from agent_memory.files.lock import WAIT_SECONDS, file_lock
from agent_memory.redaction import quoted
from agent_memory.workspace.core import NOBODY, WorkspaceCore
from agent_memory.workspace.database.history import Transaction, get_last_seq
from agent_memory.workspace.declaration.model import DECLARATION
from agent_memory.workspace.snapshots import marks

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from pathlib import Path

    from agent_memory.workspace.snapshots.marks import Snapshot

_NAME: Final = re.compile(r"[0-9a-f]{64}")
_LEVEL: Final = 1
"""Level of zlib: texts and SVG become a quarter, at 100 MB a second."""
MAX_FILE_BYTES: Final = 100_000_000


class ContentStore:
    """Contents of files in a folder, named by SHA-256."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def keep(self, content: bytes) -> str:
        """Store a content; return its SHA-256."""
        name = hashlib.sha256(content).hexdigest()
        path = self._folder / name
        if not self.has(name):
            make_private_folder(self._folder)
            with translated(path, "write"):
                replace_file(path, zlib.compress(content, _LEVEL), durable=True)
        return name

    def has(self, name: str) -> bool:
        """Return True if a content is stored."""
        return (self._folder / name).exists()

    def read(self, name: str) -> bytes:
        """Return a content.

        Raises:
            StorageError: It is missing, or does not match its name.
        """
        path = self._folder / name
        try:
            with translated(path, "read"):
                # Bounded: a file from another process may unpack to any size.
                content = zlib.decompressobj().decompress(read_file(path), MAX_FILE_BYTES + 1)
        except zlib.error:
            content = b""
        except StorageError:
            if path.exists():
                raise
            content = b""
        if hashlib.sha256(content).hexdigest() != name:
            wrong = "is not what was kept" if path.exists() else "is gone"
            raise StorageError(
                f"A file of a snapshot ({name[:12]}…) {wrong}; the rows of the snapshot are whole.",
                code="content_damaged",
                recovery="Put the file of this name from a backup in its place.",
                path=path,
            )
        return content

    def sweep(self, named: Collection[str]) -> int:
        """Delete contents that are not named; return their number."""
        if not self._folder.is_dir():
            return 0
        unnamed = [path for path in self._folder.iterdir() if _NAME.fullmatch(path.name) and path.name not in named]
        for path in unnamed:
            path.unlink(missing_ok=True)
        sync_folder(self._folder)
        return len(unnamed)


def list_files(folder: Path, patterns: Iterable[str]) -> dict[str, Path]:
    """Return the files of a workspace by relative path.

    Links and hidden folders are left out.
    """
    files: dict[str, Path] = {}
    declaration = folder / DECLARATION  # describes the present rows, not those of a snapshot
    for pattern in patterns:
        for path in folder.glob(pattern):
            relative = path.relative_to(folder)
            hidden = any(part.startswith(".") for part in relative.parts)
            if not hidden and path != declaration and path.is_file() and not _through_a_link(folder, relative):
                files[relative.as_posix()] = path
    return dict(sorted(files.items()))


def build_manifest(folder: Path, patterns: Iterable[str], contents: ContentStore | None = None) -> dict[str, str]:
    """Return the SHA-256 of each file; store contents if `contents` is given.

    Raises:
        StorageError: A file is longer than 100 MB, cannot be read, or has a name that is not UTF-8.
    """
    manifest: dict[str, str] = {}
    for name, path in list_files(folder, patterns).items():
        _check_name(name, path)
        with translated(path, "read"):
            size = path.stat().st_size
            if size > MAX_FILE_BYTES:
                raise StorageError(
                    f"{name} has {size:,} bytes; a file of a workspace may have {MAX_FILE_BYTES:,}.",
                    code="file_too_large",
                    recovery="Move it out of the folders that the declaration names under `files`.",
                    path=path,
                )
            content = path.read_bytes()
        manifest[name] = hashlib.sha256(content).hexdigest() if contents is None else contents.keep(content)
    return manifest


def is_inside(name: str) -> bool:
    """Return True if a path may belong to a workspace.

    It is below the folder, not hidden, and not the declaration.
    """
    parts = name.split("/")
    plain = all(part and not part.startswith(".") for part in parts) and "\\" not in name and "\0" not in name
    return plain and name != DECLARATION and not PureWindowsPath(name).drive


def check_places(folder: Path, manifest: Iterable[str]) -> None:
    """Check that the files of a manifest can be restored.

    Raises:
        StorageError: A path is outside the folder, or a link or folder is in its place; nothing was changed.
    """
    for name in manifest:
        if not is_inside(name):
            raise StorageError(
                f"A snapshot names a file {quoted(name)}, as no file of a workspace is called; nothing was changed.",
                code="content_damaged",
                recovery="Do not use this workspace: somebody changed its database. Take one from a backup.",
                path=folder,
            )
        path, parts = folder, PurePosixPath(name).parts
        for number, part in enumerate(parts, 1):
            path /= part
            wrong = "a link"
            if not path.is_symlink():
                wrong = "a folder" if number == len(parts) and path.is_dir() else ""
                wrong = "a file" if number < len(parts) and path.exists() and not path.is_dir() else wrong
            if wrong:
                raise StorageError(
                    f"{name} cannot be written: {path.relative_to(folder).as_posix()} is {wrong} now.",
                    code="in_the_way",
                    recovery="Move it elsewhere and do this again.",
                    path=path,
                )


def restore_files(folder: Path, patterns: Iterable[str], manifest: dict[str, str], contents: ContentStore) -> list[str]:
    """Restore the files of a manifest; return the changed paths.

    Can be repeated after a kill. A file that the manifest does not name is deleted: the snapshot before a
    restore has it.
    """
    changed: list[str] = []
    check_places(folder, manifest)
    existing = list_files(folder, patterns)
    for name, wanted in manifest.items():
        path = folder.joinpath(*PurePosixPath(name).parts)
        if name in existing and hashlib.sha256(path.read_bytes()).hexdigest() == wanted:
            continue
        with translated(path, "write"):
            make_private_folder(path.parent)
            replace_file(path, contents.read(wanted), durable=True)
        changed.append(name)
    for name in existing.keys() - manifest.keys():
        with translated(existing[name], "remove"):
            existing[name].unlink(missing_ok=True)
        changed.append(name)
    return sorted(changed)


def _check_name(name: str, path: Path) -> None:
    try:
        name.encode()
    except UnicodeEncodeError:
        raise StorageError(
            f"The name of {path!r} is not UTF-8; a file of a workspace is named by text.",
            code="file_name",
            recovery="Rename it, or move it out of the folders that the declaration names under `files`.",
        ) from None


def _through_a_link(folder: Path, relative: PurePath) -> bool:
    path = folder
    for part in relative.parts:
        path = path / part
        if path.is_symlink():
            return True
    return False


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
    """Copies of the database for snapshots; none with PostgreSQL.

    A copy by pages restarts whenever another process writes, and a copy of the file is damaged. So a copy is read in
    one transaction that began while nothing was written (https://sqlite.org/backup.html; both measured).

    A snapshot names its copy from the beginning. The hash is added when the copy is written, so a name without a hash
    means that the copy is missing. One process writes copies at a time, and the next one writes what a dead one left.
    """

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
