"""`Admin`: what a person who looks after a memory asks and does: all of it read, brought in, taken out, compacted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_memory.service.categories import known_category
from agent_memory.service.writing import Terms

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import timedelta

    from agent_memory.models import Clock, Memory
    from agent_memory.service.caller import Caller
    from agent_memory.service.scratchpad_sync import ScratchpadSync
    from agent_memory.service.writing import Imported, WritePath
    from agent_memory.storage import MemoryStorage


class Admin:
    """Looks after one agent's memory; part of its `MemoryService`.

    Args:
        storage: The memories.
        writing: Returns the write path to a storage.
        pad: Has the scratchpad's file rendered.
        clock: Source of the present.
    """

    def __init__(
        self,
        storage: MemoryStorage,
        writing: Callable[[MemoryStorage], WritePath],
        pad: ScratchpadSync,
        clock: Clock,
    ) -> None:
        self._storage = storage
        self._writing = writing
        self._pad = pad
        self._clock = clock

    @property
    def backend(self) -> str:
        """What answers searches now: file, vector or server."""
        return self._storage.backend

    async def everything(self) -> list[Memory]:
        """Return all memories in the order of storing, superseded and expired ones included."""
        return [memory async for memory in self._storage.iter_all()]

    async def count(self) -> int:
        """Return how many memories there are, superseded and expired ones included."""
        return await self._storage.count()

    async def find(self, memory_id: str) -> Memory | None:
        """Return one memory, None if there is none."""
        return await self._storage.get(memory_id)

    async def superseded(self) -> dict[str, str]:
        """Return which memories are replaced: id to the id of the memory that replaces it."""
        return await self._storage.superseded()

    async def older_versions(self, memory_id: str) -> list[str]:
        """Return the ids that a memory replaced, directly or through others, newest first."""
        return await self._storage.older_versions(memory_id)

    async def known_category(self, name: str) -> str:
        """Return a category in lower case, if it is built in or a memory of this agent has it already.

        Raises:
            ValidationError: There is no such category.
            StorageError: The memories cannot be read.
        """
        return await known_category(self._storage, name)

    async def health(self) -> dict[str, Any]:
        """Return what is wrong with the files; see `MemoryStorage.health`."""
        return await self._storage.health()

    async def prepare(self, patience: float | None = None) -> bool:
        """Get ready to search by meaning, too; see `MemoryStorage.prepare`."""
        return await self._storage.prepare(patience)

    def embedding(self) -> dict[str, Any]:
        """Return how search by meaning stands; see `MemoryStorage.embedding`."""
        return self._storage.embedding()

    async def compact(self, grace: timedelta | None = None) -> None:
        """See `MemoryStorage.compact`; with `timedelta(0)` what was forgotten or replaced is gone for good."""
        await self._storage.compact(grace)
        self._pad.schedule()  # the file may show what has expired
        await self._pad.settle()

    async def import_memories(
        self,
        memories: Sequence[Memory],
        each: Callable[[Imported], object],
        caller: Caller,
        *,
        trusted: bool = False,
        dry_run: bool = False,
    ) -> None:
        """Bring exported memories in; those that are there stay as they are.

        A memory may supersede one that comes later or one that was forgotten before the export: such links are kept.

        Args:
            memories: What an export said.
            each: Told what became of each, in their order, once it is on disk.
            caller: The session that asks.
            trusted: Believe all they claim; otherwise nothing that would put one above others.
            dry_run: Tell what would become of each, and store none.

        Raises:
            StorageError: What `each` was told of before is on disk; doing it all again does the rest.
        """
        terms = Terms(self._clock(), trusted=trusted, dry_run=dry_run)
        try:
            await self._writing(self._storage).bring_in(memories, each, caller, terms)
        finally:
            if not dry_run:
                self._pad.schedule(caller)

    async def transfer(
        self,
        memories: Sequence[Memory],
        each: Callable[[Imported], object],
        caller: Caller,
        *,
        to: MemoryStorage | None = None,
    ) -> None:
        """Bring in the memories of another storage of this agent, or bring these to another: what is missing there.

        What is there stays, and what was forgotten there stays forgotten; so it may be broken off and done again.

        Args:
            memories: All that the one storage has.
            each: Told what became of each, in their order, once it is safe.
            caller: The session that asks.
            to: The other storage; they come here when omitted.

        Raises:
            StorageError: What `each` was told of before is safe; doing it all again does the rest.
        """
        try:
            terms = Terms(self._clock(), is_transfer=True)
            await self._writing(to or self._storage).bring_in(memories, each, caller, terms)
        finally:
            if to is None:
                self._pad.schedule(caller)
