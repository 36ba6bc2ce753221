"""`FileStorage`: memories in one YAML journal, searched in this process; `detect_storage` selects the backend.

A child process seals many changes in segments, in the background (`Sealing`).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
import time
from dataclasses import asdict, dataclass, fields
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final, Generic

from agent_memory.embeddings import EmbeddingService
from agent_memory.encryption import data_key, is_encrypted, key_for, take_keys_from
from agent_memory.errors import AgentMemoryError, StorageError
from agent_memory.files.layout import folder_of, remove_derived
from agent_memory.files.processes import child_environment, python_module
from agent_memory.index import DenseIndex, RankingSettings, SearchIndex
from agent_memory.index.facets import numpy_if_there
from agent_memory.journal import GRACE
from agent_memory.logs import get_logger
from agent_memory.models import MEMORY, Clock, utc_now
from agent_memory.models.kind import R
from agent_memory.registry import ENGINES
from agent_memory.settings import ServiceSettings
from agent_memory.store.change_log import FileLog, hashes_elsewhere
from agent_memory.store.memory_storage import MemoryStorage
from agent_memory.store.shards import Shards, can_grow, cannot_migrate_error, roll_back
from agent_memory.store.shortlist import Shortlist
from agent_memory.store.state import State
from agent_memory.store.storage_edge import Backend
from agent_memory.store.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import timedelta
    from pathlib import Path

    from agent_memory.embeddings import Embedder
    from agent_memory.embeddings.service import IndexT
    from agent_memory.embeddings.worker import EmbeddingWorker
    from agent_memory.files.layout import AgentFolder
    from agent_memory.models import Clock, Kind
    from agent_memory.store.protocols import Trouble
    from agent_memory.store.segment_opener import Opening
    from agent_memory.store.worker import Worker


class FileStorage(MemoryStorage):
    """An agent's memories in `<storage_root>/<agent_id>/memories.yaml`.

    Opens nothing until the first call and creates nothing until the first write. Several objects, threads and
    processes may use one folder at the same time.

    Args:
        agent_id: Name of the agent.
        storage_root: Folder of all agents; that of `settings` when omitted.
        settings: Ranking and backend settings; the defaults when omitted.
        clock: Source of the present.
        embedder: One of the caller's own, instead of that of `settings`.
        grace: How long what was forgotten or replaced can be brought back.
        patience: Seconds that a search which names none waits until what is stored is found by its embedding, too; None
            waits while a model loads, and for no texts.
            Loading the local model takes about one; thousands of memories that are new are waited for only once.

    Raises:
        ValidationError: `agent_id` cannot name a folder (also a ValueError).
        StorageError: The folder leads out of the storage root.
    """

    def __init__(
        self,
        agent_id: str,
        storage_root: str | Path | None = None,
        *,
        settings: ServiceSettings | None = None,
        clock: Clock = utc_now,
        embedder: Embedder | None = None,
        grace: timedelta = GRACE,
        patience: float | None = None,
    ) -> None:
        settings = settings or ServiceSettings()
        self.folder = folder_of(agent_id, storage_root or settings.storage_root)
        files = Files(MEMORY, self.folder, settings, clock, embedder, grace, patience)
        super().__init__(files.backend())


@dataclass(frozen=True, slots=True)
class Files(Generic[R]):
    """Files of one agent's records of one kind.

    Attributes:
        kind: Kind of the records.
        folder: Folder of the agent.
        settings: Ranking, embedder and waiting times.
        clock: Source of the present.
        embedder: Embedder of the caller, instead of that of `settings`.
        grace: Time for which forgotten and replaced texts can be restored.
        patience: As in `Backend`.
    """

    kind: Kind[R]
    folder: AgentFolder
    settings: ServiceSettings
    clock: Clock
    embedder: Embedder | None = None
    grace: timedelta = GRACE
    patience: float | None = None

    def __post_init__(self) -> None:
        """Look for the key of this folder where the settings say."""
        take_keys_from(self.folder.path.parent, self.settings.encryption)

    def backend(self, opening: Callable[[Any], Store[R]] | None = None) -> Backend[R]:
        """Return the backend of a storage of these files.

        Args:
            opening: Opens them for a storage; `open` when omitted.
        """
        return Backend(
            self.kind,
            self.folder.agent_id,
            self.clock,
            opening or self.open,
            why_immovable=partial(cannot_migrate_error, self.settings),
            grace=self.grace,
            wait=self.settings.lock_timeout,
            patience=self.patience,
            shortlist=Shortlist(self.kind, self.folder),
        )

    def open(self, storage: Any) -> Store[R]:
        """Open the records, to be searched in this process.

        They are in segments, and after these in the journal.
        """
        return self.open_segments(self.embeddings(DenseIndex), storage.worker)[0]

    def open_segments(
        self, embeddings: EmbeddingService[Any], worker: Worker, *, whole: bool = False
    ) -> tuple[Store[R], Sealing[R]]:
        """Return the open records and their sealing.

        Args:
            embeddings: Vectors of their texts.
            worker: Thread of the records.
            whole: Use no segments, and read the whole journal.
        """
        if is_encrypted(self.folder.path):  # what is derived is kept in this process alone
            whole = True
            with contextlib.suppress(AgentMemoryError):  # without the key reading says so, and nothing is touched
                data_key(self.folder.path)
                remove_derived(self.folder)  # a process that was under way when encryption began may leave some
        log, opening = self.log(), cache(partial(_opening_of, self, embeddings))
        content: tuple[Any, ...] = (SearchIndex(ranking_of(self.settings), embeddings.index), self.clock)
        if not whole and self.folder.has_segments(self.kind.name) and numpy_if_there() is not None:
            sealed = opening().open(log)
            content = (sealed.index, self.clock, sealed.records, sealed.unembedded)
        store = Store(self.kind, self.folder.agent_id, log, *content)
        sealing = Sealing(store, opening, self.folder, worker, is_embedded=lambda: embeddings.is_settled)
        store.embeddings, store.upkeep = embeddings, sealing
        return store, sealing

    def log(self) -> FileLog:
        """Return the log of the records."""
        return FileLog(self.kind, self.folder, self.clock, self.grace, self.settings.lock_timeout)

    def embeddings(self, make_index: Callable[[EmbeddingWorker], IndexT]) -> EmbeddingService[IndexT]:
        """Return the embeddings of the records.

        What the folder's other journals need stays in the cache.
        """
        others = partial(hashes_elsewhere, self.folder, self.kind)
        key = partial(key_for, self.folder.path)
        return EmbeddingService(self.settings, self.folder.vectors, make_index, self.embedder, others, key)


def ranking_of(settings: ServiceSettings) -> RankingSettings:
    """Return the ranking that `settings` ask for.

    What they leave open is as measured.
    """
    asked = {each.name: getattr(settings, each.name, None) for each in fields(RankingSettings)}
    return RankingSettings(**{name: value for name, value in asked.items() if value is not None})


def _opening_of(files: Files[R], embeddings: EmbeddingService[Any]) -> Opening[R]:
    """Return the opener of segments; loads numpy.

    A start without segments does not pay for that.
    """
    from agent_memory.store.segment_opener import Opening

    return Opening(files.kind, files.folder, embeddings, ranking_of(files.settings))


log = get_logger(__name__)

SEALED_AT: Final = 250
"""Changed or accessed records from which on they are sealed: replaying and indexing them takes a start 11 ms, and
sealing them half a second of processor time, of low priority."""
_REST_SECONDS: Final = 10.0
"""From one child to the next: the second finds what the first left, such as vectors that were still to be made."""

_left: Final[set[subprocess.Popen[bytes]]] = set()
"""Children that outlived their session, until somebody asks how they ended: so that none stays as a zombie."""


class Sealing(Generic[R]):
    """The `IndexUpkeep` of files without an engine.

    Args:
        store: The records.
        opening: Returns how segments are opened; asked for once there are some, or are to be.
        folder: Where the records lie.
        thread: Takes new segments into use.
        least: Changed or accessed records from which on they are sealed.
        is_embedded: Tells whether every text that is known has its vector.
    """

    backend = "file"
    can_migrate = False

    def __init__(
        self,
        store: Store[R],
        opening: Callable[[], Opening[R]],
        folder: AgentFolder,
        thread: Worker,
        least: int = SEALED_AT,
        is_embedded: Callable[[], bool] = lambda: False,
    ) -> None:
        self._store = store
        self.opening = opening
        self._agent = folder
        self._thread = thread
        self._least = least
        self._child: subprocess.Popen[bytes] | None = None
        self._begun = -_REST_SECONDS
        self._is_embedded = is_embedded
        self._enough = least
        self._tried: object = None
        """What `_without_vectors` returned when a child looked for them, in vain if it returns that again."""

    def look_after(self, *, is_changed: bool = False) -> None:  # noqa: ARG002 - a write changes nothing here
        """Have a child seal what there is, once there is enough of it, and take into use what it sealed."""
        if self._child is not None:
            if self._child.poll() is not None:
                self._child = None
                self._thread.submit(self._adopt)
            return
        if time.monotonic() - self._begun < _REST_SECONDS:
            return
        if self._store.state.unsealed >= self._enough:
            self._begin()
        elif (missing := self._without_vectors()) is not None and missing != self._tried and self._is_embedded():
            self._tried = missing
            self._begin()

    async def close(self) -> None:
        """Have a child seal what is left, and add the vectors that were made meanwhile: it goes on by itself."""
        if self._child is not None and self._child.poll() is None:
            _left.add(self._child)
            return  # it looks again before it ends
        missing = self._without_vectors()
        has_vectors = missing is not None and missing != self._tried and self._is_embedded()
        if has_vectors or (self._store.state.unsealed >= self._least and await self._thread.run(self._is_enough)):
            self._tried = missing
            self._begin()
            if self._child is not None:
                _left.add(self._child)

    def _is_enough(self) -> bool:
        """Tell whether there is enough behind what is sealed by now, in use here or not."""
        if numpy_if_there() is None:
            return False
        last = self.opening().last_sealed()
        return sum(seq > last for seq in self._store.state.table.touched_at.values()) >= self._enough

    def _without_vectors(self) -> tuple[bool, tuple[str, ...]] | None:
        """Return whether vectors were asked for, and the names of the segments in use that have none; None if all do.

        Before they were asked for, they may be in the cache from an earlier session.
        """
        sealed = self._store.index.parts.sealed
        if sealed is None:
            return None
        pairs = zip(sealed.chain.segments, sealed.vectors, strict=True)
        names = tuple(segment.folder.name for segment, vectors in pairs if vectors is None)
        return (self._store.asked_for_vectors, names) if names else None

    def _begin(self) -> None:
        self._begun = time.monotonic()
        if numpy_if_there() is None or is_encrypted(self._agent.path):  # segments are arrays, and not encrypted
            return
        identity = self.opening().identity
        self._child = start_child(
            [
                *python_module("agent_memory.store.segment_builder"),
                str(self._agent.path),
                self._store.kind.place,
                json.dumps(asdict(identity)) if identity is not None else "",
            ]
        )

    def describe(self) -> tuple[dict[str, Any], list[Trouble]]:
        """Return nothing: segments are derived, and a problem with them costs time alone."""
        return {}, []

    async def rollback(self) -> bool:
        """Answer from the files alone; needs no engine. See `IndexUpkeep.rollback`."""
        return await asyncio.to_thread(roll_back, self._agent)

    def after_compaction(self) -> None:
        """Remove segments with texts that were purged; the next child makes them anew."""
        if self._agent.has_segments(self._store.kind.name) and numpy_if_there() is not None:
            self.opening().drop_purged(self._store.log)

    def _adopt(self) -> None:
        before = self._store.state.unsealed
        with contextlib.suppress(StorageError):  # the next child makes them anew
            self.opening().adopt(self._store)
        after = self._store.state.unsealed
        # One that could do nothing, on a full disk for instance, is not started again for the same.
        self._enough = self._least if after < max(before, self._least) else after + self._least


def start_child(command: list[str]) -> subprocess.Popen[bytes] | None:
    """Start a child that goes on when this process ends: what it makes is for the next one."""
    _left.difference_update({child for child in _left if child.poll() is not None})
    nothing: Any = subprocess.DEVNULL
    try:
        return subprocess.Popen(  # noqa: S603 - this interpreter, a module of ours, a path of ours
            command, stdin=nothing, stdout=nothing, stderr=nothing, env=child_environment(), start_new_session=True
        )
    except OSError as error:
        log.warning("sealing_not_started", error=str(error))
        return None


def detect_storage(
    agent_id: str,
    storage_root: str | Path | None = None,
    *,
    settings: ServiceSettings | None = None,
    clock: Clock = utc_now,
) -> MemoryStorage:
    """Return the storage of `agent_id`.

    With `backend: auto` that is what `metadata.json` says: `VectorStorage` once the agent was migrated, else a
    `FileStorage` that can be migrated while it is in use, where the vector engine and an embedder are installed.
    Without them it is a plain one, also for an agent that was migrated elsewhere: the memories are in the journal.

    This suggests and begins no migration: only `MemoryService` has a session to tell, and does both as `auto_migrate`
    says. A program of its own asks `should_migrate` and calls `storage.migrate()`.

    Raises:
        ValidationError: `agent_id` cannot name a folder (also a ValueError).
        ConfigurationError: The settings ask for a backend that this version or installation does not have.
        StorageError: The folder cannot be used.
    """
    settings = settings or ServiceSettings()
    if settings.backend == "server":
        return _load("server")(agent_id, settings=settings, clock=clock)
    folder = folder_of(agent_id, storage_root or settings.storage_root)
    take_keys_from(folder.path.parent, settings.encryption)
    if is_encrypted(folder.path) or settings.backend == "file":  # an index would not be encrypted
        return FileStorage(agent_id, storage_root, settings=settings, clock=clock)
    if settings.backend == "vector":
        return _load("vector")(agent_id, storage_root, settings=settings, clock=clock)
    migrated = Shards(folder).active()[0] == "vector"
    if can_grow(settings):
        backend = _load("vector" if migrated else "migratable")
        return backend(agent_id, storage_root, settings=settings, clock=clock, wanted=False)
    if migrated:
        log.warning("vector_backend_not_available", agent_id=agent_id, recovery="Search goes on from the files.")
    return FileStorage(agent_id, storage_root, settings=settings, clock=clock)


def should_migrate(
    agent_id: str, storage_root: str | Path | None = None, *, settings: ServiceSettings | None = None
) -> bool:
    """Tell whether an agent's memories are searched from files, can be moved, and are as many as `migration_threshold`.

    Reads the journal as far as that takes; blocking.

    Raises:
        ValidationError: `agent_id` cannot name a folder (also a ValueError).
        StorageError: The memories cannot be read.
    """
    settings = settings or ServiceSettings()
    folder = folder_of(agent_id, storage_root or settings.storage_root)
    if (
        settings.backend != "auto"
        or is_encrypted(folder.path)
        or not can_grow(settings)
        or Shards(folder).active()[0] == "vector"
    ):
        return False
    state = State(MEMORY, folder.agent_id)
    state.absorb(FileLog(MEMORY, folder).poll())
    return len(state.records) >= settings.migration_threshold


async def rollback_migration(
    agent_id: str, storage_root: str | Path | None = None, *, settings: ServiceSettings | None = None
) -> bool:
    """Answer from the files alone again; tell whether that was not so already. See `MigratableStorage.rollback`.

    Raises:
        ValidationError: `agent_id` cannot name a folder (also a ValueError).
        ConfigurationError: The engine or an embedder is missing.
        StorageError: Nothing has changed.
    """
    storage = _load("migratable")(agent_id, storage_root, settings=settings)
    try:
        return await storage.rollback()
    finally:
        await storage.close()


def _load(backend: str) -> Callable[..., MemoryStorage]:
    """Return the class of a backend that needs the vector engine or a server.

    Raises:
        StorageError: The package with it is absent.
    """
    storage_class: Callable[..., MemoryStorage] = ENGINES.load(backend)
    return storage_class
