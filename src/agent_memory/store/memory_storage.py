"""`MemoryStorage`: one agent's memories behind one interface, whatever the backend."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from typing_extensions import override

from agent_memory.errors import UnknownIdError
from agent_memory.models import Memory, MemorySearchResult, SearchRequest, SearchResults, filters_of
from agent_memory.redaction import quoted
from agent_memory.store.record_storage import RecordStorage
from agent_memory.store.trouble import weakness

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from agent_memory.index import Hit
    from agent_memory.models import RecordVersion, SearchFilters
    from agent_memory.store.answer import Answer
    from agent_memory.store.cleaning import Redacted


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
        """Store a memory without its secrets and return its ID.

        It is on disk when this returns. With `unique`, a text that is known already (see `get_duplicate_key`) is not
        stored: its ID is returned.

        Raises:
            ValidationError: The id is taken by another text, the memory is another agent's, supersedes an unknown one,
                or is nothing but a secret.
            StorageError: Nothing was written.
        """
        return await super().store(memory, unique=unique)

    @override
    async def store_many(self, memories: Sequence[Memory | Redacted[Memory]]) -> None:
        """Keep memories that are not there yet, all or none; what they supersede need not be there.

        Raises:
            ValidationError: As for `store`, or one would replace itself through others; nothing was stored.
            StorageError: Nothing was written, unless the message says that this is not known.
        """
        await super().store_many(memories)

    @override
    async def get(self, memory_id: str) -> Memory | None:
        """Return one memory, also a superseded or expired one, or None."""
        return await super().get(memory_id)

    @override
    async def update(
        self, memory_id: str, changes: Mapping[str, Any] | Redacted[dict[str, Any]], *, expect_seq: int | None = None
    ) -> Memory:
        """Change fields of a memory and return it as it is now; None gives a field its default again.

        Args:
            memory_id: Which.
            changes: The new values.
            expect_seq: Change nothing unless this is the number of the memory's last change; see `Storage.update`.

        Raises:
            ConflictError: The memory's last change has another number.
            UnknownIdError: There is no such memory.
            ValidationError: A field is unknown, cannot be changed, or its value is wrong; nothing was written.
            StorageError: Nothing was written.
        """
        return await super().update(memory_id, changes, expect_seq=expect_seq)

    @override
    async def delete(self, memory_id: str) -> Memory:
        """Forget a memory, together with the older versions that it replaced, and return it.

        Raises:
            UnknownIdError: There is no such memory.
            StorageError: Nothing was written.
        """
        return await super().delete(memory_id)

    @override
    async def touch(self, memory_ids: Collection[str]) -> None:
        """Count one access of each memory; unknown ids are skipped.

        Raises:
            StorageError: Nothing was written.
        """
        await super().touch(memory_ids)

    @override
    async def history(self, memory_id: str) -> list[RecordVersion[Memory]]:
        """Return the known versions of a memory, oldest first, also of one that was forgotten; accesses are none.

        Raises:
            UnsupportedError: This storage keeps no versions.
            StorageError: They cannot be read.
        """
        return await super().history(memory_id)

    @override
    async def forgotten_with(self, memory_id: str) -> list[Memory]:
        """Return what forgetting a memory took, itself first; `store_many` brings it back.

        Raises:
            UnknownIdError: It was not forgotten, or so long ago that its text is gone for good.
            UnsupportedError: This storage keeps nothing of what was forgotten.
            StorageError: They cannot be read.
        """
        return await super().forgotten_with(memory_id)

    @override
    async def older_versions(self, memory_id: str) -> list[str]:
        """Return the ids that a memory replaced, directly or through others, newest first."""
        return await super().older_versions(memory_id)

    @override
    async def was_forgotten(self, content: str) -> bool:
        """Tell whether this text was stored once, was forgotten, and stands in the log still."""
        return await super().was_forgotten(content)


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
