"""Layers of the specification "sigil": resources, items and categories.

A resource, an item and a category are a `Resource`, a `Memory` and a `Topic` of `agent_memory.models`. Nothing is
stored here. A session of a group sees what belongs to the group or to none.
"""

from __future__ import annotations

import asyncio
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, TypeVar

from agent_memory.errors import CategoryExistsError, ResourceNotFoundError, UnknownIdError, ValidationError
from agent_memory.knowledge.intake.drafts import RESOURCE_TYPES, ReceivedDocument
from agent_memory.knowledge.pages.page_files import TopicFiles
from agent_memory.knowledge.pages.page_items import SourceText, build_description, load_texts
from agent_memory.knowledge.pages.subjects import is_derived
from agent_memory.knowledge.pages.visible_topics import SeenTopics, check_own, described_for, is_described_by, left_by
from agent_memory.knowledge.passages.items import SOURCE_DELETED, get_source_id, with_link
from agent_memory.knowledge.tool_settings import IMPORTANCE, Importance
from agent_memory.memory import NOBODY
from agent_memory.memory.caller import is_seen
from agent_memory.memory.trust import lowest
from agent_memory.models import (
    EVERYTHING,
    Episode,
    Listing,
    Record,
    SearchFilters,
    SearchRequest,
    SearchResults,
    as_utc,
    sees,
    to_text,
    utc_now,
)
from agent_memory.models.memory import FROM, SECTION

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
    from pathlib import Path
    from typing import Any

    from agent_memory.knowledge.intake.ingest import Ingest
    from agent_memory.knowledge.records import Knowledge
    from agent_memory.memory import Caller, Found, MemoryService
    from agent_memory.models import Memory, Topic, Trust
    from agent_memory.models import Resource as ResourceRecord

_HIGH: Final = 0.65
_LOW: Final = 0.35
_CONFIDENCE: Final[Mapping[Trust, float]] = {"high": 0.9, "medium": 0.6, "low": 0.3}
"""Of an item whose rule says none: one number in each of the bands high, medium and low."""
_MOST: Final = 100
R = TypeVar("R", bound=Record)


