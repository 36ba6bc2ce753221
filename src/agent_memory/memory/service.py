"""`MemoryService`: the one write path and the one way to ask. What tools, hooks and the command line call.

bound sizes → normalise → redact → validate → dedupe → append → project → emit. Imports no host.
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

from agent_memory.errors import StorageError, UnknownIdError, ValidationError
from agent_memory.journal import PurgeList
from agent_memory.logs import get_logger, operation
from agent_memory.memory.admin import Admin
from agent_memory.memory.alerting import Alerts
from agent_memory.memory.backend_migration import Migration
from agent_memory.memory.background import Background
from agent_memory.memory.caller import NOBODY, Caller
from agent_memory.memory.degrading import Degradation
from agent_memory.memory.disputes import Disputes
from agent_memory.memory.events import EVENTS, payload, searched
from agent_memory.memory.limits import ServiceLimits
from agent_memory.memory.moving import Moving
from agent_memory.memory.overview import is_overview_asked, make_overview
from agent_memory.memory.pad import Pad, search_pad
from agent_memory.memory.past import Past
from agent_memory.memory.path import WritePath
from agent_memory.memory.requests import Requests
from agent_memory.memory.results import Forgotten, Found, Promoted, Status, Stored, Updated, answer_of
from agent_memory.memory.scratchpad_manager import ScratchpadManager
from agent_memory.memory.scratchpad_sync import ScratchpadSync
from agent_memory.memory.search_sources import SearchSources, WideRequest
from agent_memory.memory.seeing import check_referred, check_seen
from agent_memory.memory.shortening import shorten
from agent_memory.memory.similar import find_similar
from agent_memory.memory.status import describe_status
from agent_memory.memory.watching import Watchers
from agent_memory.models import (
    NOTES,
    Clock,
    Memory,
    Scratchpad,
    SearchRequest,
    SearchResults,
    Surroundings,
    filters_of,
    is_memory_id,
    to_text,
    utc_now,
)
from agent_memory.redaction import Redactor, SecretRedactor, quoted
from agent_memory.settings import ServiceSettings
from agent_memory.store.replacements import find_current

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from agent_memory.files.layout import AgentFolder
    from agent_memory.memory.audit import AuditLog
    from agent_memory.memory.results import CaptureOutcome
    from agent_memory.models import HitKind, Observation, SearchFilters
    from agent_memory.store.memory_storage import MemoryStorage

log = get_logger(__name__)

_LIMITS: Final = ServiceLimits()
_MAX_QUERY_CHARS: Final = 10_000
"""A query that is longer says more than any memory can."""


class MemoryService:
    """One agent's memory, shared by everything in a session that uses it.

    Args:
        storage: Where the memories are.
        settings: Limits and thresholds.
        redactor: Takes secrets out of whatever is written.
        audit: Where changes are noted; None keeps no such log.
        clock: Source of the present.
        limits: How long it waits for what may take long.

    Attributes:
        pad: The scratchpad and its file.
        disputes, suspects: Conflicts of memories and decisions; the list of these pairs.
        admin: The operations of a person who maintains the memory.
        requests: Lists candidates for forgetting, and forgets several memories at once.
        past: What memories were before; brings back what was forgotten, replaced or changed.
        migration: Moves the memory to another backend and back.
        moving: Takes out what the archive has, and brings it back.
        alerts: Tells the session what turned bad in it.
        watchers: Who is told what was forgotten, or has another text.
        sources: What a search finds next to memories.
        warm_up: Begins, after the first answer, what makes the first search fast: reading all, loading the model.
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
        self._redactor = redactor or SecretRedactor()
        self._audit = audit
        self._clock = clock
        self._manager = ScratchpadManager(
            storage.agent_id,
            self.settings.max_scratchpad_entries,
            storage=storage,
            storage_root=self.settings.storage_root,
            promotion_threshold=self.settings.promotion_access_threshold,
            clock=clock,
            redactor=self._redactor,
        )
        self._limits = limits
        folder: AgentFolder | None = getattr(storage, "folder", None)
        purged = PurgeList(folder.path) if folder is not None else None
        self._writing = WritePath(
            storage, self._redactor, self.report, clock, compares=self.settings.suspects, purged=purged
        )
        self._degradation = Degradation(storage, self.report)
        sync = ScratchpadSync(self._manager, self, limits)
        self.pad = Pad(self._manager, sync, self._writing.gate, self._degradation, self.report, clock)
        self.past = Past(storage, self, sync, purged)
        self.watchers = Watchers()
        self.sources = SearchSources(storage)
        self.requests = Requests(
            storage, self._writing.gate, self.pad, self.report, clock, limits.search_patience, self.watchers
        )
        self.disputes = Disputes(self._writing, self.report, sync)
        self.suspects = self.disputes.undecided
        self.moving = Moving(storage, self._writing.gate, self.pad, self.report)
        self.migration = Migration(storage, self.settings, self.report)
        self._background = Background()
        self.alerts = Alerts(self.report, self._background.run, clock)
        self.admin = Admin(self._writing, sync, clock, partial(self._look_behind, caller=NOBODY))
        self.warm_up = partial(self._background.after_first_answer, partial(storage.prepare, 0))

    # -- writing ------------------------------------------------------------------------------------------------------

    @operation("create_memory")
    async def store(self, values: Mapping[str, Any] | str, caller: Caller = NOBODY) -> Stored:
        """Keep a memory. When this returns, it is on disk.

        Args:
            values: Fields of a `Memory`, or its text alone; agent, id and time are given here.
            caller: The session that asks.

        Raises:
            ValidationError: A field is wrong, the content is nothing but a secret, or the caller may not replace what
                it replaces; nothing was stored.
            StorageError: Nothing was stored.
        """
        await check_referred(self.storage, caller, values, "stored")
        started = time.perf_counter()
        written = await self._writing.store(values, caller)
        self.alerts.note("stores", (time.perf_counter() - started) * 1000, caller)
        stored, is_new = written.memory, written.outcome == "new"
        pad, degraded = await self.pad.after_change(caller)
        in_pad = pad is not None and stored.id in pad
        if is_new:
            await self._writing.announce(stored, written.redacted, caller, in_scratchpad=in_pad)
        else:
            self._background.run(self.storage.touch([stored.id]))
        if not written.is_compared:
            self._look_behind([stored.id], caller)
        self.pad.schedule(caller)
        self._background.run(self.migration.look(caller))
        degraded = degraded or await self._degradation.after_store(caller)
        trace = await self.storage.released(stored.content) if is_new and caller.group is None else None
        similar = await find_similar(self.storage, stored, caller) if is_new else []
        return Stored(
            stored, in_pad, self.storage.backend, not is_new, written.redacted, degraded, trace, written.suspects,
            stored.supersedes if is_new else None, tuple(similar), written.proposal,
        )  # fmt: skip

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
        """Change fields of a memory; None gives a field its default again. New words lower its trust to the caller's.

        Args:
            memory_id: Which.
            changes: The new values.
            caller: The session that asks.
            may_have_expired: Take an `expires_at` that has passed, as an older version may have it.
            expect_seq: Change nothing unless this is the number of the memory's last change; see `Storage.update`.

        Raises:
            ConflictError: The memory's last change has another number.
            UnknownIdError: There is no such memory.
            ValidationError: A field is wrong, the caller may not change this memory, or it would have expired already;
                nothing was changed.
            StorageError: Nothing was changed.
        """
        await check_seen(self.storage, caller, [memory_id], "; nothing was changed")
        await check_referred(self.storage, caller, changes, "changed")
        updated = await self._writing.update(
            memory_id, changes, caller, may_have_expired=may_have_expired, expect_seq=expect_seq
        )
        if updated.fields:
            self.pad.schedule(caller)
        if "content" in updated.fields:
            await self.watchers.tell([memory_id], caller)
            self._look_behind([memory_id], caller)
            similar = await find_similar(self.storage, updated.memory, caller)
            updated = replace(updated, similar=tuple(similar))
        return updated

    @operation("delete_memory")
    async def forget(self, memory_id: str, caller: Caller = NOBODY, *, reason: str = "") -> Forgotten:
        """Forget a memory and the older versions it replaced; capture will not bring them back, `past` can for a time.

        Args:
            memory_id: Which; `requests` finds it by a description.
            caller: The session that asks.
            reason: Why, at most 200 characters: kept as a trace, beyond the grace time too, and storing the same text
                again is answered with `released`. Without one nothing stays but what the grace time keeps.

        Raises:
            UnknownIdError: There is no such memory.
            ValidationError: The caller may not forget it (`needs_user`), or the reason is too long.
            StorageError: Nothing was changed.
        """
        return await self.requests.one(memory_id, caller, reason)

    async def promote(self, memory_id: str, caller: Caller = NOBODY) -> Promoted:
        """Bring a memory into the scratchpad.

        Raises:
            UnknownIdError: There is no such memory.
            ValidationError: It came from an untrusted source or was replaced; the scratchpad shows neither. Or the
                caller may not bring it there (`needs_user`).
            StorageError: Nothing was changed.
        """
        await check_seen(self.storage, caller, [memory_id], "; nothing was promoted")
        return await self.pad.promote(memory_id, caller)

    async def evict(self, memory_id: str) -> None:
        """Take a memory out of the scratchpad without forgetting it; an unknown id is no error: it is out."""
        await self.pad.evict(memory_id)

    async def capture(self, observations: Iterable[Observation], caller: Caller = NOBODY) -> CaptureOutcome:
        """Keep what a hook saw, unless it is known, was forgotten, or cannot be kept.

        Raises:
            StorageError: What was stored before the failure is safe.
        """
        outcome = await self._writing.capture(observations, caller)
        if outcome.stored:
            self.pad.schedule(caller)
        if outcome.uncompared:
            self._look_behind(outcome.uncompared, caller)
        return outcome

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
        """Return the best matches, or the memory whose id the query is.

        Only the latter counts as an access, see `open`: a hit that is shown is not used yet. Of the others it is told
        which are near the best, and what long ones say about the question (`MemorySearchResult`).
        When the memories cannot be read, what was last in the scratchpad is searched instead and `degraded` says so.

        Args:
            query: Words or a question; an empty one lists the newest. With several kinds, None gives the overview, and
                so does a query that asks for the memory as a whole ("what do you know about me").
            limit: Most results; the setting `default_search_limit` if omitted.
            filters: Conditions that every result meets.
            include_superseded: Also find what a newer memory replaced.
            explain: Also report what was left out, and why.
            min_answer_confidence: For programs of earlier versions; see `SearchRequest`.
            caller: Session that asks.
            kinds: Kinds of hits to find. Notes alone are ranked as if there was nothing else.
            has_waiting: True to find notes that wait for a yes, too, below all others.

        Raises:
            ValidationError: The query, the limit or a filter is wrong.
            StorageError: The memories cannot be read and there is nothing to fall back on.
        """
        if isinstance(query, str) and len(query) > _MAX_QUERY_CHARS:
            raise ValidationError(f"A query has at most {_MAX_QUERY_CHARS} characters, got {len(query)}.")
        await self.pad.notice(caller)
        started, degraded, named, overview = time.perf_counter(), None, None, None
        wants_overview = query is None and set(kinds) != NOTES
        replaced, text = dict[str, str](), "" if wants_overview else cast("str", query)
        limit = self.settings.default_search_limit if limit is None else limit
        least = self.settings.min_answer_confidence if min_answer_confidence is None else min_answer_confidence
        conditions = filters_of(filters).within(caller.group)
        request = SearchRequest(
            text, limit, self._clock(), conditions, include_superseded, explain, self._limits.search_patience, least
        )
        asked = WideRequest(request, caller, frozenset(kinds), has_waiting)
        try:
            named = await self._named(asked) if filters is None else None
            if wants_overview or (named is None and is_overview_asked(asked, self.agent_id)):
                overview, results = await make_overview(self.storage, self.sources, asked)
            else:
                results = named or await self.sources.search(asked)
            replaced = await self._replaced_among(results, asked, is_named=named is not None)
        except StorageError as error:
            if self.pad.last is None:
                raise
            results = search_pad(self.pad.last, text, limit, conditions)
            degraded = f"{error.message} These come from the scratchpad alone."
        latency = round((time.perf_counter() - started) * 1000, 3)
        self.alerts.note("searches", latency, caller)
        await self.report("memory:searched", caller, **searched(text, results, latency, self.storage.backend))
        if not (named or overview):
            shorten(results, explain=explain)
        if degraded:
            await self._degradation.failed("storage", "storage", degraded, caller)
        else:
            if results:
                self._background.run(self.migration.look(caller))
            degraded = await self._degradation.after_search(results, caller)
        return Found(results, latency, degraded, replaced, overview)

    async def _replaced_among(self, results: SearchResults, asked: WideRequest, *, is_named: bool) -> dict[str, str]:
        """Return which memories of an answer were replaced by which, if the answer may have some."""
        if not (asked.request.include_superseded or asked.request.explain or is_named or results.looks_back):
            return {}
        met = [hit.memory.id for hit in results] + [rejected["id"] for rejected in results.rejected]
        return await find_current(self.storage.replaced_by, met)

    async def _named(self, asked: WideRequest) -> SearchResults | None:
        """Return the memory, turn or page whose id a query is, None if it is none."""
        query, caller = asked.request.text, asked.caller
        if not isinstance(query, str):
            return None
        if not is_memory_id(query.strip()):
            hit = await self.sources.get(query.strip(), caller)
            return None if hit is None else SearchResults([hit], total_found=1, match="strong", answer_confidence=1.0)
        try:
            memory = await self.open(query.strip(), caller)
        except UnknownIdError:
            return None
        around = (await self.storage.surroundings([memory.id], caller.group)).get(memory.id, Surroundings())
        results = answer_of(memory, around)
        results[:] = [await self.sources.add_origin(hit, asked) for hit in results]
        return results

    async def get(self, memory_id: str) -> Memory:
        """Return one memory.

        Raises:
            UnknownIdError: There is no such memory.
        """
        memory = await self.storage.get(memory_id)
        if memory is None:
            raise UnknownIdError(f"There is no memory {quoted(memory_id)}.")
        return memory

    async def open(self, memory_id: str, caller: Caller = NOBODY) -> Memory:
        """Return one memory to somebody who asks for it by its id, and count an access, behind the answer.

        Raises:
            UnknownIdError: There is no such memory.
        """
        await check_seen(self.storage, caller, [memory_id])
        memory = await self.get(memory_id)
        self._background.run(self.pad.count_access([memory], caller))
        return memory

    async def list_recent(self, limit: int = 10) -> list[Memory]:
        """Return the newest valid memories, newest first."""
        await self.pad.notice()
        return await self.storage.list_recent(limit)

    async def scratchpad(self, caller: Caller = NOBODY) -> Scratchpad:
        """Return the scratchpad, after taking over what a person changed in its file.

        Raises:
            StorageError: The memories cannot be read.
        """
        return await self.pad.load(caller)

    async def status(self, caller: Caller = NOBODY) -> Status:
        """Return counts, health and suggestions; a storage that cannot be read is part of the answer, not an error."""
        state = self.storage, self._manager, self.settings, self._clock(), self._degradation.troubles()
        waiting, moves = partial(self.disputes.how_many, caller), self.migration.is_moving
        bad = await self.alerts.look(caller)
        return await describe_status(*state, is_moving=moves, suspects=waiting, group=caller.group, alerts=bad)

    async def report(self, event: str, caller: Caller, memory: Memory | None = None, /, **fields: Any) -> None:
        """Emit an event to the caller's session, and to the audit log if it is a change.

        Args:
            event: Name of the event.
            caller: Session that caused it.
            memory: Memory that it is about, as it is now; for `Caller.on_event` alone.
            fields: Payload of the event.
        """
        common = {"agent_id": self.agent_id, "session_id": caller.session_id, "timestamp": to_text(self._clock())}
        data = payload(event, {**common, **fields})
        if self._audit is not None and EVENTS[event].audited:
            self._background.run(self._degradation.note(self._audit, event, data, caller))
        if caller.on_event is not None:
            caller.on_event(event, data, memory)
        await caller.emit(event, data)

    def _look_behind(self, ids: Iterable[str], caller: Caller) -> None:
        self._background.run(self.disputes.look_behind(ids, caller))

    async def settle(self) -> None:
        """Wait for the background work: access counts, the scratchpad file, the audit log."""
        await self._background.settle()
        await self.pad.settle()

    async def close(self) -> None:
        """Finish what is under way and close the storage. May be called more than once."""
        self._background.give_up()
        await self.migration.close()
        await self.settle()
        await self.watchers.close()
        await self.sources.close()
        await self.storage.close()
