"""Two of the three layers of knowledge by the names of their contract: resources, and items drawn from them.

Thin views: resources are kept by `Knowledge`, items by the `MemoryService`, each by its one way in. A session that is
bound to a group sees what belongs to that or to none.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Final, TypeVar

from agent_memory.errors import ResourceNotFoundError, UnknownIdError, ValidationError
from agent_memory.knowledge.facade.shapes import (
    SOURCE_DELETED,
    item_of,
    number_of,
    resource_of,
)
from agent_memory.knowledge.intake.drafts import ReceivedDocument
from agent_memory.knowledge.pages.page_items import load_texts
from agent_memory.knowledge.passages.items import Preceding, drawn_from, leave_answered, with_link
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
    sees,
    utc_now,
)
from agent_memory.models.memory import FROM

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
    from typing import Any

    from agent_memory.knowledge.facade.shapes import MemoryConfig, MemoryItem, Resource
    from agent_memory.knowledge.intake.ingest import Ingest
    from agent_memory.knowledge.pages.page_items import SourceText
    from agent_memory.knowledge.records import Knowledge
    from agent_memory.memory import Caller, Found, MemoryService
    from agent_memory.models import Memory, MemorySearchResult
    from agent_memory.models import Resource as ResourceRecord

_MOST: Final = 100
R = TypeVar("R", bound=Record)


class ResourceLayer:
    """Layer 1: texts as they came in, whole.

    Args:
        knowledge: Where they are.
        ingest: The way in.
        config: Which types there are, and how long one may be.
        asking: Returns the session that asks now.
    """

    def __init__(
        self, knowledge: Knowledge, ingest: Ingest, config: MemoryConfig, asking: Callable[[], Caller] = lambda: NOBODY
    ) -> None:
        self._knowledge, self._ingest, self._config, self._asking = knowledge, ingest, config, asking

    async def store(
        self, content: str, resource_type: str, metadata: Mapping[str, Any] | None = None, caller: Caller | None = None
    ) -> Resource:
        """Keep a text; one that is there already in the same form is not kept twice.

        Raises:
            ValidationError: The type is unknown, or the text is empty, too long or nothing but a secret.
            StorageError: Nothing was stored.
        """
        if resource_type not in self._config.resource_types:
            there = ", ".join(self._config.resource_types)
            raise ValidationError(f"resource_type is one of {there}, got {resource_type!r}.")
        most = self._config.max_resource_size
        if not isinstance(content, str) or not content.strip() or len(content) > most:
            raise ValidationError(
                f"The content of a resource is a text of 1 to {most:,} characters; nothing was stored.",
                code="too_long" if isinstance(content, str) and len(content) > most else None,
                recovery="Split it, and store the parts one by one.",
            )
        title = str((metadata or {}).get("title", ""))
        given = ReceivedDocument(content, title, resource_type)
        group = self._asking().group or ""
        taken = await self._ingest.resource(given, group=group, metadata=metadata, caller=caller or NOBODY)
        return await self._whole(taken.record)

    async def get(self, resource_id: str) -> Resource | None:
        """Return one resource, None if there is none of that id."""
        record = await self.record(resource_id)
        return None if record is None else await self._whole(record)

    async def record(self, resource_id: str) -> ResourceRecord | None:
        """Return the record of a resource, also by the id of a turn that is part of it."""
        if resource_id.startswith("epi-"):
            episode = _seen(self._asking(), await self._knowledge.episodes.get(resource_id))
            return None if episode is None or not episode.conversation else await self.record(episode.conversation)
        return _seen(self._asking(), await self._knowledge.resources.get(resource_id))

    async def cut(self, record: ResourceRecord) -> list[dict[str, Any]]:
        """Return passages of a resource and its turns as item fields."""
        turns = sorted(await self._knowledge.episodes.linked_to(record.id), key=lambda turn: turn.order)
        turns = [turn for turn in turns if _seen(self._asking(), turn) is not None]
        items: list[dict[str, Any]] = []
        preceding = Preceding(self._knowledge, turns)
        sources: list[Episode | ResourceRecord] = [*turns] or [record]
        for source in sources:
            before = await preceding.of(source) if isinstance(source, Episode) else []
            drawn = await asyncio.to_thread(drawn_from, source, await self._knowledge.text_of(source), before)
            items += [item | {"observed_at": source.observed_at} for item in drawn]
        return leave_answered(items)

    async def get_source(self, source: str) -> Episode | ResourceRecord | None:
        """Return a visible resource, or a turn of one."""
        record = await self.record(source)
        if record is None or record.id == source:
            return record
        return _seen(self._asking(), await self._knowledge.episodes.get(source))

    async def passage(self, source: str) -> SourceText | None:
        """Return the text of a resource or a turn; None if it is gone."""
        return (await load_texts(self._knowledge, [source]))[source] if await self.get_source(source) else None

    async def turns_of(self, resource_id: str) -> list[str]:
        """Return the ids of the turns that are part of a resource, in their order."""
        turns = await self._knowledge.episodes.linked_to(resource_id)
        return [turn.id for turn in sorted(turns, key=lambda turn: turn.order)]

    async def list_by_type(self, resource_type: str, limit: int = 100) -> list[Resource]:
        """Return the latest of a type, the latest first."""
        found = [one for one in await self.records() if one.resource_type == resource_type]
        return [await self._whole(one) for one in found[:limit]]

    async def list_recent(self, n: int = 10) -> list[Resource]:
        """Return the latest of all types, the latest first."""
        return [await self._whole(one) for one in (await self.records())[:n]]

    async def records(self) -> list[ResourceRecord]:
        """Return all, the latest first, without the rest of long texts."""
        return (
            await self._knowledge.resources.browse(Listing(filters=SearchFilters(group=self._asking().group)))
        ).records

    async def search(self, query: str, resource_type: str | None = None) -> list[Resource]:
        """Return those whose beginning answers a query, best first: by words and, with an embedder, by meaning."""
        answer = await self._knowledge.resources.answer(
            SearchRequest(query, _MOST, utc_now(), SearchFilters(group=self._asking().group))
        )
        found = [one for one in answer.records if resource_type in {None, one.resource_type}]
        return [await self._whole(one) for one in found]

    async def delete(self, resource_id: str) -> bool:
        """Delete one, with the turns that are part of it; tell whether there was one."""
        if await self.record(resource_id) is None:
            return False
        for turn in await self._knowledge.episodes.linked_to(resource_id):
            await self._knowledge.episodes.delete(turn.id)
        await self._knowledge.resources.delete(resource_id)
        return True

    async def outdated(self, older_than: timedelta | None, items: ItemLayer) -> list[Resource]:
        """Return those that are older than this, or than the configuration says, and of which no item lives."""
        limit = timedelta(days=self._config.retention_days) if older_than is None else older_than
        before = self._knowledge.clock() - limit
        old = [one for one in await self.records() if one.timestamp < before]
        return [await self._whole(one) for one in old if not await items.get_by_resource(one.id)]

    async def _whole(self, record: ResourceRecord) -> Resource:
        return resource_of(record, await self._knowledge.text_of(record))


def _seen(caller: Caller, record: R | None) -> R | None:
    """Return a record that is there for who asks."""
    return record if record is not None and sees(caller.group, record.facets) else None


async def _nothing(_: object) -> Collection[str]:
    return ()


class ItemLayer:
    """Layer 2: statements drawn from resources, found by meaning.

    Args:
        service: Keeps them as memories that are items.
        resources: What they are drawn from.
        asking: Returns the session that asks now.

    Attributes:
        service: The same.
        filed_under: Returns the ids of the items that are filed under a topic; none where nobody says.
        find_forgotten: Returns the IDs of items that say a forgotten memory.
    """

    def __init__(self, service: MemoryService, resources: ResourceLayer, asking: Callable[[], Caller]) -> None:
        self.service, self._resources, self._asking = service, resources, asking
        self.filed_under: Callable[[str], Awaitable[Collection[str]]] = _nothing
        self.find_forgotten: Callable[[Sequence[Memory]], Awaitable[Collection[str]]] = _nothing

    @property
    def caller(self) -> Caller:
        """The session that asks now."""
        return self._asking()

    async def store(self, item: MemoryItem, **fields: Any) -> MemoryItem:
        """Keep an item and return it as it is kept, under an id of ours; what is known gets one source more.

        Args:
            item: Its id and vector are not taken over.
            fields: Others of the memory, such as `category`, `metadata` and `observed_at`.

        Raises:
            ResourceNotFoundError: What it was drawn from is not there.
            ValidationError: It is empty, too long or nothing but a secret.
            StorageError: Nothing was stored.
        """
        source = await self._resources.get_source(item.source_resource_id)
        if source is None:
            raise ResourceNotFoundError(item.source_resource_id)
        link = {"rel": FROM, "id": item.source_resource_id}
        values = {"content": item.content, "topic": item.category or "", "confidence": item.confidence, "links": [link]}
        values |= {"importance": number_of(item.importance), "source": {"kind": "extraction", "detail": "item"}}
        trust = lowest(self.caller.trust, source.trust, fields.get("trust", source.trust))
        values |= {"group": source.group} | fields | {"trust": trust}
        kept = (await self.service.store(values, self.caller)).memory
        if all(each.id != item.source_resource_id for each in kept.links):
            more = with_link(kept, link, fields.get("metadata", {}).get("at"))
            kept = (await self.service.update(kept.id, more, self.caller)).memory
        return item_of(kept)

    async def store_batch(self, items: Sequence[MemoryItem]) -> list[MemoryItem]:
        """Keep several, in their order."""
        return [await self.store(item) for item in items]

    async def get(self, item_id: str) -> MemoryItem | None:
        """Return one, None if there is none of that id."""
        memory = await self.service.storage.get(item_id)
        return item_of(memory) if memory is not None and is_seen(memory, self.caller) else None

    async def get_by_resource(self, resource_id: str) -> list[MemoryItem]:
        """Return all that was drawn from a resource, in the order of storing."""
        return [item_of(one) for one in await self._drawn(resource_id)]

    async def _drawn(self, resource_id: str) -> list[Memory]:
        """Return the memories that were drawn from a resource, or from a turn of it, in the order of storing."""
        sources = [resource_id, *await self._resources.turns_of(resource_id)]
        found = [one for source in sources for one in reversed(await self.service.storage.linked_to(source))]
        return list({one.id: one for one in found if one.is_item and is_seen(one, self.caller)}.values())

    async def get_by_category(self, category: str) -> list[MemoryItem]:
        """Return all of a topic, in the order of storing."""
        return [item_of(one) for one in await self.of_topic(category)]

    async def of_topic(self, name: str) -> list[Memory]:
        """Return the memories that name a topic or are filed under it, the oldest first."""
        filters = SearchFilters(topic=name, include_items=True, group=self.caller.group)
        named = (await self.service.storage.browse(Listing("oldest", filters))).records
        filed = await self.service.storage.valid_among(await self.filed_under(name))
        every = filed | {each.id: each for each in named}
        return sorted(every.values(), key=lambda each: each.timestamp)

    async def search(self, query: str, k: int, category: str | None = None) -> Found:
        """Return what answers a query: items and an agent's own notes, those of a topic alone if one is named."""
        if category is None:
            found = await self.service.search(query, k, SearchFilters(include_items=True), caller=self.caller)
        else:
            filed = await self.filed_under(category)
            found = await search_within(self.service, query, k, category, filed, self.caller)
        forgotten = await self.find_forgotten([hit.memory for hit in found])
        found.results[:] = [hit for hit in found if hit.memory.id not in forgotten]
        return found

    async def search_by_embedding(self, embedding: Sequence[float], k: int) -> list[tuple[MemoryItem, float]]:
        """Return the items nearest to a vector of the storage's embedder, with their cosines, best first."""
        import numpy as np  # nothing slow at import

        vector = np.asarray(embedding, np.float32)
        request = SearchRequest("", k, utc_now(), EVERYTHING.within(self.caller.group))
        return [(item_of(one), cosine) for one, cosine in await self.service.storage.nearest(vector, request)]

    async def delete(self, item_id: str) -> bool:
        """Forget one, with its vector; tell whether there was one."""
        try:
            await self.service.forget(item_id, self.caller)
        except UnknownIdError:
            return False
        return True

    async def detach(self, resource_id: str) -> list[str]:
        """Say of all that was drawn from a resource that it is gone; return their ids."""
        gone = {resource_id, *await self._resources.turns_of(resource_id)}
        drawn = await self._drawn(resource_id)
        for memory in drawn:
            links = [
                link.model_dump() | ({"rel": SOURCE_DELETED} if link.id in gone and link.rel == FROM else {})
                for link in memory.links
            ]
            await self.service.update(memory.id, {"links": links}, self.caller)
        return [memory.id for memory in drawn]

    async def rebuild_index(self) -> int:
        """Have everything found by meaning again; return how many memories there are."""
        if self.service.storage.backend == "vector":
            await self.service.monitor.migration.migrate(self.caller)
        else:
            await self.service.storage.prepare()
        return await self.service.storage.count()


