"""Records of a store's entries of all kinds, stored and searched together."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, cast

from agent_memory.care.archive import Archive
from agent_memory.care.importance import CATEGORY_OF, MemoryEntryType, get_entry_type, importance_of
from agent_memory.compat.leonidas_entries import (
    EXTERNAL_ID,
    build_extra_fields,
    build_fields,
    build_metadata,
    build_tags,
    check_entry_type,
    get_record_id,
    is_record_id,
)
from agent_memory.embeddings.registry import make_embedder
from agent_memory.errors import ValidationError
from agent_memory.index.fusion import WeightedQuestion, weigh_trust
from agent_memory.knowledge.intake.drafts import UNKNOWN, ReceivedDocument, ReceivedTurn
from agent_memory.knowledge.intake.ingest import Ingest
from agent_memory.knowledge.intake.withdrawal import drawn_from_alone, forget_known
from agent_memory.knowledge.pipeline.background_work import runner_of
from agent_memory.knowledge.records import Knowledge
from agent_memory.memory.inbox_access import has_journal
from agent_memory.models import (
    ARCHIVED,
    EPISODE,
    MEMORY,
    RESOURCE,
    SUMMARY,
    DateRange,
    Episode,
    Listing,
    Memory,
    Resource,
    SearchFilters,
    SearchRequest,
    sees,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from datetime import datetime

    from agent_memory.compat.leonidas_entries import MemoryEntry
    from agent_memory.embeddings import Embedder
    from agent_memory.embeddings.protocol import Vector
    from agent_memory.memory import Caller, MemoryService
    from agent_memory.models import ArchivedMemory, Clock, Kind, Record
    from agent_memory.store.record_storage import RecordStorage

    RankedRecords = tuple[list[tuple[Any, Mapping[str, float]]], Mapping[str, float]]
    """Records with the parts of their scores, and the weights of the query's words."""

_CONVERSATION: Final = "conversation"
_ROLES: Final = frozenset({"user", "assistant", "tool", "system"})
MAX_RESULTS: Final = 100
_SINGLE_CATEGORY: Final = frozenset(
    {MemoryEntryType.INSIGHT, MemoryEntryType.PATTERN, MemoryEntryType.PREFERENCE, MemoryEntryType.LEARNING}
)
"""Types whose memories all have one category; for others, all memories are candidates."""


