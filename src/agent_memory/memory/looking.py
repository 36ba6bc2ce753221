"""`Looking`: compares stored memories with others in the background, one after the other.

Two comparisons at a time could each raise the same pair, or overwrite the other's links.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from agent_memory.memory.caller import Caller
    from agent_memory.memory.comparing import Comparing


@dataclass(frozen=True, slots=True)
class _Due:
    """Memory to compare, the session that asks, and the order of storing."""

    memory_id: str
    caller: Caller
    places: Mapping[str, int]


class Looking:
    """Compares the memories of one agent after they are stored.

    Args:
        comparing: Compares.
    """

    def __init__(self, comparing: Comparing) -> None:
        self._comparing = comparing
        self._runs: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, _Due]] = WeakKeyDictionary()

    async def look(self, memory_ids: Iterable[str], caller: Caller) -> None:
        """Compare memories, or leave them to the call that is at it.

        Args:
            memory_ids: Which, in the order of storing.
            caller: The session that asks.

        Raises:
            StorageError: The memories cannot be read or changed; what else was due is left.
        """
        places = {one: place for place, one in enumerate(memory_ids)}
        loop = asyncio.get_running_loop()
        due = {memory_id: _Due(memory_id, caller, places) for memory_id in places}
        waiting = self._runs.get(loop)
        if waiting is not None:
            waiting |= due
            return
        self._runs[loop] = due
        try:
            while due:
                task = due.pop(next(iter(due)))
                await self._comparing.behind(task.memory_id, task.places, task.caller)
        finally:
            self._runs.pop(loop, None)  # a loop that is gone is in no map of these any more
