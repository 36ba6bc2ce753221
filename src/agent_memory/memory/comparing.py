"""`Comparing`: whether what is written can be right together with what is known.

Looks at a few memories that share most with it, never at all of them. What is found is kept as a link of the newer
memory, in the same line of the journal where it is found before the memory is stored.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from agent_memory.errors import StorageError
from agent_memory.language.conflicts import find_conflict
from agent_memory.memory.results import Suspect
from agent_memory.models import SUSPECT, Link, content_mark, is_told, may_conflict
from agent_memory.store.cleaning import with_own_links

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from agent_memory.memory.caller import Caller, Report
    from agent_memory.models import Memory
    from agent_memory.store.cleaning import Redacted
    from agent_memory.store.memory_storage import MemoryStorage

CANDIDATES: Final = 12
"""Memories that one is compared with, at most: of those that share most with it by their words."""
AT_ONCE: Final = 6
"""The same while a store waits: comparing two takes some 0.3 ms where neither was read before."""
_MAX_CONFLICTS: Final = 2
"""Conflicts of one memory. With more, the texts are a series: "Ticket 1 of the import", "Ticket 2 of the import"."""


@dataclass(frozen=True, slots=True)
class Compared:
    """A memory that is about to be stored, with what the comparison has found.

    Attributes:
        draft: The memory, with links to its suspects.
        suspects: These.
        is_done: Whether it was compared; else that is due once it is stored.
    """

    draft: Redacted[Memory]
    suspects: tuple[Suspect, ...] = ()
    is_done: bool = True


class Comparing:
    """Compares the memories of one agent.

    Args:
        storage: Where they are.
        report: Sends events.
        is_on: Whether anything is compared at all.
    """

    def __init__(self, storage: MemoryStorage, report: Report, *, is_on: bool) -> None:
        self._storage, self._report, self.is_on = storage, report, is_on

    async def before(self, draft: Redacted[Memory]) -> Compared:
        """Compare a memory that is about to be stored, unless that takes long."""
        new = draft.value
        if not self.is_on or new.is_item:
            return Compared(draft)
        alike = await self._read(new.content)
        if alike is None:
            return Compared(draft, is_done=False)
        found = await asyncio.to_thread(compared, new, alike)
        return Compared(with_own_links(draft, linked(new, found)) if found else draft, tuple(found))

    async def of_change(self, before: Memory, content: str) -> list[Suspect]:
        """Compare what a memory is about to say with what is known, unless that takes long."""
        if not self.is_on or before.is_item or content == before.content:
            return []
        after = before.model_copy(update={"content": content})
        alike = await self._read(content)
        return await asyncio.to_thread(compared, after, alike) if alike else []

    async def _read(self, content: str) -> list[Memory] | None:
        """Return the memories that share most with a text, `None` where that takes long or they cannot be read.

        What cannot be read is told by the write itself, which a comparison does not stop.
        """
        try:
            return await self._storage.alike(content, AT_ONCE, at_once=True)
        except StorageError:
            return None

    async def behind(self, memory_id: str, places: Mapping[str, int], caller: Caller) -> int:
        """Compare a stored memory with those that share most with it; return how many pairs were found.

        Of two memories the one that tells of a later time is the newer; of equal times, the one with the higher place.

        Args:
            memory_id: Which.
            places: Of all that are compared now, in the order of storing; others were there before.
            caller: The session that asks.

        Raises:
            StorageError: The memories cannot be read or changed.
        """
        memory = await self._due(memory_id)
        if memory is None:
            return 0
        candidates = await self._storage.alike(memory.content, CANDIDATES) or []
        return await self._beside(memory, candidates, places, caller)

    async def _due(self, memory_id: str) -> Memory | None:
        """Return a memory that is to be compared, None where that has no sense any more."""
        memory = await self._storage.get(memory_id) if self.is_on else None
        if memory is None or memory.is_item or await self._storage.replaced_by([memory_id]):
            return None
        return memory

    async def _beside(
        self,
        memory: Memory,
        others: Sequence[Memory],
        places: Mapping[str, int],
        caller: Caller,
    ) -> int:
        """Keep the pairs of a memory with some others; those that come later and are due, too, have their own turn."""

        def order(one: Memory) -> tuple[datetime, int]:
            return one.moment, places.get(one.id, -1)

        older = [other for other in others if order(other) < order(memory)]
        later = [other for other in others if order(other) > order(memory)]

        def found() -> list[Suspect]:
            pairs = [*find_pairs(memory, older), *(pair for newer in later for pair in find_pairs(newer, [memory]))]
            is_series = len(pairs) > _MAX_CONFLICTS
            return [] if is_series else [pair for pair in pairs if pair.newer is memory or pair.newer.id not in places]

        suspects = await asyncio.to_thread(found)
        for newer_id in dict.fromkeys(each.newer.id for each in suspects):
            some = [each for each in suspects if each.newer.id == newer_id]
            newer = await self._storage.get(newer_id)
            if newer is not None:
                await self._storage.update(newer_id, {"links": linked(newer, some)})
                await self.queued(some, caller)
        return len(suspects)

    async def queued(self, suspects: Iterable[Suspect], caller: Caller) -> None:
        """Report pairs that wait for a decision now."""
        for each in suspects:
            ids = {"memory_id": each.newer.id, "older_id": each.older.id}
            await self._report("memory:suspect", caller, **ids, kind=each.kind, hint=each.hint, outcome="queued")


def compared(newer: Memory, older: Iterable[Memory]) -> list[Suspect]:
    """Return the conflicts with older memories; none if they form a series."""
    pairs = find_pairs(newer, older)
    return pairs if len(pairs) <= _MAX_CONFLICTS else []


def find_pairs(newer: Memory, older: Iterable[Memory]) -> list[Suspect]:
    """Return the conflicts of a memory with older memories.

    Linked memories are left out, and those of other projects, groups and of higher trust.
    """
    linked_with = {link.id for link in newer.links if not is_told(link.rel)} | {newer.supersedes, newer.id}
    pairs: list[Suspect] = []
    for other in older:
        is_linked = other.id in linked_with or any(
            link.id == newer.id and not is_told(link.rel) for link in other.links
        )
        if is_linked or not may_conflict(newer, other):
            continue
        conflict = find_conflict(newer.content, other.content)
        if conflict is not None:
            pairs.append(Suspect(newer, other, conflict.kind, conflict.hint, conflict.evidence))
    return pairs


def linked(memory: Memory, suspects: Sequence[Suspect]) -> list[Link]:
    """Return the links of a memory with those to its suspects."""
    more = [Link(rel=SUSPECT, id=each.older.id, said=content_mark(each.older.content)) for each in suspects]
    return [*memory.links, *more]
