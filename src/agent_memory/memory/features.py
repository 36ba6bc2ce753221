"""Watchers and search sources of the inbox and of feature packages, loaded by their files."""

from __future__ import annotations

import contextlib
from functools import partial
from typing import TYPE_CHECKING, Any

from agent_memory.errors import StorageError
from agent_memory.files.layout import folder_of
from agent_memory.memory.inbox_access import inbox_exists, keep_inbox
from agent_memory.memory.search_sources import SearchSource, build_hit
from agent_memory.models import HitOrigin, sees, utc_now
from agent_memory.registry import ARCHIVE, FEATURES

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from agent_memory.memory.caller import Caller
    from agent_memory.memory.inbox import Inbox
    from agent_memory.memory.search_sources import WideRequest
    from agent_memory.memory.service import MemoryService
    from agent_memory.models import Candidate, Clock, MemorySearchResult, SearchResults
    from agent_memory.registry import FeaturePackage

_UNCONFIRMED = HitOrigin(is_confirmed=False)


def attach_features(service: MemoryService) -> MemoryService:
    """Attach the inbox, and the watchers and search sources of feature packages.

    Returns the service.
    """
    if service.settings.backend != "server":
        for feature in FEATURES:
            if "watcher" in feature.handlers:
                watcher = LateFeature(feature, "watcher", service)
                service.monitor.add_watcher(feature.watcher_name, watcher.withdraw, watcher.close)
            if "source" in feature.handlers:
                service.search_sources.append(LateFeature(feature, "source", service))
        service.monitor.recall = partial(_call_archive, "recall", service)
        service.monitor.load_archived = partial(_call_archive, "chains", service)
    service.search_sources.append(WaitingNotes(service))
    return keep_inbox(service)


async def _call_archive(use: str, service: MemoryService, *arguments: Any) -> list[Any]:
    """Call a function of `care.archive`; return [] without an archive."""
    folder = folder_of(service.agent_id, service.settings.storage_root).path
    if not (ARCHIVE.has_files(folder) and ARCHIVE.is_installed):
        return []
    answer: list[Any] = await ARCHIVE.load(use)(service, *arguments)
    return answer


class LateFeature(SearchSource):
    """Watcher or search source of a feature package, created when one of its files exists.

    Args:
        feature: Package that has the class of the object.
        use: Name of its use in the registry.
        service: Service of the agent's memory.
    """

    def __init__(self, feature: FeaturePackage, use: str, service: MemoryService) -> None:
        self._feature, self._use, self._service = feature, use, service
        self._folder = folder_of(service.agent_id, service.settings.storage_root).path
        self._object: Any = None

    def load(self) -> Any:
        """Return the object, or None without files.

        Raises:
            StorageError: The package is absent.
        """
        if self._object is None and self._feature.has_files(self._folder):
            self._object = self._feature.load(self._use)(self._service)
        return self._object

    async def withdraw(self, memory_ids: Collection[str], caller: Caller) -> None:
        """Remove forgotten or reworded memories from the files of the package."""
        if (watcher := self.load()) is not None:
            await watcher.withdraw(memory_ids, caller)

    async def find(self, asked: WideRequest) -> SearchResults:
        """Return the best matches, best first.

        Raises:
            StorageError: The package is absent, or its files cannot be read.
        """
        source: SearchSource = self.load() or SearchSource()
        return await source.find(asked)

    async def describe(self, hits: Sequence[MemorySearchResult], asked: WideRequest) -> list[MemorySearchResult]:
        """Add the origin to items; drop those not to be shown."""
        return await self._load_if_installed().describe(hits, asked)

    async def get(self, record_id: str, caller: Caller) -> MemorySearchResult | None:
        """Return the text with this ID as a hit, or None."""
        return await self._load_if_installed().get(record_id, caller)

    async def count(self, asked: WideRequest) -> dict[str, Any] | None:
        """Return facts for an overview, by name."""
        return await self._load_if_installed().count(asked)

    async def close(self) -> None:
        """Close the files of the object."""
        if self._object is not None:
            await self._object.close()

    def _load_if_installed(self) -> SearchSource:
        source = SearchSource()
        with contextlib.suppress(StorageError):
            source = self.load() or source
        return source


class WaitingNotes(SearchSource):
    """Source of the texts that wait in the inbox.

    Args:
        service: Service of the agent's memory.
        clock: Source of the present.
    """

    def __init__(self, service: MemoryService, clock: Clock = utc_now) -> None:
        self._service, self._clock = service, clock
        self._inbox: Inbox | None = None

    async def find(self, asked: WideRequest) -> SearchResults:
        """Return the waiting notes that match by their words."""
        results = await super().find(asked)
        if not asked.has_waiting or "note" not in asked.kinds:
            return results
        waiting = await self._list_waiting()
        if waiting and self._inbox is not None:
            answer = await self._inbox.answer(asked.elsewhere())
            hits = [(hit, waiting[hit.id]) for hit in answer.ranking.hits if hit.id in waiting]
            results += [build_hit(candidate, _UNCONFIRMED, hit) for hit, candidate in hits]
            results.total_found, results.words = len(hits), answer.ranking.words
        return results

    async def count(self, asked: WideRequest) -> dict[str, Any]:
        """Count the waiting notes."""
        waiting = (await self._list_waiting()).values() if asked.has_waiting else ()
        return {"waiting": sum(sees(asked.caller.group, candidate.facets) for candidate in waiting)}

    async def close(self) -> None:
        """Close the inbox."""
        if self._inbox is not None:
            await self._inbox.close()

    async def _list_waiting(self) -> dict[str, Candidate]:
        if not inbox_exists(self._service.agent_id, self._service.settings):
            return {}
        if self._inbox is None:
            from agent_memory.memory.inbox import Inbox  # for those who have one

            self._inbox = Inbox(self._service, clock=self._clock)
        return {candidate.id: candidate for candidate in await self._inbox.waiting() if candidate.is_note}
