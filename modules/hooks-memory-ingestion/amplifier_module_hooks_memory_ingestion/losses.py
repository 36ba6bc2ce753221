"""`Losses`: what was said and is not taken in, counted by reason, and told by event."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from agent_memory.memory.events import payload
from agent_memory.models import to_text, utc_now

if TYPE_CHECKING:
    from agent_memory.integrations.amplifier import MemorySession

EVENT: Final = "memory:ingestion_skipped"


class Losses:
    """Of one session.

    Args:
        session: Gets the events.

    Attributes:
        by_reason: How many turns, by a word that says why.
    """

    def __init__(self, session: MemorySession) -> None:
        self._session = session
        self.by_reason: Counter[str] = Counter()
        self._untold: Counter[str] = Counter()

    @property
    def is_untold(self) -> bool:
        """True if some of them were not told yet."""
        return bool(self._untold)

    def count(self, reason: str, turns: int = 1) -> None:
        """Count some turns; `tell` reports them."""
        self._untold[reason] += turns
        self.by_reason[reason] += turns

    async def tell(self, agent_id: str | None) -> None:
        """Emit one event for each reason that was not told yet, of the agent that the session has."""
        untold, self._untold = self._untold, Counter()
        common = {"agent_id": agent_id, "session_id": self._session.session_id, "timestamp": to_text(utc_now())}
        for reason, count in untold.items():
            await self._session.conversation.emit(EVENT, payload(EVENT, {**common, "reason": reason, "count": count}))
