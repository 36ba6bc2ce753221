"""Names of the specification "focal": ingestion, entities and summaries."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol, Self

from agent_memory.errors import AgentMemoryError, IngestionError, SummarizationError, ValidationError
from agent_memory.knowledge import summaries as making
from agent_memory.knowledge.entities.entity_drafts import EntityExtractionResult, EntityIndexCache, extract_entities
from agent_memory.knowledge.entities.entity_stage import measure_extraction
from agent_memory.knowledge.entities.matching.profiles import describe_entity
from agent_memory.knowledge.entities.merges import merge
from agent_memory.knowledge.entities.relations import RELATIONS
from agent_memory.knowledge.intake.drafts import ReceivedTurn as Said
from agent_memory.knowledge.intake.ingest import Ingest
from agent_memory.knowledge.intake.withdrawal import get_forgotten_sources
from agent_memory.knowledge.llm.language_model import Asking, LanguageModel, ModelBudget
from agent_memory.knowledge.pipeline.ingestion_config import (
    ACTIVE_SESSIONS,
    DEDUPLICATION_MATCHES,
    EPISODES_CREATED,
    EXTRACTION_LATENCY,
    INGESTION_LATENCY,
    EntityDeduplicationConfig,
    EntityExtractionConfig,
    MemoryIngestionConfig,
    SummarizationConfig,
)
from agent_memory.knowledge.pipeline.wake_ups import IngestionBackground, Queue
from agent_memory.knowledge.records import Knowledge
from agent_memory.knowledge.tool_settings import check_group
from agent_memory.logs import ActiveSpan, get_logger, span
from agent_memory.memory import NOBODY, open_service
from agent_memory.models import get_duplicate_key, to_text, utc_now
from agent_memory.settings import ServiceSettings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from agent_memory.embeddings import Embedder
    from agent_memory.knowledge.pipeline.ingestion_config import ContentType, EpisodeSource, SummaryType
    from agent_memory.memory import Caller, MemoryService
    from agent_memory.models import Entity, Summary, Trust
    from agent_memory.models import Episode as EpisodeRecord

_SOURCES: Final[dict[str, EpisodeSource]] = {"user": "user", "assistant": "agent"}
log = get_logger(__name__)
MOST_COVERED: Final = 90
"""Records that one summary covers at most."""


class TenantSession(Protocol):
    """Owner of a turn, such as a `Session`."""

    @property
    def tenant_id(self) -> str:
        """Tenant of the session."""

    @property
    def id(self) -> str:
        """ID of the session."""


@dataclass(frozen=True, slots=True)
class Session:
    """Tenant and ID of a session."""

    tenant_id: str
    id: str


@dataclass(frozen=True, slots=True)
class Turn:
    """Message of a user and answer of an agent.

    One of the two may be empty. `metadata` is that of the first text that is not empty; `relations` in it declares
    relations of names in that text.
    """

    user_message: str = ""
    agent_response: str = ""
    id: str = ""
    timestamp: datetime = field(default_factory=utc_now)
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FocalEpisode:
    """A turn, an event or a summary.

    Attributes:
        id: `epi-…`, or `sum-…` of a summary.
        group_id: `tenant:session`; empty for none.
        content: What was said; of a text above 8,192 characters its beginning.
        source: user, agent or system.
        content_type: message, event, summary or meta_summary.
        source_metadata: Of an event `event_type` and what was given with it; of a turn `turn_id`, `response_id`, the
            episode of the answer, and `refused`, the code of the error by role for a text that was not stored.
        metadata: Of a summary `summary_type`, how many it covers, and their ids.
        embedding: None, since vectors are made in the background.
        embedding_model: What makes them; empty where nothing does.
        created_at, occurred_at: When it was stored, and when it was said.
        trust: Whose words they are, as of any record.
    """

    id: str
    group_id: str
    content: str
    source: EpisodeSource = "user"
    content_type: ContentType = "message"
    source_metadata: dict[str, Any] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)
    embedding: list[float] | None = None
    embedding_model: str = ""
    created_at: datetime = field(default_factory=utc_now)
    occurred_at: datetime | None = None
    trust: Trust = "medium"


Episode = FocalEpisode


def make_group_id(session: TenantSession) -> str:
    """Return `tenant:session`.

    Raises:
        ValidationError: The two make no such name; the message quotes neither.
    """
    tenant, session_id = (getattr(session, name, None) for name in ("tenant_id", "id"))
    # without this, all that forget to say their tenant would share one called None
    return check_group("" if tenant is None or session_id is None else f"{tenant}:{session_id}")


def view_episode(record: EpisodeRecord, embedding_model: str = "", **source_metadata: Any) -> FocalEpisode:
    """Return the view of an episode."""
    event = {"event_type": record.event_type} if record.event_type else {}
    return FocalEpisode(
        id=record.id,
        group_id=record.group,
        content=record.content,
        source="system" if record.event_type else _SOURCES.get(record.role, "system"),
        content_type="event" if record.content_type == "event" else "message",
        source_metadata={**event, **record.metadata, **source_metadata},
        embedding_model=embedding_model,
        created_at=record.timestamp,
        occurred_at=record.observed_at,
        trust=record.trust,
    )


def view_summary(record: Summary) -> FocalEpisode:
    """Return the view of a summary."""
    is_meta = record.level == "meta"
    what = {"summaries_covered": len(record.covers), "summary_ids": record.covers}
    if not is_meta:
        what = {"episodes_covered": len(record.covers), "episode_ids": record.covers}
    return FocalEpisode(
        id=record.id,
        group_id=record.group,
        content=record.content,
        source="system",
        content_type="meta_summary" if is_meta else "summary",
        metadata={**record.metadata, "summary_type": record.level, **what},
        created_at=record.timestamp,
        occurred_at=record.observed_at,
        trust=record.trust,
    )


class MemoryIngestor:
    """Ingests turns and events of any number of groups.

    A turn is on disk when a call returns. Entities, relations, summaries and vectors follow in the background. The
    journal is the backlog, so none is lost when the process ends. Deletes nothing.

    Args:
        agent_id: Name of the agent.
        settings: Where it is, and the embedder.
        config: Settings of ingestion.
        knowledge: Open records to use instead of its own, which `close` would close.
        service: Open service of the agent, likewise.
        embedder: One of the program's own.
        queue: Wake-ups between processes; those of `config` when omitted.
        model: Answers prompts; without one entities and summaries are made by rules.
        budget: What may be asked of the model; one of its own when omitted.
        caller: The session that asks, for events.

    Attributes:
        config: Settings of ingestion.
        model_budget: What was asked of the model, and how often it failed.
        knowledge: Records of the agent.
        background: Background work of this object.

    Raises:
        ConfigurationError: What `config` or `settings` ask for is not there.
    """

    def __init__(  # noqa: PLR0913 - each by its name
        self,
        agent_id: str = "default",
        settings: ServiceSettings | None = None,
        config: MemoryIngestionConfig | None = None,
        *,
        knowledge: Knowledge | None = None,
        service: MemoryService | None = None,
        embedder: Embedder | None = None,
        queue: Queue | None = None,
        model: LanguageModel | None = None,
        budget: ModelBudget | None = None,
        caller: Caller = NOBODY,
    ) -> None:
        self.config = config or MemoryIngestionConfig()
        settings = settings or (service.settings if service is not None else ServiceSettings())
        if not self.config.embedding_enabled:
            settings = settings.model_copy(update={"embedder": "none"})
        self._owns_service, self._owns_knowledge = service is None, knowledge is None
        self._service = service or open_service(agent_id, settings, embedder)
        self.knowledge = knowledge or Knowledge(self._service.agent_id, settings, embedder=embedder)
        self._ingest, self._caller = Ingest(self.knowledge, self._service.report), caller
        self._model = "" if settings.embedder == "none" else settings.embedder
        self._next: dict[str, int] = {}
        self._places: dict[str, dict[tuple[str, str, str], int]] = {}
        self._placing = asyncio.Lock()
        self.model_budget = budget or ModelBudget()
        asking = None if model is None else Asking(model, budget=self.model_budget)
        self.background = IngestionBackground(self.knowledge, self._service, self.config, caller, queue, asking)

    async def ingest_turn(self, turn: Turn, session: TenantSession) -> FocalEpisode:
        """Ingest a message and its answer as two episodes.

        Args:
            turn: The two; one of them may be empty.
            session: Its `tenant_id` and `id` make the group.

        Returns:
            The episode of what the user said, or of the answer where they said nothing.

        Raises:
            IngestionError: Nothing was stored: it is empty, too long, of no group, or the disk refused it. If only one
                of the two can be stored, `source_metadata` has the reason for the other one.
        """
        began = time.perf_counter()
        group_id = ""
        with span("memory.ingest_turn", embedding_enabled=self.config.embedding_enabled) as active_span:
            try:
                group_id = make_group_id(session)
                self._check_enabled()
                stored, refused = await self._take(turn, str(session.id), group_id)
            except AgentMemoryError as error:
                raise self._make_failure(error, group_id, active_span) from error
            more: dict[str, Any] = {"turn_id": turn.id} if turn.id else {}
            more |= {"response_id": stored[1].id} if len(stored) > 1 else {}
            more |= {"refused": refused} if refused else {}
            return await self._done(stored, view_episode(stored[0], self._model, **more), began, active_span)

    async def ingest_event(
        self, event_type: str, content: str, group_id: str, metadata: Mapping[str, Any] | None = None
    ) -> FocalEpisode:
        """Ingest an event such as a tool execution.

        Args:
            event_type: What kind of thing, such as `tool_execution`.
            content: Text of the event.
            group_id: Group as `tenant:session`.
            metadata: What else is known of it, as plain JSON.

        Raises:
            IngestionError: Nothing was stored.
        """
        began = time.perf_counter()
        checked = ""
        with span("memory.ingest_event", embedding_enabled=self.config.embedding_enabled) as active_span:
            try:
                checked = check_group(group_id)
                self._check_enabled()
                event = Said(content, role="system", event_type=event_type, metadata=metadata or {})
                ingested = await self._ingest.turn(event, group=checked, caller=self._caller)
            except AgentMemoryError as error:
                raise self._make_failure(error, checked, active_span) from error
            return await self._done([ingested.record], view_episode(ingested.record, self._model), began, active_span)

    async def close(self) -> None:
        """Finish the current batch and close own resources."""
        await self.background.close()
        if self._owns_knowledge:
            await self.knowledge.close()
        if self._owns_service:
            await self._service.close()

    async def __aenter__(self) -> Self:
        """Return itself."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close."""
        await self.close()

    def _check_enabled(self) -> None:
        if not self.config.enabled:
            raise IngestionError(
                "Nothing was stored: ingestion is off by configuration.",
                code="ingestion_off",
                recovery="Set `enabled` in MemoryIngestionConfig.",
            )

    async def _take(
        self, turn: Turn, session_id: str, group_id: str
    ) -> tuple[list[EpisodeRecord], dict[EpisodeSource, str]]:
        """Store the texts of a turn; return them and refusals by role."""
        received = [
            Said(text, role, said_at=turn.timestamp)
            for role, text in (("user", turn.user_message), ("assistant", turn.agent_response))
            if text.strip()
        ]
        if not received:
            raise IngestionError(
                "Nothing was stored: neither user nor agent said anything.",
                code="nothing_said",
                recovery="Give a text of the user, of the agent, or of both.",
            )
        received[0] = replace(received[0], metadata=turn.metadata)
        begun = await self._ingest.conversation(session_id, group=group_id, caller=self._caller)
        conversation = begun.record.id
        async with self._placing:
            first = await self._place(conversation, turn, len(received))
            ingested, refused = await self._ingest.turns(
                received, conversation=conversation, first=first, group=group_id, is_live=True, caller=self._caller
            )
            self._places[conversation][_get_key(turn)] = first
        if not ingested:
            raise IngestionError(
                "Nothing was stored of a text that is too long, nothing but a secret, or not Unicode text.",
                code=refused[0][1],
                recovery="Take a long text in as several turns, or as a file; the others are never kept.",
            )
        for _, code in refused:
            log.warning("ingestion_failed", group_id=group_id, error=code, cause="ValidationError")
        codes = {_SOURCES[received[place - first].role]: code for place, code in refused}
        return [outcome.record for outcome in ingested], codes

    async def _place(self, conversation: str, turn: Turn, count: int) -> int:
        """Return the place of a turn in its conversation."""
        if conversation not in self._places:
            turns = await self.knowledge.episodes.linked_to(conversation)
            self._places[conversation] = {
                (to_text(stored.observed_at), stored.role, get_duplicate_key(stored.content)): stored.order
                for stored in turns
                if stored.observed_at is not None
            }
            self._next[conversation] = 1 + max((stored.order for stored in turns), default=-1)
            ACTIVE_SESSIONS.set(len(self._next))
        place = self._places[conversation].get(_get_key(turn))
        if place is not None:
            return place
        first = self._next[conversation]
        self._next[conversation] = first + count
        return first

    def _make_failure(self, error: AgentMemoryError, group_id: str, active_span: ActiveSpan) -> IngestionError:
        active_span.set_attribute("group_id", group_id)
        if isinstance(error, IngestionError):
            failed = error
            failed.group_id = group_id or None
        else:
            failed = IngestionError(
                error.message, group_id=group_id or None, cause=error, code=error.code, recovery=error.recovery
            )
        log.warning(
            "ingestion_failed",
            request_id=failed.request_id,
            group_id=group_id,
            error=error.code,
            cause=type(error).__name__,
        )
        return failed

    async def _done(
        self, stored: Sequence[EpisodeRecord], episode: FocalEpisode, began: float, active_span: ActiveSpan
    ) -> FocalEpisode:
        """Report ingested episodes and wake the background work."""
        spent = (time.perf_counter() - began) * 1000
        active_span.set_attributes(
            {"group_id": episode.group_id, "episode_id": episode.id, "latency_ms": round(spent, 3)}
        )
        INGESTION_LATENCY.observe(
            spent, operation="event_create" if episode.content_type == "event" else "episode_create"
        )
        for record in stored:
            view = view_episode(record)
            EPISODES_CREATED.add(content_type=view.content_type, source=view.source)
            log.info(
                "episode_created",
                episode_id=record.id,
                group_id=record.group,
                content_type=record.content_type,
                embedding_model=self._model,
                latency_ms=round(spent, 3),
            )
        if spent > self.config.max_ingestion_latency_ms:
            log.warning("ingestion_slow", latency_ms=round(spent, 3), limit_ms=self.config.max_ingestion_latency_ms)
        await self.background.tell()
        return episode


