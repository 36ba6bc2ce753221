"""`Intake`: what was said in a session waits here for the disk; no answer waits with it.

Fails open and never silently: whatever cannot be kept is counted, logged and reported by event; the conversation goes
on.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter, deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from agent_memory.errors import AgentMemoryError, StorageError
from agent_memory.files.layout import folder_of
from agent_memory.knowledge.llm.model_use import ModelUse, get_model_proposal
from agent_memory.knowledge.llm.port import ModelBudget
from agent_memory.logs import get_logger
from agent_memory.models import utc_now
from amplifier_module_hooks_memory_ingestion.behind import PAUSE_SECONDS, Behind
from amplifier_module_hooks_memory_ingestion.keeper import Keeper, Portion
from amplifier_module_hooks_memory_ingestion.losses import Losses

if TYPE_CHECKING:
    from agent_memory.integrations.amplifier import MemorySession
    from agent_memory.integrations.amplifier.provider import SessionModel
    from agent_memory.knowledge.intake.drafting import ReceivedTurn
    from agent_memory.knowledge.tool_settings import IngestionSettings

log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Limits:
    """How much may wait, and how long the end of a session may take.

    Attributes:
        characters: Waiting at most; with more of them the disk is stuck, and the conversation must not grow the heap
            because of that.
        drain_seconds: For writing what waits.
        work_seconds: For background work; the next session goes on with it.
    """

    characters: int = 16_000_000
    drain_seconds: float = 5.0
    work_seconds: float = 1.0


_LIMITS: Final = Limits()
_READ: Final = 100_000
_FORGET: Final = re.compile(
    r"forg[eo]t|delet|eras|remov|vergess|vergiss|l[öo]e?sch|oubli|effac|supprim|olvid|borra|elimin|esque[cç]|apag|"
    r"dimentic|cancell|verge+t|wis\b|zapomn|usu[nń]|забуд|удал|忘|削除|消|删|刪|잊|삭제",
    re.IGNORECASE,
)


def may_forget(turn: ReceivedTurn) -> bool:
    """Tell whether the user may order that something be forgotten; whether it was is known when the turn has ended."""
    return turn.role == "user" and _FORGET.search(turn.text[:_READ]) is not None


class Intake:
    """Takes the turns of a session and has them written.

    Args:
        session: Its memory.
        settings: What it was configured with.
        limits: What it may take.
        model: The session's provider, if the settings let it digest passages.

    Attributes:
        losses: What was not taken in.
    """

    def __init__(
        self,
        session: MemorySession,
        settings: IngestionSettings,
        limits: Limits = _LIMITS,
        model: SessionModel | None = None,
    ) -> None:
        self._session, self._settings, self._limits = session, settings, limits
        self._model, self._budget = model, ModelBudget(settings.model_calls, settings.model_tokens)
        self._agreed: set[str] = set()
        self._is_ending = False
        self.losses = Losses(session)
        self._said: list[ReceivedTurn] = []
        self._ended: list[tuple[tuple[ReceivedTurn, ...], bool]] = []
        self._portions: deque[Portion] = deque()
        self._keepers: dict[str, tuple[Keeper, Behind]] = {}
        self._taken = self._chars = self._waiting = 0
        self._trouble = ""
        self._writing = asyncio.Lock()
        self._timer: asyncio.TimerHandle | None = None
        self._writer: asyncio.Task[None] | None = None
        self._is_closed = self._forgets = False

    def take(self, turn: ReceivedTurn) -> None:
        """Note what was said; it is written when the turn has ended, or after `flush_seconds`."""
        if self._is_closed:
            return
        if self._waiting >= self._settings.max_waiting or self._chars + len(turn.text) > self._limits.characters:
            log.warning("ingestion_queue_full", waiting=self._waiting)
            self.losses.count("queue_full")
            return
        self._is_ending = False
        self._said.append(turn)
        self._waiting, self._chars = self._waiting + 1, self._chars + len(turn.text)
        if self._timer is None and not may_forget(turn):
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self._settings.flush_seconds, self._flush_early)

    def note_forgetting(self) -> None:
        """Note that something was forgotten in this turn, so that no statement is made of what was said in it."""
        self._forgets = True

    def end_turn(self, *, begin: bool = True) -> None:
        """Have what was said in the turn written. Whose it is, is settled after the event that ended it."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        forgets, self._forgets = self._forgets, False
        if self._said:
            said, self._said = tuple(self._said), []
            self._ended.append((said, forgets))
            if begin:
                asyncio.get_running_loop().call_soon(self._assign)

    def statistics(self) -> dict[str, Any]:
        """Return what was taken in, what waits, what was not taken in and why, and what was made of it behind that."""
        behind: Counter[str] = sum((each.done for _, each in self._keepers.values()), Counter())
        return {
            "taken": self._taken,
            "waiting": self._waiting,
            "skipped": dict(self.losses.by_reason),
            "worked": dict(behind),
            **({} if self._model is None else {"model": self._describe_model()}),
        }

    def note_answer(self) -> None:
        """Note the user's yes to the estimate of a model's use."""
        agent_id = self._agent() if self._model is not None else None
        if agent_id is not None and self._session.proposals.is_agreed(get_model_proposal(agent_id)):
            self._session.proposals.close(get_model_proposal(agent_id))
            self._agreed.add(agent_id)

    def _describe_model(self) -> dict[str, Any]:
        """Return the calls of this session, and the counts of its agent."""
        budget, agent_id = self._budget, self._agent()
        spent = {"calls": budget.calls, "tokens": budget.tokens, "failures": dict(budget.failures)}
        if agent_id is None:
            return spent
        folder = folder_of(agent_id, self._session.settings.storage_root)
        return spent | ModelUse.read(folder.path, utc_now()).get_counts()

    async def drain(self) -> None:
        """Write what waits, and work on it a moment, each within a bound; what cannot be written keeps waiting."""
        self._is_ending = self._limits.work_seconds < self._settings.model_timeout  # too late to ask a model
        self.end_turn(begin=False)
        self._assign(begin=False)
        try:
            await asyncio.wait_for(self._write(), self._limits.drain_seconds)
        except TimeoutError:
            log.warning("ingestion_not_drained", waiting=self._waiting)
            self._trouble = "drain_timeout"
        await asyncio.gather(*(behind.settle(self._limits.work_seconds) for _, behind in self._keepers.values()))

    async def close(self) -> None:
        """Drain and stop; what could not be written is dropped, counted and told. May be called more than once."""
        if self._is_closed:
            return
        await self.drain()
        self._is_closed = True
        if self._writer is not None:
            self._writer.cancel()
            await asyncio.gather(self._writer, return_exceptions=True)
        if self._waiting:
            self.losses.count(self._trouble or "internal_error", self._waiting)
            self._waiting = self._chars = 0
            self._portions.clear()
        await self.losses.tell(self._agent())
        for keeper, _ in self._keepers.values():
            await keeper.close()

    # -- behind the conversation --------------------------------------------------------------------------------------

    def _flush_early(self) -> None:
        """Give what was said in a turn that takes long to the agent of the session, if it has one by now."""
        self._timer = None
        if self._agent() is not None and not any(map(may_forget, self._said)):
            self.end_turn()

    def _agent(self) -> str | None:
        """Return the agent that may keep what is said now; None where nothing may."""
        try:
            identity = self._session.identity()
        except AgentMemoryError:
            return None  # the tools tell
        may_listen = identity.may_listen(self._session.project()) and self._session.problem is None
        return identity.agent_id if may_listen else None

    def _assign(self, *, begin: bool = True) -> None:
        """Settle whose the turns are that have ended; nobody's are dropped: memory is off."""
        for turns, forgets in self._ended:
            agent_id = self._agent()
            try:
                group = self._session.group() if agent_id is not None else ""
            except AgentMemoryError as error:
                self.losses.count(error.code, len(turns))
                agent_id = None
            if agent_id is None:
                self._forget(turns)
            else:
                self._portions.append(Portion(agent_id, group, turns, forgets))
        self._ended = []
        if begin and (self._portions or self.losses.is_untold) and (self._writer is None or self._writer.done()):
            self._writer = asyncio.get_running_loop().create_task(self._write_soon())

    def _forget(self, turns: tuple[ReceivedTurn, ...]) -> None:
        self._waiting -= len(turns)
        self._chars -= sum(len(each.text) for each in turns)

    async def _write_soon(self) -> None:
        await asyncio.sleep(PAUSE_SECONDS)
        await self._write()

    async def _write(self) -> None:
        async with self._writing:
            while True:
                while self._portions and await self._keep(self._portions[0]):
                    self._forget(self._portions.popleft().turns)
                await self.losses.tell(self._agent())
                if not self._portions or self._trouble:
                    return

    async def _keep(self, portion: Portion) -> bool:
        """Write one portion; tell whether it is done with, written or not."""
        keeper, behind = self._keeper(portion.agent_id)
        try:
            refused = await keeper.keep(portion)
        except AgentMemoryError as error:
            if error.code != self._trouble:
                await self._session.conversation.report_degraded("ingestion", error)
            self._trouble = error.code
            if isinstance(error, StorageError):
                return False  # it waits for the next turn
            self.losses.count(error.code, len(portion.turns))
        except Exception as error:  # noqa: BLE001 - a defect of ours must not end the session
            log.warning("ingestion_failed", error=type(error).__name__)
            self.losses.count("internal_error", len(portion.turns))
        else:
            self._trouble = ""
            self._taken += len(portion.turns) - len(refused)
            for code in refused:
                self.losses.count(code)
            if self._settings.background:
                behind.begin()
        return True

    def _keeper(self, agent_id: str) -> tuple[Keeper, Behind]:
        if agent_id not in self._keepers:
            keeper = Keeper(
                self._session,
                agent_id,
                self._settings,
                self._model,
                self._budget,
                self._agreed,
                lambda: self._is_ending,
            )
            self._keepers[agent_id] = keeper, Behind(self._session, keeper.work)
        return self._keepers[agent_id]
