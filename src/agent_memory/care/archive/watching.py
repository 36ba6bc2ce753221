"""Watcher that removes archived memories merged into forgotten ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_memory.care.archive.archive import Archive
from agent_memory.care.archive.reading import archive_exists

if TYPE_CHECKING:
    from collections.abc import Collection

    from agent_memory.memory import Caller, MemoryService


class ArchiveWatcher:
    """Forgets with a memory the archived ones merged into it.

    Args:
        service: Service of the agent's memory.
    """

    def __init__(self, service: MemoryService) -> None:
        self._service = service

    async def withdraw(self, memory_ids: Collection[str], _: Caller) -> None:
        """Delete archived memories that were merged into forgotten ones."""
        if not archive_exists(self._service.agent_id, self._service.settings):
            return
        forgotten = set(memory_ids) - (await self._service.storage.texts_of(memory_ids)).keys()
        archive = Archive(self._service)
        try:
            merged = [archived.id for archived in await archive.everything() if archived.merged_into in forgotten]
            await archive.delete(merged)
        finally:
            await archive.close()

    async def close(self) -> None:
        """Close nothing: the archive is open only while something is deleted."""