@dataclass(frozen=True, slots=True)
class SigilResource:
    """Text as it came in."""

    resource_id: str
    resource_type: str
    content: str
    metadata: dict[str, Any]
    created_at: datetime

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON."""
        return {**asdict(self), "created_at": to_text(self.created_at)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> SigilResource:
        """Return the resource of a result of `to_dict`."""
        try:
            created = as_utc(datetime.fromisoformat(data["created_at"]))
            resource_id, kind, content = (str(data[name]) for name in ("resource_id", "resource_type", "content"))
            return cls(resource_id, kind, content, dict(data.get("metadata") or {}), created)
        except (KeyError, TypeError, ValueError) as error:
            raise ValidationError(f"This is no resource: {type(error).__name__} at {error}.") from None


Resource = SigilResource


@dataclass(slots=True)
class MemoryItem:
    """Statement that was drawn from a resource.

    Attributes:
        embedding: None, since vectors stay in the index.
        source_resource_id: ID of the resource or turn; empty for a note of the agent.
        confidence: Certainty that the resource says so, 0 to 1.
        importance: low, normal or high; high precedes among equally good results.
        speaker: Name or role of who said it; empty if unknown.
        trust: Trust of the words: high for the user, medium for a model or a file, low for untrusted sources.
        section: Heading path of a digested statement, empty for other items.
    """

    item_id: str
    content: str
    embedding: list[float] | None
    source_resource_id: str
    category: str | None
    confidence: float
    created_at: datetime
    importance: Importance = "normal"
    speaker: str = ""
    trust: Trust = "medium"
    section: str = ""

    def __post_init__(self) -> None:
        if not 0 <= self.confidence <= 1:
            raise ValidationError(f"The confidence of an item lies between 0 and 1, got {self.confidence}.")


@dataclass(frozen=True, slots=True)
class MemoryCategory:
    """Topic with its page in Markdown."""

    category_id: str
    name: str
    description: str
    markdown_content: str
    item_ids: list[str]
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class MemoryConfig:
    """Configuration of the three layers.

    Attributes:
        storage_dir: Root of all agents' folders; None for that of the settings, `~/.amplifier/memory`.
        embedding_model: Embedding model instead of that of the settings, such as a name of OpenAI.
        embedding_dimension: Required dimension of the vectors; None for any.
        max_resource_size: Characters of a resource at most, not above 1,000,000.
        default_k: Number of items of an answer by default.
        escalation_threshold: Confidence below which a language model is asked, 0 to 1.
        consolidation_interval: New items of a topic after which its page is rebuilt.
        retention_days: Age in days from which `MemoryManager.outdated` lists a resource.
        resource_types: Types that may be stored.
    """

    storage_dir: Path | str | None = None
    embedding_model: str | None = None
    embedding_dimension: int | None = None
    max_resource_size: int = 1_000_000
    default_k: int = 5
    escalation_threshold: float = 0.6
    consolidation_interval: int = 10
    retention_days: int = 90
    resource_types: tuple[str, ...] = RESOURCE_TYPES


def view_resource(record: ResourceRecord, content: str) -> SigilResource:
    """Return a record as a resource with its whole text."""
    return SigilResource(record.id, record.resource_type, content, dict(record.metadata), record.timestamp)


def view_item(memory: Memory) -> MemoryItem:
    """Return a memory as an item."""
    sure = _CONFIDENCE[memory.trust] if memory.confidence is None else memory.confidence
    importance, speaker = get_importance_word(memory.importance), memory.metadata.get("speaker")
    by = speaker if isinstance(speaker, str) else ""
    return MemoryItem(
        memory.id,
        memory.content,
        None,
        get_source_id(memory),
        memory.topic or None,
        sure,
        memory.timestamp,
        importance,
        by,
        memory.trust,
        str(memory.metadata.get(SECTION, "")),
    )


def view_category(topic: Topic) -> MemoryCategory:
    """Return a topic as a category."""
    title = topic.name.replace("_", " ").title()
    updated = topic.consolidated_at or topic.timestamp
    body = topic.body or f"# {title}\n\n*No items yet.*"
    return MemoryCategory(topic.id, topic.name, topic.description, body, list(topic.item_ids), updated)


def get_importance_word(importance: float | None) -> Importance:
    """Return an importance as a word."""
    if importance is None or _LOW < importance < _HIGH:
        return "normal"
    return "high" if importance >= _HIGH else "low"


def get_importance(importance: str) -> float | None:
    """Return an importance as a number, None for normal."""
    for name, value in IMPORTANCE.items():
        if name == importance:
            return value
    raise ValidationError(f"importance is one of {', '.join(IMPORTANCE)}, got {importance!r}.")


class ResourceLayer:
    """Layer 1: whole texts as they came in.

    Args:
        knowledge: Records of the agent.
        ingest: Ingestion of new texts.
        config: Types and sizes of resources.
        asking: Returns the session that asks now.
    """

    def __init__(
        self, knowledge: Knowledge, ingest: Ingest, config: MemoryConfig, asking: Callable[[], Caller] = lambda: NOBODY
    ) -> None:
        self._knowledge, self._ingest, self._config, self._asking = knowledge, ingest, config, asking

    async def store(
        self, content: str, resource_type: str, metadata: Mapping[str, Any] | None = None, caller: Caller | None = None
    ) -> SigilResource:
        """Store a text once."""
        if resource_type not in self._config.resource_types:
            types = ", ".join(self._config.resource_types)
            raise ValidationError(f"resource_type is one of {types}, got {resource_type!r}.")
        most = self._config.max_resource_size
        if not isinstance(content, str) or not content.strip() or len(content) > most:
            raise ValidationError(
                f"The content of a resource is a text of 1 to {most:,} characters; nothing was stored.",
                code="too_long" if isinstance(content, str) and len(content) > most else None,
                recovery="Split it, and store the parts one by one.",
            )
        title = str((metadata or {}).get("title", ""))
        document = ReceivedDocument(content, title, resource_type)
        group = self._asking().group or ""
        taken = await self._ingest.resource(document, group=group, metadata=metadata, caller=caller or NOBODY)
        return await self._whole(taken.record)

    async def get(self, resource_id: str) -> SigilResource | None:
        """Return a resource by its ID, or None."""
        record = await self.record(resource_id)
        return None if record is None else await self._whole(record)

    async def record(self, resource_id: str) -> ResourceRecord | None:
        """Return the record of a resource or of a turn's resource."""
        if resource_id.startswith("epi-"):
            episode = self._filter_visible(await self._knowledge.episodes.get(resource_id))
            return None if episode is None or not episode.conversation else await self.record(episode.conversation)
        return self._filter_visible(await self._knowledge.resources.get(resource_id))

    async def list_sources(self, record: ResourceRecord) -> Sequence[Episode | ResourceRecord]:
        """Return the visible turns of a resource in order, else the resource."""
        turns = sorted(await self._knowledge.episodes.linked_to(record.id), key=lambda turn: turn.order)
        return [turn for turn in turns if sees(self._asking().group, turn.facets)] or [record]

    async def get_source(self, source: str) -> Episode | ResourceRecord | None:
        """Return a visible resource, or a turn of one."""
        record = await self.record(source)
        if record is None or record.id == source:
            return record
        return self._filter_visible(await self._knowledge.episodes.get(source))

    async def passage(self, source: str) -> SourceText | None:
        """Return the text of a resource or a turn, or None."""
        return (await load_texts(self._knowledge, [source]))[source] if await self.get_source(source) else None

    async def list_turns(self, resource_id: str) -> list[str]:
        """Return the IDs of the turns of a resource in order."""
        turns = await self._knowledge.episodes.linked_to(resource_id)
        return [turn.id for turn in sorted(turns, key=lambda turn: turn.order)]

    async def list_by_type(self, resource_type: str, limit: int = 100) -> list[SigilResource]:
        """Return the resources of a type, newest first."""
        records = [record for record in await self.records() if record.resource_type == resource_type]
        return [await self._whole(record) for record in records[:limit]]

    async def list_recent(self, n: int = 10) -> list[SigilResource]:
        """Return the newest resources of all types."""
        return [await self._whole(record) for record in (await self.records())[:n]]

    async def records(self) -> list[ResourceRecord]:
        """Return all records, newest first, with beginnings of long texts."""
        return (
            await self._knowledge.resources.browse(Listing(filters=SearchFilters(group=self._asking().group)))
        ).records

    async def search(self, query: str, resource_type: str | None = None) -> list[SigilResource]:
        """Return resources whose beginning answers a query, best first."""
        answer = await self._knowledge.resources.answer(
            SearchRequest(query, _MOST, utc_now(), SearchFilters(group=self._asking().group))
        )
        records = [record for record in answer.records if resource_type in {None, record.resource_type}]
        return [await self._whole(record) for record in records]

    async def delete(self, resource_id: str) -> bool:
        """Delete a resource with its turns; return False if missing."""
        if await self.record(resource_id) is None:
            return False
        for turn in await self._knowledge.episodes.linked_to(resource_id):
            await self._knowledge.episodes.delete(turn.id)
        await self._knowledge.resources.delete(resource_id)
        return True

    def _filter_visible(self, record: R | None) -> R | None:
        """Return a record if the session may see it."""
        return record if record is not None and sees(self._asking().group, record.facets) else None

    async def _whole(self, record: ResourceRecord) -> SigilResource:
        return view_resource(record, await self._knowledge.text_of(record))


