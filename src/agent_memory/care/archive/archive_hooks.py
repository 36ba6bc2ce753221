"""Retention, deletion, recall and matches of archived memories."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

from agent_memory.care.archive.memory_archive import open_archive
from agent_memory.memory.inbox_access import has_journal, opened_inbox
from agent_memory.models import ARCHIVED, CANDIDATE, Listing, SearchFilters

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime

    from agent_memory.memory import Caller, MemoryService
    from agent_memory.models import ArchivedMemory, Candidate, Memory


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
    async with open_archive(service) as archive:
        return await archive.add(expired, caller.as_person(), why=f"older than {days} days (retain_days of {project})")


class ArchiveWithdrawal:
    """Deletes archived memories that were forgotten or merged into such.

    Args:
        service: Service of the agent's memory.
    """

    def __init__(self, service: MemoryService) -> None:
        self._service = service

    async def withdraw(self, memory_ids: Collection[str], _: Caller) -> None:
        """Delete archived memories that were forgotten or merged into such."""
        forgotten = {memory.id for memory, _ in await self._service.storage.forgotten()}.intersection(memory_ids)
        if not forgotten:
            return
        async with open_archive(self._service) as archive:
            merged = [archived.id for archived in await archive.everything() if archived.merged_into in forgotten]
            await archive.delete(merged)  # and what was forgotten itself

    async def close(self) -> None:
        """Close nothing: the archive is open only while memories are deleted."""


async def load_chains(service: MemoryService, memory_ids: Collection[str]) -> list[Memory]:
    """Return archived memories with the older ones that they replaced.

    Raises:
        StorageError: The archive cannot be read.
    """
    async with open_archive(service) as archive:
        return await archive.load_chains(memory_ids)


async def recall_archived(
    service: MemoryService, memory_ids: Collection[str], sources: Collection[str], caller: Caller
) -> list[str]:
    """Restore archived memories to be changed like live ones; return IDs.

    Args:
        service: Service of the agent's memory.
        memory_ids: IDs to restore; unknown ones are ignored.
        sources: IDs of records; memories that link to one are restored, too.
        caller: Session that gets events.

    Raises:
        StorageError: Memories that were restored before it stay restored; none is lost.
    """
    async with open_archive(service) as archive:
        wanted = [
            memory.id
            for memory in await archive.everything()
            if memory.id in memory_ids or any(link.id in sources for link in memory.links)
        ]
        return [memory.id for memory in await archive.restore(wanted, caller)] if wanted else []


class StoredApart(NamedTuple):
    """Archived memories and waiting notes; None for a place without a file."""

    archived: list[ArchivedMemory] | None = None
    waiting: list[Candidate] | None = None


async def find_stored_apart(service: MemoryService, words: str) -> StoredApart:
    """Return archived memories and waiting notes that match a request to forget.

    Args:
        service: Service of the agent's memory.
        words: Words of the request.

    Raises:
        StorageError: The archive or the inbox cannot be read.
    """
    archived, waiting = None, None
    if has_journal(service.agent_id, service.settings, ARCHIVED):
        async with open_archive(service) as archive:
            archived = await archive.find_matches(words)
    if has_journal(service.agent_id, service.settings, CANDIDATE):
        async with opened_inbox(service) as inbox:
            waiting = await inbox.find_matches(words)
    return StoredApart(archived, waiting)
