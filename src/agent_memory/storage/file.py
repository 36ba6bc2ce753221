"""`FileStorage`: memories in one YAML journal, searched in this process. The backend everyone starts with."""

from __future__ import annotations

import asyncio
import contextlib
import os
from typing import TYPE_CHECKING, Any, Final

from typing_extensions import override

from agent_memory.embeddings import EmbeddingService
from agent_memory.errors import ConfigurationError, StorageError
from agent_memory.files.atomic import signature
from agent_memory.files.layout import folder_of
from agent_memory.journal import GRACE
from agent_memory.models import MEMORY, Clock, SearchRequest, check_limit, filters_of, utc_now
from agent_memory.retrieval import DenseIndex, RankingSettings, SearchIndex, embedded_texts
from agent_memory.settings import ServiceSettings
from agent_memory.storage.answer import results_of
from agent_memory.storage.base import MemoryStorage
from agent_memory.storage.change_log import FileLog
from agent_memory.storage.past import forgotten, versions_of
from agent_memory.storage.shortlist import Shortlist
from agent_memory.storage.store import RecordStore
from agent_memory.storage.trouble import weakness
from agent_memory.storage.vector.possible import immovable
from agent_memory.storage.vector.shards import Shards
from agent_memory.storage.worker import Worker

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
    from datetime import datetime, timedelta
    from pathlib import Path

    from agent_memory.embeddings import Embedder
    from agent_memory.models import Memory, SearchFilters, SearchResults, Version
    from agent_memory.storage.recency import Order

PATIENCE: Final = 5.0
_WARM_AT_ONCE: Final = 200
"""Memories read in one go in the background: about 10 ms, which is what another call may have to wait."""


