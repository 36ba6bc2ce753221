"""`MemoryStorage`: one agent's memories behind one interface, whatever the backend."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_memory.errors import UnknownIdError
from agent_memory.models import Memory, MemorySearchResult, SearchRequest, SearchResults, filters_of
from agent_memory.storage.facade import RecordStorage
from agent_memory.storage.trouble import weakness

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_memory.models import SearchFilters
    from agent_memory.storage.answer import Answer


class MemoryStorage(RecordStorage[Memory]):
    """One agent's memories. Made as a `FileStorage`, a `VectorStorage` or by `detect_storage`.

    Asynchronous at this edge, synchronous below: each call runs in the storage's own worker thread, one at a time,
    reads and writes each in the order of the calls; a read does not wait for a write that waits for another process.
    A cancelled call still finishes; its result is dropped.

    Nothing gets past the redactor: what is stored or changed has its secrets taken out, unless it is marked as
    `Redacted`.
    """

    async def search(
        self,
        query: str,
        limit: int = 5,
        filters: SearchFilters | Mapping[str, Any] | None = None,
        *,
        include_superseded: bool = False,
        explain: bool = False,
        patience: float | None = None,
    ) -> SearchResults:
        """Return the best matches, best first. Does not count as an access.

        Args:
            query: Words or a question.
            limit: 1 to 100.
            filters: Conditions every result meets.
            include_superseded: Also find memories that a newer one replaced.
            explain: Also report what was left out and why (`SearchResults.rejected`).
            patience: Seconds to wait at most until what is stored is found by meaning, too; 0 does not wait, None waits
                as long as this storage was made to. `SearchResults.mode` says how it was searched, `degraded` why it
                could not be better.

        Raises:
            ValidationError: The limit or a filter is wrong.
            StorageError: The memories cannot be read.
        """
        request = SearchRequest(query, limit, self._clock(), filters_of(filters), include_superseded, explain, patience)
        results = _results_of(await self.find(request))
        if not self.opened.embeddings.is_empty:
            results.degraded = weakness(results, self.embedding())
        return results

    async def list_recent(self, limit: int = 10) -> list[Memory]:
        """Return the newest valid memories, newest first."""
        return await self.latest(limit)

    async def update_access_stats(self, memory_id: str) -> None:
        """Count one access.

        Raises:
            UnknownIdError: There is no such memory.
            StorageError: Nothing was written.
        """
        if await self.get(memory_id) is None:
            raise UnknownIdError(f"There is no memory {memory_id[:40]!r}.")
        await self.touch([memory_id])

    update = RecordStorage.change
    iter_all = RecordStorage.iterate


def _results_of(answer: Answer[Memory]) -> SearchResults:
    """Return an answer in its public form."""
    ranking = answer.ranking
    results = [
        MemorySearchResult(memory=memory, relevance_score=hit.score, match_type=hit.match_type, parts=hit.parts)
        for hit, memory in zip(ranking.hits, answer.records, strict=True)
    ]
    rejected = [{"id": each.id, "reason": each.reason, "parts": each.parts} for each in ranking.rejected]
    return SearchResults(results, total_found=ranking.total_found, mode=ranking.mode, rejected=rejected)
