"""`Looking`: compares stored memories with others behind the answers, one after the other.

Two comparisons at a time could each raise the same pair, or overwrite the other's links. Those by vectors wait until
there are some, however many texts have to be embedded first; only the end of the service does not wait for them.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from agent_memory.memories import MemoryStorage
    from agent_memory.service.caller import Caller
    from agent_memory.service.writing.comparing import Comparing


@dataclass(frozen=True, slots=True)
class _Due:
    """A memory to be compared: for whom, beside which that came with it, whether by vectors too, and anew."""

    memory_id: str
    caller: Caller
    places: Mapping[str, int]
    by_meaning: bool
    reworded: bool


@dataclass(slots=True)
class _Run:
    """What is due in one event loop: by words, and by vectors."""

    words: dict[str, _Due] = field(default_factory=dict)
    meaning: dict[str, _Due] = field(default_factory=dict)
    more: asyncio.Event = field(default_factory=asyncio.Event)


class Looking:
    """Compares the memories of one agent after they are stored.

    Args:
        storage: Where they are.
        comparing: Compares.
    """

    def __init__(self, storage: MemoryStorage, comparing: Comparing) -> None:
        self._storage, self._comparing = storage, comparing
        self._runs: WeakKeyDictionary[asyncio.AbstractEventLoop, _Run] = WeakKeyDictionary()
        self._is_given_up = False

    async def look(
        self, memory_ids: Iterable[str], caller: Caller, *, by_meaning: bool, reworded: bool = False
    ) -> None:
        """Compare memories, or leave them to the call that is at it.

        Args:
            memory_ids: Which, in the order of storing.
            caller: The session that asks.
            by_meaning: Also by vectors, once there are some.
            reworded: First take away their pairs that can both be right by now.

        Raises:
            StorageError: The memories cannot be read or changed; what else was due is left.
        """
        places = {one: place for place, one in enumerate(memory_ids)}
        loop = asyncio.get_running_loop()
        run = self._runs.get(loop)
        due = {one: _Due(one, caller, places, by_meaning, reworded) for one in places}
        if run is not None:
            run.words |= due
            run.more.set()
            return
        run = self._runs[loop] = _Run(due)
        try:
            while await self._next(run):
                pass
        finally:
            self._runs.pop(loop, None)  # a loop that is gone is in no map of these any more

    def give_up(self) -> None:
        """Wait for no vectors any more."""
        self._is_given_up = True
        for run in self._runs.values():
            run.more.set()

    async def _next(self, run: _Run) -> bool:
        """Compare what is due next; tell whether anything was."""
        if run.words:
            due = run.words.pop(next(iter(run.words)))
            if due.reworded:
                await self._comparing.recheck(due.memory_id)
            await self._comparing.behind(due.memory_id, due.places, due.caller)
            if due.by_meaning:
                run.meaning[due.memory_id] = due
            return True
        if not run.meaning or self._is_given_up:
            return False
        if not await self._waited_for_vectors(run):
            run.meaning.clear()
        elif not run.words and not self._is_given_up:
            due = run.meaning.pop(next(iter(run.meaning)))
            await self._comparing.behind_by_meaning(due.memory_id, due.places, due.caller)
        return True

    async def _waited_for_vectors(self, run: _Run) -> bool:
        """Wait until all texts have vectors, or more is due; tell whether there is any sense in it."""
        run.more.clear()
        vectors = asyncio.ensure_future(self._storage.prepare())
        more = asyncio.ensure_future(run.more.wait())
        try:
            await asyncio.wait({vectors, more}, return_when=asyncio.FIRST_COMPLETED)
            return vectors.result() if vectors.done() else True
        finally:
            for each in (vectors, more):
                each.cancel()