def _get_key(turn: Turn) -> tuple[str, str, str]:
    """Return time, role and text key of a turn."""
    role, text = ("user", turn.user_message) if turn.user_message.strip() else ("assistant", turn.agent_response)
    return to_text(turn.timestamp), role, get_duplicate_key(text)


class EntityExtractor:
    """Extractor of entities and declared relations, without a time limit.

    Args:
        config: Settings of the extraction.
        asking: Has no effect; earlier versions asked a language model.
    """

    def __init__(self, config: EntityExtractionConfig | None = None, asking: object = None) -> None:
        del asking
        self.config = config or EntityExtractionConfig()

    async def extract(self, episode: FocalEpisode) -> EntityExtractionResult:
        """Extract the entities of an episode, none if disabled.

        The text of an episode above 8,192 characters is its beginning.
        """
        if not self.config.enabled:
            return EntityExtractionResult()
        relations = {**episode.source_metadata, **episode.metadata}.get(RELATIONS)
        least = self.config.min_confidence
        draw = partial(asyncio.to_thread, extract_entities, episode.content, least=least, relations=relations)
        return await measure_extraction(episode.id, draw)

    async def extract_batch(self, episodes: Sequence[FocalEpisode]) -> list[EntityExtractionResult]:
        """Extract the entities of episodes, in their order."""
        at_once = asyncio.Semaphore(self.config.batch_size)

        async def extract(episode: FocalEpisode) -> EntityExtractionResult:
            async with at_once:
                return await self.extract(episode)

        return list(await asyncio.gather(*map(extract, episodes)))


