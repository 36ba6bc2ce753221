"""Requests to forget: candidates for a description, forgetting by ID.

Words only rank candidates. What is forgotten is named by ID, or is everything.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from agent_memory.errors import UnknownIdError, ValidationError
from agent_memory.language.words import index_terms, query_terms
from agent_memory.memory.caller import NOBODY
from agent_memory.memory.owners import USER, Ownership, list_names, read_ownership, read_request_ownership
from agent_memory.memory.proposals import proposal_id
from agent_memory.memory.results import Forgotten
from agent_memory.memory.search_sources import is_mostly
from agent_memory.memory.seeing import check_seen, is_seen
from agent_memory.memory.similar import MAX_SIMILAR, find_similar
from agent_memory.models import (
    EPISODE,
    EVERYTHING,
    MAX_REASON_CHARS,
    Memory,
    PlacedItem,
    SearchFilters,
    check_id,
    check_text,
    is_untouched_statement,
    may_stand_for,
)
from agent_memory.models.digest_statements import PASSAGE
from agent_memory.redaction import SecretRedactor, quoted, redact_value

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from datetime import datetime

    from agent_memory.memory.caller import Caller, Report
    from agent_memory.memory.pad import Pad
    from agent_memory.memory.trust import TrustGate
    from agent_memory.memory.watching import Watchers
    from agent_memory.models import Clock, Match, Memory, MemorySearchResult
    from agent_memory.store.memory_storage import MemoryStorage

MAX_CANDIDATES: Final = 8
"""Candidates of one request."""
_MAX_CHARS: Final = 2_000
"""Characters of a request."""
_COMPARED: Final = 3
"""Forgotten memories for which similar ones are listed."""
_MAX_TALK: Final = 20
"""Items compared with a forgotten memory."""


@dataclass(frozen=True, slots=True)
class ForgetCandidate:
    """A memory that a request to forget may mean.

    Attributes:
        memory: As it is now.
        match: How well it matches the request.
        ownership: Whose thing it is about, read from its form.
    """

    memory: Memory
    match: Match
    ownership: Ownership


@dataclass(frozen=True, slots=True)
class ForgetCandidates:
    """Candidates of one request, best first.

    Attributes:
        ownership: Owner and thing that the request names.
        listed: The candidates, at most eight.
    """

    ownership: Ownership
    listed: tuple[ForgetCandidate, ...]

    def get_only_match(self) -> Memory | None:
        """Return the memory of the only strong candidate if its owner is the one named, else None.

        A memory about a thing of that owner must hold every word of the request: "my blood type" is not "my blood
        pressure".
        """
        strong = [candidate for candidate in self.listed if candidate.match == "strong"]
        if len(strong) != 1 or not self.ownership.names(strong[0].ownership):
            return None
        memory, thing = strong[0].memory, strong[0].ownership.thing
        has_all = set(query_terms(self.ownership.thing)) <= set(index_terms(memory.content))
        return memory if has_all or not thing else None


@dataclass(frozen=True, slots=True)
class Preview:
    """Memories before they are forgotten.

    Attributes:
        memories: What would be forgotten.
        confirm: ID of the proposal to forget them; empty if there are none.
    """

    memories: tuple[Memory, ...]
    confirm: str = ""
    cut: ClassVar[tuple[Memory, ...]] = ()
    """Nothing is cut out of a memory; the name stays until 1.0."""

    def __bool__(self) -> bool:
        return bool(self.memories)

    @property
    def gone(self) -> tuple[Memory, ...]:
        """Earlier name of `memories`, until 1.0."""
        return self.memories


@dataclass(frozen=True, slots=True)
class ForgottenMany:
    """Outcome of a request.

    Attributes:
        memories: What was forgotten, as it was.
        older: Older versions that went with them.
        talk: Items of talk with the same words that went with them.
        similar: Similar memories that stay, at most three.
        statements: Statements that an agent had made of forgotten passages, which went with them.
        kept_until: How long the texts can be restored at least; None if they cannot.
        reason: Reason that is kept as a trace; empty for none.
    """

    memories: tuple[Memory, ...]
    older: tuple[Memory, ...] = ()
    talk: tuple[Memory, ...] = ()
    similar: tuple[Memory, ...] = ()
    kept_until: datetime | None = None
    statements: tuple[Memory, ...] = ()
    reason: str = ""

    @property
    def older_versions(self) -> tuple[str, ...]:
        """IDs of the older versions that went with them."""
        return tuple(memory.id for memory in self.older)


class Requests:
    """Forgets for a service.

    Args:
        storage: Where the memories are.
        gate: Decides what a caller may forget.
        pad: The scratchpad, which must show nothing of it.
        report: Sends events.
        clock: Source of the present.
        patience: Seconds that a search waits for an index.
        watchers: Are told what is gone.
    """

    def __init__(
        self,
        storage: MemoryStorage,
        gate: TrustGate,
        pad: Pad,
        report: Report,
        clock: Clock,
        patience: float | None,
        watchers: Watchers,
    ) -> None:
        self._patience, self._watchers = patience, watchers
        self._storage, self._gate, self._pad = storage, gate, pad
        self._report, self._clock = report, clock

    async def one(self, memory_id: str, caller: Caller, reason: str) -> Forgotten:
        """Forget one memory; see `MemoryService.forget`."""
        outcome = await self.forget([memory_id], caller, reason=reason)
        talk = tuple(item.id for item in outcome.talk)
        statements = tuple(statement.id for statement in outcome.statements)
        return Forgotten(
            outcome.memories[0], outcome.older_versions, outcome.kept_until, outcome.reason, talk, statements
        )

    async def many(self, memory_ids: Collection[str], caller: Caller = NOBODY) -> int:
        """Forget existing memories for upkeep; return their number.

        Their older versions go with them. What a session deletes with its source is not counted as what a model forgets
        by itself.

        Raises:
            ValidationError: The caller may not forget one of them (`needs_user`); nothing was forgotten.
            StorageError: Nothing was changed.
        """
        await self._pad.notice(caller)
        loaded = [await self._storage.get(memory_id) for memory_id in dict.fromkeys(memory_ids)]
        memories = [memory for memory in loaded if memory is not None]
        if memories:
            older = [memory for memory in await self._load_older(memories) if memory not in memories]
            await self._gate.check_forgetting(memories, older, caller, is_upkeep=True)
            await self._forget(memories, older, caller, "")
        return len(memories)

    async def find_candidates(self, query: str, caller: Caller = NOBODY) -> ForgetCandidates:
        """Return the memories that a description may mean, best first; changes nothing.

        Raises:
            ValidationError: The description is not a text, empty or too long.
            StorageError: The memories cannot be read.
        """
        if not isinstance(query, str) or not query.strip() or len(query) > _MAX_CHARS:
            raise ValidationError(
                f"Describe what to forget in 1 to {_MAX_CHARS} characters; nothing was forgotten.",
                recovery="Describe it in a few words, such as: my address.",
            )
        await self._pad.notice(caller)
        words = await asyncio.to_thread(_redact, query)  # memories hold no secrets either
        filters = EVERYTHING.within(caller.group)
        hits = await self._storage.search(words, MAX_CANDIDATES, filters, patience=self._patience)
        return list_candidates(query, hits)

    async def preview(self, query: str, caller: Caller = NOBODY) -> Preview:
        """Return the memory that `forget WORDS --yes` forgets, until 1.0; `find_candidates` lists all.

        Raises:
            ValidationError: The description is not a text, empty or too long.
            StorageError: The memories cannot be read.
        """
        memory = (await self.find_candidates(query, caller)).get_only_match()
        return Preview(() if memory is None else (memory,))

    async def forget(
        self, memory_ids: Collection[str] | Preview, caller: Caller = NOBODY, *, reason: str = ""
    ) -> ForgottenMany:
        """Forget memories with their older versions as one change, which one restore takes back.

        Args:
            memory_ids: All of them must exist. A preview means its memories.
            caller: Session that asks for it.
            reason: Kept as a trace; at most 200 characters.

        Raises:
            UnknownIdError: One of them does not exist; nothing was forgotten.
            ValidationError: The user has to agree (`needs_user`), or the reason is too long; nothing was forgotten.
            StorageError: Nothing was changed.
        """
        reason = checked_reason(reason)
        if isinstance(memory_ids, Preview):
            memory_ids = [memory.id for memory in memory_ids.memories]
        for memory_id in memory_ids:
            check_id(memory_id)
        await check_seen(self._storage, caller, memory_ids, "; nothing was forgotten")
        await self._pad.notice(caller)
        memories = [await self._load(memory_id) for memory_id in dict.fromkeys(memory_ids)]
        older = await self._load_older(memories)
        memories = [memory for memory in memories if memory not in older]
        talk = await self._find_talk(memories, caller)
        statements = await find_statements(self._storage, memories)
        await self._gate.check_forgetting(memories, (*older, *talk), caller)
        return await self._forget(memories, older, caller, reason, talk=talk, statements=statements)

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
        return Preview(memories, confirm)

    async def forget_all(self, preview: Preview, caller: Caller = NOBODY, *, reason: str = "") -> ForgottenMany:
        """Forget all memories of a preview as one change, which one restore takes back.

        Raises:
            UnknownIdError: One of them does not exist any more; nothing was forgotten.
            ValidationError: A model calls and the user has not agreed (`needs_user`), or the reason is too long.
            StorageError: Nothing was changed.
        """
        reason = checked_reason(reason)
        if caller.trust != "high" and not caller.proposals.is_agreed(preview.confirm):
            raise ValidationError(
                "Nothing was forgotten: to forget everything needs the user's yes.",
                code="needs_user",
                recovery=f"Show the user how many memories these are, with the id {preview.confirm}.",
            )
        return await self._forget(preview.memories, (), caller, reason)

    async def _forget(
        self,
        memories: Sequence[Memory],
        older: Sequence[Memory],
        caller: Caller,
        reason: str,
        *,
        talk: Sequence[Memory] = (),
        statements: Sequence[Memory] = (),
    ) -> ForgottenMany:
        reason = await self._gate.reason(reason, caller)
        ids = [memory.id for memory in (*memories, *talk, *statements)]
        await self._storage.forget_many(ids, reason=reason)
        await self._tell((*ids, *(memory.id for memory in older)), caller)
        similar: dict[str, Memory] = {}
        for memory in memories[:_COMPARED]:
            neighbors = await find_similar(self._storage, memory, caller)
            similar |= {neighbor.id: neighbor for neighbor in neighbors if may_stand_for(neighbor.trust, memory.trust)}
        stays = tuple(similar.values())[:MAX_SIMILAR]
        return ForgottenMany(
            tuple(memories), tuple(older), tuple(talk), stays, self.get_restore_end(), tuple(statements), reason
        )

    async def _load_older(self, memories: Sequence[Memory]) -> tuple[Memory, ...]:
        """Return the older versions of memories."""
        chains = [await self._storage.older_versions(memory.id) for memory in memories]
        older_ids = dict.fromkeys(memory_id for chain in chains for memory_id in chain)
        loaded = [await self._storage.get(memory_id) for memory_id in older_ids]
        return tuple(memory for memory in loaded if memory is not None)

    async def _find_talk(self, memories: Sequence[Memory], caller: Caller) -> tuple[Memory, ...]:
        """Return the items of talk that repeat memories.

        A search leaves them out only as long as it finds these.
        """
        notes = [memory for memory in memories if not memory.is_item]
        if not notes or not (await self._storage.tally()).items:
            return ()
        filters = SearchFilters(include_items=True, only_items=True, group=caller.group)
        talk: dict[str, Memory] = {}
        for note in notes:
            hits = await self._storage.search(note.content, _MAX_TALK, filters, patience=0)
            talk |= {hit.memory.id: hit.memory for hit in hits if _repeats(hit.memory, note)}
        return tuple(item for item in talk.values() if item not in memories)

    async def _load(self, memory_id: str) -> Memory:
        memory = await self._storage.get(memory_id)
        if memory is None:
            raise UnknownIdError(f"There is no memory {quoted(memory_id)}; nothing was forgotten.")
        return memory

    async def _tell(self, gone: Collection[str], caller: Caller) -> None:
        self._pad.last = self._pad.last and self._pad.last.without(set(gone))
        for memory_id in gone:
            await self._report("memory:forgotten", caller, memory_id=memory_id)
        self._pad.schedule(caller)
        await self._watchers.tell(list(gone), caller)

    def get_restore_end(self) -> datetime | None:
        """Return until when a memory forgotten now can be restored, or None."""
        grace = self._storage.grace
        return None if grace is None else self._clock() + grace


def list_candidates(query: str, hits: Sequence[MemorySearchResult]) -> ForgetCandidates:
    """Return the results of a search for `query` as candidates for forgetting."""
    names = list_names(query, *(hit.memory.content for hit in hits))
    listed = [ForgetCandidate(hit.memory, hit.match or "weak", _read_owner(hit.memory, names)) for hit in hits]
    return ForgetCandidates(read_request_ownership(query, names), tuple(listed))


def _read_owner(memory: Memory, names: frozenset[str]) -> Ownership:
    """Return the ownership of a memory; the user's only in trusted notes."""
    ownership = read_ownership(memory.content, names)
    is_user_text = not memory.is_item and memory.trust != "low"
    return ownership if is_user_text or not ownership.owner.startswith(USER) else Ownership()


def _repeats(item: Memory, note: Memory) -> bool:
    """Return True if an item of talk mostly says the note."""
    is_talk = any(link.id.startswith(EPISODE.prefix) for link in item.links)
    return is_talk and not item.pinned and is_mostly(item.content, [note.content])


def _redact(query: str) -> str:
    """Return a request with marks in place of its secrets."""
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


async def find_statements(storage: MemoryStorage, memories: Sequence[Memory]) -> tuple[Memory, ...]:
    """Return statements made of passages among memories, except what a person touched.

    Raises:
        StorageError: The memories cannot be read.
    """
    passages = [item for item in map(PlacedItem.of, memories) if item.detail == PASSAGE]
    statements: dict[str, Memory] = {}
    for source in dict.fromkeys(source for passage in passages for source in passage.sources):
        for memory in await storage.linked_to(source):
            if is_untouched_statement(memory) and any(PlacedItem.of(memory).follows(passage) for passage in passages):
                statements[memory.id] = memory
    named = {memory.id for memory in memories}
    return tuple(memory for memory in statements.values() if memory.id not in named)