class FileStorage(MemoryStorage):
    """An agent's memories in `<storage_root>/<agent_id>/memories.yaml`.

    Opens nothing until the first call and creates nothing until the first write. Several objects, threads and
    processes may use one folder at the same time.

    Args:
        agent_id: Whose memories.
        storage_root: Folder of all agents; that of `settings` when omitted.
        settings: Ranking and backend settings; the defaults when omitted.
        clock: Source of the present.
        embedder: One of the caller's own, instead of that of `settings`.
        grace: How long what was forgotten or replaced can be brought back.
        patience: Seconds that a search which names none waits until what is stored is found by meaning, too. Loading
            the local model takes about one; thousands of memories that are new are waited for only once.

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
        patience: float = PATIENCE,
    ) -> None:
        settings = settings or ServiceSettings()
        self.folder = folder_of(agent_id, storage_root or settings.storage_root)
        self.agent_id = self.folder.agent_id
        self._settings, self._clock, self._embedder, self._grace = settings, clock, embedder, grace
        self._patience = patience
        self._thread = Worker(f"agent-memory-{self.agent_id}", self.folder.lock)
        self._parents: list[object] = []
        self._stood: tuple[tuple[int, int, int] | None, frozenset[str]] = (None, frozenset())  # what is known as true
        self._asked: Order | None = None
        self._shortlist = Shortlist(self.folder)
        self._folds = 0
        self._begin()

    def _begin(self) -> None:
        """Make what holds this process's knowledge of the memories, empty."""
        self._pid = os.getpid()
        self._embeddings = EmbeddingService(self._settings, self.folder.vectors, DenseIndex, self._embedder)
        index = SearchIndex(ranking_of(self._settings), self._embeddings.index)
        log = FileLog(MEMORY, self.folder, self._clock, self._grace)
        self._store = RecordStore(MEMORY, self.agent_id, log, index, self._clock)

    def _renew(self) -> None:
        """Begin anew in a forked child.

        Its parent's threads may have been in the middle of anything, and hold locks that nobody here would give back.
        What they left is kept unused: finalising it would touch files that are still the parent's.
        """
        if self._pid != os.getpid():
            self._parents.append((self._store, self._embeddings))
            self._begin()

    @property
    def _worker(self) -> Worker:
        self._renew()
        return self._thread

    @property
    @override
    def backend(self) -> str:
        return "file"

    @override
    async def search(
        self,
        query: str,
        limit: int = 5,
        filters: SearchFilters | Mapping[str, Any] | None = None,
        *,
        include_superseded: bool = False,
        explain: bool = False,
        patience: float | None = None,
    ) -> SearchResults:
        self._renew()
        patience = self._patience if patience is None else patience
        request = SearchRequest(query, limit, self._clock(), filters_of(filters), include_superseded, explain, patience)
        if patience and self._embeddings.index is not None:
            await self.prepare(patience)
        ready = self._embeddings.is_ready
        question = await asyncio.to_thread(self._store.embedded_question, request) if ready else None
        results = results_of(await self._worker.run(self._store.search, request, question))
        if not self._embeddings.is_empty:
            results.degraded = weakness(results, self._embeddings.describe())
        return results

    @override
    async def _keep(self, cleaned: Callable[[], Memory], *, unique: bool) -> str:
        memory_id = await self._worker.write_prepared(cleaned, lambda memory: self._store.store(memory, unique=unique))
        self._worker.submit(self._store.warm, _WARM_AT_ONCE)  # behind the answer: words now, the vector after that
        self._worker.submit(self._fold)
        return memory_id

    @override
    async def _keep_many(self, cleaned: Callable[[], Sequence[Memory]]) -> None:
        await self._worker.write_prepared(cleaned, self._store.store_many)
        self._worker.submit(self._store.warm, _WARM_AT_ONCE)
        self._worker.submit(self._fold)

    @override
    async def get(self, memory_id: str) -> Memory | None:
        return await self._worker.run(lambda: self._store.refresh().records.get(memory_id))

    @override
    async def list_recent(self, limit: int = 10) -> list[Memory]:
        check_limit(limit)
        return await self._worker.run(lambda: self._store.refresh().latest(limit, self._clock()))

    @override
    async def _change(self, memory_id: str, cleaned: Callable[[], Mapping[str, Any]]) -> Memory:
        memory = await self._worker.write_prepared(cleaned, lambda changes: self._store.change(memory_id, changes))
        self._worker.submit(self._shortlist.drop)
        self._worker.submit(self._fold)
        return memory

    @override
    async def delete(self, memory_id: str) -> Memory:
        memory = await self._worker.write(self._delete, memory_id)
        self._worker.submit(self._drop_vectors)
        self._worker.submit(self._fold)
        return memory

    @override
    async def older_versions(self, memory_id: str) -> list[str]:
        return await self._worker.run(lambda: self._store.refresh().replacements.older(memory_id))

    @override
    async def touch(self, memory_ids: Collection[str]) -> None:
        await self._worker.write(self._store.touch, memory_ids)
        self._worker.submit(self._fold)

    @override
    async def count(self) -> int:
        return await self._worker.run(lambda: len(self._store.refresh().records))

    @override
    async def iter_all(self) -> AsyncIterator[Memory]:
        for memory in await self._worker.run(lambda: list(self._store.refresh().records.values())):
            yield memory

    @override
    async def valid(self) -> list[Memory]:
        return await self._worker.run(lambda: self._store.refresh().valid(self._clock()))

    @override
    async def recent(self, order: Order) -> list[Memory]:
        looked = self._looked_like()
        found = await self._worker.run(self._recent, order)
        self._stood = (looked, frozenset(memory.id for memory in found))
        return found

    def _recent(self, order: Order) -> list[Memory]:
        self._asked = order
        if not self._has_read:
            known = self._shortlist.read(order, self._clock())
            if known is not None and all(map(order.admits, known)):
                return known
        return self._store.refresh().recent(order, self._clock())

    @property
    def _has_read(self) -> bool:
        return self._store.log.watermark[1] > 0

    def _keep_shortlist(self) -> None:
        """Keep what the next start needs, unless this one read nothing or was asked for nothing."""
        if self._asked is None or not self._has_read:
            return
        with contextlib.suppress(StorageError):
            state, now = self._store.refresh(), self._clock()
            chosen, seq = state.recent(self._asked, now), self._store.log.watermark[1]
            self._shortlist.write(self._asked, chosen, seq, state.records.values(), now)

    @override
    async def still_true(self, shown: Sequence[Memory]) -> bool:
        looked, now, ids = self._looked_like(), self._clock(), frozenset(memory.id for memory in shown)
        known, true = self._stood
        if looked is None or looked != known or not ids <= true or any(memory.is_expired(now) for memory in shown):
            if not await self._worker.run(lambda: self._store.refresh().still_true(shown, self._clock())):
                return False
            self._stood = (looked, ids)
        return True

    def _looked_like(self) -> tuple[int, int, int] | None:
        """Return what tells whether the journal is as it was; some 2 µs, which each request of a session pays."""
        return signature(self.folder.journal)  # where there is none, reading it says why

    @override
    async def superseded(self) -> dict[str, str]:
        return await self._worker.run(lambda: self._store.refresh().replacements.all(self._clock()))

    @override
    async def was_forgotten(self, content: str) -> bool:
        return await self._worker.run(lambda: self._store.refresh().was_forgotten(content))

    @override
    async def prepare(self, patience: float | None = None) -> bool:
        while not await self._worker.run(self._store.warm, _WARM_AT_ONCE):
            pass  # in portions, so that other calls get in between
        return await self._embeddings.ready(patience)

    @override
    def embedding_cost(self) -> float:
        return self._embeddings.cost

    @override
    def embedding(self) -> dict[str, Any]:
        self._renew()
        return self._embeddings.describe()

    @override
    def _immovable(self) -> ConfigurationError:
        return immovable(self._settings)

    @override
    async def rollback(self) -> bool:
        """Answer from the files alone from now on; tell whether that was not so already. Needs no engine."""
        shards = Shards(self.folder)
        if shards.active()[0] != "vector":
            return False
        await asyncio.to_thread(shards.switch, "file", None)
        await asyncio.to_thread(shards.sweep)
        return True

    @override
    async def health(self) -> dict[str, Any]:
        return await self._worker.run(self._store.health)

    @override
    async def history(self, memory_id: str) -> list[Version[Memory]]:
        store = self._store
        return await self._worker.run(lambda: versions_of(store.state, memory_id, store.log.naming([memory_id])))

    @override
    async def forgotten_with(self, memory_id: str) -> list[Memory]:
        return await self._worker.run(self._store.forgotten_with, memory_id)

    @override
    async def forgotten(self) -> list[tuple[Memory, datetime]]:
        return await self._worker.run(lambda: forgotten(self._store.state, self._store.log.naming(())))

    @property
    @override
    def grace(self) -> timedelta:
        return self._grace

    @override
    async def compact(self, grace: timedelta | None = None) -> None:
        await self._worker.write(self._store.compact, grace)
        await self._worker.run(self._shortlist.drop)  # it may show what has expired, and is gone from the journal now

    @override
    async def folds(self) -> int:
        return await self._worker.run(lambda: self._folds) if self._has_read else self._folds

    def _fold(self) -> None:
        if self._store.compact_if_worthwhile():
            self._folds += 1
            self._shortlist.drop()

    def _drop_vectors(self) -> None:
        gone = self._store.take_gone()
        self._embeddings.forget(text for memory in gone for text in embedded_texts(memory.content))

    def _delete(self, memory_id: str) -> Memory:
        memory = self._store.delete(memory_id)
        self._shortlist.drop()
        return memory

    @override
    async def close(self) -> None:
        if self._asked is not None and self._pid == os.getpid():
            await self._worker.run(self._keep_shortlist)
            self._asked = None
        await asyncio.to_thread(self._worker.close)
        await asyncio.to_thread(self._embeddings.close)


def ranking_of(settings: ServiceSettings) -> RankingSettings:
    """Return the ranking that `settings` ask for."""
    measured = RankingSettings()
    floor = settings.freshness_floor
    return RankingSettings(
        freshness_decay_rate=settings.freshness_decay_rate,
        freshness_floor=measured.freshness_floor if floor is None else floor,
        access_boost_rate=settings.access_boost_rate,
        similarity_threshold=settings.similarity_threshold,
    )
