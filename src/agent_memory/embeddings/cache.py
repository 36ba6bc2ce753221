"""Vector cache: a derived SQLite file shared by any number of processes.

Holds vectors by (embedder identity, hash of the embedded text), never text. Losing it costs time and nothing else, so a
problem with it is not an error for the caller: it is reported by `problem`, and work continues without the file.
Thread-safe.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import sqlite3
import tempfile
import threading
from array import array
from bisect import bisect_left
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar
from urllib.parse import quote

from agent_memory.files.atomic import read_signature
from agent_memory.files.entries import describe_path_type, get_disk_size, get_path_type
from agent_memory.files.exchange import set_aside
from agent_memory.files.names import get_aside_path
from agent_memory.files.vectors import (
    concatenate_vectors,
    get_byte_lengths,
    load_vectors,
    pack_vectors,
    split_vectors,
    unpack_vectors,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping

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
"""Rows are in insertion order, five on a page, with a separate index: ordered by hash, a vector took an eighth more
room and three times as long to write. Earlier files have only the primary key, and are used as they are."""
_ADD_EMBEDDER: Final = "INSERT OR IGNORE INTO embedders (identity) VALUES (?)"
_HASH_BYTES: Final = 32
_NONE: Final = (b"", b"")
PREFIX_BYTES: Final = 8
_ATTEMPTS: Final = 3
_MOST_CONNECTED: Final = 16
"""Caches of one process with an open file; each has up to three descriptors."""


def text_hash(text: str) -> bytes:
    """Return the cache key of a text: its SHA-256, 32 bytes."""
    return hashlib.sha256(text.encode()).digest()


def round_vector(vector: Vector, identity: EmbedderIdentity | None = None) -> Vector:
    """Return a vector as the cache returns it later.

    Fresh and cached vectors then rank alike; see `files.vectors`.
    """
    rows = vector[None]
    columns = [rows] if identity is None else split_vectors(rows, [part.dimension for part in identity.members])
    parts = [unpack_vectors(pack_vectors(part)) for part in columns]
    made: Vector = (concatenate_vectors(parts) if len(parts) > 1 else parts[0])[0]
    return made


class NewerSchemaError(OSError):
    """The file belongs to a newer version.

    Replacing it would cost that version all its vectors.
    """


class VectorCache:
    """Vectors on disk by embedder and text hash.

    Args:
        path: `embeddings.sqlite3` in an agent's folder; None stores nothing, and every lookup misses.
        kept_too: Returns hashes of texts that other records in the folder share; their vectors are never deleted.
        key: Returns the key of the agent's encrypted files, None if they are plain. With a key, hashes are keyed and
            vectors encrypted.
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
        """The reason why the file is unused or was replaced, or None."""
        return self._trouble or self._begun_anew

    @property
    def is_stored(self) -> bool:
        """True if there is a file."""
        return self._path is not None and self._path.exists()

    def get_many(self, identity: EmbedderIdentity, hashes: Collection[bytes]) -> dict[bytes, Vector]:
        """Return the known vectors among `hashes`.

        They are float32 of unit length. A damaged row counts as unknown. Of joined embedders each has rows of its own.
        """
        wanted = set(hashes)
        if not wanted:
            return {}
        if identity.parts:
            vectors_by_part = [self.get_many(part, wanted) for part in identity.parts]
            complete = wanted.intersection(*vectors_by_part)
            return {key: concatenate_vectors([vectors[key] for vectors in vectors_by_part]) for key in complete}
        rows = RowCodec(self._key())
        names = {rows.get_name(key) for key in wanted}
        encoded_rows = self._attempt(lambda database: _select(database, str(identity), names)) or []
        return _decode_rows(list(map(rows.decode, encoded_rows)), identity.dimension)

    def put_many(self, identity: EmbedderIdentity, vectors: Mapping[bytes, Vector]) -> bool:
        """Store vectors; return False if that failed (see `problem`)."""
        import numpy as np

        if not vectors:
            return True
        matrix = np.asarray([*vectors.values()])
        if identity.parts:
            columns = split_vectors(matrix, [part.dimension for part in identity.parts])
            parts = zip(identity.parts, columns, strict=True)
            return all(self.put_many(part, dict(zip(vectors, rows, strict=True))) for part, rows in parts)
        packed_vectors = pack_vectors(matrix)
        rows = RowCodec(self._key())
        blobs = [rows.encode(key, row.tobytes()) for key, row in zip(vectors, packed_vectors, strict=True)]
        return bool(self._attempt(lambda database: _insert(database, str(identity), blobs)))

    def add_embedder(self, name: str) -> None:
        """Note an embedder whose vectors are wanted."""
        self._attempt(lambda database: database.execute(_ADD_EMBEDDER, (name,)))

    def has_embedder(self, name: str) -> bool:
        """Return True if an embedder is known; creates no file."""
        if not self.is_stored:
            return False
        query = "SELECT 1 FROM embedders WHERE identity = ?"
        return self._attempt(lambda database: database.execute(query, (name,)).fetchone()) is not None

    def prune(self, keep: Container[bytes]) -> int:
        """Delete vectors of texts whose hash is not in `keep`.

        Return the number of deleted vectors, of all embedders.

        A vector gives away something of its text, so this follows each purge of a memory.
        """
        shared, rows = self._kept_too(), RowCodec(self._key())

        def is_kept(row: tuple[bytes, bytes]) -> bool:
            key = rows.decode(row)[0]
            return key in keep or key in shared

        return self._attempt(lambda database: _prune(database, is_kept)) or 0

    def forget(self, hashes: Iterable[bytes]) -> None:
        """Delete the vectors of these texts, of all embedders."""
        unwanted = set(hashes)
        rows = RowCodec(self._key())
        gone = [(rows.get_name(key),) for key in unwanted.difference(self._kept_too() if unwanted else ())]
        self._attempt(lambda database: database.executemany("DELETE FROM vectors WHERE hash = ?", gone))

    def close(self) -> None:
        """Close the file; a later call opens it again."""
        with self._lock:
            self._disconnect()

    def _attempt(self, work: Callable[[sqlite3.Connection], _T]) -> _T | None:
        """Run `work` in one transaction; return None if it fails.

        A corrupt file is quarantined and replaced.
        """
        if self._path is None:
            return None
        with self._lock:
            for _ in range(2):
                try:
                    with self._connect() as database:
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

    def _connect(self) -> sqlite3.Connection:
        assert self._path is not None
        if self._connection is None:
            if self._path.exists() and not self._path.is_file():
                raise OSError(f"{self._path.name} is not a file")  # opening a pipe would wait for its other end
            if self._path.is_symlink():
                raise OSError(f"{self._path.name} is a symbolic link, which is not followed")
            if not self._path.exists():  # or the umask would decide who may read it and what SQLite makes next to it
                with suppress(OSError):
                    self._path.touch(mode=0o600)
            _disconnect_idle()
            database = sqlite3.connect(self._path, timeout=_BUSY_SECONDS, check_same_thread=False)
            self._connection = database
            _CONNECTED[self] = None
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

    def disconnect_idle(self) -> None:
        """Close the file, which the next call opens, unless in use."""
        if self._lock.acquire(blocking=False):
            try:
                self._disconnect()
            finally:
                self._lock.release()

    def _disconnect(self) -> None:
        _CONNECTED.pop(self, None)
        if self._connection is not None:
            with suppress(sqlite3.Error):
                self._connection.close()
        self._connection = None

    def _set_aside(self, error: Exception) -> bool:
        """Rename a corrupt file so that a new one replaces it.

        Return False if that fails, too.
        """
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


