"""`MemoryStorage`: what every backend can do. The contract suite in tests/contract holds each implementation to it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from agent_memory.errors import ConfigurationError, UnknownIdError, UnsupportedError
from agent_memory.models import MEMORY
from agent_memory.storage.changes import says_the_same
from agent_memory.storage.cleaning import Redacted, cleaned_fields, cleaned_record
from agent_memory.storage.trouble import Trouble, trouble_of_embedder

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
    from datetime import datetime, timedelta

    from agent_memory.models import Memory, SearchFilters, SearchResults, Version
    from agent_memory.storage.recency import Order
    from agent_memory.storage.vector.migration import Built, Estimate, Progress


class MemoryStorage(ABC):
    """One agent's memories behind one interface.

    Asynchronous at this edge, synchronous below: each call runs in the storage's own worker thread, one at a time,
    reads and writes each in the order of the calls; a read does not wait for a write that waits for another process.
    A cancelled call still finishes; its result is dropped.

    Nothing gets past the redactor: what is handed to `store`, `store_many` and `update` has its secrets taken out here,
    unless it is marked as `Redacted`. A backend implements `_keep`, `_keep_many` and `_change` and leaves those three
    as they are.
    """

    agent_id: str

    @property
    @abstractmethod
    def backend(self) -> str:
        """What answers searches: `file`, `vector` or `server`."""

    @abstractmethod
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

    async def store(self, memory: Memory | Redacted[Memory], *, unique: bool = False) -> str:
        """Keep `memory` without its secrets; when this returns, it is on disk.

        Args:
            memory: What to keep; its `agent_id` must be this storage's.
            unique: Do not store a text that is already known (ignoring case and white space).

        Returns:
            The id under which the text is now known: `memory.id`, or with `unique` that of the memory it repeats.

        Raises:
            ValidationError: The id is taken by another text, it supersedes an unknown memory, or it is nothing but a
                secret.
            StorageError: Nothing was written.
        """
        return await self._keep(lambda: cleaned_record(MEMORY, memory), unique=unique)

    async def store_many(self, memories: Sequence[Memory | Redacted[Memory]]) -> None:
        """Keep memories that are not there yet, as one change; what they supersede need not be there.

        For bringing back what was stored once: all of them are there afterwards, or none.

        Raises:
            ValidationError: One is another agent's, its id is taken by another text, or it would replace itself through
                others, or is nothing but a secret; nothing was stored.
            StorageError: Nothing was written.
        """
        await self._keep_many(lambda: [cleaned_record(MEMORY, memory) for memory in memories])

    @abstractmethod
    async def get(self, memory_id: str) -> Memory | None:
        """Return one memory, also a superseded or expired one, or None."""

    @abstractmethod
    async def list_recent(self, limit: int = 10) -> list[Memory]:
        """Return the newest valid memories, newest first."""

    async def update(self, memory_id: str, changes: Mapping[str, Any] | Redacted[dict[str, Any]]) -> Memory:
        """Change fields of a memory; None gives a field its default again. Returns the memory as it is now.

        Raises:
            UnknownIdError: There is no such memory.
            ValidationError: A field is unknown, cannot be changed, or its value is wrong; nothing was written.
            StorageError: Nothing was written.
        """
        return await self._change(memory_id, lambda: cleaned_fields(MEMORY, changes))

    @abstractmethod
    async def _keep(self, cleaned: Callable[[], Memory], *, unique: bool) -> str:
        """Do what `store` says with what `cleaned` returns; it takes milliseconds, so not on the event loop."""

    @abstractmethod
    async def _keep_many(self, cleaned: Callable[[], Sequence[Memory]]) -> None:
        """Do what `store_many` says with what `cleaned` returns."""

    @abstractmethod
    async def _change(self, memory_id: str, cleaned: Callable[[], Mapping[str, Any]]) -> Memory:
        """Do what `update` says with what `cleaned` returns."""

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
        order: Order,  # noqa: ARG002 - for those that keep one
    ) -> list[Memory]:
        """Return what a scratchpad is chosen from, in the order of storing; more than that does no harm.

        Args:
            order: The scratchpad's rule. All pinned memories that it admits are wanted, and as many of the others, by
                their moment, as it has places.
        """
        return await self.valid()

    async def still_true(self, shown: Sequence[Memory]) -> bool:
        """Tell whether memories that were shown may be shown on, whoever changed something meanwhile.

        False once one of them was forgotten, replaced or reworded, has expired, or is no longer trusted.

        Raises:
            StorageError: The memories cannot be read.
        """
        now = {memory.id: memory for memory in await self.valid()}
        return all(says_the_same(memory, now.get(memory.id)) for memory in shown)

    @abstractmethod
    async def superseded(self) -> dict[str, str]:
        """Return which memories are replaced: id to the id of the memory that replaces it."""

    @abstractmethod
    async def was_forgotten(self, content: str) -> bool:
        """Tell whether this text was stored once, was forgotten, and the journal still remembers that."""

    async def forgotten_among(self, contents: Collection[str]) -> set[str]:
        """Return those of these texts for which `was_forgotten` holds."""
        return {content for content in contents if await self.was_forgotten(content)}

    async def prepare(self, patience: float | None = None) -> bool:  # noqa: ARG002 - for those that embed
        """Get ready to search, by meaning too where there is an embedder; tell whether searches are hybrid now.

        Args:
            patience: Seconds to wait at most; None waits until every memory has its vector.

        Raises:
            StorageError: The memories cannot be read.
        """
        return False

    def embedding(self) -> dict[str, Any]:
        """Return how search by meaning stands: `status` off, found (not loaded yet), loading, ready or failing; why."""
        return {"status": "off", "reason": "this backend has no embedder", "chosen": True}

    def troubles(self) -> list[Trouble]:
        """Return what does not work as it could, without waiting for anything."""
        trouble = trouble_of_embedder(self.embedding())
        return [trouble] if trouble is not None else []

    def embedding_cost(self) -> float:
        """Return what the embedder has charged so far, in US dollars."""
        return 0.0

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
        raise self._immovable()

    async def migrate(self, progress: Progress | None = None) -> Built:  # noqa: ARG002 - for those that can
        """Move to the vector engine; stores and searches go on meanwhile. See `MigratableStorage.migrate`.

        Raises:
            ConfigurationError: This storage cannot be moved.
            MigrationError: It failed; the backend is what it was before.
        """
        raise self._immovable()

    async def migration_begun(self) -> bool:
        """Tell whether a migration was begun, here or in an earlier session, and has neither ended nor failed."""
        return False

    async def note_migration(self, *, begun: bool) -> None:  # noqa: B027 - most have nothing to note
        """Note that a migration has begun, or has come to an end; what cannot be noted costs nothing else."""

    async def rollback(self) -> bool:
        """Answer from the files alone again; tell whether that was not so already.

        Raises:
            ConfigurationError: This storage cannot be moved.
            StorageError: Nothing has changed.
        """
        raise self._immovable()

    def _immovable(self) -> ConfigurationError:
        """Return the error that says why this storage cannot be moved."""
        return ConfigurationError("This memory cannot be moved to the vector engine.", code="cannot_migrate")

    @abstractmethod
    async def health(self) -> dict[str, Any]:
        """Return what is wrong with the files, in numbers and short sentences; `{"status": "ok"}` at best."""

    async def history(self, memory_id: str) -> list[Version[Memory]]:  # noqa: ARG002 - for those that keep versions
        """Return the versions of a memory that are still known, oldest first; empty for an id that is not known.

        Also of one that was forgotten, as long as its text is there. Accesses are no versions.

        Raises:
            UnsupportedError: This storage keeps no versions.
            StorageError: They cannot be read.
        """
        raise _keeps_no_past()

    async def forgotten_with(self, memory_id: str) -> list[Memory]:  # noqa: ARG002
        """Return what forgetting a memory took, as it was before: itself first, then the versions it had replaced.

        `store_many` brings them back. What is there again by now is left out.

        Raises:
            UnknownIdError: It was not forgotten, or so long ago that its text is gone for good.
            UnsupportedError: This storage keeps nothing of what was forgotten.
            StorageError: They cannot be read.
        """
        raise _keeps_no_past()

    async def forgotten(self) -> list[tuple[Memory, datetime]]:
        """Return all that was forgotten and can be brought back, as it was, and when; the last first.

        Raises:
            UnsupportedError: This storage keeps nothing of what was forgotten.
            StorageError: It cannot be read.
        """
        raise _keeps_no_past()

    @property
    def grace(self) -> timedelta | None:
        """How long at least the text of what is forgotten stays and can be brought back; None: not at all."""
        return None

    @abstractmethod
    async def compact(self, grace: timedelta | None = None) -> None:
        """Drop what is no longer needed from the files.

        Args:
            grace: What was forgotten or replaced longer ago than this goes for good; the storage's own time (30 days)
                when omitted. With `timedelta(0)` nothing can be brought back afterwards.

        Raises:
            StorageError: The files are as they were.
        """

    async def folds(self) -> int:
        """Return how often this object compacted its files unasked, behind a write."""
        return 0

    @abstractmethod
    async def close(self) -> None:
        """Finish what is under way and let go of files and threads. May be called more than once."""


def _keeps_no_past() -> UnsupportedError:
    return UnsupportedError(
        "This storage keeps no earlier versions, and nothing of what was forgotten.",
        recovery="Memories in files have both; what a server holds is changed and forgotten for good.",
    )
