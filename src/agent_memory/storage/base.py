"""`MemoryStorage`: what every backend can do. The contract suite in tests/contract holds each implementation to it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from agent_memory.errors import ConfigurationError, UnknownIdError
from agent_memory.installing import advice

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence

    from agent_memory.models import Memory, SearchFilters, SearchResults
    from agent_memory.storage.migration import Built, Estimate, Progress


class MemoryStorage(ABC):
    """One agent's memories behind one interface.

    Asynchronous at this edge, synchronous below: each call runs in the storage's own worker thread, one at a time,
    reads and writes each in the order of the calls; a read does not wait for a write that waits for another process.
    A cancelled call still finishes; its result is dropped.
    """

    agent_id: str
    backend: str

    @abstractmethod
    async def search(
        self,
        query: str,
        limit: int = 5,
        filters: SearchFilters | Mapping[str, Any] | None = None,
        *,
        include_superseded: bool = False,
        explain: bool = False,
    ) -> SearchResults:
        """Return the best matches, best first. Does not count as an access.

        Args:
            query: Words or a question.
            limit: 1 to 100.
            filters: Conditions every result meets.
            include_superseded: Also find memories that a newer one replaced.
            explain: Also report what was left out and why (`SearchResults.rejected`).

        Raises:
            ValidationError: The limit or a filter is wrong.
            StorageError: The memories cannot be read.
        """

    @abstractmethod
    async def store(self, memory: Memory, *, unique: bool = False) -> str:
        """Keep `memory`; when this returns, it is on disk.

        Args:
            memory: What to keep; its `agent_id` must be this storage's.
            unique: Do not store a text that is already known (ignoring case and white space).

        Returns:
            The id under which the text is now known: `memory.id`, or with `unique` that of the memory it repeats.

        Raises:
            ValidationError: The id is taken by another text, or it supersedes an unknown memory.
            StorageError: Nothing was written.
        """

    @abstractmethod
    async def store_many(self, memories: Sequence[Memory]) -> None:
        """Keep memories that are not there yet, as one change; what they supersede need not be there.

        For bringing back what was stored once: all of them are there afterwards, or none.

        Raises:
            ValidationError: One is another agent's, its id is taken by another text, or it would replace itself through
                others; nothing was stored.
            StorageError: Nothing was written.
        """

    @abstractmethod
    async def get(self, memory_id: str) -> Memory | None:
        """Return one memory, also a superseded or expired one, or None."""

    @abstractmethod
    async def list_recent(self, limit: int = 10) -> list[Memory]:
        """Return the newest valid memories, newest first."""

    @abstractmethod
    async def update(self, memory_id: str, changes: Mapping[str, Any]) -> Memory:
        """Change fields of a memory; None gives a field its default again. Returns the memory as it is now.

        Raises:
            UnknownIdError: There is no such memory.
            ValidationError: A field is unknown, cannot be changed, or its value is wrong; nothing was written.
            StorageError: Nothing was written.
        """

    @abstractmethod
    async def delete(self, memory_id: str) -> Memory:
        """Forget a memory, together with the older versions that it replaced, and return it.

        Without them, forgetting where somebody lives would bring back where they lived before.

        Raises:
            UnknownIdError: There is no such memory.
            StorageError: Nothing was written.
        """

    @abstractmethod
    async def older_versions(self, memory_id: str) -> list[str]:
        """Return the ids that a memory replaced, directly or through others, newest first."""

    @abstractmethod
    async def touch(self, memory_ids: Collection[str]) -> None:
        """Count one access for each id; unknown ids are skipped.

        Raises:
            StorageError: Nothing was written.
        """

    async def update_access_stats(self, memory_id: str) -> None:
        """Count one access.

        Raises:
            UnknownIdError: There is no such memory.
            StorageError: Nothing was written.
        """
        if await self.get(memory_id) is None:
            raise UnknownIdError(f"There is no memory {memory_id[:40]!r}.")
        await self.touch([memory_id])

    @abstractmethod
    async def count(self) -> int:
        """Return how many memories there are, superseded and expired ones included."""

    @abstractmethod
    def iter_all(self) -> AsyncIterator[Memory]:
        """Yield every memory in the order of storing, as of the moment of the first step."""

    @abstractmethod
    async def valid(self) -> list[Memory]:
        """Return what an agent may be shown: neither expired nor superseded, in the order of storing."""

    async def recent(
        self,
        count: int,  # noqa: ARG002 - for those that keep an order
        promotion_threshold: int,  # noqa: ARG002
        admits: Callable[[Memory], bool],  # noqa: ARG002
    ) -> list[Memory]:
        """Return what a scratchpad is chosen from, in the order of storing; more than that does no harm.

        Args:
            count: How many of the last stored, promoted or often accessed are wanted, besides all that are pinned.
            promotion_threshold: From this many accesses on, an access counts.
            admits: Tells which of the valid memories count.
        """
        return await self.valid()

    @abstractmethod
    async def superseded(self) -> dict[str, str]:
        """Return which memories are replaced: id to the id of the memory that replaces it."""

    @abstractmethod
    async def was_forgotten(self, content: str) -> bool:
        """Tell whether this text was stored once, was forgotten, and the journal still remembers that."""

    async def prepare(self, patience: float | None = None) -> bool:  # noqa: ARG002 - for those that embed
        """Get ready to search, by meaning too where there is an embedder; tell whether searches are hybrid now.

        Args:
            patience: Seconds to wait at most; None waits until every memory has its vector.

        Raises:
            StorageError: The memories cannot be read.
        """
        return False

    def embedding(self) -> dict[str, Any]:
        """Return how search by meaning stands: `status` off, loading, ready or failing, and why."""
        return {"status": "off", "reason": "this backend has no embedder"}

    @property
    def can_migrate(self) -> bool:
        """Whether this agent can be moved to the vector engine and back while it is in use."""
        return False

    async def estimate(self) -> Estimate:
        """Return what `migrate` would take.

        Raises:
            ConfigurationError: This storage cannot be moved.
            StorageError: The memories cannot be read.
        """
        raise _cannot_move()

    async def migrate(self, progress: Progress | None = None) -> Built:  # noqa: ARG002 - for those that can
        """Move to the vector engine; stores and searches go on meanwhile. See `GrowingStorage.migrate`.

        Raises:
            ConfigurationError: This storage cannot be moved.
            MigrationError: It failed; the backend is what it was before.
        """
        raise _cannot_move()

    async def rollback(self) -> bool:
        """Answer from the files alone again; tell whether that was not so already.

        Raises:
            ConfigurationError: This storage cannot be moved.
            StorageError: Nothing has changed.
        """
        raise _cannot_move()

    @abstractmethod
    async def health(self) -> dict[str, Any]:
        """Return what is wrong with the files, in numbers and short sentences; `{"status": "ok"}` at best."""

    @abstractmethod
    async def compact(self) -> None:
        """Drop what is no longer needed from the files.

        Raises:
            StorageError: The files are as they were.
        """

    @abstractmethod
    async def close(self) -> None:
        """Finish what is under way and let go of files and threads. May be called more than once."""


def _cannot_move() -> ConfigurationError:
    return ConfigurationError(
        "This memory cannot be moved to the vector engine: the engine or an embedder is missing or switched off.",
        code="cannot_migrate",
        recovery=f"Set backend to 'auto' and embedder to 'local'. If a package is missing: {advice('local', 'vector')}",
    )