_CONNECTED: Final[dict[VectorCache, None]] = {}
"""Caches with an open file, the oldest first."""
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_CONNECTED.clear)


def _disconnect_idle() -> None:
    """Close the oldest idle files until one more fits the limit."""
    for cache in list(_CONNECTED):
        if len(_CONNECTED) < _MOST_CONNECTED:
            return
        cache.disconnect_idle()


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
        raise NewerSchemaError(f"it was written by a newer version of agent-memory (schema {version})")
    return version


def _open_unwritable(path: Path) -> sqlite3.Connection:
    """Open a file for reading only.

    Without `immutable`, WAL writes a file next to it.
    """
    return sqlite3.connect(f"{path.absolute().as_uri()}?immutable=1", uri=True, check_same_thread=False)


def _is_broken(error: Exception) -> bool:
    """Return True if a file is not a usable cache.

    False for temporary problems: a lock, a full disk, a read-only folder.
    """
    if type(error) in {sqlite3.DatabaseError, UnicodeDecodeError}:
        return True
    return "no such table" in str(error) or "no such column" in str(error)


def _select(database: sqlite3.Connection, identity: str, wanted: set[bytes]) -> list[tuple[bytes, bytes]]:
    number = database.execute("SELECT id FROM embedders WHERE identity = ?", (identity,)).fetchone()
    query = "SELECT hash, vector FROM vectors WHERE embedder = ?"
    pairs: list[tuple[bytes, bytes]] = []
    if number is None:
        return pairs
    ordered = sorted(wanted)  # as in the file: neighbours share a page, which halves the time
    for begin in range(0, len(ordered), _ASKED_AT_ONCE):
        batch = ordered[begin : begin + _ASKED_AT_ONCE]
        marks = ",".join("?" * len(batch))
        pairs += database.execute(f"{query} AND hash IN ({marks})", (*number, *batch)).fetchall()
    return pairs