async def _nothing(_: object) -> Collection[str]:
    return ()


class ItemLayer:
    """Layer 2: statements drawn from resources.

    Args:
        service: Memories of the agent.
        resources: Layer of the resources.
        asking: Returns the session that asks now.

    Attributes:
        service: Memories of the agent.
        filed_under: Returns the IDs of the items of a topic.
        find_forgotten: Returns the IDs of items that say a forgotten memory.
    """

    def __init__(self, service: MemoryService, resources: ResourceLayer, asking: Callable[[], Caller]) -> None:
        self.service, self._resources, self._asking = service, resources, asking
        self.filed_under: Callable[[str], Awaitable[Collection[str]]] = _nothing
        self.find_forgotten: Callable[[Sequence[Memory]], Awaitable[Collection[str]]] = _nothing

    @property
    def caller(self) -> Caller:
        """Session that asks now."""
        return self._asking()

    async def store(self, item: MemoryItem, **fields: Any) -> MemoryItem:
        """Store an item, or add its source to a known one.

        Args:
            item: New item; its ID and vector are ignored.
            fields: Further fields of the memory, such as `category` and `metadata`.
        """
        source = await self._resources.get_source(item.source_resource_id)
        if source is None:
            raise ResourceNotFoundError(item.source_resource_id)
        link = {"rel": FROM, "id": item.source_resource_id}
        values = {"content": item.content, "topic": item.category or "", "confidence": item.confidence, "links": [link]}
        values |= {"importance": get_importance(item.importance), "source": {"kind": "extraction", "detail": "item"}}
        trust = lowest(self.caller.trust, source.trust, fields.get("trust", source.trust))
        values |= {"group": source.group} | fields | {"trust": trust}
        memory = (await self.service.store(values, self.caller)).memory
        if all(old_link.id != item.source_resource_id for old_link in memory.links):
            more = with_link(memory, link, fields.get("metadata", {}).get("at"))
            memory = (await self.service.update(memory.id, more, self.caller)).memory
        return view_item(memory)

    async def store_batch(self, items: Sequence[MemoryItem]) -> list[MemoryItem]:
        """Store several items in order."""
        return [await self.store(item) for item in items]

    async def get(self, item_id: str) -> MemoryItem | None:
        """Return an item by its ID, or None."""
        memory = await self.service.storage.get(item_id)
        return view_item(memory) if memory is not None and is_seen(memory, self.caller) else None

    async def get_by_resource(self, resource_id: str) -> list[MemoryItem]:
        """Return the items of a resource, oldest first."""
        return [view_item(memory) for memory in await self.list_drawn(resource_id)]

    async def list_drawn(self, resource_id: str) -> list[Memory]:
        """Return the memories drawn from a resource or its turns, oldest first."""
        sources = [resource_id, *await self._resources.list_turns(resource_id)]
        memories = [memory for source in sources for memory in reversed(await self.service.storage.linked_to(source))]
        return list(
            {memory.id: memory for memory in memories if memory.is_item and is_seen(memory, self.caller)}.values()
        )

    async def get_by_category(self, category: str) -> list[MemoryItem]:
        """Return the items of a topic, oldest first."""
        filters = SearchFilters(topic=category, include_items=True, group=self.caller.group)
        named = (await self.service.storage.browse(Listing("oldest", filters))).records
        filed = await self.service.storage.valid_among(await self.filed_under(category))
        memories = filed | {memory.id: memory for memory in named}
        return [view_item(memory) for memory in sorted(memories.values(), key=lambda memory: memory.timestamp)]

    async def search(self, query: str, k: int, category: str | None = None) -> Found:
        """Return items and notes that answer a query."""
        if category is None:
            results = await self.service.search(query, k, SearchFilters(include_items=True), caller=self.caller)
        else:
            filed = await self.filed_under(category)
            results = await self._search_topic(query, k, category, filed)
        forgotten = await self.find_forgotten([hit.memory for hit in results])
        results.results[:] = [hit for hit in results if hit.memory.id not in forgotten]
        return results

    async def _search_topic(self, query: str, k: int, category: str, filed: Collection[str]) -> Found:
        """Return memories of a topic that answer a query."""
        search, caller = self.service.search, self.caller
        named = await search(query, k, SearchFilters(topic=category, include_items=True), caller=caller)
        if not filed:
            return named
        results_of_all = await search(query, _MOST, SearchFilters(include_items=True), caller=caller)
        hits_by_id = {hit.memory.id: hit for hit in (*named.results, *results_of_all.results)}
        hits = [hit for hit in hits_by_id.values() if hit.memory.topic == category or hit.memory.id in filed]
        best = sorted(hits, key=lambda hit: hit.relevance_score, reverse=True)[:k]
        results = SearchResults(
            best,
            total_found=max(len(hits), named.results.total_found),
            mode=results_of_all.results.mode,
            degraded=results_of_all.results.degraded,
            match="strong" if any(hit.match == "strong" for hit in best) else "weak" if best else "none",
            answer_confidence=max((hit.answer_confidence or 0.0 for hit in best), default=0.0),
        )
        return replace(named, results=results, latency_ms=named.latency_ms + results_of_all.latency_ms)

    async def search_by_embedding(self, embedding: Sequence[float], k: int) -> list[tuple[MemoryItem, float]]:
        """Return the items nearest to a vector with their cosines, best first."""
        import numpy as np  # nothing slow at import

        vector = np.asarray(embedding, np.float32)
        request = SearchRequest("", k, utc_now(), EVERYTHING.within(self.caller.group))
        return [(view_item(memory), cosine) for memory, cosine in await self.service.storage.nearest(vector, request)]

    async def delete(self, item_id: str) -> bool:
        """Forget an item; return False if it does not exist."""
        try:
            await self.service.forget(item_id, self.caller)
        except UnknownIdError:
            return False
        return True

    async def detach(self, resource_id: str) -> list[str]:
        """Mark the source of a resource's items as deleted; return their IDs."""
        gone = {resource_id, *await self._resources.list_turns(resource_id)}
        drawn = await self.list_drawn(resource_id)
        for memory in drawn:
            links = [
                link.model_dump() | ({"rel": SOURCE_DELETED} if link.id in gone and link.rel == FROM else {})
                for link in memory.links
            ]
            await self.service.update(memory.id, {"links": links}, self.caller)
        return [memory.id for memory in drawn]

    async def rebuild_index(self) -> int:
        """Rebuild the vector index; return the number of memories."""
        if self.service.storage.backend == "vector":
            await self.service.monitor.migration.migrate(self.caller)
        else:
            await self.service.storage.prepare()
        return await self.service.storage.count()


