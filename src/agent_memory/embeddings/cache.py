"""The vector cache: a derived SQLite file that spares embedding a text twice. Any number of processes share it.

Holds vectors by (embedder identity, hash of the embedded text), never text. Losing it costs time and nothing else, so
no trouble with it is an error for a caller: it is reported through `problem`, and work goes on without the file.
Thread-safe.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Final, TypeVar

from agent_memory.embeddings.rows import Rows
from agent_memory.files.exchange import set_aside
from agent_memory.files.names import get_aside_path
from agent_memory.files.vectors import get_byte_lengths, load_vectors, pack_vectors, unpack_vectors

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Container, Iterable, Mapping
    from pathlib import Path

    from agent_memory.embeddings.protocol import EmbedderIdentity, Vector
    from agent_memory.encryption import DataKey

_T = TypeVar("_T")

SCHEMA_VERSION: Final = 1
_BUSY_SECONDS: Final = 5.0
_ASKED_AT_ONCE: Final = 400
"""Below SQLite's oldest limit of 999 parameters. A look-up takes some 4 µs whatever there is; reading every row, 1.3 µs
each, is faster only for who asks for a third of them."""

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS embedders (id INTEGER PRIMARY KEY, identity TEXT NOT NULL UNIQUE) STRICT;
CREATE TABLE IF NOT EXISTS vectors (
    embedder INTEGER NOT NULL REFERENCES embedders(id),
    hash BLOB NOT NULL,
    vector BLOB NOT NULL,
    PRIMARY KEY (embedder, hash)
) STRICT;
"""
"""Rows lie in the order of coming in, five on a page, beside an index: by their hashes, in no order, a vector took an
eighth more room and three times as long to write. Files of before have none but the key, and are used as they are."""


def text_hash(text: str) -> bytes:
    """Return the key of a text in the cache: sha256, 32 bytes."""
    return hashlib.sha256(text.encode()).digest()


def rounded(vector: Vector) -> Vector:
    """Return `vector` as the cache gives it back: see `files.vectors`; fresh and cached vectors then rank alike."""
    made: Vector = unpack_vectors(pack_vectors(vector[None]))[0]
    return made


class NewerSchemaError(OSError):
    """The file belongs to a newer version: setting it aside would cost that version all its vectors."""


class VectorCache:
    """Vectors on disk by embedder and text hash.

    Args:
        path: `embeddings.sqlite3` in an agent's folder; None keeps nothing, and every lookup misses.
        kept_too: Returns hashes of texts that others keep in the same folder: no dropping touches their vectors.
        key: Returns what the agent's files are encrypted with, None where they are plain. With a key a row has keyed
            hashes, and a vector that nobody can read without it.
    """

    def __init__(
        self,
        path: Path | None,
        kept_too: Callable[[], Collection[bytes]] = frozenset,
        key: Callable[[], DataKey | None] = lambda: None,
    ) -> None:
        self._kept_too = kept_too
        self._key = key
        self._path = path
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._begun_anew: str | None = None
        self._trouble: str | None = None

    @property
    def problem(self) -> str | None:
        """Why the file is not in use, or was begun anew; None while all is well."""
        return self._trouble or self._begun_anew

    def get_many(self, identity: EmbedderIdentity, hashes: Collection[bytes]) -> dict[bytes, Vector]:
        """Return the known vectors among `hashes`, float32 of unit length; a damaged row counts as unknown."""
        wanted = set(hashes)
        if not wanted:
            return {}
        rows = Rows(self._key())
        names = {rows.name_of(key) for key in wanted}
        encoded_rows = self._attempt(lambda database: _select(database, str(identity), names)) or []
        return _decode_rows(list(map(rows.read, encoded_rows)), identity.dimension)

    def put_many(self, identity: EmbedderIdentity, vectors: Mapping[bytes, Vector]) -> bool:
        """Keep vectors; False when they could not be kept (see `problem`)."""
        import numpy as np

        if not vectors:
            return True
        kept = pack_vectors(np.asarray([*vectors.values()]))
        rows = Rows(self._key())
        blobs = [rows.written(key, row.tobytes()) for key, row in zip(vectors, kept, strict=True)]
        return bool(self._attempt(lambda database: _insert(database, str(identity), blobs)))

    def prune(self, keep: Container[bytes]) -> int:
        """Drop the vectors of every text, under any embedder, whose hash is not in `keep`; return how many went.

        A vector gives away something of its text, so this follows each purge of a memory.
        """
        others, rows = self._kept_too(), Rows(self._key())

        def is_kept(row: tuple[bytes, bytes]) -> bool:
            key = rows.read(row)[0]
            return key in keep or key in others

        return self._attempt(lambda database: _prune(database, is_kept)) or 0

    def forget(self, hashes: Iterable[bytes]) -> None:
        """Drop the vectors of these texts under every embedder."""
        unwanted = set(hashes)
        rows = Rows(self._key())
        gone = [(rows.name_of(key),) for key in unwanted.difference(self._kept_too() if unwanted else ())]
        self._attempt(lambda database: database.executemany("DELETE FROM vectors WHERE hash = ?", gone))

    def close(self) -> None:
        """Close the file; a later call opens it again."""
        with self._lock:
            self._disconnect()

    def _attempt(self, work: Callable[[sqlite3.Connection], _T]) -> _T | None:
        """Run `work` in one transaction; on trouble say so, set a broken file aside, and return None."""
        if self._path is None:
            return None
        with self._lock:
            for _ in range(2):
                try:
                    with self._connected() as database:
                        result = work(database)
                except (sqlite3.DatabaseError, UnicodeDecodeError, OSError) as error:  # the second: a damaged schema
                    self._disconnect()
                    if not _is_broken(error) or not self._set_aside(error):
                        self._trouble = self._trouble or f"vector cache not in use: {error}"
                        return None
                else:
                    self._trouble = None  # a full disk has room again, a folder may be written to
                    return result
        return None

    def _connected(self) -> sqlite3.Connection:
        assert self._path is not None
        if self._connection is None:
            if self._path.exists() and not self._path.is_file():
                raise OSError(f"{self._path.name} is no file")  # opening a pipe would wait for its other end
            if self._path.is_symlink():
                raise OSError(f"{self._path.name} is a symbolic link, which is not followed")
            if not self._path.exists():  # or the umask would decide who may read it and what SQLite makes next to it
                with suppress(OSError):
                    self._path.touch(mode=0o600)
            database = sqlite3.connect(self._path, timeout=_BUSY_SECONDS, check_same_thread=False)
            self._connection = database
            try:
                _prepare(database)
                self._path.chmod(0o600)
            except (sqlite3.OperationalError, OSError):
                if not self._read_only():
                    raise
                database.close()
                self._connection = database = _open_unwritable(self._path)
                check_version(database)
        return self._connection

    def _read_only(self) -> bool:
        assert self._path is not None
        return self._path.is_file() and not (os.access(self._path, os.W_OK) and os.access(self._path.parent, os.W_OK))

    def _disconnect(self) -> None:
        if self._connection is not None:
            with suppress(sqlite3.Error):
                self._connection.close()
        self._connection = None

    def _set_aside(self, error: Exception) -> bool:
        """Rename a file that is no cache of ours, so that a new one can take its place; False if that fails too."""
        assert self._path is not None
        if self._read_only():
            return False
        aside = get_aside_path(self._path, "broken", whole=True)
        try:
            aside.unlink(missing_ok=True)
            set_aside(self._path, aside)
            for tail in ("-wal", "-shm"):
                self._path.with_name(self._path.name + tail).unlink(missing_ok=True)
        except OSError as trouble:
            self._trouble = f"vector cache not in use: {error}; it could not be set aside: {trouble}"
            return False
        self._begun_anew = f"vector cache was unreadable ({error}); set aside as {aside.name} and begun anew"
        return True