class EntryRecords:
    """Stores, finds and forgets the records of entries.

    Args:
        service: Service of the agent's memories.
        clock: Source of the present.
        caller: Returns the calling session.
        embedder: Embedder of the program, or None.

    Attributes:
        service: Service of the agent's memories.
        is_due: True if stored turns or documents wait for background work.
    """

    def __init__(
        self, service: MemoryService, clock: Clock, caller: Callable[[], Caller], embedder: Embedder | None
    ) -> None:
        self.service = service
        self._clock, self._caller, self._embedder = clock, caller, embedder
        self._knowledge: Knowledge | None = None
        self._archive: Archive | None = None
        self._named: dict[str, str] = {}
        self._read_through: dict[str, int] = {}
        self._placing = asyncio.Lock()
        self._next_order: dict[str, int] = {}
        self.is_due = False

    @property
    def knowledge(self) -> Knowledge:
        """Turns, documents and summaries.

        Raises:
            ConfigurationError: The memory is on a server, which keeps only memories.
        """
        if self._knowledge is None:
            settings = self.service.settings
            embedder = self._embedder or make_embedder(settings)
            cached = None if embedder is None else cast("Embedder", QueryCache(embedder))
            self._knowledge = Knowledge(self.service.agent_id, settings, clock=self._clock, embedder=cached)
        return self._knowledge

    @property
    def archive(self) -> Archive:
        """Archive of the agent.

        Raises:
            ConfigurationError: The memory is on a server, which has no archive.
        """
        if self._archive is None:
            self._archive = Archive(self.service, clock=self._clock)
        return self._archive

    def storages(self) -> list[RecordStorage[Any]]:
        """Return the existing storages of turns, documents and summaries."""
        if self.service.settings.backend == "server":
            return []
        storages: list[RecordStorage[Any]]
        storages = [self.knowledge.episodes, self.knowledge.resources, self.knowledge.summaries]
        folder = self.knowledge.folder.path
        return [storage for storage in storages if (folder / storage.kind.journal).exists()]

    async def process(self) -> None:
        """Run the background work of stored turns and documents.

        Raises:
            StorageError: It is continued by the next run.
        """
        if self.is_due:
            self.is_due = False
            await runner_of(self.knowledge, self.service, self._caller()).run()

    async def close(self) -> None:
        """Close turns, documents and the archive."""
        if self._archive is not None:
            await self._archive.close()
        if self._knowledge is not None:
            await self._knowledge.close()

    # -- reading ------------------------------------------------------------------------------------------------------

    async def get(self, entry_id: str) -> Record | None:
        """Return the record of an entry by either ID."""
        kind = next((kind for kind in (EPISODE, RESOURCE, SUMMARY) if entry_id.startswith(kind.prefix)), None)
        if is_record_id(entry_id) and kind is not None:
            return self._filter_visible(await self.knowledge.of(kind.name).get(entry_id))
        memory = await self.service.storage.get(get_record_id(entry_id, self._caller().group or ""))
        if memory is not None or is_record_id(entry_id):
            return self._filter_visible(memory)
        return self._filter_visible(await self._find_named(entry_id))

    async def get_archived(self, entry_id: str) -> ArchivedMemory | None:
        """Return the archived memory of an entry."""
        if not has_journal(self.service.agent_id, self.service.settings, ARCHIVED):
            return None
        group = self._caller().group
        archived = await self.archive.get(get_record_id(entry_id, group or ""))
        return archived if archived is not None and sees(group, archived.facets) else None

    async def memories(self, filters: SearchFilters | None = None) -> list[Record]:
        """Return valid memories and items that meet the filters, newest first."""
        listing = Listing(filters=self._build_filters(filters))
        return [*(await self.service.storage.browse(listing)).records]

    async def others(self, kind: Kind[Any] | None = None, session_id: str | None = None) -> list[Record]:
        """Return turns, documents and summaries, the newest of each kind first.

        Args:
            kind: Kind of the records; None for any.
            session_id: Session that created them; None for any.
        """
        listing = Listing(filters=self._build_filters(), session=session_id)
        storages = [storage for storage in self.storages() if kind in {None, storage.kind}]
        records = [record for storage in storages for record in (await storage.browse(listing)).records]
        return [record for record in records if is_entry(record)]

    async def load_text(self, record: Record) -> str:
        """Return all words of a record."""
        if isinstance(record, Resource | Episode):
            return await self.knowledge.text_of(record)
        return str(getattr(record, "content", ""))

    def _build_filters(self, filters: SearchFilters | None = None) -> SearchFilters:
        """Return filters of all records that the caller may see."""
        return (filters or SearchFilters()).with_items.within(self._caller().group)

    def _filter_visible(self, record: Record | None) -> Record | None:
        return record if record is not None and sees(self._caller().group, record.facets) else None

    async def _find_named(self, name: str) -> Record | None:
        """Return another record than a memory by a program's ID."""
        for storage in self.storages():
            kind = storage.kind.name
            changed = await storage.changed_after(self._read_through.get(kind, 0))
            ids = [record_id for _, record_id in changed.records]
            for record_id, record in (await storage.valid_among(ids) if ids else {}).items():
                if isinstance(external_id := record.metadata.get(EXTERNAL_ID), str):
                    self._named[external_id] = record_id
            self._read_through[kind] = changed.last
            record_id = self._named.get(name, "")
            if record_id.startswith(storage.kind.prefix):
                named_record: Record | None = await storage.get(record_id)
                return named_record
        return None

    # -- writing ------------------------------------------------------------------------------------------------------

    def check_memory(self, entry: MemoryEntry) -> None:
        """Check the fields of an entry that is stored as a memory.

        Raises:
            ValidationError: A field is wrong.
        """
        if entry.entry_type not in {MemoryEntryType.CONTEXT, MemoryEntryType.INTERACTION}:
            Memory(agent_id=self.service.agent_id, **build_fields(entry, self._clock(), self._caller().group or ""))

    async def store(self, entry: MemoryEntry) -> Record:
        """Store an entry as a turn, a document or a memory.

        Raises:
            ValidationError: A field is wrong, or it is nothing but a secret; nothing was stored.
            StorageError: Nothing was stored.
        """
        caller = self._caller()
        if entry.entry_type == MemoryEntryType.INTERACTION:
            return await self._store_turn(entry)
        if entry.entry_type != MemoryEntryType.CONTEXT:
            return (await self.service.store(build_fields(entry, self._clock(), caller.group or ""), caller)).memory
        document = ReceivedDocument(entry.text, entry.summary, said_at=entry.timestamp)
        self.is_due = True
        ingested = await Ingest(self.knowledge, self.service.report).resource(
            document,
            group=caller.group or "",
            tags=build_tags(entry),
            metadata=build_metadata(entry),
            caller=caller,
        )
        return await self._add_fields(entry, ingested.record)

    async def _store_turn(self, entry: MemoryEntry) -> Record:
        """Store an interaction after the last turn of its session.

        Raises:
            ValidationError: It cannot be kept; nothing was stored.
            StorageError: Nothing was stored.
        """
        caller = self._caller()
        caller = replace(caller, session_id=entry.session_id or caller.session_id)
        group, ingest = caller.group or "", Ingest(self.knowledge, self.service.report)
        begun = await ingest.conversation(caller.session_id or self.knowledge.agent_id, group=group, caller=caller)
        self.is_due = True
        async with self._placing:
            order = await self._take_place(begun.record.id)
            stored, refused = await ingest.turns(
                [_build_turn(entry)],
                conversation=begun.record.id,
                first=order,
                group=group,
                is_live=True,
                caller=caller,
            )
        if refused:
            raise ValidationError("Nothing was stored of a turn that cannot be kept.", code=refused[0][1])
        return await self._add_fields(entry, stored[0].record)

    async def update(self, record: Record, changes: dict[str, Any]) -> Record:
        """Change fields of a record.

        Raises:
            ValidationError: A value is wrong; nothing was changed.
            StorageError: Nothing was changed.
        """
        if record.id.startswith(MEMORY.prefix):
            return (await self.service.update(record.id, changes, self._caller())).memory
        if "content" in changes:
            raise ValidationError(
                "What was said, and what a document says, stays as it was; nothing was changed.",
                code="not_changeable",
                recovery="Store a correction.",
            )
        changed: Record = await self._get_storage(record).update(record.id, changes)
        return changed

    async def delete(self, record: Record) -> None:
        """Forget a record with unpinned items from it alone.

        Raises:
            UnknownIdError: It does not exist any more.
            ValidationError: The caller may not forget it.
            StorageError: Records that were forgotten before stay forgotten.
        """
        caller = self._caller()
        if isinstance(record, Memory):
            await self.service.forget(record.id, caller)
            return
        items = await drawn_from_alone(self.service, [record.id], caller)
        await self.service.writer.deletion.forget_many([item.id for item in items if not item.pinned], caller)
        await forget_known([record.id], self.knowledge)
        await self._get_storage(record).delete(record.id)

    async def _add_fields(self, entry: MemoryEntry, record: Record) -> Record:
        fields = build_extra_fields(entry, record)
        return await self.update(record, fields) if fields else record

    async def _take_place(self, conversation: str) -> int:
        """Return the position after the last turn of a conversation."""
        if conversation not in self._next_order:
            turns = await self.knowledge.episodes.linked_to(conversation)
            self._next_order[conversation] = 1 + max((turn.order for turn in turns), default=-1)
        self._next_order[conversation] += 1
        return self._next_order[conversation] - 1

    def _get_storage(self, record: Record) -> Any:
        kind = next(kind for kind in (EPISODE, RESOURCE, SUMMARY) if record.id.startswith(kind.prefix))
        return self.knowledge.of(kind.name)

    # -- search -------------------------------------------------------------------------------------------------------

    async def search(self, query: EntryQuery) -> list[tuple[Record, float]]:
        """Return records that answer a query with their relevance, best first.

        Raises:
            ValidationError: The query is wrong.
            StorageError: The memories cannot be read.
        """
        now = self._clock()
        relevant: dict[str, tuple[float, Record]] = {}
        # Each kind has its own thread, and comparisons there leave the processor to the others.
        answers = await asyncio.gather(self._search_memories(query), self._search_others(query, now))
        for ranked, words in chain(*answers):
            question = WeightedQuestion(query.query, words, now)
            for record, parts in ranked:
                if not query.accepts(record):
                    continue
                text = str(getattr(record, "content", ""))
                weighed = question.weigh(text, parts, record.moment, importance_of(record, now))
                relevance = weighed.relevance * weigh_trust(record.trust)
                if relevance >= query.least and (weighed.semantic or weighed.keyword or question.periods):
                    relevant[record.id] = relevance, record
        best = sorted(relevant.values(), key=lambda pair: (pair[0], pair[1].timestamp), reverse=True)
        return [(record, round(relevance, 6)) for relevance, record in best[: query.count]]

    async def _search_memories(self, query: EntryQuery) -> list[RankedRecords]:
        if query.entry_types is not None and query.entry_types <= {MemoryEntryType.INTERACTION}:
            return []
        answers: list[RankedRecords] = []
        for filters in query.build_filters():
            is_exact = query.entry_types is None or filters.category is not None
            is_exact = is_exact and (query.period is None or filters.date_range is not None)
            depth = query.depth if is_exact else MAX_RESULTS
            answer = await self.service.search(query.query, depth, filters, caller=self._caller())
            answers.append(([(hit.memory, hit.parts) for hit in answer.results], answer.results.words))
        return answers

    async def _search_others(self, query: EntryQuery, now: datetime) -> list[RankedRecords]:
        filters = self._build_filters()

        async def search(storage: RecordStorage[Any]) -> RankedRecords:
            is_exact = query.period is None and storage.kind.name != RESOURCE.name
            request = SearchRequest(query.query, query.depth if is_exact else MAX_RESULTS, now, filters)
            answer = await storage.answer(request)
            pairs = zip(answer.records, answer.ranking.hits, strict=True)
            return [(record, hit.parts) for record, hit in pairs if is_entry(record)], answer.ranking.words

        def is_wanted(kind: str) -> bool:
            entry_type = MemoryEntryType.INTERACTION if kind == EPISODE.name else MemoryEntryType.CONTEXT
            return query.entry_types is None or entry_type in query.entry_types

        storages = [storage for storage in self.storages() if is_wanted(storage.kind.name)]
        return list(await asyncio.gather(*map(search, storages)))


