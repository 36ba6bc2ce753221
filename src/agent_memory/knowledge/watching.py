"""Pages follow what is forgotten, at once, whoever forgets: `keep_pages` of whoever opens a service."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agent_memory.files.layout import folder_of
from agent_memory.models import TOPIC

if TYPE_CHECKING:
    from collections.abc import Collection

    from agent_memory.service import Caller, MemoryService

PAGES: Final = "pages"
"""Name of the watcher of a service that makes pages anew."""


def keep_pages(service: MemoryService) -> MemoryService:
    """Have a service make pages anew when something that stands on them is forgotten or reworded; return it."""

    async def withdraw(memory_ids: Collection[str], caller: Caller) -> None:
        if service.settings.backend == "server":
            return
        folder = folder_of(service.agent_id, service.settings.storage_root)
        if not (folder.path / TOPIC.journal).exists():
            return
        from agent_memory.knowledge.pages import Pages  # only for those who were given something
        from agent_memory.knowledge.publishing import tell
        from agent_memory.knowledge.records import Knowledge

        knowledge = Knowledge(service.agent_id, service.settings)
        try:
            for made in await Pages(knowledge, service).withdraw(memory_ids):
                await tell(service, made, caller)
        finally:
            await knowledge.close()

    service.watchers.add(PAGES, withdraw)
    return service
