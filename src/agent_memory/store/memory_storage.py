"""`MemoryStorage`: one agent's memories behind one interface, whatever the backend."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_memory.errors import UnknownIdError
from agent_memory.models import Memory, MemorySearchResult, SearchRequest, SearchResults, filters_of
from agent_memory.redaction import quoted
from agent_memory.store.protocols import weakness
from agent_memory.store.record_storage import RecordStorage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from agent_memory.index import Hit
    from agent_memory.models import SearchFilters
    from agent_memory.store.store import Answer


class MemoryStorage(RecordStorage[Memory]):
    """One agent's memories; see `RecordStorage`. Made as a `FileStorage`, a `VectorStorage` or by `detect_storage`."""

    async def search(
        self,
        query: str,
        limit: int = 5,
        filters: SearchFilters | Mapping[str, Any] | None = None,
        *,
        include_superseded: bool = False,
        explain: bool = False,
        patience: float | None = None,
        min_answer_confidence: float | None = None,
    ) -> SearchResults:
        """Return the best matches, best first. Does not count as an access.

        Args:
            query: Words or a question.
            limit: 1 to 100.
            filters: Conditions every result meets.
            include_superseded: Also find memories that a newer one replaced.
            explain: Also report what was left out and why (`SearchResults.rejected`).
            patience: Seconds to wait at most until what is stored is found by its embedding, too; 0 does not wait, None
                waits as long as this storage was made to. `SearchResults.mode` says how it was searched, `degraded` why
                it could not be better.
            min_answer_confidence: Least `SearchResults.answer_confidence` of an answer that is not `not_known`, 0 to 1.
                For programs of earlier versions; read `SearchResults.match`.

        Raises:
            ValidationError: The limit, a filter or the least confidence is wrong.
            StorageError: The memories cannot be read.
        """
        request = SearchRequest(
            query,
            limit,
            self._clock(),
            filters_of(filters),
            include_superseded,
            explain,
            patience,
            min_answer_confidence,
        )
        results = _results_of(await self.answer(request))
        results.min_answer_confidence = min_answer_confidence
        if not self.opened.embeddings.is_empty:
            results.degraded = weakness(results, self.embedding_status())
        return results

    async def find_hits(
        self, text: str, limit: int, filters: SearchFilters, keeps: Callable[[Hit], bool]
    ) -> Sequence[MemorySearchResult]:
        """Return the wanted hits among the best `limit` matches, without waiting for a model or vectors.

        Args:
            text: Text to search for.
            limit: Number of matches to look at.
            filters: Conditions every result meets.
            keeps: Returns True for a hit that is wanted; the memories of the others are not loaded.

        Raises:
            StorageError: The memories cannot be read.
        """
        request = SearchRequest(text, limit, self._clock(), filters, patience=0)
        return _results_of(await self.answer(request, keeps))

    async def update_access_stats(self, memory_id: str) -> None:
        """Count one access.

        Raises:
            UnknownIdError: There is no such memory.
            StorageError: Nothing was written.
        """
        if await self.get(memory_id) is None:
            raise UnknownIdError(f"There is no memory {quoted(memory_id)}.")
        await self.touch([memory_id])


def build_result(memory: Memory, hit: Hit, **fields: Any) -> MemorySearchResult:
    """Return a hit of a ranking in its public form.

    Args:
        memory: Text of the hit.
        hit: Its place in the ranking.
        fields: Further fields of the result, such as `surroundings`.
    """
    return MemorySearchResult(
        memory=memory,
        relevance_score=hit.score,
        match_type=hit.match_type,
        parts=hit.parts,
        match=hit.match,
        answer_confidence=hit.strength,
        pieces=hit.pieces,
        **fields,
    )


def _results_of(answer: Answer[Memory]) -> SearchResults:
    """Return an answer in its public form."""
    ranking = answer.ranking
    results = [
        build_result(memory, hit, surroundings=around)
        for hit, memory, around in zip(ranking.hits, answer.records, answer.surroundings, strict=True)
    ]
    rejected = [{"id": each.id, "reason": each.reason, "parts": each.parts} for each in ranking.rejected]
    found = SearchResults(
        results,
        total_found=ranking.total_found,
        mode=ranking.mode,
        rejected=rejected,
        match=ranking.match,
        answer_confidence=ranking.strength,
    )
    found.looks_back, found.words = answer.looks_back, ranking.words
    return found
