"""`MemoryIngestor`: takes in the turns and events of sessions, group by group, and has them worked on behind that."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

from agent_memory.errors import AgentMemoryError, IngestionError
from agent_memory.knowledge.intake.drafts import ReceivedTurn as Said
from agent_memory.knowledge.intake.ingest import Ingest
from agent_memory.knowledge.llm.language_model import Asking, ModelBudget
from agent_memory.knowledge.pipeline import metrics
from agent_memory.knowledge.pipeline.conversation_models import Episode, checked_group, episode_of, group_id_of
from agent_memory.knowledge.pipeline.ingestion_config import MemoryIngestionConfig
from agent_memory.knowledge.pipeline.wake_ups import Background
from agent_memory.knowledge.records import Knowledge
from agent_memory.logs import get_logger, span
from agent_memory.memory import NOBODY, open_service
from agent_memory.models import get_duplicate_key, to_text
from agent_memory.settings import ServiceSettings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agent_memory.embeddings import Embedder
    from agent_memory.knowledge.llm.language_model import LanguageModel
    from agent_memory.knowledge.pipeline.conversation_models import Session, Turn
    from agent_memory.knowledge.pipeline.wake_ups import Queue
    from agent_memory.logs import ActiveSpan
    from agent_memory.memory import Caller, MemoryService
    from agent_memory.models import Episode as EpisodeRecord

log = get_logger(__name__)


class MemoryIngestor:
    """Takes in what is said to one agent, and what happens, for any number of groups.

    What it has answered is on the disk. Entities, relations and summaries follow behind, and so do vectors: no answer
    waits for them, and none is lost when the process ends, since the journal is the backlog. Deletes nothing.

    Args:
        agent_id: Whose memory.
        settings: Where it is, and the embedder.
        config: What is made of what is taken in.
        knowledge, service: Open ones to work on, instead of its own, which `close` would close.
        embedder: One of the program's own.
        queue: Tells other processes that there is work, and is told by them; that of `config` when omitted.
        model: Answers prompts; without one entities and summaries are made by rules.
        budget: What may be asked of the model; one of its own when omitted.
        caller: The session that asks, for events.

    Attributes:
        config: As given.
        model_budget: What was asked of the model, and how often it failed.
        knowledge: The records.
        background: What works behind the answers.

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
        self.background = Background(self.knowledge, self._service, self.config, caller, queue, asking)

    async def ingest_turn(self, turn: Turn, session: Session) -> Episode:
        """Take in what a user said and what the agent answered: two episodes of one conversation, in one change.

        Args:
            turn: The two; one of them may be empty.
            session: Its `tenant_id` and `id` make the group.

        Returns:
            The episode of what the user said, or of the answer where they said nothing.

        Raises:
            IngestionError: Nothing was stored: it is empty, too long, of no group, or the disk refused it. Where only
                one of the two can be kept, that is kept, and the log says why the other one is not.
        """
        began = time.perf_counter()
        group_id = ""
        with span("memory.ingest_turn", embedding_enabled=self.config.embedding_enabled) as told:
            try:
                group_id = group_id_of(session)
                self._check_enabled()
                stored = await self._take(turn, str(session.id), group_id)
            except AgentMemoryError as error:
                raise self._failed(error, group_id, told) from error
            more = {"turn_id": turn.id} if turn.id else {}
            more |= {"response_id": stored[1].id} if len(stored) > 1 else {}
            return await self._done(stored, episode_of(stored[0], self._model, **more), began, told)

    async def ingest_event(
        self, event_type: str, content: str, group_id: str, metadata: Mapping[str, Any] | None = None
    ) -> Episode:
        """Take in something that happened, such as a tool's run or an error.

        Args:
            event_type: What kind of thing, such as `tool_execution`.
            content: What happened.
            group_id: `tenant:session`.
            metadata: What else is known of it, as plain JSON.

        Raises:
            IngestionError: Nothing was stored.
        """
        began = time.perf_counter()
        checked = ""
        with span("memory.ingest_event", embedding_enabled=self.config.embedding_enabled) as told:
            try:
                checked = checked_group(group_id)
                self._check_enabled()
                said = Said(content, role="system", event_type=event_type, metadata=metadata or {})
                ingested = await self._ingest.turn(said, group=checked, caller=self._caller)
            except AgentMemoryError as error:
                raise self._failed(error, checked, told) from error
            return await self._done([ingested.record], episode_of(ingested.record, self._model), began, told)

    async def close(self) -> None:
        """Finish the portion that is under way, and close what it opened. May be called more than once."""
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

    async def _take(self, turn: Turn, session_id: str, group_id: str) -> list[EpisodeRecord]:
        said = [
            Said(text, role, said_at=turn.timestamp)
            for role, text in (("user", turn.user_message), ("assistant", turn.agent_response))
            if text.strip()
        ]
        if not said:
            raise IngestionError(
                "Nothing was stored: neither user nor agent said anything.",
                code="nothing_said",
                recovery="Give a text of the user, of the agent, or of both.",
            )
        said[0] = replace(said[0], metadata=turn.metadata)
        begun = await self._ingest.conversation(session_id, group=group_id, caller=self._caller)
        conversation = begun.record.id
        async with self._placing:
            first = await self._place(conversation, turn, len(said))
            kept, refused = await self._ingest.turns(
                said, conversation=conversation, first=first, group=group_id, is_live=True, caller=self._caller
            )
            self._places[conversation][_mark_of(turn)] = first
        if not kept:
            raise IngestionError(
                "Nothing was stored of a text that is too long, nothing but a secret, or not Unicode text.",
                code=refused[0][1],
                recovery="Take a long text in as several turns, or as a file; the others are never kept.",
            )
        for _, code in refused:
            log.warning("ingestion_failed", group_id=group_id, error=code, cause="ValidationError")
        return [each.record for each in kept]

    async def _place(self, conversation: str, turn: Turn, count: int) -> int:
        """Return the place of a turn in its conversation: behind the others, or its own where it is there already."""
        if conversation not in self._places:
            known = await self.knowledge.episodes.linked_to(conversation)
            self._places[conversation] = {
                (to_text(each.observed_at), each.role, get_duplicate_key(each.content)): each.order
                for each in known
                if each.observed_at is not None
            }
            self._next[conversation] = 1 + max((each.order for each in known), default=-1)
            metrics.ACTIVE_SESSIONS.set(len(self._next))
        again = self._places[conversation].get(_mark_of(turn))
        if again is not None:
            return again
        first = self._next[conversation]
        self._next[conversation] = first + count
        return first

    def _failed(self, error: AgentMemoryError, group_id: str, told: ActiveSpan) -> IngestionError:
        told.set_attribute("group_id", group_id)
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

    async def _done(self, stored: Sequence[EpisodeRecord], episode: Episode, began: float, told: ActiveSpan) -> Episode:
        """Tell what was taken in, and have it worked on."""
        spent = (time.perf_counter() - began) * 1000
        told.set_attributes({"group_id": episode.group_id, "episode_id": episode.id, "latency_ms": round(spent, 3)})
        metrics.INGESTION_LATENCY.observe(
            spent, operation="event_create" if episode.content_type == "event" else "episode_create"
        )
        for each in stored:
            view = episode_of(each)
            metrics.EPISODES_CREATED.add(content_type=view.content_type, source=view.source)
            log.info(
                "episode_created",
                episode_id=each.id,
                group_id=each.group,
                content_type=each.content_type,
                embedding_model=self._model,
                latency_ms=round(spent, 3),
            )
        if spent > self.config.max_ingestion_latency_ms:
            log.warning("ingestion_slow", latency_ms=round(spent, 3), limit_ms=self.config.max_ingestion_latency_ms)
        await self.background.tell()
        return episode


def _mark_of(turn: Turn) -> tuple[str, str, str]:
    """Return by what a turn is known again: its time, and who said what first."""
    role, text = ("user", turn.user_message) if turn.user_message.strip() else ("assistant", turn.agent_response)
    return to_text(turn.timestamp), role, get_duplicate_key(text)