def is_entry(record: Record) -> bool:
    """Return True if a record is an entry; conversations are not."""
    return getattr(record, "resource_type", "") != _CONVERSATION


def _build_turn(entry: MemoryEntry) -> ReceivedTurn:
    role, speaker = entry.content.get("role"), entry.content.get("speaker")
    if role is None:
        role = "user" if entry.source.startswith("user") else "assistant"
    return ReceivedTurn(
        entry.text,
        role if role in _ROLES else UNKNOWN,
        speaker if isinstance(speaker, str) else "",
        entry.timestamp,
        metadata=build_metadata(entry),
        tags=tuple(build_tags(entry)),
    )


class QueryCache:
    """Embedder that keeps the vector of the last query.

    It is thread-safe, as storages ask from their own threads.

    Args:
        embedder: Embedder of the texts.
    """

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._lock = threading.Lock()
        self._last: tuple[str, Vector] | None = None

    def embed_query(self, text: str) -> Vector:
        """Return the vector of a query; equal queries wait for it."""
        with self._lock:
            if self._last is None or self._last[0] != text:
                self._last = (text, self._embedder.embed_query(text))
            return self._last[1]

    def __getattr__(self, name: str) -> Any:
        """Return any other attribute of the embedder."""
        return getattr(self._embedder, name)


