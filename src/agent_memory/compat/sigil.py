"""`MemoryManager` of the specification "sigil": resources, items and categories behind one object."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar

from agent_memory.compat.sigil_layers import (
    CategoryLayer,
    ItemLayer,
    MemoryConfig,
    MemoryItem,
    ResourceLayer,
    view_category,
    view_item,
)
from agent_memory.compat.sigil_operations import (
    CategoryConsolidatedPayload,
    CategoryCreatedPayload,
    HybridRetriever,
    ItemDeletedPayload,
    Items,
    ItemsExtractedPayload,
    LLMRetriever,
    RAGRetriever,
    ResourceDeletedPayload,
    ResourceStoredPayload,
    RetrievalMode,
    RetrievalPerformedPayload,
    RetrievalResult,
    check_query,
    query_hash,
    send_event,
)
from agent_memory.errors import (
    CategoryExistsError,
    ConfigurationError,
    ConsolidationError,
    ExtractionError,
    ResourceNotFoundError,
    StorageError,
    ValidationError,
)
from agent_memory.files.entries import get_disk_size
from agent_memory.knowledge.digest.model_digest import ask_statements, split_batches
from agent_memory.knowledge.digest.passage_digest import PassageDigest
from agent_memory.knowledge.intake.ingest import Ingest
from agent_memory.knowledge.intake.withdrawal import KnowledgeWithdrawal, withdraw
from agent_memory.knowledge.llm.language_model import Asking, LanguageModel, ModelBudget
from agent_memory.knowledge.pages.assignment import guess_topics
from agent_memory.knowledge.pages.page import render
from agent_memory.knowledge.pages.page_items import build_description
from agent_memory.knowledge.pages.pages import BuiltPage, Pages, count_visible, draft_page
from agent_memory.knowledge.pages.subjects import is_derived
from agent_memory.knowledge.pages.visible_topics import SeenTopics
from agent_memory.knowledge.passages.forgotten_texts import ForgottenTexts
from agent_memory.knowledge.passages.item_stage import ItemStage
from agent_memory.knowledge.passages.items import is_passage
from agent_memory.knowledge.pipeline.background_work import ITEMS_ONLY, runner_of, store_passages
from agent_memory.knowledge.records import Knowledge
from agent_memory.logs import get_logger
from agent_memory.memory import NOBODY, open_service
from agent_memory.models import TOPIC, Listing, SearchFilters
from agent_memory.settings import ServiceSettings
from agent_memory.store.shards import with_model

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence
    from datetime import datetime
    from pathlib import Path

    from agent_memory.compat.sigil_layers import MemoryCategory, SigilResource
    from agent_memory.compat.sigil_operations import EventStore
    from agent_memory.embeddings import Embedder
    from agent_memory.knowledge.tool_settings import Importance
    from agent_memory.memory import Caller, MemoryService
    from agent_memory.models import Memory, RecordCounts, Topic

log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class MemoryStats:
    """Counts of the last check; see `MemoryManager.check`."""

    total_resources: int = 0
    total_items: int = 0
    total_categories: int = 0
    vector_index_size: int = 0
    storage_bytes: int = 0
    resources_by_type: dict[str, int] = field(default_factory=dict)
    items_by_category: dict[str, int] = field(default_factory=dict)
    last_extraction_at: datetime | None = None
    last_consolidation_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class MemoryRetryConfig:
    """Retries and pauses of embedders and language models.

    The pause doubles each time, from `…_backoff_base` up to `embedding_backoff_max`.
    """

    embedding_max_retries: int = 3
    embedding_backoff_base: float = 1.0
    embedding_backoff_max: float = 30.0
    extraction_max_retries: int = 2
    extraction_backoff_base: float = 2.0
    consolidation_max_retries: int = 2
    consolidation_backoff_base: float = 2.0
    retrieval_max_retries: int = 2
    retrieval_backoff_base: float = 1.0


class PageText(str):
    """Page as text, with attributes of earlier versions.

    Attributes:
        warnings: Always an empty list.
        degraded: Always None, unused.
        by_model: Always 0, unused.
    """

    __slots__ = ()
    warnings: ClassVar[list[str]] = []
    degraded: ClassVar[None] = None
    by_model: ClassVar[int] = 0


async def check_storages(service: MemoryService, knowledge: Knowledge) -> bool:
    """Return True if each storage works."""
    reports = [await storage.health() for storage in (service.storage, *knowledge.storages)]
    works = all(report.get("status") == "ok" for report in reports)
    return works and service.storage.embedding_status().get("status") != "failing"


async def count_records(service: MemoryService, knowledge: Knowledge, seen: SeenTopics, size: int) -> MemoryStats:
    """Return counts; fast after the first call.

    Args:
        service: Where items are.
        knowledge: Where resources and topics are.
        seen: The topics that are there for who asks.
        size: Bytes of the files.
    """
    resources, memories, group = await knowledge.resources.tally(), await service.storage.tally(), seen.group
    topics, pending = await seen.topics(), service.storage.embedding_status()
    total, items = memories.count_records(group) + memories.count_items(group), memories.count_items(group)
    waiting = int(pending.get("pending", 0))
    return MemoryStats(
        total_resources=resources.count_records(group),
        total_items=items,
        total_categories=len(topics),
        vector_index_size=max(0, total - waiting) if pending.get("status") == "ready" else 0,
        storage_bytes=size,
        resources_by_type=await _by_type(knowledge, resources, group),
        items_by_category=_by_topic(topics, memories) if group is None else await seen.how_many(topics),
        last_extraction_at=memories.last_item if items else None,
        last_consolidation_at=max((topic.consolidated_at for topic in topics if topic.consolidated_at), default=None),
    )


def _by_topic(topics: Sequence[Topic], tally: RecordCounts) -> dict[str, int]:
    """Return the number of items on or filed for each page."""
    filed = tally.every_by_facet.get("topic", Counter[str]())
    return {topic.name: max(filed[topic.name], len(topic.item_ids)) for topic in topics}


async def _by_type(knowledge: Knowledge, tally: RecordCounts, group: str | None) -> dict[str, int]:
    if group is None:
        return dict(tally.by_facet.get("resource_type", {}))
    seen = (await knowledge.resources.browse(Listing(filters=SearchFilters(group=group)))).records
    return dict(Counter(record.resource_type for record in seen))


async def preview_page(knowledge: Knowledge, service: MemoryService, seen: SeenTopics, topic: Topic) -> str:
    """Return the page of a topic that has none, unwritten.

    Args:
        knowledge: What came in.
        service: Where items are.
        seen: Topics that the session may see; a group is shown no numbers.
        topic: Topic without a page.
    """
    if members := await seen.list_members(topic):
        return render(replace(await draft_page(knowledge, topic, members), consolidated_at=None))
    page = view_category(topic).markdown_content
    backlog = await runner_of(knowledge, service, config=ITEMS_ONLY).backlog()
    unread = sum(step.due for step in backlog if step.stage == ItemStage.name)
    unfiled = sum(step.due for step in backlog if step.stage != ItemStage.name)
    if not unread and not unfiled:
        return page
    if seen.group is not None:
        return f"{page}\n\n*What came in last may not be filed yet; the background work does that.*"
    waiting = [f"{unread:,} turns or documents to be read"] if unread else []
    waiting += [f"{unfiled:,} items to be filed under topics"] if unfiled else []
    return f"{page}\n\n*Waiting for the background work: {', '.join(waiting)}.*"


class MemoryManager:
    """Resources, items and topics of one agent.

    Opens nothing until the first call, asks no network, and deletes nothing unasked. An item is a memory that is kept
    apart from the agent's own notes (docs/explanation/how-it-works.md).

    Args:
        storage_dir: Root of all agents' folders; that of `config`, else of `settings`.
        embedding_service: An embedder of the program's own.
        event_store: Gets every event; the host gets them anyway.
        config: How the layers work.
        agent_id: Name of the agent.
        settings: Those of the memory below.
        service: An open memory to work on, instead of one of its own, which `close` would close.
        model: Answers prompts; without one everything is found by rules, and an answer that wanted one says so.
        retry: How often a model is asked again.
        budget: What may be asked of the model; one of its own when omitted.
        caller: The session that asks, or what returns the one that asks now.

    Attributes:
        resource_layer, item_layer, category_layer: The three layers.
        digest: Hands out passages and takes back statements.
        model_budget: What was asked of the model, and how often it failed.
        event_store, config: Values of the arguments.
    """

    def __init__(  # noqa: PLR0913 - each by its name
        self,
        storage_dir: Path | str | None = None,
        embedding_service: Embedder | None = None,
        event_store: EventStore | None = None,
        config: MemoryConfig | None = None,
        *,
        agent_id: str = "default",
        settings: ServiceSettings | None = None,
        service: MemoryService | None = None,
        model: LanguageModel | None = None,
        retry: MemoryRetryConfig | None = None,
        budget: ModelBudget | None = None,
        caller: Caller | Callable[[], Caller] = NOBODY,
    ) -> None:
        self.config, self.event_store, retry = config or MemoryConfig(), event_store, retry or MemoryRetryConfig()
        base = service.settings if service is not None else settings
        chosen = make_settings(storage_dir, self.config, base, embedding_service)
        self._owns_service, self._caller = service is None, caller if callable(caller) else lambda: caller
        self._service = service or open_service(agent_id, chosen, embedding_service)
        self._knowledge = Knowledge(self._service.agent_id, chosen, embedder=embedding_service)
        self.resource_layer = ResourceLayer(self._knowledge, Ingest(self._knowledge), self.config, self._caller)
        self.item_layer = ItemLayer(self._service, self.resource_layer, self._caller)
        self._pages = Pages(self._knowledge, self._service, self.config.consolidation_interval)
        self._forgotten = ForgottenTexts(self._knowledge, self._service)
        self.item_layer.find_forgotten = self._forgotten.find_items
        self._seen = SeenTopics(self._knowledge, self._pages, self._caller, self._forgotten)
        self.item_layer.filed_under = self._seen.filed_under
        self.category_layer = CategoryLayer(self._knowledge, self._seen)
        self.digest = PassageDigest(self._knowledge, self._service)
        self.model_budget = budget = budget or ModelBudget()

        def asking(retries: int, backoff: float) -> Asking:
            return Asking(model, retries, backoff, budget.seconds, budget=budget)

        self._asking = asking(retry.extraction_max_retries, retry.extraction_backoff_base)
        watcher = KnowledgeWithdrawal(self._service, self._report_page)
        self._is_told = self._service.monitor.add_watcher(TOPIC.name, watcher.withdraw, watcher.close)
        rules = RAGRetriever(self.item_layer)
        chooser = LLMRetriever(self.item_layer, asking(retry.retrieval_max_retries, retry.retrieval_backoff_base))
        self._retrievers: dict[RetrievalMode, RAGRetriever | LLMRetriever | HybridRetriever] = {
            RetrievalMode.RAG: rules,
            RetrievalMode.LLM: chooser,
            RetrievalMode.HYBRID: HybridRetriever(rules, chooser, self.config.escalation_threshold),
        }
        self._stats, self._is_healthy = MemoryStats(), True

    async def store_resource(
        self, content: str, resource_type: str, metadata: dict[str, Any] | None = None
    ) -> SigilResource:
        """Store a text once, without secrets."""
        stored = await self.resource_layer.store(content, resource_type, metadata, self._caller())
        keys = sorted(stored.metadata)
        payload = ResourceStoredPayload(stored.resource_id, resource_type, len(stored.content), keys)
        await self._send(payload)
        await self.check(files=False)
        return stored

    async def extract_and_store(
        self, resource_id: str, category_hint: str | None = None, *, strict: bool = False, with_model: bool = False
    ) -> Items:
        """Extract and store the items of a resource. Idempotent.

        Args:
            resource_id: ID of the resource.
            category_hint: Topic of all items, declared if new; else each gets the one
                whose name and description share most words with it, or none.
            strict: Raise where nothing could be drawn, instead of an empty list whose `warnings` say why.
            with_model: Add statements of a language model that pass the checks of `digest`; where it fails, the
                passages remain, and `degraded` says why.
        """
        began = time.perf_counter()
        record = await self.resource_layer.record(resource_id)
        if record is None:
            raise ResourceNotFoundError(resource_id)
        topics = await self._choose_topics(category_hint)
        sources = await self.resource_layer.list_sources(record)
        await store_passages(self._knowledge, self._service, sources, topics, self._caller())
        passages = [memory for memory in await self.item_layer.list_drawn(record.id) if is_passage(memory)]
        items = Items(map(view_item, passages))
        if with_model:
            await self._add_statements(passages, items)
        if not items:
            items.warnings.append(f"Nothing that states something was found in {resource_id}.")
            if strict:
                raise ExtractionError(items.warnings[-1])
            log.warning("nothing_extracted", resource_id=resource_id)
        names = sorted({item.category for item in items if item.category})
        spent, item_ids = 1000 * (time.perf_counter() - began), [item.item_id for item in items]
        await self._send(ItemsExtractedPayload(record.id, item_ids, len(items), names, spent, items.by_model))
        await self._rebuild_due_pages(names)
        await self.check(files=False)
        return items

    async def _choose_topics(self, hint: str | None) -> str | list[Topic]:
        """Return the topic of a hint, declared if new, else all topics."""
        if hint is None:
            return await self._seen.topics()
        if await self._seen.topic(hint) is None:
            with suppress(CategoryExistsError):
                await self.category_layer.create(hint, build_description(hint.replace("_", " ")))
        return hint

    async def _add_statements(self, passages: Sequence[Memory], items: Items) -> None:
        """Add a model's statements about passages."""
        for batch in split_batches(passages):
            outcome = await ask_statements(self.digest, self._asking, batch, self._caller())
            items.warnings += outcome.warnings
            items.degraded = outcome.failure.sentence if outcome.failure else items.degraded
            items += [view_item(memory) for memory in outcome.stored]
            items.by_model += len(outcome.stored)
        if self._asking.model is not None:
            await self.model_budget.report_problem(items.degraded, self._service, self._caller())

    async def remember(
        self, content: str, category: str | None = None, importance: Importance = "normal"
    ) -> MemoryItem:
        """Store a statement as an item with a resource `feedback`.

        Args:
            content: What to keep.
            category: Name of its topic, declared if new; guessed when omitted.
            importance: low, normal or high.
        """
        topics = await self._choose_topics(category)
        topic = topics if isinstance(topics, str) else (await guess_topics(self._service, [content], topics))[0]
        resource = await self.resource_layer.store(content, "feedback", {"context": "remember"}, self._caller())
        item = MemoryItem(
            "", resource.content, None, resource.resource_id, topic or None, 1.0, resource.created_at, importance
        )
        stored = await self.item_layer.store(item, source={"kind": "extraction", "detail": "remember"})
        await self._rebuild_due_pages([stored.category] if stored.category else [])
        await self.check(files=False)
        return stored

    async def retrieve(
        self,
        query: str,
        mode: RetrievalMode | str = RetrievalMode.HYBRID,
        k: int | None = None,
        category_filter: str | None = None,
    ) -> RetrievalResult:
        """Search items and the agent's own notes for a query.

        Args:
            query: 1 to 10,000 characters.
            mode: By rules, by a language model, or by the second where the first is not sure.
            k: How many at most, 1 to 100; `config.default_k` when omitted.
            category_filter: Of this topic alone.
        """
        k = self.config.default_k if k is None else k
        check_query(query, k)
        try:
            retriever = self._retrievers[RetrievalMode(mode)]
        except ValueError:
            raise ValidationError(f"mode is one of {', '.join(RetrievalMode)}, got {mode!r}.") from None
        if category_filter is not None:
            await self._seen.require_topic(category_filter)
        spent = self.model_budget
        calls, failures = spent.calls, spent.failures.total()
        result = await retriever.retrieve(query, k, category_filter=category_filter)
        if (calls, failures) != (spent.calls, spent.failures.total()):
            problem = result.degraded if spent.failures.total() > failures else None
            await spent.report_problem(problem, self._service, self._caller())
        await self._name_topics(result.items)
        payload = RetrievalPerformedPayload(
            query_hash(query), result.mode_used.value, len(result.items), result.search_time_ms, result.escalated
        )
        await self._send(payload)
        return result

    async def _name_topics(self, items: Collection[MemoryItem]) -> None:
        """Set the smallest topic on items without one.

        A session of a group sees declared topics that are its own or belong to none.
        """
        group, nameless = self._seen.group, [item for item in items if item.category is None]
        topics = await self._pages.list_shown() if nameless else []
        for topic in sorted(topics, key=lambda topic: len(topic.item_ids), reverse=True):
            if group is None or (not is_derived(topic) and topic.group in {"", group}):
                filed = set(topic.item_ids)
                for item in nameless:
                    item.category = topic.name if item.item_id in filed else item.category

    async def get_category_content(self, category_name: str) -> str:
        """Return the page of a topic, or a preview of it."""
        topic = await self._seen.require_topic(category_name)
        page = await self._seen.get_text(topic)
        unmade_page = "" if page else await preview_page(self._knowledge, self._service, self._seen, topic)
        return page or await self._forgotten.filter_page(unmade_page)

    async def consolidate_category(
        self,
        category_name: str,
        force: bool = False,  # noqa: FBT001, FBT002
        *,
        with_model: bool = False,
    ) -> PageText:
        """Rebuild the page of a topic unless edited; return it.

        Args:
            category_name: Name of the topic.
            force: True to rebuild the page even if its items are the same.
            with_model: Has no effect; earlier versions asked a language model for words.
        """
        del with_model
        topic = await self._seen.require_topic(category_name)
        record = await self._pages.get_by_name(category_name) or topic
        body = await self._rebuild_page(record, force=force)
        await self.check(files=False)
        return PageText(body if self._seen.group is None else await self._seen.get_text(topic))

    async def _rebuild_page(self, topic: Topic, *, force: bool = False) -> str:
        """Rebuild a page unless edited or unchanged; return it."""
        try:
            if (made := await self._pages.rebuild(topic, force=force)) is not None:
                await self._report_page(made, self._caller())
            return await self._pages.get_text(topic if made is None else made.topic)
        except StorageError as error:
            raise ConsolidationError(f"{error.message} The page of {topic.name} is as it was.") from error

    async def _rebuild_due_pages(self, names: Iterable[str]) -> None:
        """Rebuild pages with enough new items; one that fails stays."""
        for name in names:
            topic = await self._pages.get_by_name(name)
            members = [] if topic is None else await self._pages.list_members(topic)
            if topic is not None and self._pages.has_enough(topic, [member.id for member in members]):
                with suppress(ConsolidationError):
                    await self._rebuild_page(topic)

    async def _report_page(self, made: BuiltPage, caller: Caller) -> None:
        """Send the event of a page that the session may know."""
        if (counts := await count_visible(self._service, made, caller)) is not None:
            payload = CategoryConsolidatedPayload(made.topic.id, made.topic.name, *counts, made.milliseconds)
            await self._send(payload, caller)

    async def _send(self, payload: Any, caller: Caller | None = None) -> None:
        """Send an event to the event store and the session."""
        await send_event(payload, self._service, self.event_store, self._knowledge.clock(), caller or self._caller())

    def get_stats(self) -> MemoryStats:
        """Return the counts of the last change or check."""
        return self._stats

    @property
    def is_healthy(self) -> bool:
        """True if everything worked at the last check."""
        return self._is_healthy

    async def check(self, *, files: bool = True) -> MemoryStats:
        """Update counts and, with `files`, health and size.

        After a change it is counted alone.
        """
        size = self._stats.storage_bytes
        if files:
            size = await asyncio.to_thread(get_disk_size, self._knowledge.folder.path)
        try:
            self._stats = await count_records(self._service, self._knowledge, self._seen, size)
            if files:
                self._is_healthy = await check_storages(self._service, self._knowledge)
        except StorageError:  # after a change, what was to be done is done
            if files:
                self._stats, self._is_healthy = MemoryStats(), False
        return self._stats

    async def create_category(self, name: str, description: str) -> MemoryCategory:
        """Declare a topic."""
        created = await self.category_layer.create(name, description)
        await self._send(CategoryCreatedPayload(created.category_id, name, created.description))
        await self.check(files=False)
        return created

    async def list_categories(self) -> list[MemoryCategory]:
        """Return all topics, by name."""
        return await self.category_layer.list_all()

    async def delete_resource(self, resource_id: str, cascade: bool = True) -> bool:  # noqa: FBT001, FBT002
        """Delete a resource; return False if it does not exist.

        Args:
            resource_id: ID of the resource.
            cascade: True to forget unpinned items of this source alone and rebuild their pages. Otherwise items stay
                and are linked as `source_deleted`.
        """
        record = await self.resource_layer.record(resource_id)
        if record is None or record.id != resource_id:  # the ID of a turn names its conversation, too
            return False
        if cascade:
            gone, _ = await withdraw(self._knowledge, self._service, resource_id, self._caller())
            items = list(map(view_item, gone))
            for item in items:
                await self._send(ItemDeletedPayload(item.item_id))
        else:
            items = await self.item_layer.get_by_resource(resource_id)
            await self.item_layer.detach(resource_id)
            await self.resource_layer.delete(resource_id)
        await self._send(ResourceDeletedPayload(resource_id, cascade, len(items)))
        if not cascade:
            for name in sorted({item.category for item in items if item.category}):
                if (topic := await self._pages.get_by_name(name)) is not None:  # else never declared
                    await self._rebuild_page(topic, force=True)
        await self.check(files=False)
        return True

    async def outdated(self, older_than: timedelta | None = None) -> list[SigilResource]:
        """Return old resources without items.

        For a person to look at: nothing is deleted but by `delete_resource`.
        """
        limit = timedelta(days=self.config.retention_days) if older_than is None else older_than
        before = self._knowledge.clock() - limit
        old_ids = [record.id for record in await self.resource_layer.records() if record.timestamp < before]
        unused = [await self.resource_layer.get(old) for old in old_ids if not await self.item_layer.list_drawn(old)]
        return [resource for resource in unused if resource is not None]

    async def close(self) -> None:
        """Close the files; a given service stays open."""
        if self._is_told:
            self._service.monitor.remove_watcher(TOPIC.name)
        await self._knowledge.close()
        if self._owns_service:
            await self._service.close()


def make_settings(
    storage_dir: Path | str | None,
    config: MemoryConfig,
    settings: ServiceSettings | None,
    embedder: Embedder | None = None,
) -> ServiceSettings:
    """Return the settings of the memory below."""
    roots = {str(root) for root in (storage_dir, config.storage_dir) if root is not None}
    if len(roots) > 1:
        raise ConfigurationError(f"storage_dir and config.storage_dir name two folders: {' and '.join(sorted(roots))}.")
    chosen = with_model(settings, config.embedding_model) or ServiceSettings()
    if roots:
        chosen = chosen.model_copy(update={"storage_root": roots.pop()})
    dimension = None if embedder is None else embedder.identity.dimension
    if None not in {dimension, config.embedding_dimension} and dimension != config.embedding_dimension:
        raise ConfigurationError(
            f"embedding_dimension is {config.embedding_dimension}, and the embedder's vectors have {dimension}."
        )
    return chosen
