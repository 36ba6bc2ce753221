"""`Admin`: the operations of a person who maintains a memory: read all of it, import, export, compact."""

from __future__ import annotations

import asyncio
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

from agent_memory.errors import ValidationError
from agent_memory.journal import rewrite_returned
from agent_memory.memory.deriving import Deriving
from agent_memory.memory.importing import Import
from agent_memory.memory.similar import find_similar
from agent_memory.models import CATEGORIES
from agent_memory.redaction import quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import timedelta

    from agent_memory.files.layout import AgentFolder
    from agent_memory.memory.caller import Caller
    from agent_memory.memory.importing import Imported
    from agent_memory.memory.path import WritePath
    from agent_memory.memory.scratchpad_sync import ScratchpadSync
    from agent_memory.models import Clock, Memory, Trace
    from agent_memory.store.memory_storage import MemoryStorage

_COMPARED: Final = 2_000
"""Imported memories that are compared behind the import, the last ones: some milliseconds each."""


class Admin:
    """Administration of one agent's memory; part of its `MemoryService`.

    Args:
        writing: The write path to its storage.
        pad: Renders the scratchpad's file.
        clock: Source of the present.
        compare: Begins to compare memories with others in the background.

    Attributes:
        derived: Stores items that background work draws from what came in.
        considered: What capture would store, or why nothing; see `WritePath.considered`.
        folder: Folder of the memories; None if they are not stored in files on this machine.
        get, count, browse, replaced_by, older_versions, surroundings, linked_to: A memory or None; how many; part of a
        list; which replaced which; text around a memory; what is linked to a record. As are answer, search, troubles,
        iter_all, health, prepare, embedding_status, vectors_of, changed_after, gone_after, forgotten_with, valid_among,
        texts_of, linked_to_each: those of `MemoryStorage`.
    """

    def __init__(
        self, writing: WritePath, pad: ScratchpadSync, clock: Clock, compare: Callable[[list[str]], object]
    ) -> None:
        self._writing, self._pad, self._clock, self._compare = writing, pad, clock, compare
        storage = self._storage = writing.storage
        self.derived, self.considered = Deriving(writing), writing.considered
        self.folder: AgentFolder | None = getattr(storage, "folder", None)
        self.search, self.troubles = storage.search, storage.troubles
        self.get, self.count = storage.get, storage.count
        self.browse, self.iter_all, self.answer = storage.browse, storage.iter_all, storage.answer
        self.replaced_by, self.older_versions = storage.replaced_by, storage.older_versions
        self.surroundings, self.linked_to = storage.surroundings, storage.linked_to
        self.forgotten_with = storage.forgotten_with
        self.nearest, self.tally, self.vectors_of = storage.nearest, storage.tally, storage.vectors_of
        self.changed_after, self.valid_among = storage.changed_after, storage.valid_among
        self.texts_of, self.linked_to_each = storage.texts_of, storage.linked_to_each
        self.gone_after = storage.gone_after
        self.health, self.prepare, self.embedding_status = storage.health, storage.prepare, storage.embedding_status

    @property
    def backend(self) -> str:
        """What answers searches now: file, vector or server."""
        return self._storage.backend

    async def everything(self) -> list[Memory]:
        """Return all memories in the order of storing, superseded and expired ones included."""
        return [memory async for memory in self._storage.iter_all()]

    async def known_category(self, name: str) -> str:
        """Return a category in lower case, if it is built in or a memory of this agent has it already.

        Others come in by import or through the library: a word that was mistyped should not begin one.

        Raises:
            ValidationError: There is no such category.
            StorageError: The memories cannot be read.
        """
        folded = name.strip().lower()
        if folded in CATEGORIES:
            return folded
        own = sorted(set((await self._storage.tally()).by_facet.get("category", ())) - set(CATEGORIES))
        if folded in own:
            return folded
        near = get_close_matches(folded, [*CATEGORIES, *own], 1)
        meant = f" Did you mean {near[0]!r}?" if near else ""
        raise ValidationError(
            f"There is no category {quoted(name)}.{meant}",
            code="unknown_category",
            recovery=f"There are: {', '.join([*CATEGORIES, *own])}.",
        )

    async def find_similar(self, memory: Memory, caller: Caller) -> list[Memory]:
        """Return memories to compare with a memory; see `service.similar`."""
        return await find_similar(self._storage, memory, caller)

    async def compact(self, grace: timedelta | None = None) -> None:
        """Compact the journal; see `MemoryStorage.compact`.

        With `timedelta(0)`, forgotten and replaced texts are deleted permanently. Journals that were put back after a
        purge are rewritten without what was purged.
        """
        await self._storage.compact(grace)
        if self.folder is not None and self.folder.path.is_dir():
            await asyncio.to_thread(rewrite_returned, self.folder.journals())
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
            each: Receives the outcome of each, in their order, once it is on disk.
            caller: The session that asks.
            trusted: Believe all they claim; otherwise nothing that would put one above others.
            dry_run: Report the outcome that each would have, and store none.

        Raises:
            StorageError: What `each` received before is on disk; doing it all again does the rest.
        """
        stored: list[str] = []

        def noted(imported: Imported) -> None:
            if imported.outcome == "stored" and not dry_run:
                stored.append(imported.memory_id)
            each(imported)

        try:
            await Import(self._writing, caller, self._clock(), trusted=trusted, dry_run=dry_run).run(memories, noted)
        finally:
            if not dry_run:
                self._pad.schedule(caller)
            if stored:
                self._compare(stored[-_COMPARED:])

    async def import_traces(self, traces: Sequence[Trace]) -> int:
        """Add traces of memories that were released elsewhere; those of memories that are here are left out.

        Raises:
            StorageError: None was added.
        """
        return await self._storage.add_traces(traces)

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
            each: Receives the outcome of each, in their order, once it is safe.
            caller: The session that asks.
            to: The other storage; they come here when omitted.

        Raises:
            StorageError: What `each` received before is safe; doing it all again does the rest.
        """
        writing = self._writing if to is None else self._writing.to(to)
        try:
            await Import(writing, caller, self._clock(), is_transfer=True).run(memories, each)
        finally:
            if writing.storage is self._storage:
                self._pad.schedule(caller)