# -- search ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class EntryQuery:
    """Arguments of a retrieval.

    Args:
        query: Question in words.
        count: Maximum number of entries.
        least: Least relevance of an entry.
        entry_types: Types of the entries; None for any.
        period: Time of the content, both ends included; None for any.
        candidates: Number of ranked records of each kind at least.

    Raises:
        ValidationError: Names the argument and its possible values.
    """

    query: str
    count: int
    least: float
    entry_types: frozenset[str] | None
    period: DateRange | None
    candidates: int

    def __post_init__(self) -> None:
        count, least = self.count, self.least
        if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= MAX_RESULTS:
            raise ValidationError(f"max_results is a whole number from 1 to {MAX_RESULTS}, got {count!r}.")
        if isinstance(least, bool) or not isinstance(least, int | float) or not 0 <= least <= 1:
            raise ValidationError(f"relevance_threshold must lie between 0 and 1, got {least!r}.")

    @property
    def depth(self) -> int:
        """Number of records that an exact search ranks."""
        return min(MAX_RESULTS, max(self.candidates, 2 * self.count))

    def build_filters(self) -> Sequence[SearchFilters]:
        """Return filters of searches: one per category or one for a time.

        A search without a time also finds memories of another time than that of storing.
        """
        plain = SearchFilters(include_items=True)
        if self.entry_types is not None and self.entry_types <= _SINGLE_CATEGORY:
            return [plain.model_copy(update={"category": CATEGORY_OF[name]}) for name in sorted(self.entry_types)]
        if self.period is not None:
            return [plain, plain.model_copy(update={"date_range": self.period})]
        return [plain]

    def accepts(self, record: Record) -> bool:
        """Return True if a record has a wanted type and time."""
        has_type = self.entry_types is None or get_entry_type(record) in self.entry_types
        return has_type and (self.period is None or self.period.covers(record.moment))


def check_types(entry_types: Collection[str] | None) -> frozenset[str] | None:
    """Return known entry types; None for any.

    Raises:
        ValidationError: One is unknown.
    """
    if not entry_types:
        return None
    names = [entry_types] if isinstance(entry_types, str) else [*entry_types]
    for name in names:
        check_entry_type(name)
    return frozenset(names)


def build_period(time_range: tuple[datetime, datetime] | None) -> DateRange | None:
    """Return the time between two moments; naive ones are local time.

    Raises:
        ValidationError: They are not two moments in order.
    """
    if time_range is None:
        return None
    try:
        start, end = time_range
        return DateRange(start=start, end=end)
    except (TypeError, ValueError):
        raise ValidationError("time_range is two moments, the earlier one first.") from None
