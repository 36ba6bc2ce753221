"""`MemoryStore` of its specification over the services, and its integrations.

An entry is a view of a record (`leonidas_entries`); `leonidas_records` stores and finds records. Configuration, metrics
and tidying are in `leonidas_management`.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, Self

from agent_memory.care.importance import (
    CATEGORY_OF,
    ENTRY_TYPES,
    ImportanceCalculator,
    MemoryEntryType,
    get_entry_type,
    importance_of,
)
from agent_memory.compat.leonidas_entries import (
    TEXT,
    ContextBuilder,
    MemoryEntry,
    RelevanceFilter,
    Signal,
    UnifiedSignalBus,
    WorldModel,
    build_changes,
    build_entry,
    check_entry,
    check_entry_id,
    fill_entry,
)
from agent_memory.compat.leonidas_management import (
    ArchivalManager,
    CleanupManager,
    MemoryPerformanceMetrics,
    MemoryStoreConfig,
    build_service_settings,
)
from agent_memory.compat.leonidas_records import MAX_RESULTS, EntryQuery, EntryRecords, build_period, check_types
from agent_memory.errors import UnknownIdError, ValidationError
from agent_memory.files.layout import folder_of
from agent_memory.memory import NOBODY, open_service
from agent_memory.memory.features import attach_withdrawals
from agent_memory.memory.monitor import BackgroundTasks
from agent_memory.models import EPISODE, Memory, SearchFilters, to_text, utc_now
from agent_memory.models.record import normalise_tags

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from datetime import datetime
    from pathlib import Path

    from agent_memory.embeddings import Embedder
    from agent_memory.memory import Caller, MemoryService
    from agent_memory.models import Clock, Record
    from agent_memory.settings import ServiceSettings

    Period = tuple[datetime, datetime]

_LEARNED: Final = frozenset({MemoryEntryType.PATTERN, MemoryEntryType.LEARNING, MemoryEntryType.INSIGHT})
_MAX_PATTERNS: Final = 100
_MEGABYTE: Final = 1_000_000
_WORLD_ENTRIES: Final = 50
_RECENT: Final = timedelta(hours=2)
_RECENT_TURNS: Final = 10
_LEARNING_TOKENS: Final = 1000
_SIGNAL_FIELDS: Final = frozenset(
    {"session_id", "summary", "keywords", "semantic_tags", "importance_score"}
    | {"related_entries", "parent_entry", "entry_id"}
)
"""Keys of a signal's data that are fields of its entry; all others are content."""