def _insert(database: sqlite3.Connection, identity: str, blobs: list[tuple[bytes, bytes]]) -> bool:
    database.execute(_ADD_EMBEDDER, (identity,))
    (number,) = database.execute("SELECT id FROM embedders WHERE identity = ?", (identity,)).fetchone()
    rows = [(number, key, blob) for key, blob in blobs]
    database.executemany("INSERT OR REPLACE INTO vectors (embedder, hash, vector) VALUES (?, ?, ?)", rows)
    return True


def _prune(database: sqlite3.Connection, is_kept: Callable[[tuple[bytes, bytes]], bool]) -> int:
    rows = database.execute("SELECT embedder, hash, vector FROM vectors")
    gone = [(number, key) for number, key, vector in rows if not is_kept((key, vector))]
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


class RowCodec:
    """Encodes and decodes rows, encrypted or plain.

    Args:
        key: Key of encrypted rows; None if they are plain.
    """

    def __init__(self, key: DataKey | None) -> None:
        self._key = key

    def get_name(self, text_hash: bytes) -> bytes:
        """Return the row key for the hash of a text, 32 bytes."""
        return text_hash if self._key is None else self._key.hash_content(text_hash)

    def encode(self, text_hash: bytes, vector: bytes) -> tuple[bytes, bytes]:
        """Encode a row.

        An encrypted row also holds the hash: rows are deleted by the hashes of the texts that stay.
        """
        if self._key is None:
            return text_hash, vector
        name = self._key.hash_content(text_hash)
        return name, self._key.encrypt(("vector", name.hex()), text_hash + vector)

    def decode(self, row: tuple[bytes, bytes]) -> tuple[bytes, bytes]:
        """Return the text hash and the vector of a row.

        Both are empty if the row was encrypted with another key.
        """
        if self._key is None:
            return row
        name, content = row
        try:
            both = self._key.decrypt(("vector", name.hex()), content)
        except ValueError:
            return _NONE
        return both[:_HASH_BYTES], both[_HASH_BYTES:]


def get_hash_prefix(key: bytes) -> int:
    """Return a hash as a number of eight bytes.

    Two of a million hashes share theirs in one case of 40 million.
    """
    return int.from_bytes(key[:PREFIX_BYTES], "big")


