"""Read entries of a `MemoryStore`: by ID, relevance, session, and their number."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from agent_memory.care.importance import CATEGORY_OF, MemoryEntryType, importance_of, type_of
from agent_memory.compat.memory_store.entries import check_entry_id, entry_of
from agent_memory.compat.memory_store.retrieving import checked_types, entries_of, period_of, relevant, wanted
from agent_memory.errors import ValidationError
from agent_memory.files.layout import folder_of
from agent_memory.models import EPISODE, Memory, SearchFilters
from agent_memory.models.record import normalise_tags

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from datetime import datetime
    from pathlib import Path

    from agent_memory.compat.memory_store.configs import MemoryStoreConfig
    from agent_memory.compat.memory_store.entries import MemoryEntry
    from agent_memory.compat.memory_store.keeping import Kept
    from agent_memory.compat.memory_store.metrics import MemoryPerformanceMetrics
    from agent_memory.memory import Caller, MemoryService
    from agent_memory.memory.monitor import Background
    from agent_memory.models import Clock, Record

_LEARNED: Final = frozenset({MemoryEntryType.PATTERN, MemoryEntryType.LEARNING, MemoryEntryType.INSIGHT})
_MOST_PATTERNS: Final = 100

Period = tuple["datetime", "datetime"]


class EntryReader:
    """The half of a `MemoryStore` that changes nothing but access counts."""

    config: MemoryStoreConfig
    service: MemoryService
    kept: Kept
    performance_metrics: MemoryPerformanceMetrics
    _clock: Clock
    _caller: Callable[[], Caller]
    _behind: Background

    async def get_entry_by_id(self, entry_id: str) -> MemoryEntry | None:
        """Return an entry by its ID or given ID; counts no access.

        One that was archived is found, too, and says so.
        """
        record = await self.kept.get(check_entry_id(entry_id))
        if record is not None:
            return await self._view(record)
        away = await self.kept.archived(entry_id)
        return None if away is None else entry_of(away.memory, self._clock(), archived=True)

    async def retrieve_relevant(
        self,
        query: str,
        max_results: int | None = None,
        relevance_threshold: float | None = None,
        entry_types: Collection[str] | None = None,
        time_range: Period | None = None,
    ) -> list[MemoryEntry]:
        """Return the entries that answer a query, best first by the ranking profile `weighted`.

        Counts an access of each memory, behind the answer.

        Args:
            query: What is asked.
            max_results: 1 to 100; those of the configuration when omitted.
            relevance_threshold: Least `MemoryEntry.relevance`, 0..1; that of the configuration when omitted.
            entry_types: Of these types alone.
            time_range: What they say was so between these moments, both included.

        Raises:
            ValidationError: An argument is wrong.
            StorageError: The memories cannot be read.
        """
        own, candidates = self.config, self.config.embedding_config.max_similarity_results
        count = own.max_retrieval_results if max_results is None else max_results
        least = own.relevance_threshold if relevance_threshold is None else relevance_threshold
        asked = wanted(query, count, least, entry_types, time_range, candidates)
        caller = self._caller()
        with self.performance_metrics.timing("retrieve"):
            found = await relevant(self.kept, asked, self._clock, caller)
            entries = await entries_of(self.kept, found, self._clock())
            memories = [each.record for each in found if isinstance(each.record, Memory)]
            if memories:
                self._behind.run(self.service.pad.count_access(memories, caller))
        self.performance_metrics.found(len(entries))
        return entries

    async def get_conversation_history(
        self, session_id: str | None = None, max_entries: int = 50, time_range: Period | None = None
    ) -> list[MemoryEntry]:
        """Return what was said, the newest first.

        Args:
            session_id: In this session; in any when omitted.
            max_entries: At most so many, 1 or more.
            time_range: Between these moments, both included.

        Raises:
            ValidationError: An argument is wrong.
            StorageError: It cannot be read.
        """
        if isinstance(max_entries, bool) or not isinstance(max_entries, int) or max_entries < 1:
            raise ValidationError(f"max_entries is a whole number of 1 or more, got {max_entries!r}.")
        period = period_of(time_range)
        said = [
            record
            async for record in self.kept.others(EPISODE)
            if session_id in {None, record.created_by_session} and (period is None or period.covers(record.moment))
        ]
        said.sort(key=lambda each: (each.moment, getattr(each, "order", 0)), reverse=True)
        return [await self._view(record) for record in said[:max_entries]]

    async def get_learning_patterns(self, pattern_type: str | None = None) -> list[MemoryEntry]:
        """Return patterns, learnings and insights, the most important first, 100 at most.

        Args:
            pattern_type: With this tag alone.

        Raises:
            StorageError: They cannot be read.
        """
        tags = set(normalise_tags([pattern_type])) if pattern_type else None
        learned = [
            record
            for category in sorted({CATEGORY_OF[each] for each in _LEARNED})
            for record in await self.kept.memories(SearchFilters(category=category))
            if type_of(record) in _LEARNED and (tags is None or tags & set(record.tags))
        ]
        now = self._clock()
        learned.sort(key=lambda each: importance_of(each, now), reverse=True)
        return [await self._view(record) for record in learned[:_MOST_PATTERNS]]

    async def list_entries(
        self, entry_types: Collection[str] | None = None, max_entries: int = 50
    ) -> list[MemoryEntry]:
        """Return the newest entries of some types, of any when omitted, the newest first; counts no access.

        Raises:
            ValidationError: A type is unknown.
            StorageError: They cannot be read.
        """
        types = checked_types(entry_types)
        records = [*await self.kept.memories(), *[record async for record in self.kept.others()]]
        wished = [each for each in records if types is None or type_of(each) in types]
        wished.sort(key=lambda record: record.moment, reverse=True)
        return [await self._view(record) for record in wished[:max_entries]]

    async def get_memory_statistics(self) -> dict[str, Any]:
        """Return counts by type, size and performance of the store (docs/lifecycle.md)."""
        return await statistics_of(self.kept, self.config, self.performance_metrics)

    async def _view(self, record: Record) -> MemoryEntry:
        return entry_of(record, self._clock(), text=await self.kept.text_of(record))


_MEGABYTE: Final = 1_000_000
_TRUTH: Final = frozenset({".yaml", ".jsonl"})


async def statistics_of(kept: Kept, config: MemoryStoreConfig, performance: MemoryPerformanceMetrics) -> dict[str, Any]:
    """Return the figures of `MemoryStore.get_memory_statistics`.

    `cache_hit_rate` is the share of the texts of memories that are found embedded already, None without an embedder;
    there is no cache of queries, so `query_cache_hit_rate` is None.
    """
    types = Counter(type_of(record) for record in await kept.memories())
    async for record in kept.others():
        types[type_of(record)] += 1
    folder = folder_of(kept.service.agent_id, kept.service.settings.storage_root).path
    sizes = await asyncio.to_thread(_sizes, folder)
    truth = sum(size for name, size in sizes.items() if _is_truth(name))
    return {
        "total_entries": types.total(),
        "entries_by_type": dict(types),
        "storage_size_mb": truth / _MEGABYTE,
        "index_size_mb": (sum(sizes.values()) - truth) / _MEGABYTE,
        "cache_hit_rate": await _embedded(kept),
        "query_cache_hit_rate": None,
        "large_files": sorted(name for name, size in sizes.items() if size > config.max_file_size_mb * _MEGABYTE),
        "performance_metrics": performance.get_summary(),
    }


async def _embedded(kept: Kept) -> float | None:
    status = kept.service.storage.embedding_status()
    total = await kept.service.storage.count()
    if status.get("status") != "ready":
        return None
    return 1.0 if not total else max(0.0, 1 - int(status.get("pending", 0)) / total)


def _sizes(folder: Path) -> dict[str, int]:
    files = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return {str(path.relative_to(folder)): path.stat().st_size for path in files}


def _is_truth(name: str) -> bool:
    return name.endswith(tuple(_TRUTH)) or name.startswith("blobs")
