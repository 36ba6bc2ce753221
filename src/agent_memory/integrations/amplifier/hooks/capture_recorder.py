"""Capture of a session's turns.

Texts are examined in a thread, and observations stored at the end of a turn. A failure is counted, logged and reported
by event; the conversation continues.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from agent_memory.capture import CaptureLedger, Extractor, TurnBuffer
from agent_memory.errors import AgentMemoryError
from agent_memory.logs import get_logger
from agent_memory.memory.inbox_access import drop_stored, opened_inbox
from agent_memory.models import utc_now
from agent_memory.tools.consent import get_mode

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from agent_memory.integrations.amplifier.session import MemorySession
    from agent_memory.memory import MemoryService
    from agent_memory.models import Observation
    from agent_memory.settings import CaptureSettings

log = get_logger(__name__)

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
    said_at: datetime = field(default_factory=utc_now)


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

    async def take(self, text: str, role: str, tool: str, *, is_low: bool) -> None:
        """Queue a text."""
        await self.hear(HeardText(text, f"{role}:{tool}" if tool else role, is_low))

    async def hear(self, heard: HeardText) -> None:
        """Queue a text with its time."""
        await self._add(heard)

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
