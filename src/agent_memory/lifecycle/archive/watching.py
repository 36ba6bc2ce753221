"""The archive follows what is forgotten, whoever forgets: `keep_archive` of whoever opens a service."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agent_memory.lifecycle.archive.reading import archive_exists

if TYPE_CHECKING:
    from collections.abc import Collection

    from agent_memory.service import Caller, MemoryService

ARCHIVE: Final = "archive"
"""Name of the watcher of a service that takes out of the archive what is forgotten."""


def keep_archive(service: MemoryService) -> MemoryService:
    """Have a service forget with a memory what was merged into it, which says the same; return it."""

    async def forget(memory_ids: Collection[str], _: Caller) -> None:
        if not archive_exists(service.agent_id, service.settings):
            return
        from agent_memory.lifecycle.archive.archive import Archive  # only for those who have one

        gone = set(memory_ids) - await service.moving.there(memory_ids)
        archive = Archive(service)
        try:
            merged = [each.id for each in await archive.everything() if each.merged_into in gone]
            await archive.delete(merged)
        finally:
            await archive.close()

    service.watchers.add(ARCHIVE, forget)
    return service
