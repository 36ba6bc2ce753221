"""`FileStorage`: memories in one YAML journal, searched in this process. The backend everyone starts with."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from typing_extensions import override

from agent_memory.models import Clock, utc_now
from agent_memory.retrieval import RankingSettings, SearchIndex
from agent_memory.settings import ServiceSettings
from agent_memory.storage.base import MemoryStorage
from agent_memory.storage.folder import folder_of
from agent_memory.storage.meaning import Meaning
from agent_memory.storage.store import JournalStore
from agent_memory.storage.worker import Worker

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection, Mapping
    from pathlib import Path

    from agent_memory.models import Memory, SearchFilters, SearchResults

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

    Raises:
        ValidationError: `agent_id` cannot name a folder (also a ValueError).
        StorageError: The folder leads out of the storage root.
    """

    backend: str = "file"

    def __init__(
        self,
        agent_id: str,
        storage_root: str | Path | None = None,
        *,
        settings: ServiceSettings | None = None,
        clock: Clock = utc_now,
    ) -> None:
        settings = settings or ServiceSettings()
        self.folder = folder_of(agent_id, storage_root or settings.storage_root)
        self.agent_id = self.folder.agent_id
        self._meaning = Meaning(settings, self.folder.vectors)
        self._store = JournalStore(self.folder, SearchIndex(ranking_of(settings), self._meaning.index), clock)
        self._worker = Worker(f"agent-memory-{self.agent_id}")

    @override
    async def search(
        self,
        query: str,
        limit: int = 5,
        filters: SearchFilters | Mapping[str, Any] | None = None,
        *,
        include_superseded: bool = False,
        explain: bool = False,
    ) -> SearchResults:
        vector = await asyncio.to_thread(self._store.meaning_of, query) if self._meaning.is_ready else None
        return await self._worker.run(
            self._store.search,
            query,
            limit,
            filters,
            include_superseded=include_superseded,
            explain=explain,
            vector=vector,
        )

    @override
    async def store(self, memory: Memory, *, unique: bool = False) -> str:
        memory_id = await self._worker.run(self._store.store, memory, unique=unique)
        self._worker.submit(self._store.warm, _WARM_AT_ONCE)  # behind the answer: words now, the vector after that
        self._worker.submit(self._store.compact_if_worthwhile)
        return memory_id

    @override
    async def get(self, memory_id: str) -> Memory | None:
        return await self._worker.run(lambda: self._store.refresh().memories.get(memory_id))

    @override
    async def list_recent(self, limit: int = 10) -> list[Memory]:
        return await self._worker.run(self._store.list_recent, limit)

    @override
    async def update(self, memory_id: str, changes: Mapping[str, Any]) -> Memory:
        return await self._worker.run(self._store.update, memory_id, changes)

    @override
    async def delete(self, memory_id: str) -> Memory:
        memory = await self._worker.run(self._store.delete, memory_id)
        self._worker.submit(self._store.prune_vectors)
        return memory

    @override
    async def older_versions(self, memory_id: str) -> list[str]:
        return await self._worker.run(self._store.older_versions, memory_id)

    @override
    async def touch(self, memory_ids: Collection[str]) -> None:
        await self._worker.run(self._store.touch, memory_ids)
        self._worker.submit(self._store.compact_if_worthwhile)

    @override
    async def count(self) -> int:
        return await self._worker.run(lambda: len(self._store.refresh().memories))

    @override
    async def iter_all(self) -> AsyncIterator[Memory]:
        for memory in await self._worker.run(lambda: list(self._store.refresh().memories.values())):
            yield memory

    @override
    async def valid(self) -> list[Memory]:
        return await self._worker.run(lambda: self._store.refresh().valid(self._store.clock()))

    @override
    async def superseded(self) -> dict[str, str]:
        return await self._worker.run(lambda: self._store.refresh().superseded(self._store.clock()))

    @override
    async def was_forgotten(self, content: str) -> bool:
        return await self._worker.run(lambda: self._store.refresh().was_forgotten(content))

    @override
    async def prepare(self, patience: float | None = None) -> bool:
        while not await self._worker.run(self._store.warm, _WARM_AT_ONCE):
            pass  # in portions, so that other calls get in between
        return await self._meaning.ready(patience)

    @override
    def embedding(self) -> dict[str, Any]:
        return self._meaning.describe()

    @override
    async def health(self) -> dict[str, Any]:
        return await self._worker.run(self._store.health)

    @override
    async def compact(self) -> None:
        await self._worker.run(self._store.compact)
        await self._worker.run(self._store.prune_vectors)

    @override
    async def close(self) -> None:
        self._worker.close()
        await asyncio.to_thread(self._meaning.close)


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
