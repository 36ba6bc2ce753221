"""Queue of a session's turns, which no answer waits for.

A failure is counted, logged and reported by event; the conversation continues.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections import Counter, deque
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final

from agent_memory.capture.typed_text import get_typed_part
from agent_memory.errors import AgentMemoryError, StorageError
from agent_memory.files.layout import folder_of
from agent_memory.integrations.amplifier.hooks.capture_recorder import PRIORITY, ListenerOptions, TurnListener
from agent_memory.integrations.amplifier.hooks.turn_writer import TurnBatch, TurnWriter
from agent_memory.knowledge.intake.drafts import ReceivedTurn
from agent_memory.knowledge.llm.language_model import ModelBudget, ModelUse, get_model_proposal
from agent_memory.logs import get_logger
from agent_memory.memory.events import payload
from agent_memory.models import MAX_TEXT_CHARS, to_text, utc_now
from agent_memory.settings import KNOWLEDGE_TOOLS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from agent_memory.integrations.amplifier import MemorySession
    from agent_memory.integrations.amplifier.hooks.session_model import SessionModel
    from agent_memory.knowledge.pipeline.stages import RunOutcome
    from agent_memory.knowledge.tool_settings import IngestionSettings

log = get_logger(__name__)

PAUSE_SECONDS: Final = 0.05
"""Pause before work that an event starts: the event finishes first."""
_EVENT: Final = "memory:ingestion_skipped"
_FORGET_TOOL: Final = "memory_forget"
_MAX_CHARS: Final = MAX_TEXT_CHARS + 1
"""Characters that are read: a text that is too long is refused instead of cut."""


class _StoppedError(Exception):
    """The session ends; the next one continues the work."""


class BackgroundWorker:
    """Worker in the background, which the end of the session cuts short.

    Args:
        session: Memory of the session, which reports failures.
        work: Does a part of the work; calls its argument after each batch that is stored.

    Attributes:
        done: Counts of processed records by step, of `failed` ones, and of runs with `trouble`.
    """

    def __init__(
        self, session: MemorySession, work: Callable[[Callable[[RunOutcome], None]], Awaitable[RunOutcome]]
    ) -> None:
        self._session, self._work = session, work
        self._is_ending = self._is_due = self._is_failing = False
        self._is_hurried = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.done: Counter[str] = Counter()

    def start(self) -> None:
        """Run the due work; a running one checks again at its end."""
        self._is_due, self._is_ending = True, False
        if self._task is None or self._task.done():
            self._is_hurried.clear()
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def settle(self, seconds: float) -> None:
        """Wait until the work is done, then stop it.

        Args:
            seconds: Longest wait for the work, and again for the batch under way.
        """
        task, self._task = self._task, None
        if task is None:
            return
        self._is_hurried.set()
        await asyncio.wait([task], timeout=seconds)
        if not task.done():
            self._is_ending = True
            await asyncio.wait([task], timeout=seconds)
        task.cancel()  # a batch that is cut short is done again: nothing is lost by it, and nothing is stored twice
        await asyncio.gather(task, return_exceptions=True)

    def _check_end(self, _progress: RunOutcome) -> None:
        if self._is_ending:
            raise _StoppedError

    async def _run(self) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._is_hurried.wait(), PAUSE_SECONDS)
        while self._is_due:
            self._is_due = False
            try:
                ran = await self._work(self._check_end)
            except _StoppedError:
                return
            except AgentMemoryError as error:
                if not self._is_failing:
                    await self._session.conversation.report_degraded("background", error)
                self._is_failing = True
                self.done["trouble"] += 1
            except Exception as error:  # noqa: BLE001 - a defect of ours must not end the session
                log.warning("background_failed", error=type(error).__name__)
                self.done["trouble"] += 1
            else:
                self._is_failing = False
                self.done.update({**ran.done, "failed": ran.failed})


class SkipCounter:
    """Counter of the turns of a session that were not kept.

    Args:
        session: Memory of the session, which gets the events.

    Attributes:
        by_reason: Number of turns by reason.
    """

    def __init__(self, session: MemorySession) -> None:
        self._session = session
        self.by_reason: Counter[str] = Counter()
        self._unreported: Counter[str] = Counter()

    @property
    def has_unreported(self) -> bool:
        """True if a count was not reported yet."""
        return bool(self._unreported)

    def count(self, reason: str, turns: int = 1) -> None:
        """Count turns; `report` emits them."""
        self._unreported[reason] += turns
        self.by_reason[reason] += turns

    async def report(self, agent_id: str | None) -> None:
        """Emit one event for each reason that was not reported yet."""
        unreported, self._unreported = self._unreported, Counter()
        common = {"agent_id": agent_id, "session_id": self._session.session_id, "timestamp": to_text(utc_now())}
        for reason, count in unreported.items():
            await self._session.conversation.emit(_EVENT, payload(_EVENT, {**common, "reason": reason, "count": count}))


@dataclass(frozen=True, slots=True)
class IntakeLimits:
    """Limits of a queue and of the end of a session.

    Attributes:
        characters: Waiting characters at most; with more the disk is stuck, and the heap must not grow.
        drain_seconds: Time for writing what waits.
        work_seconds: Time for background work, which the next session continues.
    """

    characters: int = 16_000_000
    drain_seconds: float = 5.0
    work_seconds: float = 1.0


_LIMITS: Final = IntakeLimits()
_MAX_SEARCHED: Final = 100_000
_FORGET: Final = re.compile(
    r"forg[eo]t|delet|eras|remov|vergess|vergiss|l[öo]e?sch|oubli|effac|supprim|olvid|borra|elimin|esque[cç]|apag|"
    r"dimentic|cancell|verge+t|wis\b|zapomn|usu[nń]|забуд|удал|忘|削除|消|删|刪|잊|삭제",
    re.IGNORECASE,
)


def may_forget(turn: ReceivedTurn) -> bool:
    """Return True if the user may ask to forget something.

    Whether something was forgotten is known at the end of the turn.
    """
    return turn.role == "user" and _FORGET.search(turn.text[:_MAX_SEARCHED]) is not None


class SessionIntake:
    """Queue of the turns of a session, and their writers.

    Args:
        session: Memory of the session.
        settings: Settings of the module.
        limits: Limits of the queue.
        model: Provider of the session, if the settings let it digest passages.

    Attributes:
        skips: Counts of turns that were not kept.
    """

    def __init__(
        self,
        session: MemorySession,
        settings: IngestionSettings,
        limits: IntakeLimits = _LIMITS,
        model: SessionModel | None = None,
    ) -> None:
        self._session, self._settings, self._limits = session, settings, limits
        self._model, self._budget = model, ModelBudget(settings.model_calls, settings.model_tokens)
        self._agreed: set[str] = set()
        self._is_ending = False
        self.skips = SkipCounter(session)
        self._turn: list[ReceivedTurn] = []
        self._ended: list[tuple[tuple[ReceivedTurn, ...], bool]] = []
        self._batches: deque[TurnBatch] = deque()
        self._writers: dict[str, tuple[TurnWriter, BackgroundWorker]] = {}
        self._kept_count = self._char_count = self._turn_count = 0
        self._failure = ""
        self._write_lock = asyncio.Lock()
        self._timer: asyncio.TimerHandle | None = None
        self._write_task: asyncio.Task[None] | None = None
        self._is_closed = self._forgets = False

    async def take(self, text: str, role: str, tool: str, *, is_low: bool) -> None:
        """Queue a text, for the end of the turn or after `flush_seconds`."""
        if self._is_closed:
            return
        if role == "user" and not is_low:  # stored without its margin, which may be the only sign of a paste
            is_low = not (await asyncio.to_thread(get_typed_part, text)).strip()
        turn = ReceivedTurn(text, role, tool, utc_now(), trust="low" if is_low else "medium")
        if (
            self._turn_count >= self._settings.max_waiting
            or self._char_count + len(turn.text) > self._limits.characters
        ):
            log.warning("ingestion_queue_full", waiting=self._turn_count)
            self.skips.count("queue_full")
            return
        self._is_ending = False
        self._turn.append(turn)
        self._turn_count, self._char_count = self._turn_count + 1, self._char_count + len(turn.text)
        if self._timer is None and not may_forget(turn):
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self._settings.flush_seconds, self._flush_early)

    def note_forgetting(self) -> None:
        """Note that something was forgotten in this turn.

        No statement is made of what was said in it.
        """
        self._forgets = True

    def hears_tool(self, name: str) -> bool:
        """Return True if the results of a tool are kept."""
        is_ours = name in KNOWLEDGE_TOOLS
        return not is_ours and any(fnmatchcase(name, pattern) for pattern in self._settings.observe_tools)

    def count_miss(self, reason: str) -> None:
        """Count a text that could not be read."""
        self.skips.count(reason)

    async def end_turn(self) -> None:
        """End the turn; its agent is looked up after this event."""
        self._end_turn()

    def _end_turn(self, *, is_written: bool = True) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        forgets, self._forgets = self._forgets, False
        if self._turn:
            turns, self._turn = tuple(self._turn), []
            self._ended.append((turns, forgets))
            if is_written:
                asyncio.get_running_loop().call_soon(self._assign)

    def get_statistics(self) -> dict[str, Any]:
        """Return counts of kept, waiting, skipped and processed texts."""
        worked: Counter[str] = sum((worker.done for _, worker in self._writers.values()), Counter())
        return {
            "taken": self._kept_count,
            "waiting": self._turn_count,
            "skipped": dict(self.skips.by_reason),
            "worked": dict(worked),
            **({} if self._model is None else {"model": self._describe_model()}),
        }

    def note_answer(self) -> None:
        """Note the user's yes to the estimate of a model's use."""
        agent_id = self._find_agent() if self._model is not None else None
        if agent_id is not None and self._session.proposals.is_agreed(get_model_proposal(agent_id)):
            self._session.proposals.close(get_model_proposal(agent_id))
            self._agreed.add(agent_id)

    def _describe_model(self) -> dict[str, Any]:
        """Return the calls of this session, and the counts of its agent."""
        budget, agent_id = self._budget, self._find_agent()
        spent = {"calls": budget.calls, "tokens": budget.tokens, "failures": dict(budget.failures)}
        if agent_id is None:
            return spent
        folder = folder_of(agent_id, self._session.settings.storage_root)
        return spent | ModelUse.read(folder.path, utc_now()).get_counts()

    async def drain(self) -> None:
        """Write what waits and process it, each within a time limit.

        What cannot be written keeps waiting.
        """
        self._is_ending = self._limits.work_seconds < self._settings.model_timeout  # too late to ask a model
        self._end_turn(is_written=False)
        self._assign(is_written=False)
        try:
            await asyncio.wait_for(self._write(), self._limits.drain_seconds)
        except TimeoutError:
            log.warning("ingestion_not_drained", waiting=self._turn_count)
            self._failure = "drain_timeout"
        await asyncio.gather(*(worker.settle(self._limits.work_seconds) for _, worker in self._writers.values()))

    async def close(self) -> None:
        """Drain and stop; what was not written is dropped and reported.

        May be called more than once.
        """
        if self._is_closed:
            return
        await self.drain()
        self._is_closed = True
        if self._write_task is not None:
            self._write_task.cancel()
            await asyncio.gather(self._write_task, return_exceptions=True)
        if self._turn_count:
            self.skips.count(self._failure or "internal_error", self._turn_count)
            self._turn_count = self._char_count = 0
            self._batches.clear()
        await self.skips.report(self._find_agent())
        for writer, _ in self._writers.values():
            await writer.close()

    # -- after the events ---------------------------------------------------------------------------------------------

    def _flush_early(self) -> None:
        """Write the texts of a long turn before its end."""
        self._timer = None
        if self._find_agent() is not None and not any(map(may_forget, self._turn)):
            self._end_turn()

    def _find_agent(self) -> str | None:
        """Return the agent that may keep what is said now, or None."""
        try:
            identity = self._session.identity()
        except AgentMemoryError:
            return None  # the tools report it
        may_listen = identity.may_listen(self._session.project()) and self._session.problem is None
        return identity.agent_id if may_listen else None

    def _assign(self, *, is_written: bool = True) -> None:
        """Assign ended turns to the agent; drop them while memory is off."""
        for turns, forgets in self._ended:
            agent_id = self._find_agent()
            try:
                group = self._session.group() if agent_id is not None else ""
            except AgentMemoryError as error:
                self.skips.count(error.code, len(turns))
                agent_id = None
            if agent_id is None:
                self._discount(turns)
            else:
                self._batches.append(TurnBatch(agent_id, group, turns, forgets))
        self._ended = []
        is_idle = self._write_task is None or self._write_task.done()
        if is_written and is_idle and (self._batches or self.skips.has_unreported):
            self._write_task = asyncio.get_running_loop().create_task(self._write_soon())

    def _discount(self, turns: tuple[ReceivedTurn, ...]) -> None:
        self._turn_count -= len(turns)
        self._char_count -= sum(len(turn.text) for turn in turns)

    async def _write_soon(self) -> None:
        await asyncio.sleep(PAUSE_SECONDS)
        await self._write()

    async def _write(self) -> None:
        async with self._write_lock:
            while True:
                while self._batches and await self._write_batch(self._batches[0]):
                    self._discount(self._batches.popleft().turns)
                await self.skips.report(self._find_agent())
                if not self._batches or self._failure:
                    return

    async def _write_batch(self, batch: TurnBatch) -> bool:
        """Write a batch; return False if it has to wait."""
        writer, worker = self._get_writer(batch.agent_id)
        try:
            refused = await writer.write(batch)
        except AgentMemoryError as error:
            if error.code != self._failure:
                await self._session.conversation.report_degraded("ingestion", error)
            self._failure = error.code
            if isinstance(error, StorageError):
                return False  # until the next turn
            self.skips.count(error.code, len(batch.turns))
        except Exception as error:  # noqa: BLE001 - a defect of ours must not end the session
            log.warning("ingestion_failed", error=type(error).__name__)
            self.skips.count("internal_error", len(batch.turns))
        else:
            self._failure = ""
            self._kept_count += len(batch.turns) - len(refused)
            for code in refused:
                self.skips.count(code)
            if self._settings.background:
                worker.start()
        return True

    def _get_writer(self, agent_id: str) -> tuple[TurnWriter, BackgroundWorker]:
        if agent_id not in self._writers:
            writer = TurnWriter(
                self._session,
                agent_id,
                self._settings,
                self._model,
                self._budget,
                self._agreed,
                lambda: self._is_ending,
            )
            self._writers[agent_id] = writer, BackgroundWorker(self._session, writer.work)
        return self._writers[agent_id]


class IngestionHooks(TurnListener):
    """Hooks of one session.

    Args:
        coordinator: Coordinator of the host.
        session: Memory of the session.
        settings: Which texts are heard.
        intake: Receiver of the turns.
    """

    def __init__(
        self, coordinator: Any, session: MemorySession, settings: IngestionSettings, intake: SessionIntake
    ) -> None:
        options = ListenerOptions(settings.observe_prompts, settings.observe_answers, max_chars=_MAX_CHARS)
        super().__init__(coordinator, session, intake, options)
        self._intake = intake

    def register(self, name: str) -> list[Callable[[], None]]:
        """Register the handlers; return functions that unregister them."""
        register = self._coordinator.hooks.register
        return [
            *super().register(name),
            register("memory:forgotten", self.on_forgotten, priority=PRIORITY, name=f"{name}-forgotten"),
        ]

    async def on_prompt(self, event: str, data: Any) -> None:
        """Begin a turn with the user's words, which may answer a proposal."""
        self._intake.note_answer()
        await super().on_prompt(event, data)

    async def on_tool(self, event: str, data: Any) -> None:
        """Hear the result of a tool.

        A forgetting concerns the whole turn, also before it is done.
        """
        if isinstance(data, dict) and data.get("tool_name") == _FORGET_TOOL:
            self._intake.note_forgetting()
        await super().on_tool(event, data)

    async def on_forgotten(self, _event: str, _data: Any) -> None:
        """Note that the turn repeats what is forgotten."""
        if self._is_open:
            self._intake.note_forgetting()
