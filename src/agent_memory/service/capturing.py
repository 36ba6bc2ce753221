"""From observations to memories: what capture may keep. Redacts and checks like any other write."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from agent_memory.errors import ValidationError
from agent_memory.models import may_stand_for
from agent_memory.service.drafts import draft
from agent_memory.service.results import CaptureOutcome

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_memory.models import Clock, Memory, Observation
    from agent_memory.redaction import Redactor
    from agent_memory.service.caller import Caller, Report
    from agent_memory.service.trust import TrustGate
    from agent_memory.storage import MemoryStorage
    from agent_memory.storage.cleaning import Redacted

_NEIGHBOURS: Final = 5
"""Nearest memories that are compared: the nearest of all may be one that does not count."""


class CaptureKeeper:
    """Stores observations, unless they are known, were forgotten, or cannot be kept."""

    def __init__(
        self, storage: MemoryStorage, redactor: Redactor, gate: TrustGate, report: Report, clock: Clock
    ) -> None:
        self._storage = storage
        self._gate = gate
        self._redactor = redactor
        self._report = report
        self._clock = clock

    async def keep(self, observations: Iterable[Observation], caller: Caller) -> CaptureOutcome:
        """Store what may be stored; tell what was kept and, summed up by reason, what was not.

        Raises:
            StorageError: What was stored before the failure is safe.
        """
        outcome = CaptureOutcome()
        for observation in observations:
            reason = await self._keep_one(observation, outcome, caller)
            if reason:
                outcome.skipped[reason] = outcome.skipped.get(reason, 0) + 1
        for reason, count in outcome.skipped.items():
            await self._report("memory:capture_skipped", caller, reason=reason, count=count)
        return outcome

    async def _keep_one(self, observation: Observation, outcome: CaptureOutcome, caller: Caller) -> str | None:
        """Store one observation or return why not."""
        try:
            drafted = await self._draft(observation, caller)
        except ValidationError as error:
            return error.code
        memory = drafted.value
        if await self._storage.was_forgotten(memory.content):
            return "forgotten"
        if await self._is_known(memory):
            return "duplicate"
        stored, became = await self._gate.keep(drafted, caller, unique=True)
        if became == "known":
            return "duplicate"
        outcome.stored.append(stored.id)
        await self._report(
            "memory:captured",
            caller,
            memory_id=stored.id,
            category=memory.category,
            confidence=observation.confidence,
            source=memory.source.kind,
            rule=observation.rule,
            redacted=list(drafted.kinds),
        )
        return None

    async def _draft(self, observation: Observation, caller: Caller) -> Redacted[Memory]:
        seen = observation.model_dump(exclude={"rule", "session_id"}, exclude_none=True)
        session = observation.session_id or caller.session_id
        stamp = {"timestamp": self._clock(), "created_by_session": session}
        return await asyncio.to_thread(draft, {**seen, **stamp}, self._storage.agent_id, self._redactor)

    async def _is_known(self, memory: Memory) -> bool:
        """Tell whether a memory says this in nearly the same words; a stranger's does not count against others."""
        from agent_memory.capture import is_near_duplicate  # its patterns are for those who capture

        nearest = await self._storage.search(memory.content, _NEIGHBOURS, patience=0)
        return any(
            may_stand_for(found.memory.trust, memory.trust) and is_near_duplicate(found.memory.content, memory.content)
            for found in nearest
        )
