"""`Inbox`: what would be remembered and waits for a person's yes, in `inbox.yaml` of an agent's folder.

A candidate becomes a memory by the one write path and then leaves the inbox, so that a killed process leaves it in both
at worst, and accepting it once more finds the memory that says it. What leaves the inbox leaves its file at once: there
is no grace time for a text to which nobody has agreed.
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
from agent_memory.index.match_grades import STRONG_SHARE
from agent_memory.journal import PurgeList
from agent_memory.language.similarity import is_near_duplicate
from agent_memory.language.words import index_terms, query_terms
from agent_memory.memory.caller import NOBODY
from agent_memory.memory.drafts import get_observed_fields
from agent_memory.models import CANDIDATE, Candidate, may_stand_for, to_text, utc_now
from agent_memory.redaction import quoted
from agent_memory.store.file_storage import Files
from agent_memory.store.record_redaction import redact_record
from agent_memory.store.record_storage import RecordStorage

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from agent_memory.memory.caller import Caller
    from agent_memory.memory.results import Stored
    from agent_memory.memory.service import MemoryService
    from agent_memory.models import Clock, Memory, Observation, SearchRequest
    from agent_memory.store.record_redaction import Redacted
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
class Held:
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


class InboxReader:
    """Looks into one agent's inbox; see `Inbox`."""

    def __init__(self, service: MemoryService, *, clock: Clock = utc_now) -> None:
        settings = service.settings
        if settings.backend == "server":
            raise ConfigurationError(
                "A server keeps no inbox; nothing was kept.",
                code="inbox_needs_files",
                recovery="Set memory.mode to manual or autonomous, or backend to auto, file or vector.",
            )
        self._service, self._clock = service, clock
        self._kept_for = timedelta(days=settings.inbox_days)
        self._wait = settings.lock_timeout
        self._folder = folder_of(service.agent_id, settings.storage_root)
        plain = settings.model_copy(update={"embedder": "none"})
        files = Files(CANDIDATE, self._folder, plain, clock, None, _NONE)
        self._kept: RecordStorage[Candidate] = RecordStorage(files.backend())
        self._list = PurgeList(self._folder.path)

    async def waiting(self) -> list[Candidate]:
        """Return what waits, the oldest first.

        What has waited for too long is left out, and what was rejected and came back, as with a backup.

        Raises:
            StorageError: It cannot be read.
        """
        return [candidate for candidate in await self._undecided() if not self._is_archived(candidate)]

    async def answer(self, request: SearchRequest) -> Answer[Candidate]:
        """Return candidates that match by words, expired ones included.

        Raises:
            StorageError: The inbox cannot be read.
        """
        return await self._kept.answer(request)

    async def archived(self) -> list[Candidate]:
        """Return archived notes, oldest first.

        Raises:
            StorageError: They cannot be read.
        """
        return [candidate for candidate in await self._undecided() if self._is_archived(candidate)]

    async def get(self, candidate_id: str) -> Candidate:
        """Return a candidate that waits or is archived.

        Raises:
            UnknownIdError: There is none with this ID.
        """
        found = next((candidate for candidate in await self._undecided() if candidate.id == candidate_id), None)
        if found is None:
            raise UnknownIdError(
                f"{quoted(candidate_id)} does not wait in the inbox; nothing was changed.",
                recovery="Run `agent-memory inbox` to list what waits.",
            )
        return found

    async def find_matches(self, words: str) -> list[Candidate]:
        """Return waiting candidates with half of the words.

        Raises:
            StorageError: The inbox cannot be read.
        """
        asked = set(query_terms(words))
        least = STRONG_SHARE * len(asked)
        waiting = await self.waiting() if asked else []
        return [candidate for candidate in waiting if len(asked.intersection(index_terms(candidate.content))) >= least]

    def ends_at(self, candidate: Candidate) -> str:
        """Return until when a candidate waits, as text."""
        return to_text((candidate.waits_since or candidate.timestamp) + self._kept_for)

    async def close(self) -> None:
        """Close what is open; the service stays open. May be called more than once."""
        await self._kept.close()

    async def _undecided(self) -> list[Candidate]:
        return [candidate for candidate in await self._everything() if not self._is_over(candidate)]

    async def _everything(self) -> list[Candidate]:
        if not (self._folder.path / CANDIDATE.journal).exists():
            return []
        found = [each async for each in self._kept.iter_all()]
        return sorted(found, key=lambda each: each.timestamp)

    def _is_archived(self, candidate: Candidate) -> bool:
        return candidate.is_archived(self._clock(), self._kept_for)

    def _is_over(self, candidate: Candidate) -> bool:
        is_old = candidate.is_over(self._clock(), self._kept_for)
        return is_old or self._list.has_rejected(candidate.content)