MOST: Final = 100
"""The best of all that are looked through for what is filed under a topic."""


async def search_within(
    service: MemoryService, query: str, k: int, category: str, filed: Collection[str], caller: Caller
) -> Found:
    """Return what answers a query of what names a topic, and of what is filed there if it is among the best of all.

    Args:
        service: Where memories are.
        query: What is asked.
        k: How many at most.
        category: The name of the topic.
        filed: Ids of the items that are filed there.
        caller: The session that asks.

    Raises:
        StorageError: Nothing can be read.
    """
    named = await service.search(query, k, SearchFilters(topic=category, include_items=True), caller=caller)
    if not filed:
        return named
    every = await service.search(query, MOST, SearchFilters(include_items=True), caller=caller)
    hits = {hit.memory.id: hit for hit in (*named.results, *every.results) if _belongs(hit, category, filed)}
    best = sorted(hits.values(), key=lambda hit: hit.relevance_score, reverse=True)[:k]
    results = SearchResults(
        best,
        total_found=max(len(hits), named.results.total_found),
        mode=every.results.mode,
        degraded=every.results.degraded,
        match="strong" if any(hit.match == "strong" for hit in best) else "weak" if best else "none",
        answer_confidence=max((hit.answer_confidence or 0.0 for hit in best), default=0.0),
    )
    return replace(named, results=results, latency_ms=named.latency_ms + every.latency_ms)


def _belongs(hit: MemorySearchResult, category: str, filed: Collection[str]) -> bool:
    return hit.memory.topic == category or hit.memory.id in filed
