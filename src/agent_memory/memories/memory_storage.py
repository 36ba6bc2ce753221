"""`MemoryStorage`: one agent's memories behind one interface, whatever the backend."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from typing_extensions import override

from agent_memory.errors import UnknownIdError
from agent_memory.models import Memory, MemorySearchResult, SearchRequest, SearchResults, filters_of
from agent_memory.redaction import quoted
from agent_memory.storage.record_storage import RecordStorage
from agent_memory.storage.trouble import weakness

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from agent_memory.models import SearchFilters, Version
    from agent_memory.storage.answer import Answer
    from agent_memory.storage.cleaning import Redacted


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
            patience: Seconds to wait at most until what is stored is found by its embedding, too; 0 does not wait, None
                waits as long as this storage was made to. `SearchResults.mode` says how it was searched, `degraded` why
                it could not be better.

        Raises:
            ValidationError: The limit or a filter is wrong.
            StorageError: The memories cannot be read.
        """
        request = SearchRequest(query, limit, self._clock(), filters_of(filters), include_superseded, explain, patience)
        results = _results_of(await self.answer(request))
        if not self.opened.embeddings.is_empty:
            results.degraded = weakness(results, self.embedding_status())
        return results

    async def update_access_stats(self, memory_id: str) -> None:
        """Count one access.

        Raises:
            UnknownIdError: There is no such memory.
            StorageError: Nothing was written.
        """
        if await self.get(memory_id) is None:
            raise UnknownIdError(f"There is no memory {quoted(memory_id)}.")
        await self.touch([memory_id])

    # The arguments' names are part of what is promised: a program may give them by name.

    @override
    async def store(self, memory: Memory | Redacted[Memory], *, unique: bool = False) -> str:
        """See `RecordStorage.store`."""
        return await super().store(memory, unique=unique)

    @override
    async def store_many(self, memories: Sequence[Memory | Redacted[Memory]]) -> None:
        """See `Storage.store_many`."""
        await super().store_many(memories)

    @override
    async def get(self, memory_id: str) -> Memory | None:
        """Return one memory, also a superseded or expired one, or None."""
        return await super().get(memory_id)

    @override
    async def update(self, memory_id: str, changes: Mapping[str, Any] | Redacted[dict[str, Any]]) -> Memory:
        """See `Storage.update`."""
        return await super().update(memory_id, changes)

    @override
    async def delete(self, memory_id: str) -> Memory:
        """See `Storage.delete`."""
        return await super().delete(memory_id)

    @override
    async def touch(self, memory_ids: Collection[str]) -> None:
        """See `Storage.touch`."""
        await super().touch(memory_ids)

    @override
    async def history(self, memory_id: str) -> list[Version[Memory]]:
        """See `Versioned.history`."""
        return await super().history(memory_id)

    @override
    async def forgotten_with(self, memory_id: str) -> list[Memory]:
        """See `Versioned.forgotten_with`."""
        return await super().forgotten_with(memory_id)

    @override
    async def older_versions(self, memory_id: str) -> list[str]:
        """See `Versioned.older_versions`."""
        return await super().older_versions(memory_id)

    @override
    async def was_forgotten(self, content: str) -> bool:
        """See `Versioned.was_forgotten`."""
        return await super().was_forgotten(content)


def _results_of(answer: Answer[Memory]) -> SearchResults:
    """Return an answer in its public form."""
    ranking = answer.ranking
    results = [
        MemorySearchResult(memory=memory, relevance_score=hit.score, match_type=hit.match_type, parts=hit.parts)
        for hit, memory in zip(ranking.hits, answer.records, strict=True)
    ]
    rejected = [{"id": each.id, "reason": each.reason, "parts": each.parts} for each in ranking.rejected]
    return SearchResults(results, total_found=ranking.total_found, mode=ranking.mode, rejected=rejected)