class MemoryStore:
    """Memory of one agent as entries.

    Opens nothing until the first call, and deletes nothing unasked. An interaction is a turn, a context a document or
    summary, all others are memories. Entries pass the one write path, and secrets are redacted. Background work of
    turns and documents runs in `settle` and `close`.

    Args:
        config: Settings of the store, defaults if omitted.
        agent_id: Name of the agent.
        settings: Settings of the memory below.
        service: Open service to use, which `close` leaves open.
        embedder: Embedder of the program, or None.
        caller: Calling session, or a function that returns it.
        clock: Source of the present.

    Attributes:
        config, service: Settings of the store, and the service below it.
        importance_calculator: Calculates importances of entries.
        cleanup_manager, archival_manager: Propose and apply tidying.
        performance_metrics: Counts and durations of calls.
        kept: Records of the entries.

    Raises:
        ConfigurationError: `config` and `settings` contradict each other.
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
            chosen = build_service_settings(self.config, settings, embedder)
            service = attach_withdrawals(open_service(agent_id, chosen, embedder))
        self.service = service
        self.kept = EntryRecords(service, clock, self._caller, embedder)
        self.importance_calculator = ImportanceCalculator(clock=clock)
        self.performance_metrics = MemoryPerformanceMetrics()
        self.cleanup_manager = CleanupManager(self.kept, self.config.cleanup_config, self._caller)
        self.archival_manager = ArchivalManager(self.kept, self.config.archival_config, clock, self._caller)
        self._background = BackgroundTasks()

    # -- writing ------------------------------------------------------------------------------------------------------

    async def store_entry(self, entry: MemoryEntry) -> str:
        """Store an entry and return its ID once it is on disk.

        An entry with a known ID is updated. A known text is not stored twice; the ID of its entry is returned. Missing
        IDs, importance, keywords, summary and moments are set in `entry`; semantic tags are those of the program.

        Returns:
            ID from the program, else that of the record.

        Raises:
            ValidationError: A field is wrong, or it is nothing but a secret; nothing was stored.
            StorageError: Nothing was stored.
        """
        with self.performance_metrics.timing("store"):
            check_entry(entry)
            existing = await self.kept.get(entry.entry_id) if entry.entry_id else None
            record = await (self.kept.store(entry) if existing is None else self._store_again(existing, entry))
            fill_entry(entry, build_entry(record, self._clock()))
            return entry.entry_id

    async def store_entries(self, entries: Sequence[MemoryEntry]) -> list[str]:
        """Store many entries in their order; return their IDs.

        Raises:
            ValidationError: An entry is wrong. If its type is unknown, it has no words or a memory cannot have its
                fields, nothing was stored; else entries before it were.
            StorageError: Some may be stored.
        """
        checked = [check_entry(entry) for entry in entries]
        for entry in checked:
            self.kept.check_memory(entry)
        return [await self.store_entry(entry) for entry in checked]

    async def update_entry(self, entry_id: str, updates: dict[str, Any]) -> bool:
        """Change fields of an entry; return True if it exists.

        Changeable are content, summary, keywords, semantic_tags, importance_score (None: calculated again),
        related_entries, parent_entry, child_entries, temporal_context, expires_at and pinned. The content of turns and
        documents cannot be changed.

        Raises:
            ValidationError: A field cannot be changed, or its value is wrong; nothing was changed.
            StorageError: Nothing was changed.
        """
        record = await self.kept.get(check_entry_id(entry_id))
        if record is None:
            return False
        await self.kept.update(record, build_changes(record, updates, self._clock()))
        return True

    async def delete_entry(self, entry_id: str) -> bool:
        """Forget an entry; return True if it existed.

        `service.history` restores memories for a time.

        Raises:
            ValidationError: The caller may not forget it.
            StorageError: Nothing was changed.
        """
        record = await self.kept.get(check_entry_id(entry_id))
        archived = await self.kept.get_archived(entry_id) if record is None else None
        try:
            if record is not None:
                await self.kept.delete(record)
            elif archived is not None:
                await self.kept.archive.forget(archived.id, self._caller())
        except UnknownIdError:
            return False
        return record is not None or archived is not None

    async def _store_again(self, record: Record, entry: MemoryEntry) -> Record:
        """Update the record of an entry that is stored again."""
        names = ["summary", "keywords", "semantic_tags", "temporal_context"]
        names += ["related_entries", "parent_entry", "child_entries"]
        updates: dict[str, Any] = {name: getattr(entry, name) for name in names}
        if isinstance(record, Memory):
            updates["content"] = entry.content
        if entry.rating is not None and not entry.record_id:
            updates["importance_score"] = entry.rating
        return await self.kept.update(record, build_changes(record, updates, self._clock()))

    # -- reading ------------------------------------------------------------------------------------------------------

    async def get_entry_by_id(self, entry_id: str) -> MemoryEntry | None:
        """Return an entry, also from the archive; counts no access."""
        record = await self.kept.get(check_entry_id(entry_id))
        if record is not None:
            return await self._view(record)
        archived = await self.kept.get_archived(entry_id)
        return None if archived is None else build_entry(archived.memory, self._clock(), archived=True)

    async def retrieve_relevant(
        self,
        query: str,
        max_results: int | None = None,
        relevance_threshold: float | None = None,
        entry_types: Collection[str] | None = None,
        time_range: Period | None = None,
    ) -> list[MemoryEntry]:
        """Return entries that answer a query, ranked by the profile `weighted`.

        Counts an access of each memory in the background.

        Args:
            query: Question in words.
            max_results: 1 to 100; the configuration's if omitted.
            relevance_threshold: Least `MemoryEntry.relevance`, 0..1; the configuration's if omitted.
            entry_types: Types of the entries, any if omitted.
            time_range: Two moments that the content is between, both included.

        Raises:
            ValidationError: An argument is wrong.
            StorageError: The memories cannot be read.
        """
        config, caller = self.config, self._caller()
        count = config.max_retrieval_results if max_results is None else max_results
        least = config.relevance_threshold if relevance_threshold is None else relevance_threshold
        candidates = config.embedding_config.max_similarity_results
        checked = EntryQuery(query, count, least, check_types(entry_types), build_period(time_range), candidates)
        with self.performance_metrics.timing("retrieve"):
            records = await self.kept.search(checked)
            entries = [
                build_entry(record, self._clock(), text=await self.kept.load_text(record), relevance=relevance)
                for record, relevance in records
            ]
            memories = [record for record, _ in records if isinstance(record, Memory)]
            if memories:
                self._background.run(self.service.pad.count_access(memories, caller))
        self.performance_metrics.count_results(len(entries))
        return entries

    async def get_conversation_history(
        self, session_id: str | None = None, max_entries: int = 50, time_range: Period | None = None
    ) -> list[MemoryEntry]:
        """Return turns, newest first.

        Args:
            session_id: Session of the turns, any if omitted.
            max_entries: Maximum number, 1 or more.
            time_range: Two moments that the turns are between, both included.

        Raises:
            ValidationError: An argument is wrong.
            StorageError: It cannot be read.
        """
        if isinstance(max_entries, bool) or not isinstance(max_entries, int) or max_entries < 1:
            raise ValidationError(f"max_entries is a whole number of 1 or more, got {max_entries!r}.")
        period = build_period(time_range)
        all_turns = await self.kept.others(EPISODE, session_id)
        turns = [turn for turn in all_turns if period is None or period.covers(turn.moment)]
        turns.sort(key=lambda record: (record.moment, getattr(record, "order", 0)), reverse=True)
        return [await self._view(record) for record in turns[:max_entries]]

    async def get_learning_patterns(self, pattern_type: str | None = None) -> list[MemoryEntry]:
        """Return at most 100 patterns, learnings and insights, most important first.

        Args:
            pattern_type: Tag of the entries, any if omitted.

        Raises:
            StorageError: They cannot be read.
        """
        tags = set(normalise_tags([pattern_type])) if pattern_type else None
        learned = [
            record
            for category in sorted({CATEGORY_OF[name] for name in _LEARNED})
            for record in await self.kept.memories(SearchFilters(category=category))
            if get_entry_type(record) in _LEARNED and (tags is None or tags & set(record.tags))
        ]
        now = self._clock()
        learned.sort(key=lambda record: importance_of(record, now), reverse=True)
        return [await self._view(record) for record in learned[:_MAX_PATTERNS]]

    async def list_entries(
        self, entry_types: Collection[str] | None = None, max_entries: int = 50
    ) -> list[MemoryEntry]:
        """Return the newest entries of some types, newest first; counts no access.

        Raises:
            ValidationError: A type is unknown.
            StorageError: They cannot be read.
        """
        types = check_types(entry_types)
        records = [*await self.kept.memories(), *await self.kept.others()]
        records = [record for record in records if types is None or get_entry_type(record) in types]
        records.sort(key=lambda record: record.moment, reverse=True)
        return [await self._view(record) for record in records[:max_entries]]

    async def get_memory_statistics(self) -> dict[str, Any]:
        """Return counts by type, sizes and performance (docs/reference/python.md).

        `cache_hit_rate` is the share of memories with a vector, None without an embedder; `query_cache_hit_rate` is
        None, because queries are not cached.
        """
        records = [*await self.kept.memories(), *await self.kept.others()]
        types = Counter(map(get_entry_type, records))
        folder = folder_of(self.service.agent_id, self.service.settings.storage_root).path
        sizes = await asyncio.to_thread(_measure_files, folder)
        journals = sum(
            size for name, size in sizes.items() if name.endswith((".yaml", ".jsonl")) or name.startswith("blobs")
        )
        limit = self.config.max_file_size_mb * _MEGABYTE
        return {
            "total_entries": types.total(),
            "entries_by_type": dict(types),
            "storage_size_mb": journals / _MEGABYTE,
            "index_size_mb": (sum(sizes.values()) - journals) / _MEGABYTE,
            "cache_hit_rate": await self._get_embedded_share(),
            "query_cache_hit_rate": None,
            "large_files": sorted(name for name, size in sizes.items() if size > limit),
            "performance_metrics": self.performance_metrics.get_summary(),
        }

    async def _view(self, record: Record) -> MemoryEntry:
        return build_entry(record, self._clock(), text=await self.kept.load_text(record))

    async def _get_embedded_share(self) -> float | None:
        status = self.service.storage.embedding_status()
        total = await self.service.storage.count()
        if status.get("status") != "ready":
            return None
        return 1.0 if not total else max(0.0, 1 - int(status.get("pending", 0)) / total)

    # -- tidying ------------------------------------------------------------------------------------------------------

    async def cleanup_old_entries(self, *, apply: bool = False, delete: bool = False) -> int:
        """Return the number of memories to tidy.

        With `apply` they are moved to the archive and can be restored.

        Args:
            apply: True to do it.
            delete: True to delete what was archived long enough ago.

        Raises:
            ValidationError: The caller may not move one of them; nothing was done.
            StorageError: Completed changes stay.
        """
        return await self.cleanup_manager.perform_cleanup(apply=apply, delete=delete)

    async def archive_entries(self, archive_criteria: Mapping[str, Any], *, apply: bool = False) -> int:
        """Return the number of memories that meet criteria; see `ArchivalManager.archive_entries`.

        Raises:
            ValidationError: A criterion is wrong, or the caller may not archive one; none was archived.
            StorageError: Memories that were archived before it stay archived.
        """
        return await self.archival_manager.archive_entries(archive_criteria, apply=apply)

    async def settle(self) -> None:
        """Finish background work: access counts, turns and documents, the service."""
        await self._finish()
        await self.service.settle()

    async def close(self) -> None:
        """Finish background work and close. May be called more than once."""
        await self._finish()
        await self.kept.close()
        if self._owns_service:
            await self.service.close()

    async def _finish(self) -> None:
        self._background.run(self.kept.process())  # logs a failure; the next run continues
        await self._background.settle()

    async def __aenter__(self) -> Self:
        """Return itself."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close."""
        await self.close()