class EntityDeduplicator:
    """Finds the known entity that equals a new one.

    There are four stages; the first that finds an entity decides.

    Args:
        knowledge: Records of the agent.
        config: Enabled stages of the comparison.
    """

    def __init__(self, knowledge: Knowledge, config: EntityDeduplicationConfig | None = None) -> None:
        self.config = config or EntityDeduplicationConfig()
        self._known = EntityIndexCache(knowledge, self.config)

    async def find_duplicate(self, entity: Entity, group_id: str) -> Entity | None:
        """Return the known entity that is certainly the same, or None.

        It is not certain if only one of the two is from a trusted source.

        Args:
            entity: New entity to compare.
            group_id: Group whose entities are compared.

        Raises:
            ValidationError: The group has no such name.
            StorageError: The entities cannot be read.
        """
        began = time.perf_counter()
        with span("memory.deduplicate_entity", group_id=group_id):
            index = (await self._known.get([check_group(group_id)]))[group_id]
            match = await asyncio.to_thread(index.match, describe_entity(entity), entity.trust)
        EXTRACTION_LATENCY.observe((time.perf_counter() - began) * 1000, operation="deduplicate")
        if match is None or match.decision != "merge" or match.id == entity.id:
            return None
        DEDUPLICATION_MATCHES.add(stage=match.stage)
        return index.get(match.id)

    async def merge_entities(self, existing: Entity, new: Entity) -> Entity:
        """Return an entity merged with a new one, without storing it.

        ID and `valid_from` stay. A new attribute replaces the old one, unless its trust is lower.

        Raises:
            ValidationError: They are one record, belong to two groups, or have too many names or attributes together.
        """
        return type(existing)(**merge(existing, new).model_dump())


