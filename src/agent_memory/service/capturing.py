"""From observations to memories: what capture may keep. Redacts and checks like any other write."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, Protocol

from agent_memory.errors import ValidationError
from agent_memory.models import may_stand_for
from agent_memory.service.drafts import draft
from agent_memory.service.results import CaptureOutcome
from agent_memory.service.trust import statement_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_memory.models import Clock, Memory, Observation
    from agent_memory.redaction import Redactor
    from agent_memory.service.caller import Caller
    from agent_memory.storage import MemoryStorage
    from agent_memory.storage.cleaning import Redacted

_NEIGHBOURS: Final = 5
"""Nearest memories that are compared: the nearest of all may be one that does not count."""


class Report(Protocol):
    """Emits one of our events."""

    async def __call__(self, event: str, caller: Caller, **fields: Any) -> None:
        """Tell the caller's session."""


class CaptureKeeper:
    """Stores observations, unless they are known, were forgotten, or cannot be kept."""

    def __init__(self, storage: MemoryStorage, redactor: Redactor, report: Report, clock: Clock) -> None:
        self._storage = storage
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
        known_as = await self._storage.store(drafted, unique=True)
        if known_as != memory.id and not await self._take_over(known_as, memory):
            return "duplicate"
        outcome.stored.append(known_as)
        await self._report(
            "memory:captured",
            caller,
            memory_id=known_as,
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
        from agent_memory.capture import is_near_duplicate  # noqa: PLC0415 - its patterns are for those who capture

        nearest = await self._storage.search(memory.content, _NEIGHBOURS, patience=0)
        return any(
            may_stand_for(found.memory.trust, memory.trust) and is_near_duplicate(found.memory.content, memory.content)
            for found in nearest
        )

    async def _take_over(self, memory_id: str, memory: Memory) -> bool:
        """Make a stranger's memory with the same text that of who says it now; else leave it and return False.

        Whatever the stranger gave it goes: tags, links, what it claims to replace.
        """
        known = await self._storage.get(memory_id)
        if known is None or may_stand_for(known.trust, memory.trust):
            return False
        await self._storage.update(memory_id, statement_of(memory))
        return True
