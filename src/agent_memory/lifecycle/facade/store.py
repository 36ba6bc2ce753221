"""`MemoryStore`: the memory of one agent as entries that are stored, retrieved by relevance, changed and counted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Self

from agent_memory.errors import UnknownIdError, ValidationError
from agent_memory.lifecycle.entry_types import MemoryEntryType, type_of
from agent_memory.lifecycle.facade.changing import changes_of
from agent_memory.lifecycle.facade.configs import MemoryStoreConfig, settings_of
from agent_memory.lifecycle.facade.counting import statistics_of
from agent_memory.lifecycle.facade.entries import check_entry_id, checked, entry_of, external_id_of
from agent_memory.lifecycle.facade.keeping import Kept
from agent_memory.lifecycle.facade.metrics import MemoryPerformanceMetrics
from agent_memory.lifecycle.facade.retrieving import checked_types, entries_of, period_of, relevant, wanted
from agent_memory.lifecycle.importance import ImportanceCalculator, importance_of
from agent_memory.models import Memory, utc_now
from agent_memory.models.record import normalise_tags
from agent_memory.service import NOBODY, open_service

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from datetime import datetime

    from agent_memory.embeddings import Embedder
    from agent_memory.lifecycle.facade.entries import MemoryEntry
    from agent_memory.models import Clock, Record
    from agent_memory.service import Caller, MemoryService
    from agent_memory.settings import ServiceSettings

_LEARNED: Final = frozenset({MemoryEntryType.PATTERN, MemoryEntryType.LEARNING, MemoryEntryType.INSIGHT})
_MOST_PATTERNS: Final = 100

Period = tuple["datetime", "datetime"]


class MemoryStore:
    """Everything one agent knows, as entries. Opens nothing until the first call, and deletes nothing unasked.

    An entry is a view of a record: an interaction of a turn, a context of a document or a summary, all others of
    memories (docs/lifecycle.md). Whatever is stored goes through the one write path and has its secrets taken out.

    Args:
        config: How it works; the defaults when omitted.
        agent_id: Whose memory.
        settings: Of the memory below.
        service: An open one to work on, instead of one of its own, which `close` would close.
        embedder: One of the program's own.
        caller: The session that asks, or what returns the one that asks now.
        clock: Source of the present.

    Attributes:
        config, service: As given.
        importance_calculator: Says how important an entry is.
        performance_metrics: What this store did, and how long it took.
        kept: Where the records are.

    Raises:
        ConfigurationError: `config` and `settings` say two things.
    """

    def __init__(
        self,
        config: MemoryStoreConfig | None = None,
        *,
        agent_id: str = "default",
        settings: ServiceSettings | None = None,
        service: MemoryService | None = None,
        embedder: Embedder | None = None,
        caller: Caller | Callable[[], Caller] = NOBODY,
        clock: Clock = utc_now,
    ) -> None:
        self.config = config or MemoryStoreConfig()
        self._owns_service, self._clock = service is None, clock
        self._caller = caller if callable(caller) else lambda: caller
        if service is None:
            service = open_service(agent_id, settings_of(self.config, settings, embedder), embedder)
        self.service = service
        self.kept = Kept(service, clock, self._caller, embedder)
        self.importance_calculator = ImportanceCalculator(clock=clock)
        self.performance_metrics = MemoryPerformanceMetrics()

    # -- writing ------------------------------------------------------------------------------------------------------

    async def store_entry(self, entry: MemoryEntry) -> str:
        """Keep an entry; when this returns, it is on disk.

        An entry whose id is known is changed; one whose text is known is not stored twice, and the id of the entry that
        has it is returned.

        Returns:
            The id that the entry was given, else that of its record.

        Raises:
            ValidationError: A field is wrong, or it is nothing but a secret; nothing was stored.
            StorageError: Nothing was stored.
        """
        with self.performance_metrics.timing("store"):
            entry = checked(entry)
            known = await self.kept.get(entry.entry_id) if entry.entry_id else None
            if known is not None:
                return external_id_of(await self._restored(known, entry))
            return external_id_of(await self.kept.store(entry))

    async def update_entry(self, entry_id: str, updates: dict[str, Any]) -> bool:
        """Change fields of an entry; tell whether there is one.

        What can be changed: content, summary, keywords, semantic_tags, importance_score (None: calculated again),
        related_entries, parent_entry, child_entries, temporal_context, expires_at, pinned. Of what was said and of
        documents all but the content.

        Raises:
            ValidationError: A field cannot be changed, or its value is wrong; nothing was changed.
            StorageError: Nothing was changed.
        """
        record = await self.kept.get(check_entry_id(entry_id))
        if record is None:
            return False
        await self.kept.update(record, changes_of(record, updates))
        return True

    async def delete_entry(self, entry_id: str) -> bool:
        """Forget an entry; tell whether there was one. Memories can be brought back for a time (`service.past`).

        Raises:
            ValidationError: The caller may not forget it.
            StorageError: Nothing was changed.
        """
        record = await self.kept.get(check_entry_id(entry_id))
        if record is None:
            return False
        try:
            await self.kept.delete(record)
        except UnknownIdError:
            return False
        return True

    # -- reading ------------------------------------------------------------------------------------------------------

    async def get_entry_by_id(self, entry_id: str) -> MemoryEntry | None:
        """Return an entry by its own id or the one that it was given, or None; counts no access."""
        record = await self.kept.get(check_entry_id(entry_id))
        return None if record is None else await self._view(record)

    async def retrieve_relevant(
        self,
        query: str,
        max_results: int | None = None,
        relevance_threshold: float | None = None,
        entry_types: Collection[str] | None = None,
        time_range: Period | None = None,
    ) -> list[MemoryEntry]:
        """Return the entries that answer a query, best first by the ranking profile `weighted`; counts an access each.

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
                await self.service.pad.count_access(memories, caller)
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
            async for record in self.kept.others()
            if type_of(record) == MemoryEntryType.INTERACTION
            and session_id in {None, record.created_by_session}
            and (period is None or period.covers(_moment(record)))
        ]
        said.sort(key=lambda each: (_moment(each), getattr(each, "order", 0)), reverse=True)
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
            for record in await self.kept.memories()
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
        wished.sort(key=_moment, reverse=True)
        return [await self._view(record) for record in wished[:max_entries]]

    async def get_memory_statistics(self) -> dict[str, Any]:
        """Return how much there is of each type, its size, and how the store performs (docs/lifecycle.md)."""
        return await statistics_of(self.kept, self.config, self.performance_metrics)

    async def close(self) -> None:
        """Finish what is under way and close what it opened. May be called more than once."""
        await self.kept.close()
        if self._owns_service:
            await self.service.close()

    async def __aenter__(self) -> Self:
        """Return itself."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close."""
        await self.close()

    async def _view(self, record: Record) -> MemoryEntry:
        return entry_of(record, self._clock(), text=await self.kept.text_of(record))

    async def _restored(self, known: Record, entry: MemoryEntry) -> Record:
        """Return the record of an entry that is stored again, with what it says now."""
        updates: dict[str, Any] = {
            "summary": entry.summary,
            "keywords": entry.keywords,
            "semantic_tags": entry.semantic_tags,
            "temporal_context": entry.temporal_context,
            "related_entries": entry.related_entries,
            "parent_entry": entry.parent_entry,
            "child_entries": entry.child_entries,
        }
        if isinstance(known, Memory):
            updates["content"] = entry.content
        if entry.importance_score is not None and not entry.record_id:
            updates["importance_score"] = entry.importance_score
        return await self.kept.update(known, changes_of(known, updates))


def _moment(record: Record) -> datetime:
    return record.observed_at or record.timestamp
