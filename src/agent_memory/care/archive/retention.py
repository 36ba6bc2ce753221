"""Retention: old memories of a project go to the archive, not deleted."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from agent_memory.models import Listing, SearchFilters

if TYPE_CHECKING:
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
        AgentMemoryError: What was put away before is safe.
    """
    listed = (await service.storage.browse(Listing("oldest", SearchFilters(project=project)))).records
    limit = now - timedelta(days=days)
    expired = [memory.id for memory in listed if memory.timestamp < limit and not memory.pinned]
    if not expired:
        return []
    from agent_memory.care.archive.archive import Archive  # only for those who have one

    archive = Archive(service)
    try:
        return await archive.add(expired, caller.as_person(), why=f"older than {days} days (retain_days of {project})")
    finally:
        await archive.close()
