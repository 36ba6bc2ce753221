"""Examining what the vector engine and the embedder keep: `memories.db` and `embeddings.sqlite3`.

Opens neither in place: the engine writes into what it opens, and SQLite makes files beside it. The cache is looked at
read-only, or in a copy while there is a log beside it that SQLite would play back.
"""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import quote

from agent_memory.doctor.findings import Finding, number
from agent_memory.embeddings import LocalEmbedder, text_hash
from agent_memory.files.entries import described, kind_of, lock_at, names_in, names_of, size_of
from agent_memory.files.names import BUILD_LOCK, HOLDER_LOCK, UNFINISHED
from agent_memory.installing import advice
from agent_memory.retrieval import embedded_texts
from agent_memory.storage.vector.engine import is_installed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_memory.doctor.context import Case
    from agent_memory.storage.vector.generations import State

_SCHEMA: Final = 1
_ATTEMPTS: Final = 3
_REBUILT: Final = "The next session builds it anew; `agent-memory reindex` does so now."


# -- memories.db ----------------------------------------------------------------------------------------------------


def examine_index(case: Case) -> Iterator[Finding]:
    """Look at every generation of the index, the one in use and others."""
    index = case.folder.index
    kind = kind_of(index)
    if kind not in {"missing", "folder"}:
        yield Finding(
            "index_unusable",
            f"memories.db is {described(kind_of(index))} instead of a folder, so there can be no index. "
            "Memories are found without it.",
            "`agent-memory doctor --repair` moves it aside.",
            size_of(index),
        )
        return
    backend, active = case.generations().active()
    names = names_in(index) if kind == "folder" else []
    yield from _leftovers(case, names, active)
    if backend != "vector":
        return
    if not is_installed():
        yield Finding(
            "engine_missing",
            "This agent was migrated, but the vector engine is not installed here; searches use the files.",
            advice("local", "vector"),
        )
    if active is None:
        yield Finding("index_none", "This agent was migrated, but has no index now.", _REBUILT)
        return
    yield from _generation(case, active)


def _generation(case: Case, active: str) -> Iterator[Finding]:
    state = case.generations().state(active)
    folder = case.folder.index / active
    size = size_of(folder)
    if state is None or not names_in(folder / "shard"):
        what = "is missing" if kind_of(folder) == "missing" else "is damaged, half built or of another version"
        yield Finding(
            "index_broken", f"The index in use, {active}, {what}; memories are found without it.", _REBUILT, size
        )
        return
    holder = lock_at(folder / HOLDER_LOCK)
    if holder.state == "held":
        yield Finding("index_in_use", f"The index is held by {holder}; other processes search beside it.")
    yield from _position(case, state)
    yield Finding("index", f"Generation {active}, of {state.embedder}, complete up to change {state.seq:,}.", size=size)


def _position(case: Case, state: State) -> Iterator[Finding]:
    default = default_identity()
    if state.embedder != default and case.settings.embedder == "local":
        yield Finding(
            "index_foreign",
            f"The index is of the embedder {state.embedder}, not of the default one. A session with another embedder "
            "builds it anew.",
        )
    if not case.journal.readable:
        return
    if state.seq > case.journal.last_seq:
        case.read_again()  # a session may have written since
    last = case.journal.last_seq
    if state.seq > last:
        yield Finding(
            "index_ahead",
            f"The index has seen change {state.seq:,}, but the journal ends with {last:,}: an older copy was put back, "
            "or its end was cut off.",
            f"If that was not on purpose, look for a newer memories.yaml first. --repair drops the index. {_REBUILT}",
        )
    elif missing := sum(entry.seq > state.seq for entry in case.journal.entries):
        yield Finding(
            "index_behind",
            f"On disk the index is behind by {number(missing, 'change')}; searches compare these one by one.",
        )