def _prepare(database: sqlite3.Connection) -> None:
    version = check_version(database)
    database.execute("PRAGMA journal_mode = WAL")
    # Derived data: a crash may cost the last vectors, never consistency.
    database.execute("PRAGMA synchronous = NORMAL")
    database.execute("PRAGMA secure_delete = ON")  # a purged text's vector must not linger in free pages
    if not version:
        with database:
            database.executescript(_SCHEMA)
            database.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def check_version(database: sqlite3.Connection) -> int:
    """Return the version of the schema, 0 for an empty file.

    Raises:
        NewerSchemaError: It is of a newer version.
    """
    version = int(database.execute("PRAGMA user_version").fetchone()[0])
    if version not in {0, SCHEMA_VERSION}:
        raise NewerSchemaError(f"it is of a newer version of agent-memory (schema {version})")
    return version


def _open_unwritable(path: Path) -> sqlite3.Connection:
    """Open a file for reading alone: without `immutable`, WAL writes a file next to it."""
    return sqlite3.connect(f"{path.absolute().as_uri()}?immutable=1", uri=True, check_same_thread=False)


def _is_broken(error: Exception) -> bool:
    """Tell a file that is no usable cache from a passing trouble: a lock, a full disk, a read-only folder."""
    if type(error) in {sqlite3.DatabaseError, UnicodeDecodeError}:
        return True
    return "no such table" in str(error) or "no such column" in str(error)


def _select(database: sqlite3.Connection, identity: str, wanted: set[bytes]) -> list[tuple[bytes, bytes]]:
    number = database.execute("SELECT id FROM embedders WHERE identity = ?", (identity,)).fetchone()
    query = "SELECT hash, vector FROM vectors WHERE embedder = ?"
    found: list[tuple[bytes, bytes]] = []
    if number is None:
        return found
    ordered = sorted(wanted)  # as in the file: neighbours share a page, which halves the time
    for begin in range(0, len(ordered), _ASKED_AT_ONCE):
        some = ordered[begin : begin + _ASKED_AT_ONCE]
        marks = ",".join("?" * len(some))
        found += database.execute(f"{query} AND hash IN ({marks})", (*number, *some)).fetchall()
    return found


def _insert(database: sqlite3.Connection, identity: str, blobs: list[tuple[bytes, bytes]]) -> bool:
    database.execute("INSERT OR IGNORE INTO embedders (identity) VALUES (?)", (identity,))
    (number,) = database.execute("SELECT id FROM embedders WHERE identity = ?", (identity,)).fetchone()
    rows = [(number, key, blob) for key, blob in blobs]
    database.executemany("INSERT OR REPLACE INTO vectors (embedder, hash, vector) VALUES (?, ?, ?)", rows)
    return True


def _prune(database: sqlite3.Connection, is_kept: Callable[[tuple[bytes, bytes]], bool]) -> int:
    every = database.execute("SELECT embedder, hash, vector FROM vectors")
    gone = [(number, key) for number, key, vector in every if not is_kept((key, vector))]
    database.executemany("DELETE FROM vectors WHERE embedder = ? AND hash = ?", gone)
    return len(gone)


def _decode_rows(rows: list[tuple[bytes, bytes]], dimension: int) -> dict[bytes, Vector]:
    vectors: dict[bytes, Vector] = {}
    for size in get_byte_lengths(dimension):
        sound = [(key, blob) for key, blob in rows if len(blob) == size]
        if sound:
            matrix = unpack_vectors(load_vectors(b"".join(blob for _, blob in sound), len(sound), dimension))
            vectors |= {key: matrix[index] for index, (key, _) in enumerate(sound) if matrix[index].any()}
    return vectors