def _measure_files(folder: Path) -> dict[str, int]:
    files = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return {str(path.relative_to(folder)): path.stat().st_size for path in files}


# -- integrations ---------------------------------------------------------------------------------------------------


class MemoryStoreSignalBusIntegration:
    """Stores signals as entries; `connect` subscribes the three handlers.

    Args:
        memory_store: Store of the entries.
        signal_bus: Bus of the signals.
    """

    def __init__(self, memory_store: MemoryStore, signal_bus: UnifiedSignalBus) -> None:
        self.memory_store, self.signal_bus = memory_store, signal_bus

    def connect(self) -> None:
        """Subscribe to `interaction`, `insight` and `correction`."""
        self.signal_bus.subscribe(MemoryEntryType.INTERACTION, self.handle_interaction_signal)
        self.signal_bus.subscribe(MemoryEntryType.INSIGHT, self.handle_insight_signal)
        self.signal_bus.subscribe(MemoryEntryType.CORRECTION, self.handle_correction_signal)

    async def handle_interaction_signal(self, signal: Signal) -> str:
        """Store a turn of the signal's session; return its ID.

        Raises:
            ValidationError: The signal has no words; nothing was stored.
            StorageError: Nothing was stored.
        """
        return await self._store(signal, MemoryEntryType.INTERACTION)

    async def handle_insight_signal(self, signal: Signal) -> str:
        """Store an insight; raises as `handle_interaction_signal`."""
        return await self._store(signal, MemoryEntryType.INSIGHT)

    async def handle_correction_signal(self, signal: Signal) -> str:
        """Store a correction of the memory of `parent_entry`; raises as the others."""
        return await self._store(signal, MemoryEntryType.CORRECTION)

    async def _store(self, signal: Signal, entry_type: str) -> str:
        data: Any = getattr(signal, "data", None)
        if isinstance(data, str):
            data = {TEXT: data}
        if not hasattr(data, "items"):
            raise ValidationError("Nothing was stored: the data of a signal is a mapping, as in {'text': 'It works.'}.")
        values: dict[str, Any] = {str(key): value for key, value in data.items()}
        fields = {key: value for key, value in values.items() if key in _SIGNAL_FIELDS and value is not None}
        entry = MemoryEntry(
            entry_type=entry_type,
            content={key: value for key, value in values.items() if key not in _SIGNAL_FIELDS},
            source=str(getattr(signal, "source", "") or ""),
            timestamp=getattr(signal, "timestamp", None) or utc_now(),
            **fields,
        )
        return await self.memory_store.store_entry(entry)


