"""Listener to a session's turns, and capture of their texts.

Texts are examined in a thread, and observations stored at the end of a turn. A failure is counted, logged and reported
by event; the conversation continues.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from agent_memory.capture import CaptureLedger, Extractor, TurnBuffer
from agent_memory.errors import AgentMemoryError
from agent_memory.integrations.amplifier.conversation import (
    MOST_CHARS,
    STEERING,
    find_answer_text,
    get_result_text,
    get_steering,
    get_text,
    is_typed,
    split_attached,
)
from agent_memory.logs import get_logger
from agent_memory.memory.inbox_access import drop_stored, opened_inbox
from agent_memory.models import utc_now
from agent_memory.tools.consent import get_mode

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from agent_memory.integrations.amplifier.session import MemorySession
    from agent_memory.memory import MemoryService
    from agent_memory.models import Observation
    from agent_memory.settings import CaptureSettings

log = get_logger(__name__)

OWN_TOOLS: Final = "memory_"
"""How the names of the memory tools begin; their results are never heard."""
PRIORITY: Final = 500
_BEFORE_TURN: Final = -1001
"""Priority before the session forgets its last turn (-1000), which may have ended without an event."""


class TurnSink(Protocol):
    """Receiver of the texts; `take` and `end_turn` normally only queue them."""

    async def take(self, text: str, role: str, tool: str, *, is_low: bool) -> None:
        """Note a text; `is_low` if it is of low trust."""

    async def end_turn(self) -> None:
        """Note that the turn ended."""

    async def drain(self) -> None:
        """Finish what waits, within a limit."""

    def hears_tool(self, name: str) -> bool:
        """Return True if the results of a tool are heard."""

    def count_miss(self, reason: str) -> None:
        """Count texts that could not be read."""


class ListenerOptions(NamedTuple):
    """Texts that a listener hears.

    Attributes:
        prompts: The user's words.
        answers: The assistant's last words of a turn.
        answer_at_end: The assistant's last words of a turn that the end of the session cuts off.
        max_chars: Characters that are read of each text.
    """

    prompts: bool = True
    answers: bool = True
    answer_at_end: bool = False
    max_chars: int = MOST_CHARS


class TurnListener:
    """Listener to the turns of a root session.

    A turn begins with a prompt and ends with `orchestrator:complete`. loop-basic leaves that event out after a denied
    or failed turn, so the next prompt and the end of the session end a turn, too.

    Args:
        coordinator: Coordinator of the host.
        session: Memory of the session.
        sink: Receiver of the texts.
        options: Texts that are heard.
    """

    def __init__(self, coordinator: Any, session: MemorySession, sink: TurnSink, options: ListenerOptions) -> None:
        self._coordinator, self._session, self._sink, self._options = coordinator, session, sink, options
        self._is_open = False
        self._answer = ""

    def register(self, name: str) -> list[Callable[[], None]]:
        """Register the handlers; return functions that unregister them."""
        handlers: list[tuple[str, Any, int, str]] = [
            ("prompt:submit", self.on_next_turn, _BEFORE_TURN, "turn"),
            ("prompt:submit", self.on_prompt, PRIORITY, "prompt"),
            (STEERING, self.on_steering, PRIORITY, "steering"),
            ("tool:post", self.on_tool, PRIORITY, "tool"),
            ("orchestrator:complete", self.on_turn_end, PRIORITY, "complete"),
            ("session:end", self.on_session_end, PRIORITY, "end"),
        ]
        return [
            self._coordinator.hooks.register(event, handler, priority=priority, name=f"{name}-{suffix}")
            for event, handler, priority, suffix in handlers
        ]

    async def on_next_turn(self, _event: str, _data: Any) -> None:
        """End a turn that had no event for its end."""
        await self.close_turn()

    async def on_prompt(self, _event: str, data: Any) -> None:
        """Begin a turn with the user's words."""
        self._is_open, self._answer = True, ""
        if self._options.prompts and isinstance(data, dict):
            text, attached = split_attached(data, self._options.max_chars)
            await (self._hear(text, "user") if is_typed(data) else self._hear(text, "tool", get_text(data, "origin")))
            await self._hear(attached, "tool", "attached")

    async def on_steering(self, event: str, data: Any) -> None:
        """Handle a message that the user typed while the model works."""
        await self.on_prompt(event, get_steering(data))

    async def on_tool(self, _event: str, data: Any) -> None:
        """Hear the result of a tool."""
        name = data.get("tool_name") if isinstance(data, dict) else None
        if isinstance(name, str) and not name.startswith(OWN_TOOLS) and self._sink.hears_tool(name):
            result = data.get("result", data.get("tool_result"))
            await self._hear(get_result_text(result, self._options.max_chars), "tool", name)

    async def on_turn_end(self, _event: str, _data: Any) -> None:
        """Hear the assistant's last words and end the turn."""
        if self._options.answers:
            await self._hear_answer()
        await self.close_turn()

    async def on_session_end(self, _event: str, _data: Any) -> None:
        """End the turn and finish what waits."""
        if self._options.answer_at_end and self._is_open:
            await self._hear_answer()
        await self.close_turn()
        await self._sink.drain()

    async def close_turn(self) -> None:
        """End the turn if it is open."""
        if self._is_open:
            self._is_open = False
            await self._sink.end_turn()

    async def _hear_answer(self) -> None:
        """Hear the assistant's last words, once a turn.

        A loop that continues by itself ends its turn more than once.
        """
        context = self._coordinator.get("context")
        if context is None:
            return
        try:
            messages = await context.get_messages()
        except Exception as error:  # noqa: BLE001 - another module raises errors of any class; the turn has to end
            log.warning("context_unreadable", error=type(error).__name__)
            self._sink.count_miss("context_unreadable")
            return
        answer = find_answer_text(messages, self._options.max_chars)
        if answer != self._answer:
            self._answer = answer
            await self._hear(answer, "assistant")

    async def _hear(self, text: str, role: str, tool: str = "") -> None:
        if text.strip() and not self._session.consent.is_stopped:
            self._is_open = True
            is_low = role != "user" and self._session.taint.by is not None
            await self._sink.take(text, role, tool, is_low=is_low)


