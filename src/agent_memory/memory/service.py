"""`MemoryService`: one agent's memory for a session. Imports no host."""

from __future__ import annotations

from functools import cached_property, partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, cast

from agent_memory.earlier_name_tables import SERVICE_NAMES, SERVICE_PARTS
from agent_memory.encryption import unlock
from agent_memory.errors import ValidationError
from agent_memory.files.atomic import sweep_leftovers
from agent_memory.files.layout import AgentFolder, resolve_root
from agent_memory.files.person_lists import load_exemptions
from agent_memory.logs import get_logger, operation
from agent_memory.memory.caller import NOBODY, Caller, check_seen
from agent_memory.memory.events import AuditLog
from agent_memory.memory.monitor import Monitor
from agent_memory.memory.scratchpad import AgentScratchpad, ServiceLimits
from agent_memory.memory.scratchpad_manager import ScratchpadManager
from agent_memory.memory.search_sources import SearchSource, WideRequest
from agent_memory.memory.service_parts import ServiceParts
from agent_memory.memory.trust import TrustGate
from agent_memory.models import NOTES, Clock, Memory, Scratchpad, SearchRequest, filters_of, utc_now
from agent_memory.redaction import Redactor, SecretRedactor
from agent_memory.settings import ServiceSettings
from agent_memory.store.memory_storage import FileStorage, MemoryStorage, detect_storage

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from agent_memory.embeddings import Embedder
    from agent_memory.memory.history import History
    from agent_memory.memory.results import CaptureOutcome, Forgotten, Found, Promoted, Status, Stored, Suspect, Updated
    from agent_memory.memory.searcher import Searcher
    from agent_memory.memory.writer import Writer
    from agent_memory.models import HitKind, Observation, SearchFilters

log = get_logger(__name__)
_LIMITS: Final = ServiceLimits()
_MAX_QUERY_CHARS: Final = 10_000
"""Characters of a query; a longer one says more than any memory can."""


class _EarlierPart:
    """Part of a service under its earlier name."""

    def __init__(self, service: EarlierNames, paths: Mapping[str, str]) -> None:
        self._service, self._paths = service, paths

    def __getattr__(self, name: str) -> Any:
        if name not in self._paths:
            raise AttributeError(f"no attribute {name!r}; see docs/reference/python.md")
        return attrgetter(self._paths[name])(self._service)


class EarlierNames:
    """Earlier names of a service's parts, for programs of other people."""

    if not TYPE_CHECKING:  # a type checker would take it for every name there is

        def __getattr__(self, part: str) -> Any:
            if part in SERVICE_PARTS:
                return attrgetter(SERVICE_PARTS[part])(self)
            if part not in SERVICE_NAMES:
                raise AttributeError(f"{type(self).__name__!r} has no attribute {part!r}")
            return _EarlierPart(self, SERVICE_NAMES[part])


