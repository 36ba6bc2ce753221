"""`Writer`: the one path of every change of a memory.

Bound → normalize → redact and validate → trust → compare → append → event. The storage redacts again what is not marked
as `Redacted`.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from agent_memory.errors import UnknownIdError, ValidationError
from agent_memory.index.facets import numpy_if_there
from agent_memory.journal import PurgeList, rewrite_returned
from agent_memory.language.similarity import is_near_duplicate
from agent_memory.memory.caller import NOBODY, Caller, check_seen
from agent_memory.memory.conflict_review import ComparedDraft, ConflictFinder, ConflictReview, link_suspects
from agent_memory.memory.drafts import (
    check_expiry,
    check_referred,
    get_observed_fields,
    keep_own_links,
    mark_links,
    normalize_fields,
    stamp_fields,
)
from agent_memory.memory.forget_service import ForgetService
from agent_memory.memory.results import CaptureOutcome, Imported, Stored, StoredItems, Suspect, Updated, WrittenMemory
from agent_memory.memory.similarity import MIN_COSINE, find_similar
from agent_memory.memory.trust import SAID, get_statement
from agent_memory.models import MEMORY, filters_of, may_stand_for
from agent_memory.redaction import SecretRedactor
from agent_memory.redaction.redactor import RepeatedRedactor
from agent_memory.registry import load_handler
from agent_memory.store.record_redaction import Redacted, join_fields, make_record, redact_fields, with_fields

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence
    from datetime import timedelta

    from agent_memory.memory.service_parts import ServiceParts
    from agent_memory.models import Memory, Observation, Trace
    from agent_memory.store.memory_storage import MemoryStorage
    from agent_memory.store.store import RecordNeighbors

T = TypeVar("T")

_NEIGHBOURS: Final = 5
"""Nearest memories compared by capture: the nearest of all may have too little trust to count."""
_COMPARED_IMPORTS: Final = 2_000
"""Imported memories compared in the background, the last ones: some milliseconds each."""
_MANY: Final = 500
_SHORT_CHARS: Final = 500
_FEW_TAGS: Final = 10
"""Text and tags redacted on the event loop: 1.5 ms at most. A thread takes as long again."""
_IMPORTER: Final = "agent_memory.care.import_records:MemoryImporter"


class Writer:
    """Changes the memories of one agent; `parts` are those of its service.

    Attributes:
        finder: Comparison of new memories with existing ones.
        conflicts: Lists and decides conflicts.
        deletion: Forgets memories on request.
    """

    def __init__(self, parts: ServiceParts) -> None:
        self._storage, self._folder, self._redactor = parts.storage, parts.folder, parts.redactor
        self._gate, self._scratchpad, self._monitor = parts.gate, parts.scratchpad, parts.monitor
        self._clock = parts.clock
        self._has_loaded_redactor = False
        self._purged = None if parts.folder is None else PurgeList(parts.folder.path)
        self.finder = ConflictFinder(parts.storage, parts.monitor, is_on=parts.settings.suspects)
        self.conflicts = ConflictReview(parts)
        self.deletion = ForgetService(parts)

    # -- one memory ---------------------------------------------------------------------------------------------------

    async def store(self, values: Mapping[str, Any] | str, caller: Caller) -> Stored:
        """Store a memory; see `MemoryService.store`."""
        await check_referred(self._storage, caller, values, "stored")
        started = time.perf_counter()
        async with self._gate.settling(caller):
            written = await self._write(values, caller)
        self._monitor.note_duration("stores", (time.perf_counter() - started) * 1000, caller)
        stored, is_new = written.memory, written.outcome == "new"
        pad, degraded = await self._scratchpad.after_change(caller, written.recent)
        is_in_pad = pad is not None and stored.id in pad
        if is_new:
            await self._monitor.report_stored(stored, written.redacted, caller, is_in_pad=is_in_pad)
        else:
            self._monitor.background.run(self._storage.touch([stored.id]))
        if not written.is_compared:
            self._compare_later([stored.id], caller)
        self._scratchpad.schedule(caller)
        self._monitor.check_size(caller)
        degraded = degraded or await self._monitor.check_store(caller)
        trace = await self._storage.released(stored.content) if is_new and caller.group is None else None
        similar = written.similar
        if similar is None:
            similar = tuple(await find_similar(self._storage, stored, caller))
        return Stored(
            stored, is_in_pad, self._storage.backend, not is_new, written.redacted, degraded, trace, written.suspects,
            stored.supersedes if is_new else None, similar, written.proposal,
        )  # fmt: skip

    async def update(
        self,
        memory_id: str,
        changes: Mapping[str, Any],
        caller: Caller,
        *,
        may_have_expired: bool = False,
        expect_seq: int | None = None,
    ) -> Updated:
        """Change fields of a memory; see `MemoryService.update`."""
        await check_seen(self._storage, caller, [memory_id], "; nothing was changed")
        await check_referred(self._storage, caller, changes, "changed")
        before = await self._storage.get(memory_id)
        links = before.links if before is not None else ()
        values = dict(await mark_links(self._storage, normalize_fields(changes, "changed"), "changed", links))
        if before is not None and isinstance(values.get("links"), list):
            values["links"] = keep_own_links(values["links"], links)
        cleaned = await self._redact(values, redact_fields, MEMORY, values, self._redactor)
        suspects: list[Suspect] = []
        async with self._gate.settling(caller):
            changing = cleaned if before is None else await self._gate.change(before, cleaned, caller)
            if not may_have_expired:
                check_expiry(changing.value.get("expires_at"), self._clock(), "changed")
            if before is not None and isinstance(content := changing.value.get("content"), str):
                suspects = await self.finder.compare_change(before, content)
            if before is not None and suspects:
                linked = before.model_copy(update={"links": changing.value.get("links", before.links)})
                changing = join_fields(changing, redact_fields(MEMORY, {"links": link_suspects(linked, suspects)}))
            after = await self._storage.update(memory_id, changing, expect_seq=expect_seq)
        if "supersedes" in changing.value:
            _note_replaced(after, caller)
        await self.finder.report_queued(suspects, caller)
        noticed = dict.fromkeys((*cleaned.value, "trust"))
        fields = [name for name in noticed if before is None or getattr(before, name) != getattr(after, name)]
        similar: list[Memory] = []
        if fields:
            await self._monitor.report_changed(memory_id, fields, cleaned.kinds, caller, after)
            self._scratchpad.schedule(caller)
        if "content" in fields:
            await self._monitor.withdraw([memory_id], caller)
            self._compare_later([memory_id], caller)
            similar = await find_similar(self._storage, after, caller)
        return Updated(after, self._clock(), tuple(fields), cleaned.kinds, tuple(suspects), tuple(similar))

    async def capture(self, observations: Iterable[Observation], caller: Caller) -> CaptureOutcome:
        """Store observations of a hook; see `MemoryService.capture`."""
        outcome = CaptureOutcome()
        for observation in observations:
            reason = await self._capture_one(observation, outcome, caller)
            if reason:
                outcome.skipped[reason] = outcome.skipped.get(reason, 0) + 1
        for reason, count in outcome.skipped.items():
            await self._monitor.report("memory:capture_skipped", caller, reason=reason, count=count)
        if outcome.stored:
            self._scratchpad.schedule(caller)
        if outcome.uncompared:
            self._compare_later(outcome.uncompared, caller)
        return outcome

    async def draft_capture(
        self, values: Mapping[str, Any], caller: Caller, session_id: str = "", *, is_callers: bool = False
    ) -> Redacted[Memory] | str:
        """Return the memory that capture would store, or a reason.

        Args:
            values: Fields of a memory.
            caller: Session that asks.
            session_id: Session in which it was said; the caller's if omitted.
            is_callers: True if the words are the caller's: the trust gate admits them.

        Raises:
            UnknownIdError: With `is_callers`: it supersedes or links an unknown memory.
            ValidationError: With `is_callers`: a field is invalid, or the caller may not replace the older memory.
        """
        if is_callers:
            values = await mark_links(self._storage, values, "stored")
            await check_referred(self._storage, caller, values, "stored")
        try:
            draft = await self._draft(values, session_id or caller.session_id, caller.project)
        except ValidationError as error:
            if is_callers:
                raise
            return error.code
        content = draft.value.content
        if self.is_purged(content) or await self._storage.was_forgotten(content):
            return "forgotten"
        if self._purged is not None and self._purged.has_rejected(content):
            return "rejected"
        if await self._is_known(draft.value, caller):
            return "duplicate"
        if not is_callers:
            return draft
        if (older_id := draft.value.supersedes) is not None and await self._storage.get(older_id) is None:
            raise UnknownIdError(f"No memory {older_id} to supersede; nothing was stored.")
        return await self._gate.admit(draft, caller)

    # -- many memories ------------------------------------------------------------------------------------------------

    async def store_items(
        self, items: Sequence[Mapping[str, Any]], caller: Caller, moments: Mapping[str, float] = MappingProxyType({})
    ) -> StoredItems:
        """Store items drawn from texts, durably, as one change.

        Existing items stay as they are, also if a person edited or forgot them.

        Args:
            items: Fields of memories with an ID made of their sources.
            caller: Session that asks for it.
            moments: When sources were stored, in seconds since 1970, by ID. What was purged earlier may be in them.

        Raises:
            StorageError: Nothing was stored.
        """
        outcome = StoredItems()
        drafts = await asyncio.to_thread(self._draft_items, items, caller, outcome)
        if len(drafts) >= _MANY:  # they are sealed when they are stored: numpy, imported there, would hold the loop
            await asyncio.to_thread(numpy_if_there)
        stored_texts = await self._storage.texts_of([draft.value.id for draft in drafts])
        forgotten = await self._storage.forgotten_among([draft.value.content for draft in drafts])
        new: dict[str, Redacted[Memory]] = {}
        for draft in drafts:
            item = draft.value
            if item.id in stored_texts:
                outcome.known.append(item.id)
            elif item.content in forgotten or self.is_purged(item.content, item.id, _get_moment(item, moments)):
                outcome.forgotten.append(item.id)
            else:
                new[item.id] = draft
        if new:
            await self._storage.store_many(list(new.values()))
        outcome.stored.extend(draft.value for draft in new.values())
        return outcome

    async def update_items(self, changes: Mapping[str, Mapping[str, Any]], caller: Caller) -> None:
        """Change fields of items as one change, and report each.

        Raises:
            StorageError: Nothing was changed.
        """
        if changes:
            await self._storage.update_many(changes)
        for memory_id, fields in changes.items():
            await self._monitor.report_changed(memory_id, sorted(fields), (), caller)

    async def list_forgotten_items(self) -> set[str]:
        """Return the IDs of items that were forgotten or purged.

        Raises:
            StorageError: They cannot be read.
        """
        forgotten = {memory.id for memory, _ in await self._storage.forgotten() if memory.is_item}
        return forgotten.union(self.get_purged_ids())

    def get_purged_ids(self) -> Mapping[str, float]:
        """Return when records were purged, in seconds since 1970, by ID."""
        return {} if self._purged is None else self._purged.read().ids

    async def import_memories(
        self,
        memories: Sequence[Memory],
        each: Callable[[Imported], object],
        caller: Caller,
        *,
        trusted: bool = False,
        dry_run: bool = False,
    ) -> None:
        """Store exported memories; existing ones stay as they are.

        A memory may supersede one that comes later or one that was forgotten before the export: such links are kept.

        Args:
            memories: Memories as exported.
            each: Receives the outcome of each memory in order, once it is on disk.
            caller: Session that asks for it.
            trusted: True to believe all claims; otherwise none that would put a memory above others.
            dry_run: True to report the outcomes and store nothing.

        Raises:
            StorageError: Outcomes that `each` received are on disk; the same import again does the rest.
        """
        stored: list[str] = []

        def note(imported: Imported) -> None:
            if imported.outcome == "stored" and not dry_run:
                stored.append(imported.memory_id)
            each(imported)

        importer = self._build_importer(self._storage, caller, trusted=trusted, dry_run=dry_run)
        try:
            await importer.run(memories, note)
        finally:
            if not dry_run:
                self._scratchpad.schedule(caller)
            if stored:
                self._compare_later(stored[-_COMPARED_IMPORTS:], NOBODY)

    async def import_traces(self, traces: Sequence[Trace]) -> int:
        """Add traces of released memories; return how many.

        Traces of existing memories are left out.

        Raises:
            StorageError: None was added.
        """
        return await self._storage.add_traces(traces)

    async def transfer(
        self,
        memories: Sequence[Memory],
        each: Callable[[Imported], object],
        caller: Caller,
        *,
        to: MemoryStorage | None = None,
    ) -> None:
        """Store missing memories of another storage of the same agent.

        Existing memories stay, and forgotten ones stay forgotten.

        Args:
            memories: All memories of the other storage.
            each: Receives the outcome of each memory in order, once it is on disk.
            caller: Session that asks for it.
            to: Storage to write instead of the own one.

        Raises:
            StorageError: Outcomes that `each` received are on disk; the same transfer again does the rest.
        """
        try:
            await self._build_importer(to or self._storage, caller, is_transfer=True).run(memories, each)
        finally:
            if to is None:
                self._scratchpad.schedule(caller)

    async def check_moving(self, memory_ids: Collection[str], caller: Caller = NOBODY) -> None:
        """Refuse known memories that a caller may not move out.

        Raises:
            ValidationError: One has higher trust than the caller, and the user did not agree (`needs_user`).
        """
        await self._scratchpad.notice(caller)  # an edit of the file would add them again later
        await self._gate.check_all("forget", memory_ids, caller)

    async def move_out(
        self,
        memories: Sequence[Memory],
        to: str,
        caller: Caller = NOBODY,
        *,
        rules: Mapping[str, str] | None = None,
        run: str | None = None,
    ) -> list[str]:
        """Remove memories that another journal has; return the removed IDs.

        One that was used or changed since stays, and so does one that replaced it or was replaced by it.

        Args:
            memories: Memories as the other journal has them on disk.
            to: Name of the other journal.
            caller: Session that asks for it.
            rules: Reason of each by ID, for events.
            run: ID of the run that moved them, for events.

        Raises:
            StorageError: None was removed.
        """
        moved = await self._storage.move_out(memories, to)
        self._scratchpad.drop(moved)
        for memory_id in moved:
            fields = {"memory_id": memory_id, "rule": (rules or {}).get(memory_id, ""), "run_id": run}
            await self._monitor.report("memory:archived", caller, **fields)
        self._scratchpad.schedule(caller, is_urgent=True)
        await self._monitor.withdraw(moved, caller)
        return moved

    async def put_back(
        self, memories: Sequence[Memory], caller: Caller = NOBODY, *, was: Literal["archived", "forgotten"]
    ) -> None:
        """Store archived or forgotten memories as they were, all or none.

        Existing ones stay as they are.

        Raises:
            ValidationError: The ID of one has another text; nothing was stored.
            StorageError: Nothing was stored.
        """
        existing = await self._storage.texts_of([memory.id for memory in memories])
        await self._storage.store_many(memories)
        for memory in memories:
            if memory.id not in existing:
                await self._monitor.report("memory:restored", caller, memory_id=memory.id, was=was)
        self._scratchpad.schedule(caller)

    async def compact(self, grace: timedelta | None = None) -> None:
        """Compact the journal; see `MemoryStorage.compact`.

        With `timedelta(0)`, forgotten and replaced texts are deleted permanently. Journals that were put back after a
        purge are rewritten without what was purged.
        """
        await self._storage.compact(grace)
        if self._folder is not None and self._folder.path.is_dir():
            await asyncio.to_thread(rewrite_returned, self._folder.journals())
        self._scratchpad.schedule()  # the file may show what has expired
        await self._scratchpad.settle()

    # -- steps --------------------------------------------------------------------------------------------------------

    def is_purged(self, content: str, memory_id: str = "", moment: float = 0.0) -> bool:
        """Return True if this ID was purged, or this text after `moment`."""
        return self.is_purged_id(memory_id) or (self._purged is not None and self._purged.has(content, moment))

    def is_purged_id(self, memory_id: str) -> bool:
        """Return True if a memory with this ID was purged."""
        return self._purged is not None and self._purged.names(memory_id)

    async def _write(self, values: Mapping[str, Any] | str, caller: Caller) -> WrittenMemory:
        if isinstance(values, Mapping):
            values = await mark_links(self._storage, values, "stored")
        draft = await self._draft(values, caller.session_id, caller.project)
        check_expiry(draft.value.expires_at, self._clock(), "stored")
        proposal = await self._gate.propose_replacing(draft.value, caller)
        if proposal is not None:
            draft = with_fields(draft, supersedes=None)
        admitted = await self._gate.admit(draft, caller)
        written = await self._append(admitted, caller, unique=admitted.value.supersedes is None)
        _note_replaced(written.memory, caller)
        return replace(written, proposal=proposal)

    async def _draft(self, values: Mapping[str, Any] | str, session_id: str, project: str) -> Redacted[Memory]:
        """Return a new memory: bounded, validated, without secrets."""
        fields = normalize_fields(stamp_fields(values, self._clock(), session_id, project), "stored")
        return await self._redact(fields, make_record, MEMORY, fields, self._storage.agent_id, self._redactor)

    async def _redact(self, fields: Mapping[str, Any], function: Callable[..., Redacted[T]], *args: Any) -> Redacted[T]:
        """Call a function that redacts fields, in a thread if slow."""
        if self._has_loaded_redactor and _is_short(fields):
            return function(*args)
        result = await asyncio.to_thread(function, *args)
        self._has_loaded_redactor = isinstance(self._redactor, SecretRedactor)  # another one may block
        return result

    def _build_importer(self, storage: MemoryStorage, caller: Caller, **choices: bool) -> Any:
        build = load_handler(_IMPORTER)
        audit_file = None if self._folder is None else self._folder.audit
        return build(storage, self._redactor, self._purged, self._monitor, caller, self._clock(), audit_file, **choices)

    def _draft_items(
        self, items: Sequence[Mapping[str, Any]], caller: Caller, outcome: StoredItems
    ) -> list[Redacted[Memory]]:
        drafts: list[Redacted[Memory]] = []
        redactor = RepeatedRedactor(self._redactor)
        for values in items:
            fields = {**values, "created_by_session": caller.session_id}
            try:
                drafts.append(make_record(MEMORY, fields, self._storage.agent_id, redactor))
            except ValidationError as error:
                outcome.refused[str(values.get("id"))] = error.code
        return drafts

    async def _append(self, draft: Redacted[Memory], caller: Caller, *, unique: bool) -> WrittenMemory:
        """Compare and store a memory, with `unique` only a new text.

        One of low trust with the same text becomes the caller's: its other fields are replaced, and it is reported as
        updated.
        """
        compared = ComparedDraft(draft)

        def compare(neighbors: RecordNeighbors[Memory] | None) -> Redacted[Memory]:
            nonlocal compared
            compared = self.finder.compare_draft(draft, neighbors)
            return compared.draft

        filters, order = filters_of(None).within(caller.group), self._scratchpad.manager.selection
        while True:
            known_as, recent = await self._storage.store_compared(
                draft, filters, compare, order, unique=unique, floor=MIN_COSINE
            )
            new = compared.draft.value
            if known_as == new.id:
                await self.finder.report_queued(compared.suspects, caller)
                return WrittenMemory(
                    new, "new", draft.kinds, compared.suspects, compared.similar, recent, is_compared=compared.is_done
                )
            existing = await self._storage.get(known_as)
            if existing is not None and (existing.trust != "low" or not await self._gate.may_raise(new, caller)):
                return WrittenMemory(existing, "known", draft.kinds)
            if existing is not None:
                with contextlib.suppress(UnknownIdError):
                    after = await self._storage.update(existing.id, get_statement(new))
                    fields = [name for name in SAID if getattr(existing, name) != getattr(after, name)]
                    await self._monitor.report_changed(existing.id, fields, draft.kinds, caller, after)
                    return WrittenMemory(after, "taken_over", draft.kinds)
            # it was forgotten in between, and the text is stored after all

    async def _capture_one(self, observation: Observation, outcome: CaptureOutcome, caller: Caller) -> str | None:
        """Store one observation or return why not."""
        draft = await self.draft_capture(get_observed_fields(observation), caller, observation.session_id)
        if isinstance(draft, str):
            return draft
        memory = draft.value
        written = await self._append(draft, caller, unique=True)
        if written.outcome == "known":
            return "duplicate"
        outcome.stored.append(written.memory.id)
        if not written.is_compared:
            outcome.uncompared.append(written.memory.id)
        await self._monitor.report(
            "memory:captured",
            caller,
            written.memory,
            memory_id=written.memory.id,
            category=memory.category,
            confidence=observation.confidence,
            source=memory.source.kind,
            rule=observation.rule,
            redacted=list(draft.kinds),
        )
        return None

    async def _is_known(self, memory: Memory, caller: Caller) -> bool:
        """Return True if a memory says this in nearly the same words.

        One that the caller does not see does not count. One of low trust does not count against others.
        """
        filters = filters_of(None).within(caller.group)
        nearest = await self._storage.search(memory.content, _NEIGHBOURS, filters, patience=0)
        return any(
            may_stand_for(hit.memory.trust, memory.trust) and is_near_duplicate(hit.memory.content, memory.content)
            for hit in nearest
        )

    def _compare_later(self, memory_ids: Iterable[str], caller: Caller) -> None:
        self._monitor.background.run(self.finder.compare_stored(memory_ids, caller))


def _get_moment(item: Memory, moments: Mapping[str, float]) -> float:
    """Return when the last source of an item was stored."""
    return max((moments.get(link.id, 0.0) for link in item.links), default=0.0)


def _is_short(fields: Mapping[str, Any]) -> bool:
    """Return True if fields of a memory are redacted in a millisecond."""
    content, tags = fields.get("content") or "", fields.get("tags") or []
    is_small = isinstance(content, str) and len(content) <= _SHORT_CHARS
    has_few_tags = isinstance(tags, list) and len(tags) <= _FEW_TAGS
    return is_small and has_few_tags and not fields.get("metadata") and not fields.get("links")


def _note_replaced(memory: Memory, caller: Caller) -> None:
    if memory.supersedes and caller.trust != "high":
        caller.proposals.note_replaced(memory.supersedes)
