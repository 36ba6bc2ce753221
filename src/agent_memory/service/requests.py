"""`Requests`: forgetting what words mean ("Ann's badge"): a preview first, then all of it as one change."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from agent_memory.errors import ValidationError
from agent_memory.models import EVERYTHING, MAX_REASON_CHARS, Memory, SearchFilters, check_text
from agent_memory.redaction import SecretRedactor, redact_value
from agent_memory.service.caller import NOBODY
from agent_memory.service.proposals import proposal_id
from agent_memory.service.results import Forgotten
from agent_memory.service.seeing import check_seen, is_seen

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from agent_memory.forgetting import Request, Target
    from agent_memory.memories import MemoryStorage
    from agent_memory.models import Clock
    from agent_memory.service.caller import Caller, Report
    from agent_memory.service.pad import Pad
    from agent_memory.service.trust import TrustGate
    from agent_memory.service.watching import Watchers

_MAX_CHARS: Final = 2_000
_FOUND_AT_ONCE: Final = 100
_MOST_SEARCHES: Final = 200
_NEARLY_ALL: Final = 0.8
"""Of the memories that a full search found, how many must have the names for another, narrower search to be made."""
_MOMENT: Final = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Cut:
    """A memory of which clauses go.

    Attributes:
        memory: As it is.
        remains: The text that would remain.
    """

    memory: Memory
    remains: str


@dataclass(frozen=True, slots=True)
class Preview:
    """What a request means, before anything is done.

    Attributes:
        query: The request.
        gone: The memories that would be forgotten as a whole.
        cut: Those of which clauses would go.
        older: Ids of the older versions that would go with them.
        confirm: What to hand over to have exactly this done; empty where nothing is meant.
    """

    query: str
    gone: tuple[Memory, ...]
    cut: tuple[Cut, ...]
    older: tuple[str, ...]
    confirm: str

    def __bool__(self) -> bool:
        return bool(self.gone or self.cut)


@dataclass(frozen=True, slots=True)
class ForgottenMany:
    """Outcome of a request.

    Attributes:
        preview: What was done of it: all.
        kept_until: How long at least the texts stay in the files, where they can be brought back; None: they do not.
    """

    preview: Preview
    kept_until: datetime | None = None


class Requests:
    """Forgets for a service.

    Args:
        storage: Where the memories are.
        gate: Decides what a caller may forget.
        pad: The scratchpad, which must show nothing of it.
        report: Sends events.
        clock: Source of the present.
        all_read: Memories up to which all are looked at; of more, what an index finds.
        watchers: Are told what is gone.
    """

    def __init__(
        self,
        storage: MemoryStorage,
        gate: TrustGate,
        pad: Pad,
        report: Report,
        clock: Clock,
        all_read: int,
        watchers: Watchers,
    ) -> None:
        self._all_read, self._watchers = all_read, watchers
        self._storage, self._gate, self._pad = storage, gate, pad
        self._report, self._clock = report, clock

    async def one(self, memory_id: str, caller: Caller, reason: str) -> Forgotten:
        """Forget one memory; see `MemoryService.forget`."""
        reason = checked_reason(reason)
        await check_seen(self._storage, caller, [memory_id], "; nothing was changed")
        await self._pad.notice(caller)  # what the file says of it is taken over now: later it would be added again
        older = await self._storage.older_versions(memory_id)
        if caller.trust == "low":
            await self._gate.check_all("forget", (memory_id, *older), caller)
        reason = await self._gate.reason(reason, caller)
        memory = (await self._storage.forget_many([memory_id], reason=reason))[0]
        await self._tell((memory_id, *older), caller)
        return Forgotten(memory, tuple(older), self._kept_until(), reason)

    async def many(self, memory_ids: Collection[str], caller: Caller = NOBODY) -> int:
        """Forget memories with their older versions as one change; return how many of them there were.

        Raises:
            ValidationError: The caller may not forget one of them (`needs_user`); nothing was forgotten.
            StorageError: Nothing was changed.
        """
        await self._pad.notice(caller)
        known = [one for one in dict.fromkeys(memory_ids) if await self._storage.get(one) is not None]
        if not known:
            return 0
        chains = [await self._storage.older_versions(one) for one in known]
        older = dict.fromkeys(one for chain in chains for one in chain if one not in known)
        if caller.trust == "low":
            await self._gate.check_all("forget", (*known, *older), caller)
        await self._storage.forget_many(known)
        await self._tell((*known, *older), caller)
        return len(known)

    async def preview(self, query: str, caller: Caller = NOBODY) -> Preview:
        """Return what a request in words means; changes nothing.

        Raises:
            ValidationError: The request is no text, or too long.
            StorageError: The memories cannot be read.
        """
        if not isinstance(query, str) or not query.strip() or len(query) > _MAX_CHARS:
            raise ValidationError(
                f"What to forget is said in words, at most {_MAX_CHARS} characters; nothing was forgotten.",
                recovery="Say it as in: Ann's badge, or: everything about the Berlin office before May.",
            )
        await self._pad.notice(caller)
        from agent_memory.forgetting import read_request, resolve  # only for those who ask

        now = self._clock()
        targets: list[Target] = []
        for words in dict.fromkeys((query, await asyncio.to_thread(_without_secrets, query))):
            if not targets:
                request = read_request(words, now)
                memories = [] if request.says_nothing else await self._candidates(request, caller)
                targets = await asyncio.to_thread(resolve, request, memories, self._storage.nearness)
                if words != query and len(targets) > 1:
                    targets = []  # which of them had the secret, nobody can tell any more
        return await self._previewed(query, targets)

    async def preview_all(self, caller: Caller = NOBODY) -> Preview:
        """Return a preview of all memories that the caller sees.

        Superseded and expired ones are included. `confirm` does not depend on the memories: who agrees to all agrees
        to one more.

        Raises:
            StorageError: The memories cannot be read.
        """
        await self._pad.notice(caller)
        memories = tuple([memory async for memory in self._storage.iter_all() if is_seen(memory, caller)])
        confirm = proposal_id("forget all", self._storage.agent_id, caller.group) if memories else ""
        return Preview("", memories, (), (), confirm)

    async def forget(self, preview: Preview, caller: Caller = NOBODY, *, reason: str = "") -> ForgottenMany:
        """Forget all that a preview shows, as one change that `past` can take back as a whole.

        Raises:
            ConflictError: A memory has another text than the preview shows; nothing was forgotten.
            UnknownIdError: One is gone by now; nothing was forgotten.
            ValidationError: The caller may not forget one of them (`needs_user`), or the reason is too long.
            StorageError: Nothing was changed.
        """
        reason = checked_reason(reason)
        if not preview:
            raise ValidationError(
                "Nothing is meant by that; nothing was forgotten.",
                code="nothing_found",
                recovery="Name it as the memory does, or forget it by its id.",
            )
        concerned = [*(memory.id for memory in preview.gone), *(cut.memory.id for cut in preview.cut), *preview.older]
        await self._gate.check_all("forget", concerned, caller, preview.confirm)
        trimmed = {cut.memory.id: (cut.memory.content, cut.remains) for cut in preview.cut}
        reason = await self._gate.reason(reason, caller)
        await self._storage.forget_many([memory.id for memory in preview.gone], trimmed, reason=reason)
        await self._tell((*(memory.id for memory in preview.gone), *preview.older), caller, cut=trimmed)
        return ForgottenMany(preview, self._kept_until())

    async def _tell(self, gone: Iterable[str], caller: Caller, cut: Iterable[str] = ()) -> None:
        gone, cut = list(gone), list(cut)
        self._pad.last = self._pad.last and self._pad.last.without({*gone, *cut})
        for each in gone:
            await self._report("memory:forgotten", caller, memory_id=each)
        for each in cut:
            await self._report("memory:updated", caller, memory_id=each, fields=["content"], redacted=[])
        self._pad.schedule(caller)
        await self._watchers.tell([*gone, *cut], caller)

    def _kept_until(self) -> datetime | None:
        grace = self._storage.grace
        return None if grace is None else self._clock() + grace

    async def _previewed(self, query: str, targets: list[Target]) -> Preview:
        gone = tuple([each.memory for each in targets if each.remains is None])
        cut = tuple([Cut(each.memory, each.remains) for each in targets if each.remains is not None])
        own = {memory.id for memory in gone}
        chains = [await self._storage.older_versions(memory.id) for memory in gone]
        older = tuple(dict.fromkeys(one for chain in chains for one in chain if one not in own))
        cut = tuple([each for each in cut if each.memory.id not in older])
        said = [(memory.id, memory.content, "") for memory in gone]
        said += [(each.memory.id, each.memory.content, each.remains) for each in cut]
        confirm = hashlib.sha256(repr((said, older)).encode("utf-8", "replace")).hexdigest()[:12] if said else ""
        return Preview(query, gone, cut, older, confirm)

    # -- candidates ---------------------------------------------------------------------------------------------------

    async def _candidates(self, request: Request, caller: Caller) -> list[Memory]:
        """Return the memories that a request may mean, the likeliest first."""
        from agent_memory.forgetting import lookups

        found: dict[str, Memory] = {}
        for words in lookups(request):
            found |= await self._search(words, EVERYTHING.within(caller.group))
        if await self._storage.count() <= self._all_read:
            now = self._clock()
            found |= {
                memory.id: memory
                async for memory in self._storage.iter_all()
                if memory.id not in found and not memory.is_expired(now) and is_seen(memory, caller)
            }
        elif request.wants_all or not request.soft:
            for name in [
                " ".join(term.word for term in request.names),
                *(form for each in request.identifiers for form in each.forms),
            ]:
                if name:
                    await self._search_through(name, found, caller)
        return list(found.values())

    async def _search(self, words: str, filters: SearchFilters) -> dict[str, Memory]:
        hits = await self._storage.search(words, _FOUND_AT_ONCE, filters, include_superseded=True)
        return {hit.memory.id: hit.memory for hit in hits}

    async def _search_through(self, words: str, found: dict[str, Memory], caller: Caller) -> None:
        """Find all that has these words, however many: in ever shorter stretches of time."""
        wanted = words.casefold().split()
        pending = [(datetime(1970, 1, 1, tzinfo=UTC), self._clock() + timedelta(days=1))]
        for _ in range(_MOST_SEARCHES):
            if not pending:
                return
            start, end = pending.pop()
            stretch = {"date_range": {"start": start, "end": end}, "include_items": True, "group": caller.group}
            some = await self._search(words, SearchFilters.model_validate(stretch))
            found |= some
            have = [memory for memory in some.values() if all(word in memory.content.casefold() for word in wanted)]
            if len(some) < _FOUND_AT_ONCE or len(have) < _NEARLY_ALL * len(some):
                continue
            moments = sorted(memory.timestamp for memory in some.values())
            middle = moments[len(moments) // 2]
            if start < middle < end:
                pending += [(start, middle - _MOMENT), (middle, end)]


def _without_secrets(query: str) -> str:
    """Return a request as a memory would hold its words: what was a secret in them stands there as a mark."""
    cleaned, _ = redact_value(query, SecretRedactor())
    return str(cleaned)


def checked_reason(reason: str) -> str:
    """Return a reason that may be kept.

    Raises:
        ValidationError: It is no text, or longer than 200 characters.
    """
    if not isinstance(reason, str) or len(reason.strip()) > MAX_REASON_CHARS:
        raise ValidationError(
            f"A reason is a text of at most {MAX_REASON_CHARS} characters; nothing was forgotten.",
            code="invalid_reason",
        )
    try:
        return check_text(" ".join(reason.split()), "the reason")
    except ValueError as error:
        raise ValidationError(f"{error}; nothing was forgotten.", code="invalid_reason") from None