def _leftovers(case: Case, names: list[str], active: str | None) -> Iterator[Finding]:
    index = case.folder.index
    half = [index / name for name in names if name.startswith(UNFINISHED)]
    builder = lock_at(index / BUILD_LOCK)
    if builder.state == "held":
        yield Finding("index_in_use", f"An index is being built by {builder}.", size=sum(map(size_of, half)))
    elif half:
        yield Finding(
            "index_half_built",
            f"{number(len(half), 'build')} of an index did not come to an end; the next build removes what is left.",
            size=sum(map(size_of, half)),
        )
    unused = [index / name for name in names if name.isalnum() and name != active and kind_of(index / name) == "folder"]
    if unused:
        yield Finding(
            "index_unused",
            f"{number(len(unused), 'index', 'indexes')} not in use; removed as soon as nobody holds "
            f"{'it' if len(unused) == 1 else 'them'}.",
            size=sum(map(size_of, unused)),
        )


def default_identity() -> str:
    """Return the identity of the embedder that is used when nothing else is configured."""
    return str(LocalEmbedder().identity)


# -- embeddings.sqlite3 ---------------------------------------------------------------------------------------------


class CacheFacts(NamedTuple):
    """What a vector cache holds.

    Attributes:
        hashes: Hashes of texts by identity of the embedder.
        spoilt: Hashes whose vector is of another length than its embedder's, or nothing but zeros.
    """

    hashes: dict[str, set[bytes]]
    spoilt: frozenset[bytes] = frozenset()


def examine_vectors(case: Case) -> Iterator[Finding]:
    """Look at the vector cache: is it sound, what belongs to nothing, what is wanting."""
    path = case.folder.vectors
    aside = [path.with_name(name) for name in names_of(case.path, "broken_vectors")]
    if aside:
        what = f"{number(len(aside), 'vector cache')} was damaged and moved aside."
        yield Finding("vectors_aside", what, "It may be deleted.", sum(map(size_of, aside)))
    if kind_of(path, follow=True) == "missing":
        yield Finding("vectors_none", "No vectors are kept yet.")
        return
    size = sum(size_of(path.with_name(path.name + tail)) for tail in ("", "-wal", "-shm"))
    try:
        facts = _read_cache(path)
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:  # the second when SQLite quotes a damaged schema
        yield Finding(
            "vectors_broken",
            f"The vector cache embeddings.sqlite3 is damaged ({_short(error)}). It holds no text; what it held is "
            "computed again.",
            "Sessions move it aside and begin anew by themselves; so does --repair.",
            size,
        )
        return
    except OSError as error:
        yield Finding("vectors_unread", f"The vector cache was not looked at: {error.strerror or error}.", size=size)
        return
    yield from _coverage(case, facts, size)


def _coverage(case: Case, facts: CacheFacts, size: int) -> Iterator[Finding]:
    by = [
        f"{number(len(hashes), 'vector')} of {identity}" for identity, hashes in sorted(facts.hashes.items()) if hashes
    ]
    yield Finding("vectors", f"{', '.join(by) or 'No vectors'}.", size=size)
    if facts.spoilt:
        yield Finding(
            "vectors_spoilt",
            f"{number(len(facts.spoilt), 'vector is', 'vectors are')} damaged: of a wrong length, or all zeros. "
            "Nothing is found by them.",
            "Sessions compute them again when they meet them; --repair removes them.",
        )
    if not case.journal.readable:
        return
    needed, orphaned = _orphaned(case, facts)
    if orphaned:
        case.read_again()  # a session may have stored something since
        needed, orphaned = _orphaned(case, facts)
    if orphaned:
        yield Finding(
            "vectors_orphaned",
            f"{number(orphaned, 'vector')} of texts that no memory has any more. A vector tells something of its text.",
            "Sessions remove them after a forget; --repair does so now.",
        )
    for identity, hashes in sorted(facts.hashes.items()):
        wanting = sum(not set(keys) <= hashes for keys in needed.values())
        if wanting and hashes:
            yield Finding(
                "vectors_wanting",
                f"{number(wanting, 'memory has', 'memories have')} no vector of {identity} yet; a session that uses it "
                "computes them.",
            )


def _orphaned(case: Case, facts: CacheFacts) -> tuple[dict[str, list[bytes]], int]:
    """Return what a cache must keep, and how many vectors it keeps beside that."""
    needed = needed_hashes(case)
    every = {key for keys in needed.values() for key in keys}
    return needed, sum(len(hashes - every) for hashes in facts.hashes.values())