class Inbox(InboxReader):
    """One agent's inbox. Opens nothing until the first call and creates nothing until the first write.

    Args:
        service: Of the agent; what is accepted passes through it.
        clock: Source of the present.

    Raises:
        ConfigurationError: The agent's memories are on a server, which has no inbox.
    """

    # -- holding ------------------------------------------------------------------------------------------------------

    async def hold(
        self, observations: Iterable[Observation], caller: Caller = NOBODY, *, as_notes: bool = False
    ) -> Held:
        """Have what capture saw wait, unless it is known, was forgotten or rejected, or waits already.

        Args:
            observations: Statements that capture found.
            caller: Session in which they were said.
            as_notes: Hold waiting notes, which are archived after their time instead of dropped.

        Raises:
            StorageError: What is held before the failure is safe.
        """
        held = Held()
        for each in observations:
            drafted = await self._service.writer.draft_capture(get_observed_fields(each), caller, each.session_id)
            await self._hold_one(drafted, held, caller, via="capture", rule=each.rule[:100], is_note=as_notes)
        for reason, count in held.skipped.items():
            await self._service.report("memory:capture_skipped", caller, reason=reason, count=count)
        return held

    async def hold_store(self, values: Mapping[str, Any], caller: Caller = NOBODY) -> Held:
        """Have what a model wants to store wait; see `hold`.

        Raises:
            ValidationError: A field is wrong, or the caller may not replace what it replaces.
            StorageError: It is not held.
        """
        held = Held()
        drafted = await self._service.writer.draft_capture(values, caller, is_callers=True)
        await self._hold_one(drafted, held, caller, via="tool")
        return held

    async def _hold_one(self, drafted: Redacted[Memory] | str, held: Held, caller: Caller, **said: object) -> None:
        if isinstance(drafted, str):
            held.skipped[drafted] += 1
            return
        await self._drop_those_over(caller)
        waiting = await self.waiting()
        if any(_covers(each, drafted.value) for each in waiting):
            held.skipped["waiting"] += 1
        else:
            candidate = redact_record(CANDIDATE, Candidate.of(drafted.value, **said)).value
            if await self._kept.store(candidate, unique=True) != candidate.id:
                held.skipped["waiting"] += 1
                return
            held.ids.append(candidate.id)
            await self._service.report(
                "memory:held",
                caller,
                candidate_id=candidate.id,
                category=candidate.category,
                source=candidate.source.kind,
                via=candidate.via,
                redacted=list(drafted.kinds),
            )

    # -- deciding -----------------------------------------------------------------------------------------------------

    async def accept(
        self, candidate_id: str, caller: Caller = NOBODY, changes: Mapping[str, Any] | None = None
    ) -> Stored:
        """Make a candidate a memory, as it is or with changes; text that was changed is the words of who changed it.

        Its trust stays: a person's yes makes a stranger's words no more than they were.

        Raises:
            UnknownIdError: It does not wait.
            ValidationError: A field is wrong; it waits still.
            StorageError: It waits still.
        """
        candidate = await self.get(candidate_id)
        values, new = candidate.wanted(), dict(changes or {})
        if new.get("content", candidate.content) != candidate.content:
            new = {"trust": caller.trust, "source": {"kind": "user", "detail": "inbox"}, **new}
        stored = await self._service.store({**values, **new}, caller)
        await self._remove([candidate], "edited" if new else "accepted", caller, stored.memory.id)
        return stored

    async def reject(self, candidate_ids: Collection[str], caller: Caller = NOBODY) -> list[Candidate]:
        """Take candidates out for good; the same text is not offered again.

        Raises:
            UnknownIdError: One does not wait; none was rejected.
            StorageError: They wait still, or were noted as rejected and wait until this is done again.
        """
        found = [await self.get(one) for one in dict.fromkeys(candidate_ids)]
        if found:
            await asyncio.to_thread(self._note_rejected, [each.content for each in found])
            await self._remove(found, "rejected", caller)
        return found

    async def restore(self, candidate_ids: Collection[str]) -> list[Candidate]:
        """Return archived notes to the inbox.

        Raises:
            UnknownIdError: There is none with one of these IDs; the ones before it wait again.
            StorageError: It stays archived.
        """
        return [
            await self._kept.update((await self.get(candidate_id)).id, {"waits_since": self._clock()})
            for candidate_id in dict.fromkeys(candidate_ids)
        ]

    async def drop_stored(self, memory: Memory, caller: Caller = NOBODY) -> list[str]:
        """Remove candidates that a stored memory repeats; return their IDs."""
        stored = [candidate for candidate in await self._everything() if _covers(memory, candidate)]
        await self._remove(stored, "accepted", caller, memory.id)
        return [candidate.id for candidate in stored]

    async def drop_saying(self, texts: Collection[str], caller: Caller = NOBODY) -> list[str]:
        """Take out what says one of these texts, since they were forgotten; return the ids."""
        found = [
            each for each in await self._everything() if any(is_near_duplicate(each.content, text) for text in texts)
        ]
        await self._remove(found, "forgotten", caller)
        return [each.id for each in found]

    async def take_in(self, candidates: Collection[Candidate], *, dry_run: bool = False) -> int:
        """Have what waited elsewhere wait here; return how many. What is known, or was rejected, is left out."""
        here = {each.content for each in await self._everything()}
        new = [each for each in candidates if each.content not in here and not self._list.has_rejected(each.content)]
        if new and not dry_run:
            await self._kept.store_many(new)
        return len(new)

    async def _drop_those_over(self, caller: Caller) -> None:
        over = [each for each in await self._everything() if self._is_over(each)]
        await self._remove(over, "expired", caller)

    async def _remove(
        self, candidates: list[Candidate], outcome: str, caller: Caller, memory_id: str | None = None
    ) -> None:
        if not candidates:
            return
        with contextlib.suppress(UnknownIdError):  # another process was faster
            await self._kept.forget_many([each.id for each in candidates])
        await self._kept.compact(_NONE)
        for each in candidates:
            await self._service.report(
                "memory:decided", caller, candidate_id=each.id, outcome=outcome, memory_id=memory_id
            )

    def _note_rejected(self, texts: list[str]) -> None:
        with folder_lock(self._folder.path, self._wait):
            self._list.reject(texts, to_text(self._clock()))


def _covers(waiting: Memory, memory: Memory) -> bool:
    """Return True if one text makes another redundant.

    Untrusted words never do that to a person's.
    """
    return may_stand_for(waiting.trust, memory.trust) and is_near_duplicate(waiting.content, memory.content)
