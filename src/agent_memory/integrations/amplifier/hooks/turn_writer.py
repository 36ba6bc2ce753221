"""Storing of turns for one agent, and the background work on them."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from agent_memory.capture import is_wished
from agent_memory.errors import AgentMemoryError, IdentityError
from agent_memory.files.wording import counted
from agent_memory.ingestion import MemoryIngestionConfig
from agent_memory.integrations.amplifier.services import ServiceShare
from agent_memory.knowledge.digest.model_digest import ModelEstimate, ModelPermission
from agent_memory.knowledge.intake.ingest import Ingest
from agent_memory.knowledge.intake.turns import repair_text
from agent_memory.knowledge.llm.language_model import Asking, ModelBudget, get_model_proposal
from agent_memory.knowledge.pipeline.background_work import runner_of
from agent_memory.knowledge.records import Knowledge
from agent_memory.redaction import SecretRedactor
from agent_memory.tools.consent import get_mode, hold_for_yes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from agent_memory.integrations.amplifier import MemorySession
    from agent_memory.integrations.amplifier.hooks.session_model import SessionModel
    from agent_memory.knowledge.intake.drafts import ReceivedTurn
    from agent_memory.knowledge.pipeline.stages import RunOutcome
    from agent_memory.knowledge.tool_settings import IngestionSettings
    from agent_memory.memory import MemoryService
    from agent_memory.memory.inbox import HeldCandidates

_ACTIVATION: Final = "activation"
_FORGETTING: Final = "forgetting"
_MAX_REQUEST_CHARS: Final = 200
_MAX_BATCHES: Final = 16
"""Batches of background work in one run: a long backlog is processed turn by turn."""


@dataclass(frozen=True, slots=True)
class TurnBatch:
    """Successive turns of one conversation.

    Attributes:
        agent_id: Agent that they belong to.
        group: Group of the session.
        turns: The turns themselves.
        forgets: True if something was forgotten in them.
    """

    agent_id: str
    group: str
    turns: tuple[ReceivedTurn, ...]
    forgets: bool = False


class TurnWriter:
    """Writer of what one session says to one agent.

    Nothing is opened before the first call. The writer has its own share of the agent's service: turns go to the agent
    that they were said to, also after the session has changed to another.

    Args:
        session: Memory of the session.
        agent_id: Name of the agent.
        settings: Settings of the module.
        model: Provider of the session, if it may digest passages.
        budget: Limits of the model in this session.
        agreed: IDs of agents for which the user agreed to the estimate.
        is_ending: Returns True if the session ends before a model could answer.
    """

    def __init__(
        self,
        session: MemorySession,
        agent_id: str,
        settings: IngestionSettings,
        model: SessionModel | None,
        budget: ModelBudget,
        agreed: set[str],
        is_ending: Callable[[], bool],
    ) -> None:
        self._session, self._agent_id, self._settings = session, agent_id, settings
        self._model, self._budget, self._agreed = model, budget, agreed
        self._is_ending = is_ending
        self._has_shown_estimate = False
        self._redactor, self._share = SecretRedactor(), ServiceShare()
        self._knowledge: Knowledge | None = None
        self._next: dict[str, int] = {}

    async def write(self, batch: TurnBatch) -> list[str]:
        """Store turns; they are on the disk afterwards.

        Returns:
            Codes of the reasons why some of them were not stored.

        Raises:
            StorageError: Nothing was stored; a second try stores no turn twice.
            AgentMemoryError: The turns cannot be stored.
        """
        service, knowledge = await self._open()
        ingest, caller = Ingest(knowledge, service.report, self._redactor), self._session.caller.as_person()
        turns = await asyncio.to_thread(_prepare_turns, batch)
        title = _build_title(turns[0].said_at)
        key, group = self._session.root_id, batch.group
        begun = await ingest.conversation(key, title=title, said_at=turns[0].said_at, group=group, caller=caller)
        conversation = begun.record.id
        first = self._next.get(conversation)
        if first is None:
            earlier = await knowledge.episodes.linked_to(conversation)
            first = max((episode.order + 1 for episode in earlier), default=0)
        _, refused = await ingest.turns(
            turns, conversation=conversation, first=first, group=group, is_live=True, caller=caller
        )
        self._next[conversation] = first + len(turns)
        return [code for _, code in refused]

    async def work(self, progress: Callable[[RunOutcome], None]) -> RunOutcome:
        """Do background work that is due, a limited number of batches.

        Args:
            progress: Called after each batch; its exception ends the work.

        Raises:
            AgentMemoryError: The work failed; the batches before are stored.
        """
        service, knowledge = await self._open()
        caller = self._session.caller.as_person().of_no_group()
        steps = MemoryIngestionConfig(
            entity_extraction_enabled=self._settings.entities,
            summarization_enabled=self._settings.summaries,
        )
        asking, permission = await self._find_model(service)
        ran = await runner_of(knowledge, service, caller, steps, asking, permission).run(_MAX_BATCHES, progress)
        if any(ran.done.values()) or ran.failed:
            await service.report(
                "memory:background_worked", caller, done=dict(ran.done), failed=ran.failed, is_over=ran.is_over
            )
        return ran

    async def close(self) -> None:
        """Close the agent's records. May be called more than once."""
        knowledge, self._knowledge = self._knowledge, None
        if knowledge is not None:
            await knowledge.close()
        await self._share.close()

    async def _find_model(self, service: MemoryService) -> tuple[Asking | None, ModelPermission | None]:
        """Return the session's provider with its conditions, or None."""
        if self._model is None or not self._model.has_provider:
            return None, None
        try:
            self._session.group()
        except AgentMemoryError:
            return None, None  # it is unknown whose texts the model may see
        asking = Asking(self._model, retries=0, timeout=self._settings.model_timeout, budget=self._budget)
        permission = ModelPermission(
            self._session.caller.as_person(),
            self._settings.model_budget,
            partial(self._find_refusal, self._model),
            self._find_pause,
            partial(self._hold, service),
        )
        return asking, permission

    async def _hold(self, service: MemoryService, values: Mapping[str, Any]) -> HeldCandidates | None:
        self._session.identity()  # checks the files that limit memory: the model took its time
        return await hold_for_yes(self._session, service, values)

    def _find_pause(self) -> str | None:
        """Return a clause if nothing may be asked now."""
        if self._is_ending():
            return "the last session ended; the next one continues"
        self._session.identity()  # checks the sources of consent
        modes = (get_mode(self._session, category) for category in ("", "note"))
        mode = next((mode for mode in modes if mode not in {"autonomous", "ask"}), "")
        return f"memory is in mode {mode}" if mode else None

    async def _find_refusal(self, model: SessionModel, estimate: ModelEstimate) -> str | None:
        """Show an estimate once a session; return a clause before a yes."""
        if self._settings.model_agreed or self._agent_id in self._agreed:
            self._agreed.discard(self._agent_id)  # one yes counts once: it may be taken back
            return None
        proposal = get_model_proposal(self._agent_id)
        if not self._has_shown_estimate:
            self._has_shown_estimate = True
            price = await model.estimate_price(estimate.prompt_tokens, estimate.answer_tokens)
            cost = f", about {price[0]:.2f} {price[1]}" if price else ""
            tokens = estimate.prompt_tokens + estimate.answer_tokens
            self._session.proposals.add(proposal, "")  # of no session: a plain yes may answer something else
            self._session.lines.add(
                f"A background model can digest {counted(estimate.passages, 'passage')}: about {tokens:,} tokens"
                f"{cost}, at most {self._settings.model_budget:,} a day. To allow it, say: yes {proposal}"
            )
            await self._session.lines.flush()
        return f"the estimate waits for a yes (say: yes {proposal})"

    async def _open(self) -> tuple[MemoryService, Knowledge]:
        with suppress(IdentityError):  # the session may have another agent by now, or none
            await self._session.require()
        settings = self._session.settings
        service = await self._share.open(self._session.root_id, self._agent_id, settings, lambda _: None)
        if self._knowledge is None:
            self._knowledge = Knowledge(service.agent_id, settings)
        return service, self._knowledge


def _prepare_turns(batch: TurnBatch) -> tuple[ReceivedTurn, ...]:
    """Return turns as they are stored.

    Characters that no file can hold are dropped. A turn that activates an agent or forgets something is an event, of
    which no statement is made: it repeats what is forgotten.
    """

    def get_event_type(turn: ReceivedTurn) -> str:
        if batch.forgets:
            return _FORGETTING
        return _ACTIVATION if _is_activation(turn, batch.agent_id) else ""

    return tuple(replace(turn, text=repair_text(turn.text), event_type=get_event_type(turn)) for turn in batch.turns)


def _is_activation(turn: ReceivedTurn, agent_id: str) -> bool:
    is_short = turn.role == "user" and len(turn.text) <= _MAX_REQUEST_CHARS
    return is_short and is_wished(agent_id, turn.text, in_doubt=False)


def _build_title(begun: datetime | None) -> str:
    """Return the title of a conversation, or an empty text.

    It has none of its words: footnotes repeat the title, and what was said may be forgotten.
    """
    return "" if begun is None else f"{begun:%Y-%m-%d %H:%M}"
