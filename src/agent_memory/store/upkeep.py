"""`NoIndex`: the upkeep of a storage that has no vector engine: nothing to see to, and why it cannot be moved."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from agent_memory.store.shards import Shards

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_memory.errors import ConfigurationError
    from agent_memory.files.layout import AgentFolder
    from agent_memory.store.migration_plan import Built, Estimate, Progress
    from agent_memory.store.trouble import Trouble


class NoIndex:
    """An `Upkeep` without an index.

    Args:
        backend: Its name.
        why: Makes the error that says why this storage cannot be moved.
        folder: Where an index of earlier sessions may lie; None where there is none.
    """

    can_migrate = False

    def __init__(self, backend: str, why: Callable[[], ConfigurationError], folder: AgentFolder | None = None) -> None:
        self.backend = backend
        self._why = why
        self._folder = folder

    async def estimate(self) -> Estimate:
        """Raise: it cannot be moved."""
        raise self._why()

    async def migrate(self, progress: Progress | None = None) -> Built:  # noqa: ARG002 - for those that can
        """Raise: it cannot be moved."""
        raise self._why()

    async def migration_begun(self) -> bool:
        """Return False."""
        return False

    async def note_migration(self, *, begun: bool) -> None:
        """Note nothing."""

    async def rollback(self) -> bool:
        """Answer from the files alone from now on; tell whether that was not so already. Needs no engine."""
        if self._folder is None:
            raise self._why()
        shards = Shards(self._folder)
        if shards.active()[0] != "vector":
            return False
        await asyncio.to_thread(shards.switch, "file", None)
        await asyncio.to_thread(shards.sweep)
        return True

    def before_search(self) -> None:
        """Do nothing."""

    def after_write(self) -> None:
        """Do nothing."""

    def after_compaction(self) -> None:
        """Do nothing."""

    def health(self) -> dict[str, Any]:
        """Return nothing."""
        return {}

    def troubles(self) -> list[Trouble]:
        """Return nothing."""
        return []

    async def close(self) -> None:
        """Do nothing."""