class MemoryService(EarlierNames):
    """One agent's memory, shared by everything in a session that uses it.

    Args:
        storage: Storage of the memories.
        settings: Limits and thresholds.
        redactor: Removes secrets from all text that is written.
        audit: Log of changes; None for no log.
        clock: Source of the present.
        limits: Seconds to wait.

    Attributes:
        folder: Folder of the memories; None if they are not stored in files on this machine.
        search_sources: Search sources of other texts; see `Searcher.add_source`.
        pad: The scratchpad and its file.
        monitor: Events, alerts and background work.
    """

    def __init__(
        self,
        storage: MemoryStorage,
        settings: ServiceSettings | None = None,
        *,
        redactor: Redactor | None = None,
        audit: AuditLog | None = None,
        clock: Clock = utc_now,
        limits: ServiceLimits = _LIMITS,
    ) -> None:
        self.storage = storage
        self.settings = settings or ServiceSettings()
        self.agent_id = storage.agent_id
        self.folder: AgentFolder | None = getattr(storage, "folder", None)
        redactor = redactor or SecretRedactor()
        manager = ScratchpadManager(
            storage.agent_id,
            self.settings.max_scratchpad_entries,
            storage=storage,
            storage_root=self.settings.storage_root,
            promotion_threshold=self.settings.promotion_access_threshold,
            clock=clock,
            redactor=redactor,
        )
        self.monitor = Monitor(storage, self.settings, clock, audit)
        gate = TrustGate(storage, self.monitor)
        self.pad = AgentScratchpad(manager, self, gate, self.monitor, clock, limits)
        self.search_sources: list[SearchSource] = []
        self._parts = ServiceParts(
            storage,
            self.folder,
            self.settings,
            gate,
            self.pad,
            self.monitor,
            redactor,
            clock,
            limits,
            self.search_sources,
        )

    # Each part is loaded at its first use: a program that only lists memories needs none of them.

    @cached_property
    def writer(self) -> Writer:
        """Return the part that changes memories."""
        from agent_memory.memory.writer import Writer

        return Writer(self._parts)

    @cached_property
    def history(self) -> History:
        """Return the part that lists and reverses changes."""
        from agent_memory.memory.history import History

        return History(self._parts, self.writer)

    @cached_property
    def searcher(self) -> Searcher:
        """Return the part that searches and lists."""
        from agent_memory.memory.searcher import Searcher

        return Searcher(self._parts)

    # -- writing ------------------------------------------------------------------------------------------------------

    @operation("create_memory")
    async def store(self, values: Mapping[str, Any] | str, caller: Caller = NOBODY) -> Stored:
        """Store a memory; it is on disk when this returns.

        Args:
            values: Fields of a `Memory`, or its text alone; agent, ID and time are added.
            caller: Session that asks for it.

        Raises:
            ValidationError: A field is invalid, the content is only a secret, or the caller may not replace the older
                memory; nothing was stored.
            StorageError: Nothing was stored.
        """
        return await self.writer.store(values, caller)

    @operation("update_memory")
    async def update(
        self,
        memory_id: str,
        changes: Mapping[str, Any],
        caller: Caller = NOBODY,
        *,
        may_have_expired: bool = False,
        expect_seq: int | None = None,
    ) -> Updated:
        """Change fields of a memory.

        None gives a field its default. New content lowers the trust to the caller's.

        Args:
            memory_id: ID of the memory.
            changes: New values by field.
            caller: Session that asks for it.
            may_have_expired: True to accept a time of expiry that has passed, as older versions may have it.
            expect_seq: Number of the memory's last change; any other refuses the update. See `RecordStorage.update`.

        Raises:
            ConflictError: The memory's last change has another number.
            UnknownIdError: No such memory.
            ValidationError: A field is invalid, the caller may not change this memory, or it would have expired
                already; nothing was changed.
            StorageError: Nothing was changed.
        """
        return await self.writer.update(
            memory_id, changes, caller, may_have_expired=may_have_expired, expect_seq=expect_seq
        )

    @operation("delete_memory")
    async def forget(self, memory_id: str, caller: Caller = NOBODY, *, reason: str = "") -> Forgotten:
        """Forget a memory and the older versions it replaced.

        Capture does not store the text again. `history.restore` restores it for a time.

        Args:
            memory_id: ID of the memory; `searcher.find_candidates` finds it by a description.
            caller: Session that asks for it.
            reason: Reason to keep as a trace, at most 200 characters, also after the grace time. Storing the same text
                again reports it as `released`.

        Raises:
            UnknownIdError: No such memory.
            ValidationError: The caller may not forget it (`needs_user`), or the reason is too long.
            StorageError: Nothing was changed.
        """
        return await self.writer.deletion.forget_one(memory_id, caller, reason)

    async def promote(self, memory_id: str, caller: Caller = NOBODY) -> Promoted:
        """Bring a memory into the scratchpad.

        Raises:
            UnknownIdError: No such memory.
            ValidationError: It came from an untrusted source or was replaced, which the scratchpad never shows. Or the
                caller may not pin it (`needs_user`).
            StorageError: Nothing was changed.
        """
        await check_seen(self.storage, caller, [memory_id], "; nothing was promoted")
        return await self.pad.promote(memory_id, caller)

    async def evict(self, memory_id: str) -> None:
        """Remove a memory from the scratchpad alone; unknown IDs are ignored."""
        await self.pad.evict(memory_id)

    async def capture(self, observations: Iterable[Observation], caller: Caller = NOBODY) -> CaptureOutcome:
        """Store observations of a hook, unless they are known, forgotten or invalid.

        Raises:
            StorageError: Observations stored before the failure are safe.
        """
        return await self.writer.capture(observations, caller)

    # -- reading ------------------------------------------------------------------------------------------------------

    @operation("search_memory")
    async def search(  # noqa: PLR0913 - each by its name
        self,
        query: str | None,
        limit: int | None = None,
        filters: SearchFilters | Mapping[str, Any] | None = None,
        *,
        include_superseded: bool = False,
        explain: bool = False,
        min_answer_confidence: float | None = None,
        caller: Caller = NOBODY,
        kinds: Collection[HitKind] = NOTES,
        has_waiting: bool = False,
    ) -> Found:
        """Return the best matches, or the memory whose ID the query is.

        A hit does not count as an access, see `open`. Hits near the best are marked, and long ones have an excerpt. If
        the memories cannot be read, the last scratchpad is searched instead, and `degraded` says so.

        Args:
            query: Words or a question; an empty one lists the newest. With several kinds, None gives the overview, and
                so does a query about the memory as a whole ("what do you know about me").
            limit: Number of results; the setting `default_search_limit` if omitted.
            filters: Conditions that every result meets.
            include_superseded: True to find superseded memories, too.
            explain: True to report left out memories with the reason.
            min_answer_confidence: For programs of earlier versions; see `SearchRequest`.
            caller: Session that asks.
            kinds: Kinds of hits to find. Notes alone are ranked without the other kinds.
            has_waiting: True to find notes that wait for a yes, too, below all others.

        Raises:
            ValidationError: The query, the limit or a filter is invalid.
            StorageError: The memories cannot be read and there is no scratchpad to search.
        """
        if isinstance(query, str) and len(query) > _MAX_QUERY_CHARS:
            raise ValidationError(f"A query has at most {_MAX_QUERY_CHARS} characters, got {len(query)}.")
        wants_overview = query is None and set(kinds) != NOTES
        least = self.settings.min_answer_confidence if min_answer_confidence is None else min_answer_confidence
        request = SearchRequest(
            "" if wants_overview else cast("str", query),
            self.settings.default_search_limit if limit is None else limit,
            self._parts.clock(),
            filters_of(filters).within(caller.group),
            include_superseded,
            explain,
            self._parts.limits.search_patience,
            least,
        )
        asked = WideRequest(request, caller, frozenset(kinds), has_waiting)
        return await self.searcher.search(asked, has_filters=filters is not None, wants_overview=wants_overview)

    async def get(self, memory_id: str) -> Memory:
        """Return one memory.

        Raises:
            UnknownIdError: No such memory.
        """
        return await self.searcher.get(memory_id)

    async def open(self, memory_id: str, caller: Caller = NOBODY) -> Memory:
        """Return a memory by its ID; count an access after the answer.

        Raises:
            UnknownIdError: No such memory.
        """
        return await self.searcher.open(memory_id, caller)

    async def list_recent(self, limit: int = 10) -> list[Memory]:
        """Return the newest valid memories, newest first."""
        await self.pad.notice()
        return await self.storage.list_recent(limit)

    async def suspects(self, caller: Caller = NOBODY, among: Collection[str] | None = None) -> list[Suspect]:
        """Return pairs of conflicting memories that wait for a decision; see `ConflictReview.list_pairs`."""
        return await self.writer.conflicts.list_pairs(caller, among)

    async def scratchpad(self, caller: Caller = NOBODY) -> Scratchpad:
        """Return the scratchpad, after applying edits of its file.

        Raises:
            StorageError: The memories cannot be read.
        """
        return await self.pad.load(caller)

    async def status(self, caller: Caller = NOBODY) -> Status:
        """Return counts, health and suggestions; health reports an unreadable storage."""
        from agent_memory.memory.status import describe_status

        return await describe_status(self._parts, caller, partial(self.writer.conflicts.count, caller))

    async def report(self, event: str, caller: Caller, memory: Memory | None = None, /, **fields: Any) -> None:
        """Emit an event to the caller's session, and log a change."""
        await self.monitor.report(event, caller, memory, **fields)

    # -- life ---------------------------------------------------------------------------------------------------------

    def warm_up(self) -> None:
        """Load memories and model soon, because a search is likely."""
        self.monitor.background.after_first_answer(partial(self.storage.prepare, 0))

    async def settle(self) -> None:
        """Wait for background work: access counts, the scratchpad file, the audit log."""
        await self.monitor.settle()
        await self.pad.settle()

    async def close(self) -> None:
        """Finish background work and close the storage.

        Can be called more than once.
        """
        self.monitor.background.give_up()
        await self.monitor.stop_migration()
        await self.settle()
        await self.monitor.close_watchers()
        for source in self.search_sources:
            await source.close()
        await self.storage.close()


def open_service(agent_id: str, settings: ServiceSettings, embedder: Embedder | None = None) -> MemoryService:
    """Return the service of an agent; read only an encryption key.

    Args:
        agent_id: Name of the agent.
        settings: Root folder, backend and embedder.
        embedder: Embedder of the program instead of the one in the settings; memories are in files then.

    Raises:
        ValidationError, ConfigurationError, StorageError: It cannot be opened.
    """
    load_exemptions(resolve_root(settings.storage_root))
    if embedder is not None:
        return MemoryService(FileStorage(agent_id, settings=settings, embedder=embedder), settings)
    storage = detect_storage(agent_id, settings=settings)
    audit = None
    if isinstance(storage, FileStorage):
        audit = AuditLog(storage.folder.audit)
        if swept := sweep_leftovers(storage.folder.path):
            log.warning("leftovers_removed", files=[path.name for path in swept])
        unlock(storage.folder.path)
    return MemoryService(storage, settings, redactor=SecretRedactor(), audit=audit)
