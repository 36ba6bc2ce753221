"""Withdrawals, search sources and unfinished work of feature packages, loaded by files."""

from __future__ import annotations

import contextlib
from functools import partial
from typing import TYPE_CHECKING, Any

from agent_memory.errors import AgentMemoryError, StorageError
from agent_memory.files.layout import folder_of
from agent_memory.journal import PurgeList
from agent_memory.logs import get_logger
from agent_memory.memory.inbox_access import HeldProposals, has_journal
from agent_memory.memory.search_sources import SearchSource, WideRequest, build_hit
from agent_memory.models import CANDIDATE, HitOrigin, sees, utc_now
from agent_memory.registry import ARCHIVE, KINDS, KNOWLEDGE, PRIVACY, RegisteredKind, load_handler

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from agent_memory.memory.caller import Caller
    from agent_memory.memory.inbox import Inbox
    from agent_memory.memory.service import MemoryService
    from agent_memory.models import Candidate, Clock, MemorySearchResult, SearchResults

log = get_logger(__name__)
_UNCONFIRMED = HitOrigin(is_confirmed=False)


def attach_features(service: MemoryService) -> MemoryService:
    """Attach withdrawals, search sources and the archive; return the service."""
    if service.settings.backend != "server":
        service.search_sources.append(LateSource(service))
        service.monitor.recall = partial(_call_archive, "recall", service)
        service.monitor.load_archived = partial(_call_archive, "chains", service)
        service.monitor.proposals = HeldProposals(service)
    service.search_sources.append(WaitingNotes(service))
    return attach_withdrawals(service)


def attach_withdrawals(service: MemoryService) -> MemoryService:
    """Withdraw what each kind says of records that leave; return the service."""
    if service.settings.backend != "server":
        for name, kind in KINDS.items():
            withdrawal = LateWithdrawal(service, kind)
            service.monitor.add_watcher(name, withdrawal.withdraw, withdrawal.close)
    return service


async def finish_purges(service: MemoryService) -> MemoryService:
    """Finish interrupted purges and return the service; takes microseconds without any.

    What cannot be finished now, such as next to a process that always writes, is logged, reported by `health` and the
    doctor, and tried again by the next.
    """
    folder = service.folder
    try:
        if folder is not None and PurgeList(folder.path).list_unfinished() and PRIVACY.is_installed:
            await PRIVACY.load("purging")(service).finish()
    except AgentMemoryError as error:
        log.warning("purge_unfinished", error=error.message, code=error.code)
    return service


async def _call_archive(use: str, service: MemoryService, *arguments: Any) -> list[Any]:
    """Call a function of `care.archive`; return [] without an archive."""
    folder = folder_of(service.agent_id, service.settings.storage_root).path
    if not (ARCHIVE.has_files(folder) and ARCHIVE.is_installed):
        return []
    answer: list[Any] = await ARCHIVE.load(use)(service, *arguments)
    return answer


class LateWithdrawal:
    """Withdrawal that a kind declares, loaded once its file exists.

    Args:
        service: Service of the agent's memory.
        kind: Entry of the kind in the registry.
    """

    def __init__(self, service: MemoryService, kind: RegisteredKind) -> None:
        self._service, self._kind = service, kind
        self._file = folder_of(service.agent_id, service.settings.storage_root).path / kind.file
        self._object: Any = None

    async def withdraw(self, record_ids: Collection[str], caller: Caller) -> None:
        """Remove what the records of the kind say of leaving ones.

        Raises:
            StorageError: The package of the kind is absent, or a file cannot be changed.
        """
        if self._object is None and self._file.exists() and (place := load_handler(self._kind.place).withdraw):
            self._object = load_handler(place)(self._service)
        if self._object is not None:
            await self._object.withdraw(record_ids, caller)

    async def close(self) -> None:
        """Close the files of the object."""
        if self._object is not None:
            await self._object.close()


class LateSource(SearchSource):
    """Search source of the package `knowledge`, created when a file exists.

    Args:
        service: Service of the agent's memory.
    """

    def __init__(self, service: MemoryService) -> None:
        self._service = service
        self._folder = folder_of(service.agent_id, service.settings.storage_root).path
        self._object: Any = None

    def load(self) -> Any:
        """Return the source, or None without files.

        Raises:
            StorageError: The package is absent.
        """
        if self._object is None and KNOWLEDGE.has_files(self._folder):
            self._object = KNOWLEDGE.load("source")(self._service)
        return self._object

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
        if not has_journal(self._service.agent_id, self._service.settings, CANDIDATE):
            return {}
        if self._inbox is None:
            from agent_memory.memory.inbox import Inbox  # for those who have one

            self._inbox = Inbox(self._service, clock=self._clock)
        return {candidate.id: candidate for candidate in await self._inbox.waiting() if candidate.is_note}
