"""`ArchiveReader`: archived memories that are not live."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from agent_memory.errors import ConfigurationError
from agent_memory.files.layout import folder_of
from agent_memory.files.lock import archive_lock
from agent_memory.journal import GRACE
from agent_memory.memory import NOBODY
from agent_memory.models import (
    ANY_STATE,
    ARCHIVED,
    EVERYTHING,
    TIDY_RUN,
    ArchivedMemory,
    Listing,
    TidyRun,
    filters_of,
    utc_now,
)
from agent_memory.store.file_storage import Files
from agent_memory.store.memory_storage import MemoryStorage
from agent_memory.store.record_storage import RecordStorage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from datetime import datetime, timedelta
    from pathlib import Path

    from agent_memory.memory import Caller, MemoryService
    from agent_memory.models import Clock, SearchFilters, SearchResults
    from agent_memory.settings import ServiceSettings

_MATCHES: Final = 20
"""Archived memories that are compared with a request to forget."""


@dataclass(frozen=True, slots=True)
class ArchiveStats:
    """How much is in an archive.

    Attributes:
        memories: How many, older versions included.
        first, last: When the first and the last of them came there; None for none.
        by_rule, by_category: How many there are by each.
        file_bytes: Size of `archive.yaml`.
    """

    memories: int
    first: datetime | None
    last: datetime | None
    by_rule: dict[str, int]
    by_category: dict[str, int]
    file_bytes: int


def archive_exists(agent_id: str, settings: ServiceSettings) -> bool:
    """Return True if an agent has an archive, without opening it."""
    if settings.backend == "server":
        return False
    return (folder_of(agent_id, settings.storage_root).path / ARCHIVED.journal).exists()


class ArchiveReader:
    """Looks into one agent's archive; see `Archive`."""

    def __init__(self, service: MemoryService, *, clock: Clock = utc_now, grace: timedelta = GRACE) -> None:
        settings = service.settings
        if settings.backend == "server":
            raise ConfigurationError(
                "A server keeps no archive; nothing was changed.",
                code="archive_needs_files",
                recovery="Set backend to auto, file or vector for agents whose memories are to be archived.",
            )
        self.service, self.clock = service, clock
        self._folder = folder_of(service.agent_id, settings.storage_root)
        self._alone = partial(alone, self._folder.path, settings.lock_timeout)
        files = Files(ARCHIVED, self._folder, settings, clock, None, grace)
        self._kept = MemoryStorage(files.backend())  # type: ignore[arg-type]
        plain = Files(TIDY_RUN, self._folder, settings.model_copy(update={"embedder": "none"}), clock, None, grace)
        self.runs: RecordStorage[TidyRun] = RecordStorage(plain.backend())

    def exists(self) -> bool:
        """Return True if anything was ever put there, without opening it."""
        return (self._folder.path / ARCHIVED.journal).exists()

    async def find_matches(self, words: str) -> list[ArchivedMemory]:
        """Return archived memories that strongly match a request to forget.

        Raises:
            StorageError: The archive cannot be read.
        """
        strong = {hit.memory.id for hit in await self.search(words, _MATCHES) if hit.match == "strong"}
        return [archived for archived in await self.everything() if archived.id in strong]

    async def search(
        self, query: str, limit: int = 5, filters: SearchFilters | dict[str, Any] | None = None, caller: Caller = NOBODY
    ) -> SearchResults:
        """Return the best matches in the archive; counts no access.

        Raises:
            ValidationError: The limit or a filter is wrong.
            StorageError: The archive cannot be read.
        """
        conditions = filters_of(filters).within(caller.group)
        found = await self._kept.search(query, limit, conditions)
        both = await self.service.storage.texts_of([hit.memory.id for hit in found])
        for hit in [hit for hit in found if hit.memory.id in both]:
            found.remove(hit)
        return found

    async def get(self, memory_id: str) -> ArchivedMemory | None:
        """Return the archived memory of an ID; None if live."""
        if not self.exists() or await self.service.storage.texts_of([memory_id]):
            return None
        found = await self._kept.get(memory_id)
        return found if isinstance(found, ArchivedMemory) else None

    async def everything(self) -> list[ArchivedMemory]:
        """Return all archived memories that are not live, oldest entry first."""
        listed = await self._everything()
        both = await self.service.storage.texts_of([each.id for each in listed])
        return [each for each in listed if each.id not in both]

    async def browse(self, offset: int = 0, limit: int | None = None) -> list[ArchivedMemory]:
        """Return a page of archived memories, the last archived first."""
        listed = sorted(await self.everything(), key=lambda each: (each.archived_at, each.timestamp), reverse=True)
        return listed[offset : None if limit is None else offset + limit]

    async def beginning_with(self, beginning: str) -> list[str]:
        """Return the ids of what is in the archive that begin so."""
        if not self.exists():
            return []
        listing = Listing("oldest", EVERYTHING, ANY_STATE, beginning=beginning)
        found = [each.id for each in (await self._kept.browse(listing)).records]
        both = await self.service.storage.texts_of(found)
        return [one for one in found if one not in both]

    async def stats(self) -> ArchiveStats:
        """Return how much is in it."""
        every = await self.everything()
        path = self._folder.path / ARCHIVED.journal
        moments = [each.archived_at for each in every]
        by_rule: dict[str, int] = {}
        by_category: dict[str, int] = {}
        for each in every:
            by_rule[each.rule] = by_rule.get(each.rule, 0) + 1
            by_category[each.category] = by_category.get(each.category, 0) + 1
        size = path.stat().st_size if path.exists() else 0
        first, last = min(moments, default=None), max(moments, default=None)
        return ArchiveStats(len(every), first, last, by_rule, by_category, size)

    async def _everything(self) -> list[ArchivedMemory]:
        if not self.exists():
            return []
        return [each async for each in self._kept.iter_all() if isinstance(each, ArchivedMemory)]


@contextlib.asynccontextmanager
async def alone(folder: Path, wait: float) -> AsyncIterator[None]:
    """Hold the archive's lock for the length of the block; a process that dies gives it back.

    Waits in a thread.

    Raises:
        BusyError: Another one held it for `wait` seconds; nothing was moved.
        StorageError: The lock file cannot be opened.
    """
    held = contextlib.ExitStack()
    entering = asyncio.ensure_future(asyncio.to_thread(held.enter_context, archive_lock(folder, wait)))
    try:
        await asyncio.shield(entering)
    except asyncio.CancelledError:
        entering.add_done_callback(lambda done: _give_back(done, held))  # the thread may get it still
        raise
    with held:
        yield


def _give_back(entered: asyncio.Future[None], held: contextlib.ExitStack) -> None:
    entered.exception()  # nobody is left to hear of it
    held.close()
