"""`Inbox`: memories that wait for a person's yes, in `inbox.yaml`.

A candidate is stored as a memory first, then removed from the inbox. A killed process leaves it in both at worst, and
accepting it again finds the memory. Removed candidates leave the file at once: there is no grace time for a text to
which no user has agreed.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from agent_memory.errors import ConfigurationError, UnknownIdError
from agent_memory.files.layout import folder_of
from agent_memory.files.lock import folder_lock
from agent_memory.index.ranker import STRONG_SHARE
from agent_memory.journal import PurgeList
from agent_memory.language.similarity import is_near_duplicate
from agent_memory.language.words import index_terms, query_terms
from agent_memory.memory.caller import MAX_PROPOSALS, NOBODY, PROPOSAL_TIME, carrying_out, get_agreed
from agent_memory.memory.drafts import get_observed_fields
from agent_memory.memory.results import Imported, Stored
from agent_memory.memory.trust import lowest
from agent_memory.models import CANDIDATE, Candidate, Memory, Source, get_import_id, may_stand_for, to_text, utc_now
from agent_memory.models.memory import PASTED
from agent_memory.models.search import ProjectScope
from agent_memory.redaction import quoted
from agent_memory.store.memory_storage import Files
from agent_memory.store.record_redaction import Redacted, redact_record
from agent_memory.store.record_storage import RecordStorage

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from agent_memory.memory.caller import Caller, ProposedAct
    from agent_memory.memory.service import MemoryService
    from agent_memory.models import Clock, Observation, SearchRequest
    from agent_memory.store.store import Answer

_NONE: Final = timedelta(0)
_REASONS: Final = {
    "duplicate": "a memory says it already",
    "waiting": "it waits in the inbox already",
    "forgotten": "it was forgotten before",
    "rejected": "the user rejected it before",
}
"""Sentences for the reasons for which a text is skipped."""


@dataclass(slots=True)
class HeldCandidates:
    """Outcome of holding candidates.

    Attributes:
        ids: IDs of candidates that wait now.
        skipped: Number of skipped candidates by reason.
    """

    ids: list[str] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)

    def explain(self) -> str:
        """Return the first reason for skipping, as a clause."""
        reason = next(iter(self.skipped), "")
        return _REASONS.get(reason, reason)


class Inbox:
    """Inbox of one agent; its file is created by the first write.

    Args:
        service: Service of the agent's memory, which stores accepted candidates.
        clock: Source of the present.

    Raises:
        ConfigurationError: The agent's memories are on a server, which has no inbox.
    """

    def __init__(self, service: MemoryService, *, clock: Clock = utc_now) -> None:
        settings = service.settings
        if settings.backend == "server":
            raise ConfigurationError(
                "A server has no inbox; nothing was stored.",
                code="inbox_needs_files",
                recovery="Set memory.mode to manual or autonomous, or backend to auto, file or vector.",
            )
        self._service, self._clock = service, clock
        self._waiting_time = timedelta(days=settings.inbox_days)
        self._folder = folder_of(service.agent_id, settings.storage_root)
        plain = settings.model_copy(update={"embedder": "none"})
        files = Files(CANDIDATE, self._folder, plain, clock, None, _NONE)
        self._storage: RecordStorage[Candidate] = RecordStorage(files.backend())
        self._purge_list = PurgeList(self._folder.path)

    async def waiting(self) -> list[Candidate]:
        """Return the waiting candidates, oldest first.

        Those that waited too long are left out, and rejected ones that came back with a backup.

        Raises:
            StorageError: It cannot be read.
        """
        return [candidate for candidate in await self._list_undecided() if not self._is_archived(candidate)]

    async def answer(self, request: SearchRequest) -> Answer[Candidate]:
        """Return candidates that match by words, expired ones included.

        Raises:
            StorageError: The inbox cannot be read.
        """
        return await self._storage.answer(request)

    async def archived(self) -> list[Candidate]:
        """Return archived notes, oldest first.

        Raises:
            StorageError: They cannot be read.
        """
        return [candidate for candidate in await self._list_undecided() if self._is_archived(candidate)]

    async def get(self, candidate_id: str) -> Candidate:
        """Return a candidate that waits or is archived.

        Raises:
        UnknownIdError: The ID is unknown.
        """
        for candidate in await self._list_undecided():
            if candidate.id == candidate_id:
                return candidate
        raise UnknownIdError(
            f"{quoted(candidate_id)} does not wait in the inbox; nothing was changed.",
            recovery="Run `agent-memory inbox` to list waiting notes.",
        )

    async def find_matches(self, words: str) -> list[Candidate]:
        """Return waiting candidates with half of the words.

        Raises:
            StorageError: The inbox cannot be read.
        """
        asked = set(query_terms(words))
        least = STRONG_SHARE * len(asked)
        waiting = [candidate for candidate in await self.waiting() if not candidate.act] if asked else []
        return [candidate for candidate in waiting if len(asked.intersection(index_terms(candidate.content))) >= least]

    def ends_at(self, candidate: Candidate) -> str:
        """Return the end of a candidate's waiting time, or ""."""
        if candidate.batch:
            return ""
        return to_text((candidate.waits_since or candidate.timestamp) + self._get_waiting_time(candidate))

    async def close(self) -> None:
        """Close the inbox, but not the service."""
        await self._storage.close()

    async def _list_undecided(self) -> list[Candidate]:
        return [candidate for candidate in await self._list_all() if not self._is_over(candidate)]

    async def _list_all(self) -> list[Candidate]:
        if not (self._folder.path / CANDIDATE.journal).exists():
            return []
        return sorted([candidate async for candidate in self._storage.iter_all()], key=lambda record: record.timestamp)

    def _get_waiting_time(self, candidate: Candidate) -> timedelta:
        return PROPOSAL_TIME if candidate.act else self._waiting_time

    def _is_archived(self, candidate: Candidate) -> bool:
        return candidate.is_archived(self._clock(), self._get_waiting_time(candidate))

    def _is_over(self, candidate: Candidate) -> bool:
        is_old = candidate.is_over(self._clock(), self._get_waiting_time(candidate))
        return is_old or self._is_rejected(candidate)

    def _is_rejected(self, candidate: Candidate) -> bool:
        return not candidate.act and self._purge_list.has_rejected(candidate.content)

    # -- holding ------------------------------------------------------------------------------------------------------

    async def hold(
        self, observations: Iterable[Observation], caller: Caller = NOBODY, *, as_notes: bool = False
    ) -> HeldCandidates:
        """Add observations, except known, forgotten, rejected and waiting ones.

        Args:
            observations: Statements that capture found.
            caller: Session in which they were said.
            as_notes: True for waiting notes, which are archived after their time instead of dropped.

        Raises:
            StorageError: Candidates added before the failure are safe.
        """
        held = HeldCandidates()
        for observation in observations:
            fields = get_observed_fields(observation)
            drafted = await self._service.writer.draft_capture(fields, caller, observation.session_id)
            await self._hold_one(drafted, held, caller, via="capture", rule=observation.rule[:100], is_note=as_notes)
        for reason, count in held.skipped.items():
            await self._service.report("memory:capture_skipped", caller, reason=reason, count=count)
        return held

    async def hold_store(self, values: Mapping[str, Any], caller: Caller = NOBODY) -> HeldCandidates:
        """Add a memory that a model wants to store; see `hold`.

        Raises:
            ValidationError: A field is invalid, or the caller may not replace the older memory.
            StorageError: It was not added.
        """
        held = HeldCandidates()
        drafted = await self._service.writer.draft_capture(values, caller, is_callers=True)
        await self._hold_one(drafted, held, caller, via="tool")
        return held

    async def _hold_one(
        self, drafted: Redacted[Memory] | str, held: HeldCandidates, caller: Caller, **origin: object
    ) -> None:
        if isinstance(drafted, str):
            held.skipped[drafted] += 1
            return
        await self._remove_over(caller)
        candidate = redact_record(CANDIDATE, Candidate.of(drafted.value, **origin)).value
        is_covered = any(not waiting.act and _covers(waiting, drafted.value) for waiting in await self.waiting())
        if is_covered or await self._storage.store(candidate, unique=True) != candidate.id:
            held.skipped["waiting"] += 1
            return
        held.ids.append(candidate.id)
        fields = {"category": candidate.category, "source": candidate.source.kind, "via": candidate.via}
        redacted = list(drafted.kinds)
        await self._service.report("memory:held", caller, candidate_id=candidate.id, **fields, redacted=redacted)

    async def _remove_over(self, caller: Caller) -> None:
        over = [candidate for candidate in await self._list_all() if self._is_over(candidate)]
        await self._remove(over, "expired", caller)

    async def hold_act(self, act: ProposedAct, caller: Caller) -> None:
        """Add an act that a session was refused, once.

        Raises:
            StorageError: It was not added.
        """
        candidate = Candidate(
            agent_id=self._service.agent_id,
            id=_get_act_id(act.proposal),
            content=act.text,
            category="note",
            source=Source(kind="assistant"),
            trust=lowest(caller.trust, "medium"),
            origin=caller.origin,
            project=caller.project,
            group="" if isinstance(caller.group, ProjectScope) else caller.group or "",
            timestamp=self._clock(),
            created_by_session=caller.session_id,
            via="tool",
            act=act.verb,
            act_ids=list(act.memory_ids),
            act_values=dict(act.values),
        )
        await self._remove_over(caller)
        if await self._storage.get(candidate.id) is not None:
            return
        acts = [waiting for waiting in await self._list_all() if waiting.act]
        await self._remove(acts[: max(0, len(acts) - MAX_PROPOSALS + 1)], "expired", caller)
        await self._storage.store(redact_record(CANDIDATE, candidate).value)
        fields = {"category": candidate.category, "source": candidate.source.kind, "via": candidate.via}
        await self._service.report("memory:held", caller, candidate_id=candidate.id, **fields, redacted=[])

    async def settle(self, proposal: str, caller: Caller) -> None:
        """Remove an act that was done after the user's yes.

        Raises:
            StorageError: It still waits.
        """
        candidate = await self._storage.get(_get_act_id(proposal))
        await self._remove([candidate] if candidate is not None else [], "accepted", caller)

    # -- deciding -----------------------------------------------------------------------------------------------------

    async def accept(
        self, candidate_id: str, caller: Caller = NOBODY, changes: Mapping[str, Any] | None = None
    ) -> Stored:
        """Store a candidate, with optional changes, or carry out its act.

        A person's yes gives their typed words high trust. A text of their own message, which only may have been pasted,
        has medium trust then; that of an untrusted source stays low. A changed text has the caller's.

        Raises:
            UnknownIdError: It does not wait.
            ValidationError: A field is invalid; the candidate still waits.
            StorageError: The candidate still waits.
        """
        candidate = await self.get(candidate_id)
        if candidate.act:
            with carrying_out(candidate.id.removeprefix(CANDIDATE.prefix)):
                stored = await self._carry_out(candidate, caller)
            await self._remove([candidate], "accepted", caller, stored.memory.id)
            return stored
        values, new = candidate.wanted(), dict(changes or {})
        if new.get("content", candidate.content) != candidate.content:
            new = {"trust": caller.trust, "source": {"kind": "user", "detail": "inbox"}, **new}
        raised = _raise_trust(candidate) if caller.trust == "high" else {}
        stored = await self._service.store({**values, **raised, **new}, caller)
        await self._remove([candidate], "edited" if new else "accepted", caller, stored.memory.id)
        return stored

    async def accept_batch(self, candidates: Sequence[Candidate], caller: Caller) -> list[str]:
        """Store candidates of imports at once; return the IDs of new memories.

        Their words came from outside, so a person's yes gives medium trust.

        Raises:
            StorageError: Candidates that were not stored still wait.
        """
        stored: list[str] = []
        settled: list[Candidate] = []
        outcomes = iter(candidates)

        def note(imported: Imported) -> None:
            candidate = next(outcomes)
            settled.extend([candidate] if imported.outcome != "refused" else [])
            stored.extend([imported.memory_id] if imported.outcome == "stored" else [])

        now = self._clock()
        memories = [
            Memory.model_validate({
                **candidate.wanted(), **_raise_trust(candidate), "agent_id": candidate.agent_id, "timestamp": now,
                "observed_at": candidate.observed_at, "id": get_import_id(candidate.content),
            })
            for candidate in candidates
        ]  # fmt: skip
        try:
            await self._service.writer.import_memories(memories, note, caller, trusted=True)
        finally:
            await self._remove(settled, "accepted", caller)
        return stored

    async def accept_proposal(self, proposal: str, caller: Caller) -> None:
        """Carry out the act of a proposal; an unknown one is ignored.

        Raises:
            AgentMemoryError: It cannot be done any more; it still waits.
        """
        if any(candidate.act and candidate.id == _get_act_id(proposal) for candidate in await self.waiting()):
            await self.accept(_get_act_id(proposal), caller)

    async def _carry_out(self, candidate: Candidate, caller: Caller) -> Stored:
        """Do the act of a proposal; return the memory that it concerns."""
        origin = {"origin": candidate.origin}
        if candidate.act == "store":
            source = {"kind": "assistant", "detail": "inbox"}
            return await self._service.store(
                {"trust": "medium", "source": source, **candidate.act_values, **origin}, caller
            )
        if candidate.act == "update":
            updated = await self._service.update(candidate.act_ids[0], {**candidate.act_values, **origin}, caller)
            return Stored(updated.memory, in_scratchpad=False, backend="")
        forgotten = await self._service.writer.deletion.forget(candidate.act_ids, caller)
        return Stored(forgotten.memories[0], in_scratchpad=False, backend="")

    async def reject(self, candidate_ids: Collection[str], caller: Caller = NOBODY) -> list[Candidate]:
        """Remove candidates; the same text is not offered again.

        Raises:
            UnknownIdError: One does not wait; none was rejected.
            StorageError: They still wait; their texts may be noted as rejected.
        """
        candidates = [await self.get(candidate_id) for candidate_id in dict.fromkeys(candidate_ids)]
        if candidates:
            await asyncio.to_thread(self._note_texts, self._purge_list.reject, candidates)
            await self._remove(candidates, "rejected", caller)
        return candidates

    async def take_rejection_back(self, candidate: Candidate, caller: Caller = NOBODY) -> None:
        """Return a rejected candidate to the inbox.

        Raises:
            StorageError: It does not wait; its text may be offered again.
        """
        await asyncio.to_thread(self._note_texts, self._purge_list.readmit, [candidate])
        await self._storage.store(candidate)
        fields = {"category": candidate.category, "source": candidate.source.kind, "via": candidate.via}
        await self._service.report("memory:held", caller, candidate_id=candidate.id, **fields, redacted=[])

    async def drop_batch(self, batch: str, caller: Caller) -> int:
        """Remove waiting candidates of an import; return their number."""
        candidates = [candidate for candidate in await self._list_all() if candidate.batch == batch]
        await self._remove(candidates, "forgotten", caller)
        return len(candidates)

    async def restore(self, candidate_ids: Collection[str]) -> list[Candidate]:
        """Return archived notes to the inbox.

        Raises:
            UnknownIdError: There is none with one of these IDs; the ones before it wait again.
            StorageError: It stays archived.
        """
        return [
            await self._storage.update((await self.get(candidate_id)).id, {"waits_since": self._clock()})
            for candidate_id in dict.fromkeys(candidate_ids)
        ]

    async def drop_stored(self, memory: Memory, caller: Caller = NOBODY) -> list[str]:
        """Remove candidates that a stored memory repeats; return their IDs."""
        waiting = [candidate for candidate in await self._list_all() if candidate.act in {"", "store"}]
        stored = [candidate for candidate in waiting if _covers(memory, candidate)]
        await self._remove(stored, "accepted", caller, memory.id)
        return [candidate.id for candidate in stored]

    async def drop_saying(
        self, texts: Collection[str], caller: Caller = NOBODY, memory_ids: Collection[str] = ()
    ) -> list[str]:
        """Remove candidates about texts, and acts on memories; return their IDs."""
        agreed = {_get_act_id(proposal) for proposal in get_agreed()}
        repeats = [
            candidate
            for candidate in await self._list_all()
            if candidate.id not in agreed
            and (
                any(is_near_duplicate(candidate.content, text) for text in texts)
                or not set(memory_ids).isdisjoint([*candidate.act_ids, candidate.act_values.get("supersedes")])
            )
        ]
        await self._remove(repeats, "forgotten", caller)
        return [candidate.id for candidate in repeats]

    async def take_in(self, candidates: Collection[Candidate], *, dry_run: bool = False) -> int:
        """Add new candidates of another inbox; return their number.

        Rejected ones are left out.
        """
        existing = await self._list_all()
        ids, wishes = {candidate.id for candidate in existing}, {_get_wish(candidate) for candidate in existing}
        new = [
            candidate
            for candidate in candidates
            if candidate.id not in ids and _get_wish(candidate) not in wishes and not self._is_rejected(candidate)
        ]
        if new and not dry_run:
            await self._storage.store_many(new)
        return len(new)

    async def _remove(
        self, candidates: list[Candidate], outcome: str, caller: Caller, memory_id: str | None = None
    ) -> None:
        if not candidates:
            return
        with contextlib.suppress(UnknownIdError):  # another process was faster
            await self._storage.forget_many([candidate.id for candidate in candidates])
        await self._storage.compact(_NONE)
        for candidate in candidates:
            fields = {"candidate_id": candidate.id, "outcome": outcome, "memory_id": memory_id}
            await self._service.report("memory:decided", caller, **fields)

    def _note_texts(self, note: Callable[[list[str], str], None], candidates: Sequence[Candidate]) -> None:
        """Record the texts of notes in the purge list; acts have none."""
        with folder_lock(self._folder.path, self._service.settings.lock_timeout):
            note([candidate.content for candidate in candidates if not candidate.act], to_text(self._clock()))


def _get_act_id(proposal: str) -> str:
    """Return the ID of the candidate that holds a proposed act."""
    return f"{CANDIDATE.prefix}{proposal}"


def _get_wish(candidate: Candidate) -> tuple[object, ...]:
    """Return content, owner and act of a candidate, for comparison."""
    act = candidate.act, *candidate.act_ids, repr(sorted(candidate.act_values.items()))
    return candidate.content, candidate.project, candidate.group, candidate.trust, candidate.replaces, act


def _raise_trust(candidate: Candidate) -> dict[str, Any]:
    """Return the trust that a person's yes gives, if any."""
    is_known = candidate.source.detail == PASTED or candidate.batch != ""
    if is_known and candidate.trust == "low":
        return {"trust": "medium"}
    return {"trust": "high"} if candidate.source.kind == "user" and candidate.trust == "medium" else {}


def _covers(waiting: Memory, memory: Memory) -> bool:
    """Return True if one text makes another redundant.

    Untrusted words never do that to a person's.
    """
    return may_stand_for(waiting.trust, memory.trust) and is_near_duplicate(waiting.content, memory.content)
