"""`Watchers`: who is told when words of memories are gone or have changed, before the answer says so.

What is made of memories elsewhere, such as pages of topics, has to lose these words, too.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from typing import TYPE_CHECKING

from agent_memory.errors import AgentMemoryError
from agent_memory.logs import get_logger

if TYPE_CHECKING:
    from agent_memory.memory.caller import Caller

log = get_logger(__name__)

Watcher = Callable[[Collection[str], "Caller"], Awaitable[object]]
"""Gets the ids of memories that were forgotten, or have another text now, and the session that asked."""


class Watchers:
    """Tells everybody who asked to be told."""

    def __init__(self) -> None:
        self._every: dict[str, Watcher] = {}
        self._closes: list[Callable[[], Awaitable[object]]] = []

    def add(self, name: str, watcher: Watcher, close: Callable[[], Awaitable[object]] | None = None) -> bool:
        """Tell this one, too, from now on, unless there is one of that name; return whether it is told.

        Args:
            name: Its own.
            watcher: It.
            close: Awaited when the service closes.
        """
        is_told = self._every.setdefault(name, watcher) is watcher
        if is_told and close is not None:
            self._closes.append(close)
        return is_told

    def remove(self, name: str) -> None:
        """Tell the one of this name no more."""
        self._every.pop(name, None)

    async def close(self) -> None:
        """Have all of them close what they keep open."""
        for close in self._closes:
            await close()

    async def tell(self, memory_ids: Collection[str], caller: Caller) -> None:
        """Tell all of them; one that fails undoes nothing: the words are forgotten, and it is logged."""
        for each in list(self._every.values()):
            try:
                await each(memory_ids, caller)
            except AgentMemoryError as error:
                log.warning("not_told_of_forgotten", error=error.message, code=error.code)