class HashSet:
    """Set of text hashes by their first eight bytes.

    A million take 8 MB; as a set of bytes 150 MB.

    Args:
        prefixes: Numbers from `get_hash_prefix`, in any order, possibly repeated.
    """

    def __init__(self, prefixes: Iterable[int] = ()) -> None:
        self._sorted = array("Q", sorted(prefixes))

    @classmethod
    def of(cls, keys: Iterable[bytes]) -> HashSet:
        """Return the set of some hashes."""
        return cls(array("Q", map(get_hash_prefix, keys)))

    def __len__(self) -> int:
        return len(self._sorted)

    def __iter__(self) -> Iterator[int]:
        return iter(self._sorted)

    def __contains__(self, key: object) -> bool:
        return isinstance(key, bytes) and self.has(get_hash_prefix(key))

    def has(self, prefix: int) -> bool:
        """Return True if a hash has this prefix."""
        place = bisect_left(self._sorted, prefix)
        return place < len(self._sorted) and self._sorted[place] == prefix


class CacheFacts(NamedTuple):
    """Content of a vector cache.

    Attributes:
        hashes: Hashes of texts by embedder identity.
        damaged: Hashes of vectors that have a wrong length or are all zero.
    """

    hashes: dict[str, HashSet]
    damaged: frozenset[bytes] = frozenset()


def cache_files(path: Path) -> list[Path]:
    """Return the files of a cache, those of SQLite included."""
    return [path.with_name(path.name + tail) for tail in ("", "-wal", "-shm")]


def inspect_cache(path: Path) -> CacheFacts:
    """Read a cache without writing next to it.

    SQLite creates files where it opens one. So the cache is read in place, or from a copy while there is a log that
    SQLite would replay. A missing cache is empty.

    Raises:
        sqlite3.DatabaseError, UnicodeDecodeError: It is damaged; the second if SQLite quotes a damaged schema.
        OSError: It cannot be read, or is of a newer version.
    """
    for file in cache_files(path):
        kind = get_path_type(file, follow=True)
        if kind not in {"file", "missing"}:
            raise sqlite3.DatabaseError(f"{file.name} is {describe_path_type(kind)}")
    with path.open("rb"):
        pass  # SQLite tells a file that may not be read from one that is damaged only by its words
    if get_disk_size(path) == 0:
        return CacheFacts({})  # as SQLite leaves a file it was killed over; the next to open it fills it
    log = cache_files(path)[1]
    if not get_disk_size(log):
        return _read_facts(path)
    for attempt in range(_ATTEMPTS):
        with tempfile.TemporaryDirectory(prefix="agent-memory-") as folder:
            copy, before = Path(folder) / path.name, [read_signature(path), read_signature(log)]
            for file in (path, log):
                with contextlib.suppress(FileNotFoundError):
                    shutil.copyfile(file, copy.with_name(file.name))
            try:
                return _read_facts(copy, immutable=False)
            except sqlite3.DatabaseError:
                if [read_signature(path), read_signature(log)] == before or attempt == _ATTEMPTS - 1:
                    raise
    raise AssertionError


def _read_facts(path: Path, *, immutable: bool = True) -> CacheFacts:
    options = "mode=ro&immutable=1" if immutable else "mode=rw"
    with contextlib.closing(sqlite3.connect(f"file:{quote(str(path))}?{options}", uri=True)) as database:
        database.text_factory = lambda text: text.decode(errors="replace")
        if check_version(database) == 0 and not database.execute("SELECT 1 FROM sqlite_master").fetchone():
            return CacheFacts({})
        (verdict,) = database.execute("PRAGMA quick_check(1)").fetchone()
        if verdict != "ok":
            raise sqlite3.DatabaseError(str(verdict))
        rows = database.execute(
            "SELECT identity, hash, length(vector), vector = zeroblob(length(vector)) "
            "FROM vectors JOIN embedders ON embedder = embedders.id"
        )
        prefixes: dict[str, array[int]] = {}
        damaged = set()
        for identity, key, length, is_zero in rows:
            prefixes.setdefault(str(identity), array("Q")).append(get_hash_prefix(bytes(key)))
            if is_zero or length not in get_byte_lengths(_dimension(str(identity))):
                damaged.add(bytes(key))
        return CacheFacts({name: HashSet(hashes) for name, hashes in prefixes.items()}, frozenset(damaged))


def _dimension(identity: str) -> int:
    """Parse the dimension from `provider:model:dimension@weights`."""
    return int(identity.partition("@")[0].rpartition(":")[2] or 0)