class ConversationSummarizer:
    """Summarizes conversations by quotes.

    Args:
        knowledge: Records of the agent.
        config: Sizes and limits.
        asking: Has no effect; earlier versions asked a language model.
    """

    def __init__(self, knowledge: Knowledge, config: SummarizationConfig | None = None, asking: object = None) -> None:
        del asking
        self._knowledge, self.config = knowledge, config or SummarizationConfig()

    async def summarize_window(self, episodes: Sequence[FocalEpisode | EpisodeRecord], group_id: str) -> FocalEpisode:
        """Return the summary of consecutive turns, without storing it.

        Args:
            episodes: Stored ones of the group, usually 10 to 50.
            group_id: Group as `tenant:session`.

        Raises:
            SummarizationError: There are none, one is of another group or is not there, or they state nothing.
            StorageError: A text cannot be read.
        """
        records = await self._records("window", [turn.id for turn in episodes], group_id)
        return view_summary((await making.summarize_window(self._knowledge, records, self.config)).value)

    async def create_meta_summary(self, summaries: Sequence[FocalEpisode], group_id: str) -> FocalEpisode:
        """Return the summary of window summaries, without storing it.

        Args:
            summaries: Stored ones, or results of `summarize_window`, usually 5 to 10.
            group_id: Group as `tenant:session`.

        Raises:
            SummarizationError: There are none, or one is of another group or not of stored turns.
        """
        records = await self._summaries(summaries, group_id)
        return view_summary((await making.summarize_summaries(self._knowledge, records, self.config)).value)

    async def check_and_summarize_if_needed(self, group_id: str) -> FocalEpisode | None:
        """Store due summaries of a group; return the last, or None.

        Raises:
            SummarizationError: The group has no such name.
            StorageError: What was kept before is on the disk.
        """
        group = _group(group_id, None)
        made: list[Summary] = []
        never = await get_forgotten_sources(self._knowledge)
        for resource in await self._knowledge.resources.valid():
            if resource.group == group and resource.resource_type == "conversation":
                conversation = await making.UncoveredTurns.read(self._knowledge, resource.id, never)
                made += await conversation.summarise(self._knowledge, self.config)
        return view_summary(made[-1]) if made else None

    async def _records(self, what: SummaryType, ids: Sequence[str], group_id: str) -> list[EpisodeRecord]:
        group = _group(group_id, what)
        _check_count(ids, what, group_id)
        stored = await self._knowledge.episodes.valid_among(ids)
        if any(record_id not in stored or stored[record_id].group != group for record_id in ids):
            raise _make_refusal("not all of these are stored episodes of this group", what, group_id)
        return [stored[record_id] for record_id in ids]

    async def _summaries(self, summaries: Sequence[FocalEpisode], group_id: str) -> list[Summary]:
        group = _group(group_id, "meta")
        ids = [summary.id for summary in summaries]
        _check_count(ids, "meta", group_id)
        windows = dict(await self._knowledge.summaries.valid_among(ids))
        for summary in summaries:
            if summary.id not in windows and (turn_ids := summary.metadata.get("episode_ids")):
                records = await self._records("window", turn_ids, group_id)
                windows[summary.id] = (await making.summarize_window(self._knowledge, records, self.config)).value
        if any(
            record_id not in windows or (windows[record_id].id, windows[record_id].group) != (record_id, group)
            for record_id in ids
        ):
            raise _make_refusal("not all of these are kept summaries of this group or of its turns", "meta", group_id)
        return [windows[record_id] for record_id in ids]


def _group(group_id: str, what: SummaryType | None) -> str:
    try:
        return check_group(group_id)
    except ValidationError as error:
        raise SummarizationError(error.message, summary_type=what, cause=error, code=error.code) from error


def _check_count(ids: Sequence[str], what: SummaryType, group_id: str) -> None:
    if not 0 < len(ids) <= MOST_COVERED:
        raise _make_refusal(f"a summary covers 1 to {MOST_COVERED} of them, got {len(ids)}", what, group_id)


def _make_refusal(why: str, what: SummaryType, group_id: str) -> SummarizationError:
    return SummarizationError(f"No summary was made: {why}.", group_id=group_id, summary_type=what, code="not_covered")
