"""`MemoryStorage`: one agent's memories behind one interface; `FileStorage`: in one YAML journal.

`detect_storage` selects the backend of an agent. A child process seals many changes in segments (`SegmentUpkeep`).
"""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from agent_memory.embeddings import Embedder, EmbeddingService, LocalEmbedder, VectorCache
from agent_memory.embeddings.embedder_pair import EmbedderPair
from agent_memory.embeddings.registry import lacks_languages, make_second_embedder
from agent_memory.encryption import data_key, is_encrypted, key_for, take_keys_from
from agent_memory.errors import AgentMemoryError, StorageError, UnknownIdError
from agent_memory.files.layout import AgentFolder, folder_of, remove_derived
from agent_memory.files.processes import child_environment, python_module
from agent_memory.index import DenseIndex, RankingSettings, SearchIndex
from agent_memory.index.facets import numpy_if_there
from agent_memory.journal import GRACE
from agent_memory.language.questions import is_other_question
from agent_memory.logs import get_logger
from agent_memory.models import (
    MEMORY,
    Clock,
    Memory,
    MemorySearchResult,
    SearchRequest,
    SearchResults,
    filters_of,
    utc_now,
)
from agent_memory.models.kind import R
from agent_memory.redaction import quoted
from agent_memory.registry import ENGINES
from agent_memory.settings import ServiceSettings
from agent_memory.store.change_log import FileLog, hashes_elsewhere
from agent_memory.store.neighbor_storage import NeighborStorage
from agent_memory.store.protocols import Trouble, describe_missing_languages, describe_weakness
from agent_memory.store.second_model import SecondModel, SecondModelPlan
from agent_memory.store.shards import Shards, can_grow, cannot_migrate_error, roll_back
from agent_memory.store.shortlist import Shortlist
from agent_memory.store.state import State
from agent_memory.store.storage_edge import Backend
from agent_memory.store.store import Answer, Store

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import timedelta
    from pathlib import Path

    from agent_memory.embeddings import EmbedderIdentity
    from agent_memory.embeddings.service import IndexT
    from agent_memory.embeddings.worker import EmbeddingWorker
    from agent_memory.index import Hit
    from agent_memory.models import Kind, SearchFilters
    from agent_memory.store.segment_opener import SegmentOpener
    from agent_memory.store.worker import Worker


log = get_logger(__name__)
T = TypeVar("T")

SEALED_AT: Final = 250
"""Changed or accessed records from which on they are sealed: replaying and indexing them takes a start 11 ms, and
sealing them half a second of processor time, of low priority."""
_REST_SECONDS: Final = 10.0
"""Seconds between two children: the second finishes what the first left, such as vectors that were still to be made."""

DETACHED_CHILDREN: Final[set[subprocess.Popen[bytes]]] = set()
"""Detached children to reap, so that they do not become zombies."""


class MemoryStorage(NeighborStorage[Memory]):
    """One agent's memories; see `RecordStorage`.

    Made as a `FileStorage`, a `VectorStorage` or by `detect_storage`.
    """

    async def search(
        self,
        query: str,
        limit: int = 5,
        filters: SearchFilters | Mapping[str, Any] | None = None,
        *,
        include_superseded: bool = False,
        explain: bool = False,
        patience: float | None = None,
        min_answer_confidence: float | None = None,
    ) -> SearchResults:
        """Return the best matches, best first. Does not count as an access.

        Args:
            query: Words or a question.
            limit: 1 to 100.
            filters: Conditions every result meets.
            include_superseded: Also find memories that a newer one replaced.
            explain: Also report what was left out and why (`SearchResults.rejected`).
            patience: Seconds to wait at most until what is stored is found by its embedding, too; 0 does not wait, None
                waits as long as this storage was made to. `SearchResults.mode` says how it was searched, `degraded` why
                it could not be better.
            min_answer_confidence: Least `SearchResults.answer_confidence` of an answer that is not `not_known`, 0 to 1.
                For programs of earlier versions; read `SearchResults.match`.

        Raises:
            ValidationError: The limit, a filter or the least confidence is wrong.
            StorageError: The memories cannot be read.
        """
        request = SearchRequest(
            query,
            limit,
            self._clock(),
            filters_of(filters),
            include_superseded,
            explain,
            patience,
            min_answer_confidence,
        )
        results = _build_results(await self.answer(request))
        results.min_answer_confidence = min_answer_confidence
        if not self.opened.embeddings.is_empty:
            results.degraded = describe_weakness(results, self.embedding_status())
            if results.degraded is None and self._backend.lacks_languages() and is_other_question(query):
                results.degraded = describe_missing_languages()
        return results

    async def update_access_stats(self, memory_id: str) -> None:
        """Count one access.

        Raises:
            UnknownIdError: No such memory.
            StorageError: Nothing was written.
        """
        if await self.get(memory_id) is None:
            raise UnknownIdError(f"No memory {quoted(memory_id)}.")
        await self.touch([memory_id])