class MemoryStoreWorldModelIntegration:
    """Stores updates of a world model, and returns past knowledge.

    Args:
        memory_store: Store of the entries.
        world_model: Model of the program.
    """

    def __init__(self, memory_store: MemoryStore, world_model: WorldModel) -> None:
        self.memory_store, self.world_model = memory_store, world_model

    async def sync_world_model_updates(self) -> list[str]:
        """Store and acknowledge updates as knowledge; return the IDs of entries.

        An update that is repeated, as it could not be acknowledged, changes its entry.

        Raises:
            ValidationError: An update has no words; those before it are stored and acknowledged.
            StorageError: Those before it are stored and acknowledged.
        """
        entry_ids: list[str] = []
        done: list[str] = []
        try:
            for update in await self.world_model.get_updates():
                update_id = update.get("id")
                entry = MemoryEntry(
                    entry_id=f"world_model:{update_id}" if update_id else "",
                    content={TEXT: update.get("text", "")},
                    timestamp=update.get("timestamp") or utc_now(),
                    semantic_tags=list(update.get("tags") or []),
                    importance_score=update.get("importance"),
                    source="world_model",
                )
                entry_ids.append(await self.memory_store.store_entry(entry))
                done.append(str(update.get("id", "")))
        finally:
            if done:
                await self.world_model.acknowledge(done)
        return entry_ids

    async def provide_historical_context(self, context_type: str) -> dict[str, Any]:
        """Return knowledge of a type, or answers to a question.

        Args:
            context_type: A `MemoryEntryType` for its newest 50 entries; any other text is a question.

        Returns:
            `context_type`, `count` and `entries`: id, type, text, timestamp and importance.

        Raises:
            StorageError: The memories cannot be read.
        """
        if context_type in ENTRY_TYPES:
            entries = await self.memory_store.list_entries([context_type], _WORLD_ENTRIES)
        else:
            entries = await self.memory_store.retrieve_relevant(context_type)
        views = [
            {
                "id": entry.entry_id,
                "type": entry.entry_type,
                "text": entry.text,
                "timestamp": to_text(entry.timestamp),
                "importance": entry.importance_score,
            }
            for entry in entries
        ]
        return {"context_type": context_type, "count": len(views), "entries": views}