DRAIN_SECONDS: Final = 5.0
_PAUSE_SECONDS: Final = 0.05
"""Pause before extraction, which needs the GIL: the event that brought the text finishes first."""
_QUEUE_SIZE: Final = 1000
"""Waiting texts at most; with more the worker is stuck, and the conversation must not grow the heap."""


@dataclass(frozen=True, slots=True)
class HeardText:
    """One text of a turn.

    Attributes:
        text: The text itself.
        source: Who said it: `user`, `assistant` or `tool:<name>`.
        is_low: True if it is of low trust.
        said_at: When it was said.
    """

    text: str
    source: str
    is_low: bool
    said_at: datetime


@dataclass(frozen=True, slots=True)
class TurnEnd:
    """End of a turn.

    Attributes:
        stored: Contents that the model stored by tool in the turn.
        is_low: True if the conversation had untrusted text then.
    """

    stored: tuple[str, ...]
    is_low: bool


class CaptureRecorder:
    """Worker of a session that makes memories of what is said.

    Args:
        settings: What is captured.
        session: Memory of the session.

    Raises:
        ConfigurationError: A pattern in the settings is wrong.
    """

    def __init__(self, settings: CaptureSettings, session: MemorySession) -> None:
        self._settings, self._session = settings, session
        self._extractor, self._buffer = Extractor(settings), TurnBuffer()
        self._ledger = CaptureLedger(settings.max_captures_per_session)
        self._missed: Counter[str] = Counter()
        self._in_inbox = 0
        self._queue: asyncio.Queue[HeardText | TurnEnd] = asyncio.Queue()
        self._worker: asyncio.Task[None] | None = None
        self._is_hurried = asyncio.Event()
        self._is_closed = False

    async def take(self, text: str, role: str, tool: str, *, is_low: bool, said_at: datetime | None = None) -> None:
        """Queue a text, by default of now."""
        source = f"{role}:{tool}" if tool else role
        await self._add(HeardText(text, source, is_low, said_at or utc_now()))

    async def end_turn(self) -> None:
        """Queue the end of the turn."""
        await self._add(TurnEnd(tuple(self._session.turn.stored), self._session.taint.by is not None))

    def hears_tool(self, name: str) -> bool:  # noqa: ARG002 - one setting for all tools
        """Return True if the results of tools are heard."""
        return self._settings.observe_tool_outputs

    def count_miss(self, reason: str) -> None:
        """Count an unread text, for the report of the turn."""
        self._missed[reason] += 1

    async def drain(self, seconds: float = DRAIN_SECONDS) -> None:
        """Wait until the queue is empty, at most `seconds`.

        What is left after that is dropped and reported.
        """
        if self._worker is None:
            return
        self._is_hurried.set()
        try:
            await asyncio.wait_for(self._queue.join(), seconds)
        except TimeoutError:
            waiting = self._queue.qsize()
            log.warning("capture_not_drained", waiting=waiting)
            await self._skip({"drain_timeout": max(1, waiting)})
        finally:
            self._is_hurried.clear()

    async def close(self) -> None:
        """Drain and stop. May be called more than once."""
        if self._is_closed:
            return
        self._is_closed = True
        await self.drain()
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.cancel()
            await asyncio.gather(worker, return_exceptions=True)

    def get_statistics(self) -> dict[str, Any]:
        """Return counts of this session: captured, waiting, and skipped by reason."""
        return {
            "captured": self._ledger.captured,
            **({"in_inbox": self._in_inbox} if self._in_inbox else {}),
            "waiting": self._queue.qsize() + len(self._buffer),
            "skipped": dict(self._ledger.skipped + self._missed),
        }

    async def _add(self, item: HeardText | TurnEnd) -> None:
        """Queue an item; with `async_capture: false` process it now."""
        if self._is_closed:
            return
        if not self._settings.async_capture:
            await self._process(item)
            return
        if self._worker is None or self._worker.done():
            self._worker = asyncio.get_running_loop().create_task(self._work())
        # The end of a turn is always queued: else its candidates would meet what the next turn stored.
        if isinstance(item, HeardText) and self._queue.qsize() >= _QUEUE_SIZE:
            self.count_miss("queue_full")
            log.warning("capture_queue_full", waiting=self._queue.qsize())
        else:
            self._queue.put_nowait(item)

    async def _work(self) -> None:
        while True:
            item = await self._queue.get()
            try:
                if not self._is_hurried.is_set():
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(self._is_hurried.wait(), _PAUSE_SECONDS)
                await self._process(item)
            finally:
                self._queue.task_done()

    async def _process(self, item: HeardText | TurnEnd) -> None:
        try:
            await (self._extract(item) if isinstance(item, HeardText) else self._store(item))
        except AgentMemoryError as error:
            await self._session.conversation.report_degraded("capture", error)
            await self._skip({error.code: 1})
        except Exception as error:  # noqa: BLE001 - a defect of ours must not end the worker or the session
            log.warning("capture_failed", error=type(error).__name__)
            await self._skip({"internal_error": 1})

    async def _extract(self, heard: HeardText) -> None:
        extraction = await asyncio.to_thread(
            self._extractor.examine,
            heard.text,
            heard.source,
            returned=tuple(self._session.turn.returned),
            now=heard.said_at,
            session_id=self._session.session_id,
        )
        observations: list[Observation] = extraction.observations
        if heard.is_low:
            observations = [observation.model_copy(update={"trust": "low"}) for observation in observations]
        self._buffer.hold(observations)
        self._missed.update(extraction.skipped)

    async def _store(self, turn_end: TurnEnd) -> None:
        """Store the turn's observations, or put them into the inbox."""
        held, skipped = self._buffer.release(turn_end.stored, low_trust=turn_end.is_low)
        skipped.update(self._missed)
        self._missed.clear()
        service = await self._session.service() if held or skipped else None
        if service is None or not self._may_capture():
            return
        admitted, dropped = self._ledger.admit(held)
        stored, asked, notes, refused = self._sort_by_mode(admitted)
        self._ledger.skipped.update(skipped + refused)
        await self._report(service, skipped + refused + dropped)
        caller = self._session.caller
        try:
            if stored:
                outcome = await service.capture(stored, caller)
                self._ledger.count(len(outcome.stored), outcome.skipped)
                for memory_id in outcome.stored:
                    await drop_stored(service, await service.get(memory_id), caller)
            await self._hold(service, asked, notes)
        except AgentMemoryError:
            self._ledger.withdraw(admitted)  # when they are said again, they are stored; a duplicate is known by then
            raise

    def _may_capture(self) -> bool:
        identity = self._session.current_identity  # `service` checked it
        return identity.enabled and identity.consent.may_capture(self._session.project())

    def _sort_by_mode(
        self, observations: list[Observation]
    ) -> tuple[list[Observation], list[Observation], list[Observation], Counter[str]]:
        """Return observations to store, to ask for and to note.

        The counts are those of refused ones, by mode. With mode `ask`, only "remember" is a yes.
        """
        stored: list[Observation] = []
        asked: list[Observation] = []
        notes: list[Observation] = []
        refused: Counter[str] = Counter()
        for observation in observations:
            mode = get_mode(self._session, observation.category)
            if mode in {"manual", "stopped"}:
                refused[mode] += 1
            elif observation.cue if mode == "autonomous" else observation.cue == "memory":
                stored.append(observation)
            else:
                (asked if mode == "ask" else notes).append(observation)
        return stored, asked, notes, refused

    async def _hold(self, service: MemoryService, asked: list[Observation], notes: list[Observation]) -> None:
        """Put observations into the inbox."""
        if notes and service.settings.backend == "server":
            await self._skip({"inbox_needs_files": len(notes)})
            notes = []
        if not asked and not notes:
            return
        async with opened_inbox(service) as inbox:
            for batch, as_notes in ((asked, False), (notes, True)):
                held = await inbox.hold(batch, self._session.caller, as_notes=as_notes)
                self._in_inbox += len(held.ids)
                self._ledger.count(0, held.skipped)

    async def _skip(self, reasons: Mapping[str, int]) -> None:
        """Count and report skipped texts, by reason."""
        self._ledger.skipped.update(reasons)
        service = await self._session.service()
        if service is not None:
            await self._report(service, reasons)

    async def _report(self, service: MemoryService, reasons: Mapping[str, int]) -> None:
        for reason, count in reasons.items():
            await service.report("memory:capture_skipped", self._session.caller, reason=reason, count=count)
