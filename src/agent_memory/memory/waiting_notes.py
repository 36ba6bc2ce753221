"""Search source for unconfirmed texts of the inbox."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_memory.memory.inbox_access import inbox_exists
from agent_memory.memory.search_sources import SearchSource, build_hit
from agent_memory.models import HitOrigin, sees, utc_now

if TYPE_CHECKING:
    from agent_memory.memory.inbox import InboxReader
    from agent_memory.memory.search_sources import WideRequest
    from agent_memory.memory.service import MemoryService
    from agent_memory.models import Candidate, Clock, SearchResults

_UNCONFIRMED = HitOrigin(is_confirmed=False)


def add_waiting_notes(service: MemoryService, *, clock: Clock = utc_now) -> MemoryService:
    """Add the agent's inbox as a search source; return the service."""
    service.searcher.add_source(WaitingNotes(service, clock))
    return service


class WaitingNotes(SearchSource):
    """Source of the texts that wait in the inbox.

    Args:
        service: Service of the agent's memory.
        clock: Source of the present.
    """

    def __init__(self, service: MemoryService, clock: Clock) -> None:
        self._service, self._clock = service, clock
        self._inbox: InboxReader | None = None

    async def find(self, asked: WideRequest) -> SearchResults:
        """Return the waiting notes that match by their words."""
        results = await super().find(asked)
        if not asked.has_waiting or "note" not in asked.kinds:
            return results
        waiting = await self._waiting()
        if waiting and self._inbox is not None:
            answer = await self._inbox.answer(asked.elsewhere())
            hits = [(hit, waiting[hit.id]) for hit in answer.ranking.hits if hit.id in waiting]
            results += [build_hit(candidate, _UNCONFIRMED, hit) for hit, candidate in hits]
            results.total_found, results.words = len(hits), answer.ranking.words
        return results

    async def count(self, asked: WideRequest) -> dict[str, Any]:
        """Count the waiting notes."""
        waiting = (await self._waiting()).values() if asked.has_waiting else ()
        return {"waiting": sum(sees(asked.caller.group, candidate.facets) for candidate in waiting)}

    async def close(self) -> None:
        """Close the inbox."""
        if self._inbox is not None:
            await self._inbox.close()

    async def _waiting(self) -> dict[str, Candidate]:
        if not inbox_exists(self._service.agent_id, self._service.settings):
            return {}
        if self._inbox is None:
            from agent_memory.memory.inbox import InboxReader  # for those who have one

            self._inbox = InboxReader(self._service, clock=self._clock)
        return {candidate.id: candidate for candidate in await self._inbox.waiting() if candidate.is_note}
