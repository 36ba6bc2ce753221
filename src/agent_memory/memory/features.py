"""Feature packages of a service, each loaded by its files."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from agent_memory.errors import StorageError
from agent_memory.files.layout import folder_of
from agent_memory.memory.inbox_access import keep_inbox
from agent_memory.memory.search_sources import SearchSource
from agent_memory.registry import FEATURES

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from agent_memory.memory.caller import Caller
    from agent_memory.memory.search_sources import WideRequest
    from agent_memory.memory.service import MemoryService
    from agent_memory.models import MemorySearchResult, SearchResults
    from agent_memory.registry import FeaturePackage


def attach_features(service: MemoryService) -> MemoryService:
    """Attach the inbox, and the watchers and search sources of feature packages.

    Returns the service.
    """
    if service.settings.backend != "server":
        for feature in FEATURES:
            if "watcher" in feature.handlers:
                watcher = LateWatcher(feature, service)
                service.monitor.add_watcher(feature.watcher_name, watcher.withdraw, watcher.close)
            if "source" in feature.handlers:
                service.searcher.add_source(LateSource(feature, service))
    return keep_inbox(service)


class LateHandler:
    """Object of a feature package, created when one of its files exists.

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

    async def close(self) -> None:
        """Close the files of the object."""
        if self._object is not None:
            await self._object.close()


class LateWatcher(LateHandler):
    """Removal of forgotten texts from the files of a feature package.

    Args:
        feature: Package that has the watcher.
        service: Service of the agent's memory.
    """

    def __init__(self, feature: FeaturePackage, service: MemoryService) -> None:
        super().__init__(feature, "watcher", service)

    async def withdraw(self, memory_ids: Collection[str], caller: Caller) -> None:
        """Remove forgotten or reworded memories from the files of the package."""
        watcher = self.load()
        if watcher is not None:
            await watcher.withdraw(memory_ids, caller)


class LateSource(LateHandler, SearchSource):
    """Search source of a feature package.

    Args:
        feature: Package that has the source.
        service: Service of the agent's memory.
    """

    def __init__(self, feature: FeaturePackage, service: MemoryService) -> None:
        super().__init__(feature, "source", service)
        self._empty = SearchSource()

    async def find(self, asked: WideRequest) -> SearchResults:
        """Return the best matches, best first.

        Raises:
            StorageError: The package is absent, or its files cannot be read.
        """
        source: SearchSource = self.load() or self._empty
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

    def _load_if_installed(self) -> SearchSource:
        source: SearchSource = self._empty
        with contextlib.suppress(StorageError):
            source = self.load() or source
        return source