def build_result(memory: Memory, hit: Hit, **fields: Any) -> MemorySearchResult:
    """Return a hit of a ranking in its public form.

    Args:
        memory: Text of the hit.
        hit: Its place in the ranking.
        fields: Further fields of the result, such as `surroundings`.
    """
    return MemorySearchResult(
        memory=memory,
        relevance_score=hit.score,
        match_type=hit.match_type,
        parts=hit.parts,
        match=hit.match,
        answer_confidence=hit.strength,
        pieces=hit.pieces,
        **fields,
    )


def _build_results(answer: Answer[Memory]) -> SearchResults:
    """Return an answer in its public form."""
    ranking = answer.ranking
    results = [
        build_result(memory, hit, surroundings=around)
        for hit, memory, around in zip(ranking.hits, answer.records, answer.surroundings, strict=True)
    ]
    rejected = [{"id": hit.id, "reason": hit.reason, "parts": hit.parts} for hit in ranking.rejected]
    search_results = SearchResults(
        results,
        total_found=ranking.total_found,
        mode=ranking.mode,
        rejected=rejected,
        match=ranking.match,
        answer_confidence=ranking.strength,
    )
    search_results.looks_back, search_results.words = answer.looks_back, ranking.words
    return search_results


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
        grace: Time for which forgotten and replaced texts can be restored.
        patience: Seconds that a search without its own patience waits for missing embeddings; None waits while a model
            loads, and for no texts. Loading the local model takes about one second.
        second_embedder: Embedder that is added once a text or a question is not English, instead of that of `settings`.

    Raises:
        ValidationError: `agent_id` cannot name a folder (also a ValueError).
        StorageError: The folder leads out of the storage root.
    """

    def __init__(  # noqa: PLR0913 - each by its name
        self,
        agent_id: str,
        storage_root: str | Path | None = None,
        *,
        settings: ServiceSettings | None = None,
        clock: Clock = utc_now,
        embedder: Embedder | None = None,
        grace: timedelta = GRACE,
        patience: float | None = None,
        second_embedder: Embedder | None = None,
    ) -> None:
        settings = settings or ServiceSettings()
        self.folder = folder_of(agent_id, storage_root or settings.storage_root)
        files = Files(MEMORY, self.folder, settings, clock, embedder, grace, patience, second_embedder)
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
        second_embedder: As in `FileStorage`.
    """

    kind: Kind[R]
    folder: AgentFolder
    settings: ServiceSettings
    clock: Clock
    embedder: Embedder | None = None
    grace: timedelta = GRACE
    patience: float | None = None
    second_embedder: Embedder | None = None

    def __post_init__(self) -> None:
        """Register where the settings say that the key of this folder is."""
        take_keys_from(self.folder.path.parent, self.settings.encryption)

    def backend(self, opening: Callable[[Any], Store[R]] | None = None) -> Backend[R]:
        """Return the backend of a storage of these files.

        Args:
            opening: Opens them for a storage; `open` when omitted.
        """
        is_local = self.embedder is None and self.settings.embedder == "local"
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
            lacks_languages=partial(lacks_languages, self.settings) if is_local else bool,
        )

    def open(self, storage: Any) -> Store[R]:
        """Open segments and journal, to be searched in this process."""
        return self.open_with_languages(storage, partial(_open_records, storage))

    def open_with_languages(self, storage: Any, open_records: RecordOpener[R], *, can_replace: bool = True) -> Store[R]:
        """Open the records; a second embedder is added once it is needed.

        Args:
            storage: Storage of the records.
            open_records: Opens them with the embedder of the given files.
            can_replace: As in `SecondModelPlan`.
        """
        plan = self._plan_second_model(open_records, can_replace=can_replace)
        if plan is not None and plan.check_filled():
            return plan.open_store()[0]
        store, embeddings = open_records(self)
        if plan is not None:
            store.second_model = SecondModel(storage, plan)
            store.second_model.start(embeddings)
        return store

    def _plan_second_model(self, open_records: RecordOpener[R], *, can_replace: bool) -> SecondModelPlan[R] | None:
        """Return the plan of a second embedder, or None."""
        english, foreign = self.embedder, self.second_embedder
        if english is None and foreign is None:
            foreign = make_second_embedder(self.settings)
        if foreign is None or not self.settings.enable_caching:
            return None
        pair, folder = EmbedderPair(english or LocalEmbedder(), foreign), self.folder
        vectors = VectorCache(folder.vectors, key=partial(key_for, folder.path))
        opening = partial(open_records, replace(self, embedder=pair, second_embedder=None))
        build = partial(start_builder, folder, self.kind)
        return SecondModelPlan(self.kind, pair, vectors, folder, opening, build, can_replace)

    def open_segments(
        self, embeddings: EmbeddingService[Any], worker: Worker, *, whole: bool = False
    ) -> tuple[Store[R], SegmentUpkeep[R]]:
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
                remove_derived(self.folder)  # a process that was running when encryption began may leave some
        log, opening = self.log(), cache(partial(_make_opener, self, embeddings))
        if not whole and self.folder.has_segments(self.kind.name) and numpy_if_there() is not None:
            index, records, unembedded = opening().open_segments(log)
            store = Store(self.kind, self.folder.agent_id, log, index, self.clock, records, unembedded)
        else:
            index = SearchIndex(get_ranking_settings(self.settings), embeddings.index)
            store = Store(self.kind, self.folder.agent_id, log, index, self.clock)
        sealing = SegmentUpkeep(store, opening, self.folder, worker, is_embedded=lambda: embeddings.is_settled)
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


