"""Turns that were not kept, by reason."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from agent_memory.memory.events import payload
from agent_memory.models import to_text, utc_now

if TYPE_CHECKING:
    from agent_memory.integrations.amplifier import MemorySession

EVENT: Final = "memory:ingestion_skipped"


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
            await self._session.conversation.emit(EVENT, payload(EVENT, {**common, "reason": reason, "count": count}))