def needed_hashes(case: Case) -> dict[str, list[bytes]]:
    """Return the hashes of the texts that stand for each memory: what a cache must keep."""
    return {
        memory_id: [text_hash(text) for text in embedded_texts(memory.content)]
        for memory_id, memory in case.journal.memories.items()
    }


def spoilt_hashes(path: Path) -> frozenset[bytes]:
    """Return the hashes whose vector in this cache is none.

    Raises:
        sqlite3.DatabaseError: It is damaged.
        OSError: It may not be read, or is of a newer version.
    """
    return _read_cache(path).spoilt


def _read_cache(path: Path) -> CacheFacts:
    """Read a cache without writing beside it.

    Raises:
        sqlite3.DatabaseError: It is damaged.
        OSError: It may not be read, or is of a newer version.
    """
    for each in (path, *(path.with_name(path.name + tail) for tail in ("-wal", "-shm"))):
        kind = kind_of(each, follow=True)
        if kind not in {"file", "missing"}:
            raise sqlite3.DatabaseError(f"{each.name} is {described(kind)}")
    with path.open("rb"):
        pass  # SQLite tells a file that may not be read from one that is damaged only by its words
    if size_of(path) == 0:
        return CacheFacts({})  # as SQLite leaves a file it was killed over; the next to open it fills it
    if not size_of(path.with_name(f"{path.name}-wal")):
        return _facts_of(path)
    for attempt in range(_ATTEMPTS):
        with tempfile.TemporaryDirectory(prefix="agent-memory-") as folder:
            copy, before = Path(folder) / "cache", _stamp(path)
            for tail in ("", "-wal"):
                with contextlib.suppress(FileNotFoundError):
                    shutil.copyfile(path.with_name(path.name + tail), copy.with_name(copy.name + tail))
            try:
                return _facts_of(copy, immutable=False)
            except sqlite3.DatabaseError:
                if _stamp(path) == before or attempt == _ATTEMPTS - 1:
                    raise
    raise AssertionError


def _facts_of(path: Path, *, immutable: bool = True) -> CacheFacts:
    options = "mode=ro&immutable=1" if immutable else "mode=rw"
    with contextlib.closing(sqlite3.connect(f"file:{quote(str(path))}?{options}", uri=True)) as database:
        database.text_factory = lambda text: text.decode(errors="replace")
        version = database.execute("PRAGMA user_version").fetchone()[0]
        if version == 0 and not database.execute("SELECT 1 FROM sqlite_master").fetchone():
            return CacheFacts({})
        if version != _SCHEMA:
            raise OSError(f"it is of a newer version of agent-memory (schema {version})")
        (verdict,) = database.execute("PRAGMA quick_check(1)").fetchone()
        if verdict != "ok":
            raise sqlite3.DatabaseError(str(verdict))
        rows = database.execute(
            "SELECT identity, hash, length(vector), vector = zeroblob(length(vector)) "
            "FROM vectors JOIN embedders ON embedder = embedders.id"
        )
        hashes: dict[str, set[bytes]] = {}
        spoilt = set()
        for identity, key, length, is_zero in rows:
            hashes.setdefault(str(identity), set()).add(bytes(key))
            if is_zero or length != 2 * _dimension(str(identity)):
                spoilt.add(bytes(key))
        return CacheFacts(hashes, frozenset(spoilt))


def _dimension(identity: str) -> int:
    """Return how many numbers a vector of this embedder has: the last part of `provider:model:dimension@weights`."""
    return int(identity.partition("@")[0].rpartition(":")[2] or 0)


def _stamp(path: Path) -> tuple[tuple[int, int], ...]:
    stamps = []
    for tail in ("", "-wal"):
        with contextlib.suppress(OSError):
            status = path.with_name(path.name + tail).stat()
            stamps.append((status.st_size, status.st_mtime_ns))
    return tuple(stamps)


def _short(error: Exception) -> str:
    return str(error).splitlines()[-1].strip()[:120] if str(error) else type(error).__name__