class CategoryLayer:
    """Layer 3: topics, each with a page in Markdown.

    Args:
        knowledge: Records of the agent.
        seen: Topics that the session may see.
    """

    def __init__(self, knowledge: Knowledge, seen: SeenTopics) -> None:
        self._knowledge, self._seen = knowledge, seen
        self._creating = asyncio.Lock()

    async def create(self, name: str, description: str) -> MemoryCategory:
        """Declare a topic."""
        async with self._creating:
            if (existing := await self._seen.topic(name)) is not None:
                if is_derived(existing) or existing.description != build_description(name.replace("_", " ")):
                    raise CategoryExistsError(name)
                return await self._update_topic(existing.id, {"description": description})
            if (hidden := await self._seen.of_others(name)) is not None:
                changes = described_for(hidden, self._seen.group or "", description)
                hidden = await self._knowledge.topics.update(hidden.id, changes) if changes else hidden
                return view_category(self._seen.view(hidden, []))
            group = self._seen.group or ""
            declared = await self._seen.pages.declare(name, description, group=group, trust=self._seen.trust)
        return view_category(declared)

    async def get(self, category_id: str) -> MemoryCategory | None:
        """Return a category by its ID, or None."""
        topic = next((candidate for candidate in await self._seen.topics() if candidate.id == category_id), None)
        return None if topic is None else view_category(topic)

    async def get_by_name(self, name: str) -> MemoryCategory | None:
        """Return a category by its name, or None."""
        topic = await self._seen.topic(name)
        return None if topic is None else view_category(topic)

    async def list_all(self) -> list[MemoryCategory]:
        """Return all categories by name."""
        return [view_category(topic) for topic in await self._seen.topics()]

    async def count_items(self) -> dict[str, int]:
        """Return the number of items by name of category."""
        return await self._seen.how_many(await self._seen.topics())

    async def of_strangers(self) -> set[str]:
        """Return the names of topics that only untrusted sources mention."""
        return await self._seen.of_strangers(await self._seen.topics())

    async def update_content(
        self, category_id: str, content: str, item_ids: Iterable[str] | None = None
    ) -> MemoryCategory:
        """Replace the page of a topic.

        Args:
            category_id: ID of the topic.
            content: Page as Markdown.
            item_ids: IDs of its items; unchanged when omitted.
        """
        changes: dict[str, Any] = {"body": content, "consolidated_at": self._knowledge.clock()}
        if item_ids is not None:
            changes["item_ids"] = list(item_ids)
        return await self._update_topic(category_id, changes)

    async def add_items(self, category_id: str, item_ids: Sequence[str]) -> MemoryCategory:
        """Add items to a topic; its page changes at the next consolidation."""
        topic = await self._knowledge.topics.get(category_id)
        all_ids = list(dict.fromkeys([*(topic.item_ids if topic is not None else ()), *item_ids]))
        return await self._update_topic(category_id, {"item_ids": all_ids})

    async def _update_topic(self, category_id: str, changes: dict[str, Any]) -> MemoryCategory:
        record = await self._record(category_id)
        if record is None:
            raise UnknownIdError(f"No topic {category_id}; nothing was changed.")
        check_own(self._seen.group, record)
        topic = await self._knowledge.topics.update(category_id, changes)
        return view_category(self._seen.view(topic, await self._seen.list_members(topic)))

    async def delete(self, category_id: str) -> bool:
        """Delete a topic and its page; return False if missing.

        The topic stays for other groups. An edited page stays as a file.
        """
        record = await self._record(category_id)
        if record is None:
            return False
        group, pages = self._seen.group, self._seen.pages
        if not is_described_by(group, record):
            check_own(group, record)
        try:
            if changes := left_by(group, record, await pages.list_members(record)):
                await self._knowledge.topics.update(category_id, changes)
                return True
            await self._knowledge.topics.delete(category_id)
        except UnknownIdError:
            return False
        await asyncio.to_thread(TopicFiles(self._knowledge.folder.topics).remove, record.name)
        await pages.write_index()
        return True

    async def _record(self, category_id: str) -> Topic | None:
        """Return the record of a visible topic, or None."""
        return await self._knowledge.topics.get(category_id) if await self.get(category_id) is not None else None
