"""From observations to memories: what capture may keep. Redacts and checks like any other write."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any, Final, Protocol

from agent_memory.errors import ValidationError
from agent_memory.service.drafts import draft
from agent_memory.service.results import CaptureOutcome

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_memory.models import Clock, Memory, Observation
    from agent_memory.redaction import Redactor
    from agent_memory.service.caller import Caller
    from agent_memory.storage import MemoryStorage
    from agent_memory.storage.cleaning import Redacted

# Captured sentences that share this much of their words say the same; below, "use tabs" and "use spaces" would meet.
_NEAR_DUPLICATE: Final = 0.85


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
        if await self._says_the_same(memory.content):
            return "duplicate"
        if await self._storage.store(drafted, unique=True) != memory.id:
            return "duplicate"
        outcome.stored.append(memory.id)
        await self._report(
            "memory:captured",
            caller,
            memory_id=memory.id,
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

    async def _says_the_same(self, content: str) -> bool:
        words = _words(content)
        nearest = await self._storage.search(content, 1)
        if not words or not nearest:
            return False
        other = _words(nearest[0].memory.content)
        return len(words & other) >= _NEAR_DUPLICATE * len(words | other)


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.casefold()))