class RAGIntegration:
    """Renders memories for a prompt within a number of tokens.

    Args:
        memory_store: Store of the entries.
        clock: Source of the present.

    Attributes:
        memory_store: Store of the entries.
        context_builder, relevance_filter: Render and choose entries; may be replaced.
    """

    def __init__(self, memory_store: MemoryStore, *, clock: Clock = utc_now) -> None:
        self.memory_store, self._clock = memory_store, clock
        self.context_builder, self.relevance_filter = ContextBuilder(), RelevanceFilter()

    async def get_context_for_query(
        self, user_query: str, max_context_length: int | None = None, max_entries: int = 5
    ) -> str:
        """Return a block of entries that answer a query; empty without any.

        Args:
            user_query: Question in words.
            max_context_length: Maximum number of tokens; the configuration's if omitted.
            max_entries: Maximum number of entries, 1 to 100, chosen from twice as many.

        Raises:
            ValidationError: An argument is wrong.
            StorageError: The memories cannot be read.
        """
        length = self.memory_store.config.max_context_length if max_context_length is None else max_context_length
        entries = await self.memory_store.retrieve_relevant(user_query, min(MAX_RESULTS, 2 * max_entries))
        chosen = await self.relevance_filter.filter_entries(entries, user_query, max_entries)
        return await self.context_builder.build_context(chosen, length)

    async def get_conversation_context(self, session_id: str, max_context_length: int = 1500) -> str:
        """Return the last ten turns of a session within two hours.

        Raises:
            ValidationError: The length is wrong.
            StorageError: They cannot be read.
        """
        now = self._clock()
        turns = await self.memory_store.get_conversation_history(session_id, _RECENT_TURNS, (now - _RECENT, now))
        return await self.context_builder.build_conversation_context(turns, max_context_length)

    async def get_learning_context(self, topic: str) -> str:
        """Return patterns, learnings and insights with a tag, within 1,000 tokens.

        Raises:
            StorageError: They cannot be read.
        """
        learned = await self.memory_store.get_learning_patterns(topic)
        return await self.context_builder.build_learning_context(learned, _LEARNING_TOKENS)
