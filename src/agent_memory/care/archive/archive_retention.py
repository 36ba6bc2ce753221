"""Automatic changes of the archive: retention of projects, withdrawal of merged memories."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from agent_memory.care.archive.memory_archive import Archive, archive_exists
from agent_memory.models import Listing, SearchFilters

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime

    from agent_memory.memory import Caller, MemoryService
    from agent_memory.models import ArchivedMemory


async def archive_expired(
    service: MemoryService, project: str, days: int, now: datetime, caller: Caller
) -> list[ArchivedMemory]:
    """Archive memories of a project older than `days`, except pinned ones.

    Args:
        service: Memory of the agent.
        project: Name of the project, not empty.
        days: Age in days.
        now: The present, UTC.
        caller: Session that gets the events.

    Raises:
        AgentMemoryError: Memories that were archived before it stay archived.
    """
    listed = (await service.storage.browse(Listing("oldest", SearchFilters(project=project)))).records
    limit = now - timedelta(days=days)
    expired = [memory.id for memory in listed if memory.timestamp < limit and not memory.pinned]
    if not expired:
        return []
    archive = Archive(service)
    try:
        return await archive.add(expired, caller.as_person(), why=f"older than {days} days (retain_days of {project})")
    finally:
        await archive.close()


class ArchiveWatcher:
    """Deletes archived memories that were merged into a forgotten one.

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
        """Close nothing: the archive is open only while memories are deleted."""
