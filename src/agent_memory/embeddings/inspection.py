"""What a vector cache holds, read without writing next to it: SQLite makes files where it opens one.

It is read in place, or in a copy while there is a log next to it that SQLite would play back.
"""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import tempfile
from array import array
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import quote

from agent_memory.embeddings.cache import check_version
from agent_memory.embeddings.hashes import Hashes, prefix_of
from agent_memory.files.atomic import signature
from agent_memory.files.entries import describe_path_type, kind_of, size_of
from agent_memory.files.vectors import get_byte_lengths

_ATTEMPTS: Final = 3


class CacheFacts(NamedTuple):
    """What a vector cache holds.

    Attributes:
        hashes: Hashes of texts by identity of the embedder.
        spoilt: Hashes whose vector is of another length than its embedder's, or nothing but zeros.
    """

    hashes: dict[str, Hashes]
    spoilt: frozenset[bytes] = frozenset()


def cache_files(path: Path) -> list[Path]:
    """Return the file of a cache and those that SQLite keeps next to it."""
    return [path.with_name(path.name + tail) for tail in ("", "-wal", "-shm")]


def inspect_cache(path: Path) -> CacheFacts:
    """Return what a cache holds; a missing one nothing.

    Raises:
        sqlite3.DatabaseError, UnicodeDecodeError: It is damaged; the second when SQLite quotes a damaged schema.
        OSError: It may not be read, or is of a newer version.
    """
    for each in cache_files(path):
        kind = kind_of(each, follow=True)
        if kind not in {"file", "missing"}:
            raise sqlite3.DatabaseError(f"{each.name} is {describe_path_type(kind)}")
    with path.open("rb"):
        pass  # SQLite tells a file that may not be read from one that is damaged only by its words
    if size_of(path) == 0:
        return CacheFacts({})  # as SQLite leaves a file it was killed over; the next to open it fills it
    log = cache_files(path)[1]
    if not size_of(log):
        return _facts_of(path)
    for attempt in range(_ATTEMPTS):
        with tempfile.TemporaryDirectory(prefix="agent-memory-") as folder:
            copy, before = Path(folder) / path.name, [signature(path), signature(log)]
            for each in (path, log):
                with contextlib.suppress(FileNotFoundError):
                    shutil.copyfile(each, copy.with_name(each.name))
            try:
                return _facts_of(copy, immutable=False)
            except sqlite3.DatabaseError:
                if [signature(path), signature(log)] == before or attempt == _ATTEMPTS - 1:
                    raise
    raise AssertionError


def _facts_of(path: Path, *, immutable: bool = True) -> CacheFacts:
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
        spoilt = set()
        for identity, key, length, is_zero in rows:
            prefixes.setdefault(str(identity), array("Q")).append(prefix_of(bytes(key)))
            if is_zero or length not in get_byte_lengths(_dimension(str(identity))):
                spoilt.add(bytes(key))
        return CacheFacts({name: Hashes(found) for name, found in prefixes.items()}, frozenset(spoilt))


def _dimension(identity: str) -> int:
    """Return how many numbers a vector of this embedder has: the last part of `provider:model:dimension@weights`."""
    return int(identity.partition("@")[0].rpartition(":")[2] or 0)
