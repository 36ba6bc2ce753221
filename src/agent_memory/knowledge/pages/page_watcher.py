"""Watcher that removes forgotten and reworded memories from the pages of topics."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final

from agent_memory.errors import UnknownIdError
from agent_memory.files.layout import folder_of
from agent_memory.models import TOPIC

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection

    from agent_memory.knowledge.pages.pages import BuiltPage
    from agent_memory.knowledge.records import Knowledge
    from agent_memory.memory import Caller, MemoryService
    from agent_memory.models import Memory


PAGES: Final = "pages"
"""Name of the watcher of a service that rebuilds pages."""


def keep_pages(service: MemoryService) -> MemoryService:
    """Add a `PageWatcher` to a service; return the service."""
    watcher = PageWatcher(service)
    service.monitor.add_watcher(PAGES, watcher.withdraw, watcher.close)
    return service


class PageWatcher:
    """Removes texts from pages; open until the service closes.

    Args:
        service: Service of the agent's memory.
        report: Reports a rebuilt page to a session; as `report_page` when omitted.
    """

    def __init__(
        self, service: MemoryService, report: Callable[[BuiltPage, Caller], Awaitable[object]] | None = None
    ) -> None:
        self._service, self._report = service, report
        self._knowledge: Knowledge | None = None

    async def withdraw(self, memory_ids: Collection[str], caller: Caller) -> None:
        """Take items off the pages."""
        settings = self._service.settings
        if settings.backend == "server":
            return
        folder = folder_of(self._service.agent_id, settings.storage_root)
        if not (folder.path / TOPIC.journal).exists():
            return
        from agent_memory.knowledge.intake.withdrawal import withdraw_retold
        from agent_memory.knowledge.pages.pages import (  # only for those who were given something
            Pages,
            rebuild_renamed,
            report_page,
        )
        from agent_memory.knowledge.records import Knowledge

        self._knowledge = self._knowledge or Knowledge(self._service.agent_id, settings)
        pages = Pages(self._knowledge, self._service)
        renamed = await withdraw_retold(await self._list_forgotten(memory_ids), self._knowledge)
        for made in [*await pages.withdraw(memory_ids), *await rebuild_renamed(pages, renamed)]:
            await (self._report(made, caller) if self._report else report_page(self._service, made, caller))

    async def _list_forgotten(self, memory_ids: Collection[str]) -> list[Memory]:
        """Return the forgotten memories, without changed ones."""
        memories: list[Memory] = []
        for memory_id in memory_ids:
            with contextlib.suppress(UnknownIdError):
                memories += await self._service.storage.forgotten_with(memory_id)
        return memories

    async def close(self) -> None:
        """Close what is open."""
        if self._knowledge is not None:
            await self._knowledge.close()
