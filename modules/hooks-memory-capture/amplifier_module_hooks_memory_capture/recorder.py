"""`Recorder`: the session's one worker. Extraction in a thread, then, at the end of the turn, the service.

Fails open and never silently: whatever goes wrong is counted, logged and reported by event; the conversation goes on.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from agent_memory.capture import CaptureLedger, Extractor, TurnBuffer
from agent_memory.errors import AgentMemoryError
from agent_memory.integrations.amplifier.consent import get_current_mode
from agent_memory.logs import get_logger
from agent_memory.models import utc_now
from agent_memory.privacy import drop_stored, opened_inbox

if TYPE_CHECKING:
    from datetime import datetime

    from agent_memory.integrations.amplifier import MemorySession
    from agent_memory.memory import MemoryService
    from agent_memory.memory.consent_modes import Mode
    from agent_memory.models import Observation
    from agent_memory.settings import CaptureSettings

log = get_logger(__name__)

DRAIN_SECONDS: Final = 5.0
_PAUSE_SECONDS: Final = 0.05
"""Between taking and extracting: the event that brought the words finishes first, since extraction needs the GIL."""
_QUEUE_SIZE: Final = 1000
"""Messages waiting; more means the worker is stuck, and the conversation must not grow the heap because of that."""


@dataclass(frozen=True, slots=True)
class SessionMessage:
    """What was said: by whom (`user`, `assistant`, `tool:<name>`), when, and whether after untrusted output."""

    text: str
    source: str
    low_trust: bool = False
    at: datetime = field(default_factory=utc_now)


@dataclass(frozen=True, slots=True)
class TurnEnded:
    """The turn is over; `stored` is what the model itself stored by tool in it, maybe after untrusted output."""

    stored: tuple[str, ...] = ()
    low_trust: bool = False


class Recorder:
    """Turns messages into memories.

    Raises:
        ConfigurationError: A pattern of the user's own cannot be used.
    """

    def __init__(self, settings: CaptureSettings, session: MemorySession) -> None:
        self._settings = settings
        self._session = session
        self._extractor = Extractor(settings)
        self._buffer = TurnBuffer()
        self._ledger = CaptureLedger(settings.max_captures_per_session)
        self._skipped_in_turn: Counter[str] = Counter()
        self._held = 0
        self._queue: asyncio.Queue[SessionMessage | TurnEnded] = asyncio.Queue()
        self._worker: asyncio.Task[None] | None = None
        self._turn_open = False
        self._hurry = asyncio.Event()
        self._closed = False

    async def take(self, item: SessionMessage | TurnEnded) -> None:
        """Queue `item` (or, with `async_capture: false`, deal with it now)."""
        if self._closed:
            return
        self._turn_open = isinstance(item, SessionMessage)
        if not self._settings.async_capture:
            await self._deal_with(item)
            return
        if self._worker is None or self._worker.done():
            self._worker = asyncio.get_running_loop().create_task(self._work())
        # The end of a turn always gets in: without it, its candidates would meet what the next turn stored.
        if isinstance(item, SessionMessage) and self._queue.qsize() >= _QUEUE_SIZE:
            self.miss("queue_full")
            log.warning("capture_queue_full", waiting=self._queue.qsize())
        else:
            self._queue.put_nowait(item)

    def miss(self, reason: str) -> None:
        """Count something that could not be read; the end of the turn reports it by event."""
        self._skipped_in_turn[reason] += 1

    async def drain(self, seconds: float = DRAIN_SECONDS) -> None:
        """Wait until all that was taken is dealt with, at most `seconds`; what is left then is dropped and reported."""
        if self._worker is None:
            return
        self._hurry.set()
        try:
            await asyncio.wait_for(self._queue.join(), seconds)
        except TimeoutError:
            left = self._queue.qsize()
            log.warning("capture_not_drained", waiting=left)
            await self._tell({"drain_timeout": max(1, left)})
        finally:
            self._hurry.clear()

    async def close(self) -> None:
        """Drain and stop. May be called more than once."""
        if self._closed:
            return
        if self._turn_open:
            await self.take(self.turn_end())
        self._closed = True
        await self.drain()
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.cancel()
            await asyncio.gather(worker, return_exceptions=True)

    def turn_end(self) -> TurnEnded:
        """Return what ends the turn under way."""
        turn = self._session.turn
        return TurnEnded(tuple(turn.stored), self._session.taint.by is not None)

    def statistics(self) -> dict[str, Any]:
        """Return what this session captured, and what it skipped for which reason."""
        waiting = self._queue.qsize() + len(self._buffer)
        return {
            "captured": self._ledger.captured,
            **({"in_inbox": self._held} if self._held else {}),
            "waiting": waiting,
            "skipped": dict(self._ledger.skipped + self._skipped_in_turn),
        }

    async def _work(self) -> None:
        while True:
            item = await self._queue.get()
            try:
                if not self._hurry.is_set():
                    await self._pause()
                await self._deal_with(item)
            finally:
                self._queue.task_done()

    async def _pause(self) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._hurry.wait(), _PAUSE_SECONDS)

    async def _deal_with(self, item: SessionMessage | TurnEnded) -> None:
        try:
            if isinstance(item, SessionMessage):
                await self._extract(item)
            else:
                await self._store(item)
        except AgentMemoryError as error:
            await self._session.conversation.report_degraded("capture", error)
            await self._tell({error.code: 1})
        except Exception as error:  # noqa: BLE001 - a defect of ours must not end the worker or the session
            log.warning("capture_failed", error=type(error).__name__)
            await self._tell({"internal_error": 1})

    async def _extract(self, message: SessionMessage) -> None:
        extraction = await asyncio.to_thread(
            self._extractor.examine,
            message.text,
            message.source,
            returned=tuple(self._session.turn.returned),
            now=message.at,
            session_id=self._session.session_id,
        )
        observations: list[Observation] = extraction.observations
        if message.low_trust:
            observations = [observation.model_copy(update={"trust": "low"}) for observation in observations]
        self._buffer.hold(observations)
        self._skipped_in_turn.update(extraction.skipped)

    async def _store(self, ended: TurnEnded) -> None:
        held, skipped = self._buffer.release(ended.stored, low_trust=ended.low_trust)
        skipped.update(self._skipped_in_turn)
        self._skipped_in_turn.clear()
        service = await self._session.service() if held or skipped else None
        if service is None or not self._may_keep_any():
            return  # memory is off, or nothing is kept that was not asked for
        admitted, dropped = self._ledger.admit(held)
        skipped.update(dropped)
        now, later = self._by_mode(admitted, skipped)
        self._ledger.skipped.update(skipped - dropped)
        if skipped:
            await self._tell(skipped, service)
        try:
            if now:
                outcome = await service.capture(now, self._session.caller)
                self._ledger.count(len(outcome.stored), outcome.skipped)
                for memory_id in outcome.stored:
                    await drop_stored(service, await service.get(memory_id), self._session.caller)
            if later:
                await self._hold(service, later)
        except AgentMemoryError:
            self._ledger.withdraw(admitted)  # said again they are to be stored; what was stored is known by then
            raise

    async def _hold(self, service: MemoryService, observations: list[Observation]) -> None:
        """Put statements into the inbox: with mode `ask` for a yes, else as notes."""
        asked = [observation for observation in observations if self._mode_of(observation) == "ask"]
        notes = [observation for observation in observations if observation not in asked]
        if notes and service.settings.backend == "server":
            await self._tell({"inbox_needs_files": len(notes)})
            notes = []
        if not asked and not notes:
            return
        async with opened_inbox(service) as inbox:
            for batch, as_notes in ((asked, False), (notes, True)):
                held = await inbox.hold(batch, self._session.caller, as_notes=as_notes)
                self._held += len(held.ids)
                self._ledger.count(0, held.skipped)

    def _mode_of(self, observation: Observation) -> Mode:
        return get_current_mode(self._session, observation.category)

    def _may_keep_any(self) -> bool:
        identity = self._session.current_identity  # `service` checked it
        return identity.enabled and identity.consent.may_capture(self._session.project())

    def _by_mode(
        self, observations: list[Observation], skipped: Counter[str]
    ) -> tuple[list[Observation], list[Observation]]:
        """Split observations into those to keep and those to hold.

        With mode `ask` only "remember" is a yes.
        """
        modes = [self._mode_of(observation) for observation in observations]
        skipped.update(mode for mode in modes if mode in {"manual", "stopped"})
        now: list[Observation] = []
        later: list[Observation] = []
        for observation, mode in zip(observations, modes, strict=True):
            if (mode == "autonomous" and observation.cue) or (mode == "ask" and observation.cue == "memory"):
                now.append(observation)
            elif mode in {"autonomous", "ask"}:
                later.append(observation)
        return now, later

    async def _tell(self, reasons: dict[str, int], service: MemoryService | None = None) -> None:
        """Emit one `memory:capture_skipped` for each reason."""
        if service is None:
            self._ledger.skipped.update(reasons)
            service = await self._session.service()
        if service is not None:
            for reason, count in reasons.items():
                await service.report("memory:capture_skipped", self._session.caller, reason=reason, count=count)