RecordOpener = Callable[[Files[R]], tuple[Store[R], EmbeddingService[Any]]]
"""Opens the records of files, with their embeddings."""


def _open_records(storage: Any, files: Files[R]) -> tuple[Store[R], EmbeddingService[Any]]:
    embeddings = files.embeddings(DenseIndex)
    return files.open_segments(embeddings, storage.worker)[0], embeddings


def get_ranking_settings(settings: ServiceSettings) -> RankingSettings:
    """Return the ranking settings; what `settings` leave open has the measured defaults."""
    values = {entry.name: getattr(settings, entry.name, None) for entry in fields(RankingSettings)}
    return RankingSettings(**{name: value for name, value in values.items() if value is not None})


def _make_opener(files: Files[R], embeddings: EmbeddingService[Any]) -> SegmentOpener[R]:
    """Return the opener of segments; loads numpy.

    A start without segments does not need it.
    """
    from agent_memory.store.segment_opener import SegmentOpener

    return SegmentOpener(files.kind, files.folder, embeddings, get_ranking_settings(files.settings))


class SegmentUpkeep(Generic[R]):
    """The `IndexUpkeep` of files: a child process seals many changes.

    Args:
        store: Records of one kind.
        opening: Returns the opener of segments; called once there are some, or are to be.
        folder: Folder of the agent.
        thread: Thread of the records.
        least: Changed or accessed records from which on they are sealed.
        is_embedded: Returns True if every known text has its vector.
    """

    backend = "file"
    can_migrate = False

    def __init__(
        self,
        store: Store[R],
        opening: Callable[[], SegmentOpener[R]],
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
        self._started = -_REST_SECONDS
        self._is_embedded = is_embedded
        self._enough = least
        self._tried: object = None
        """Result of `_find_without_vectors` at the last start of a child, which failed if it is the same now."""

    def look_after(self, *, is_changed: bool = False) -> None:  # noqa: ARG002 - a write changes nothing here
        """Start a child if enough is unsealed, and use its segments."""
        if self._child is not None:
            if self._child.poll() is not None:
                self._child = None
                self._thread.submit(self._adopt)
            return
        if time.monotonic() - self._started < _REST_SECONDS:
            return
        if self._store.state.unsealed_count >= self._enough:
            self._start()
        elif (missing := self._find_without_vectors()) is not None and missing != self._tried and self._is_embedded():
            self._tried = missing
            self._start()

    async def close(self) -> None:
        """Start a child for remaining changes and vectors.

        It outlives this process.
        """
        if self._child is not None and self._child.poll() is None:
            return  # it checks again before it ends
        missing = self._find_without_vectors()
        has_vectors = missing is not None and missing != self._tried and self._is_embedded()
        if has_vectors or (self._store.state.unsealed_count >= self._least and await self._thread.run(self._is_enough)):
            self._tried = missing
            self._start()

    def _is_enough(self) -> bool:
        """Return True if enough changes follow the segments of any process."""
        if numpy_if_there() is None:
            return False
        last = self.opening().get_last_sealed()
        return sum(seq > last for seq in self._store.state.table.touched_at.values()) >= self._enough

    def _find_without_vectors(self) -> tuple[bool, tuple[str, ...]] | None:
        """Return the names of used segments without vectors, or None.

        Also True if their vectors were asked for; before that, the cache may have them from an earlier session.
        """
        sealed = self._store.index.parts.sealed
        if sealed is None:
            return None
        pairs = zip(sealed.chain.segments, sealed.vectors, strict=True)
        names = tuple(segment.folder.name for segment, vectors in pairs if vectors is None)
        return (self._store.asked_for_vectors, names) if names else None

    def _start(self) -> None:
        self._started = time.monotonic()
        if numpy_if_there() is None or is_encrypted(self._agent.path):  # segments are arrays, and not encrypted
            return
        self._child = start_builder(self._agent, self._store.kind, self.opening().identity)

    def describe(self) -> tuple[dict[str, Any], list[Trouble]]:
        """Return nothing to report.

        Segments are derived, and a problem with them costs only time.
        """
        return {}, []

    async def rollback(self) -> bool:
        """Answer from the files alone; needs no engine. See `IndexUpkeep.rollback`."""
        return await asyncio.to_thread(roll_back, self._agent)

    def after_compaction(self) -> None:
        """Remove segments with purged texts; the next child rebuilds them."""
        if self._agent.has_segments(self._store.kind.name) and numpy_if_there() is not None:
            self.opening().drop_purged(self._store.log)

    def _adopt(self) -> None:
        before = self._store.state.unsealed_count
        with contextlib.suppress(StorageError):  # the next child rebuilds them
            self.opening().adopt(self._store)
        after = self._store.state.unsealed_count
        # A child that failed, for instance on a full disk, is not started again for the same changes.
        self._enough = self._least if after < max(before, self._least) else after + self._least


def start_builder(
    folder: AgentFolder, kind: Kind[Any], identity: EmbedderIdentity | None
) -> subprocess.Popen[bytes] | None:
    """Start a child process that seals records, with vectors of the cache."""
    command = python_module("agent_memory.store.segment_builder")
    return start_child([*command, str(folder.path), kind.place, identity.to_json() if identity is not None else ""])


def start_child(command: list[str]) -> subprocess.Popen[bytes] | None:
    """Start a child process that outlives this process."""
    DETACHED_CHILDREN.difference_update({child for child in DETACHED_CHILDREN if child.poll() is not None})
    nothing: Any = subprocess.DEVNULL
    try:
        child = subprocess.Popen(  # noqa: S603 - this interpreter, a module of ours, a path of ours
            command, stdin=nothing, stdout=nothing, stderr=nothing, env=child_environment(), start_new_session=True
        )
    except OSError as error:
        log.warning("sealing_not_started", error=str(error))
        return None
    DETACHED_CHILDREN.add(child)
    return child


def detect_storage(
    agent_id: str,
    storage_root: str | Path | None = None,
    *,
    settings: ServiceSettings | None = None,
    clock: Clock = utc_now,
) -> MemoryStorage:
    """Return the storage of `agent_id`.

    With `backend: auto`, `metadata.json` decides: `VectorStorage` once the agent was migrated, else a `FileStorage`
    that can be migrated while it is in use, if the vector engine and an embedder are installed. Without them it is a
    plain one, also for an agent that was migrated elsewhere: the memories are in the journal.

    This neither suggests nor starts a migration: `MemoryService` does both, as `auto_migrate` says. Another program
    calls `should_migrate` and `storage.migrate()`.

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
        log.warning("vector_backend_not_available", agent_id=agent_id, recovery="Search continues from the files.")
    return FileStorage(agent_id, storage_root, settings=settings, clock=clock)


def should_migrate(
    agent_id: str, storage_root: str | Path | None = None, *, settings: ServiceSettings | None = None
) -> bool:
    """Return True if an agent can be migrated and has `migration_threshold` memories.

    False if it was migrated. Reads the journal; blocking.

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
    """Answer from the files alone; return True if that is new.

    See `MigratableStorage.rollback`.

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
    """Load the class of a backend with an engine or server.

    Raises:
        StorageError: The package with it is absent.
    """
    storage_class: Callable[..., MemoryStorage] = ENGINES.load(backend)
    return storage_class
