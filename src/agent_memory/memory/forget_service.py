"""`ForgetService`: forgets memories with their older versions."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from agent_memory.errors import ValidationError
from agent_memory.language.questions import find_capitalised
from agent_memory.language.words import index_terms, query_terms
from agent_memory.late import compile_late
from agent_memory.memory.caller import NOBODY, Caller, check_seen
from agent_memory.memory.drafts import check_reason
from agent_memory.memory.results import Forgotten, ForgottenMany
from agent_memory.memory.similarity import MAX_SIMILAR, find_similar
from agent_memory.models import SearchFilters, check_id, get_turn_id, may_stand_for
from agent_memory.redaction import quoted
from agent_memory.registry import KNOWLEDGE
from agent_memory.store.deletion_states import check_transition

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from datetime import datetime

    from agent_memory.memory.service_parts import ServiceParts
    from agent_memory.models import Match, Memory, MemorySearchResult


_COMPARED: Final = 3
"""Forgotten memories for which similar ones are listed."""
_MAX_TALK: Final = 20
"""Items of talk compared with a forgotten memory."""
USER: Final = "the user"
_READ_CHARS: Final = 400
_OWNER_WORDS: Final = 4
"""Words of an owner up to the first genitive: "the old staging server's"."""
_FIRST_PERSON: Final = frozenset({"i", "we", "me", "us", "mine", "ours"})
_FIRST_PERSON_GENITIVE: Final = frozenset({"my", "our"})
_GENITIVE: Final = compile_late(r"[^\W_][\w.&-]*?(?:['\u2019]s|(?<=s)['\u2019])")
_ENDING: Final = compile_late(r"['\u2019]s?$")
_EDGES: Final = compile_late(r"^[^\w'\u2019]+|[^\w'\u2019]+$")
_MARKS: Final = ".,;:!\"'()[]“”。"
"""Marks at the end of a word that do not change it."""


class ForgetService:
    """Forgets memories of one agent; `parts` are those of its service."""

    def __init__(self, parts: ServiceParts) -> None:
        self._storage, self._gate, self._scratchpad = parts.storage, parts.gate, parts.scratchpad
        self._monitor, self._clock = parts.monitor, parts.clock

    async def forget_one(
        self, memory_id: str, caller: Caller, reason: str, archived: Sequence[Memory] = ()
    ) -> Forgotten:
        """Forget one memory; see `MemoryService.forget`."""
        outcome = await self.forget([memory_id], caller, reason=reason, archived=archived)
        talk = tuple(item.id for item in outcome.talk)
        statements = tuple(statement.id for statement in outcome.statements)
        return Forgotten(
            outcome.memories[0], outcome.older_versions, outcome.kept_until, outcome.reason, talk, statements
        )

    async def forget(
        self,
        memory_ids: Collection[str] | Preview,
        caller: Caller = NOBODY,
        *,
        reason: str = "",
        archived: Sequence[Memory] = (),
    ) -> ForgottenMany:
        """Forget memories and their older versions as one change.

        Args:
            memory_ids: IDs of existing memories, or a preview of them.
            caller: Session that asks for it.
            reason: Reason to keep as a trace, at most 200 characters.
            archived: Those that only the archive has, with their older versions. Found for a person if omitted.

        Raises:
            UnknownIdError: One of them does not exist; nothing was forgotten.
            ValidationError: The user has to agree (`needs_user`), or the reason is too long; nothing was forgotten.
            StorageError: Nothing was changed.
        """
        reason = check_reason(reason)
        if isinstance(memory_ids, Preview):
            memory_ids = [memory.id for memory in memory_ids.memories]
        for memory_id in memory_ids:
            check_id(memory_id)
        await check_seen(self._storage, caller, memory_ids, "; nothing was forgotten")
        await self._scratchpad.notice(caller)
        memories = await self._load(memory_ids)
        if unknown := [memory_id for memory_id in memory_ids if memory_id not in memories]:
            archived = archived or await self._monitor.find_archived(unknown, caller)
            memories |= {memory.id: memory for memory in archived if memory.id in unknown}
        for memory_id in unknown:
            if memory_id not in memories:
                check_transition("forget", None, quoted(memory_id))
        older = await self._load_older(memories.values())
        older += tuple(memory for memory in archived if memory.id not in memories)
        named = [memory for memory in memories.values() if memory not in older]
        talk = await self._find_talk(named, caller)
        statements = await self._find_statements(named)
        async with self._gate.settling(caller):
            await self._gate.check_forgetting(named, (*older, *talk), caller)
            return await self._forget(named, older, caller, reason, talk=talk, statements=statements, archived=archived)

    async def forget_many(self, memory_ids: Collection[str], caller: Caller = NOBODY) -> int:
        """Forget existing memories for upkeep; return their number.

        Their older versions are forgotten, too. Memories that a session deletes with their source do not count as
        forgotten by a model.

        Raises:
            ValidationError: The caller may not forget one of them (`needs_user`); nothing was forgotten.
            StorageError: Nothing was changed.
        """
        await self._scratchpad.notice(caller)
        memories = list((await self._load(memory_ids)).values())
        if memories:
            older = [memory for memory in await self._load_older(memories) if memory not in memories]
            await self._gate.check_forgetting(memories, older, caller, is_upkeep=True)
            await self._forget(memories, older, caller, "")
        return len(memories)

    async def forget_all(self, preview: Preview, caller: Caller = NOBODY, *, reason: str = "") -> ForgottenMany:
        """Forget all memories of a preview as one change.

        Raises:
            UnknownIdError: One of them does not exist any more; nothing was forgotten.
            ValidationError: A model calls and the user has not agreed (`needs_user`), or the reason is too long.
            StorageError: Nothing was changed.
        """
        reason = check_reason(reason)
        if caller.trust != "high" and not caller.proposals.is_agreed(preview.confirm):
            raise ValidationError(
                "Nothing was forgotten: to forget everything needs the user's yes.",
                code="needs_user",
                recovery=f"Show the user how many memories these are, with the id {preview.confirm}.",
            )
        return await self._forget(preview.memories, (), caller, reason)

    def get_restore_end(self) -> datetime | None:
        """Return until when a memory forgotten now can be restored, or None."""
        grace = self._storage.grace
        return None if grace is None else self._clock() + grace

    async def _forget(
        self,
        memories: Sequence[Memory],
        older: Sequence[Memory],
        caller: Caller,
        reason: str,
        *,
        talk: Sequence[Memory] = (),
        statements: Sequence[Memory] = (),
        archived: Sequence[Memory] = (),
    ) -> ForgottenMany:
        reason = await self._gate.reason(reason, caller)
        ids = [memory.id for memory in (*memories, *talk, *statements)]
        await self._storage.forget_many([*ids, *(memory.id for memory in archived)], reason=reason, archived=archived)
        gone = [*ids, *(memory.id for memory in older)]
        self._scratchpad.drop(gone)
        for memory_id in gone:
            await self._monitor.report("memory:forgotten", caller, memory_id=memory_id)
        self._scratchpad.schedule(caller, is_urgent=True)
        await self._monitor.withdraw(gone, caller)
        similar: dict[str, Memory] = {}
        for memory in memories[:_COMPARED]:
            neighbors = await find_similar(self._storage, memory, caller)
            similar |= {neighbor.id: neighbor for neighbor in neighbors if may_stand_for(neighbor.trust, memory.trust)}
        stays = tuple(similar.values())[:MAX_SIMILAR]
        return ForgottenMany(
            tuple(memories), tuple(older), tuple(talk), stays, self.get_restore_end(), tuple(statements), reason
        )

    async def _load(self, memory_ids: Iterable[str]) -> dict[str, Memory]:
        """Return existing memories by ID."""
        loaded = {memory_id: await self._storage.get(memory_id) for memory_id in dict.fromkeys(memory_ids)}
        return {memory_id: memory for memory_id, memory in loaded.items() if memory is not None}

    async def _load_older(self, memories: Iterable[Memory]) -> tuple[Memory, ...]:
        """Return the older versions of memories."""
        chains = [await self._storage.older_versions(memory.id) for memory in memories]
        return tuple((await self._load(memory_id for chain in chains for memory_id in chain)).values())

    async def _find_talk(self, memories: Sequence[Memory], caller: Caller) -> tuple[Memory, ...]:
        """Return the items of talk that repeat memories.

        A search leaves them out only as long as it finds these.
        """
        notes = [memory for memory in memories if not memory.is_item]
        if not notes or not (await self._storage.tally()).items:
            return ()
        filters = SearchFilters(include_items=True, only_items=True).within(caller.group)
        talk: dict[str, Memory] = {}
        for note in notes:
            hits = await self._storage.search(note.content, _MAX_TALK, filters, patience=0)
            talk |= {hit.memory.id: hit.memory for hit in hits if _is_repeating(hit.memory, note)}
        return tuple(item for item in talk.values() if item not in memories)

    async def _find_statements(self, memories: Sequence[Memory]) -> tuple[Memory, ...]:
        """Return statements that an agent made of passages among memories."""
        if not KNOWLEDGE.is_installed or not any(memory.is_item for memory in memories):
            return ()
        statements: tuple[Memory, ...] = await KNOWLEDGE.load("statements")(self._storage, memories)
        return statements


def _is_repeating(item: Memory, note: Memory) -> bool:
    """Return True if an item of talk mostly says the note."""
    return bool(get_turn_id(item)) and not item.pinned and is_mostly(item.content, [note.content])


class Ownership(NamedTuple):
    """Owner and thing that a text names.

    Attributes:
        owner: "the user", a name or a noun phrase; empty if unclear.
        thing: Of a memory the word after a genitive, of a request all its words.
    """

    owner: str = ""
    thing: str = ""

    def names(self, memory: Ownership) -> bool:
        """Return True if this request names a memory's owner and thing."""
        if not self.owner or self.owner.casefold() != memory.owner.casefold():
            return False
        return not memory.thing or not set(query_terms(self.thing)).isdisjoint(query_terms(memory.thing))


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
        """Return the only strong candidate with the named owner, or None.

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


def list_names(*texts: str) -> frozenset[str]:
    """Return the folded words that have a capital inside of `texts`."""
    return frozenset(name for text in texts for name in find_capitalised(text[:_READ_CHARS]))


def read_request_ownership(request: str, names: frozenset[str]) -> Ownership:
    """Return the owner in a request to forget, and its words.

    Args:
        request: What to forget.
        names: Folded words that are names, from `list_names`.
    """
    words = _split(request)
    ownerships = (_read_at(words, position, names) for position in range(len(words)))
    owner = next((ownership.owner for ownership in ownerships if ownership is not None), "")
    return Ownership(owner, " ".join(words))


def read_ownership(text: str, names: frozenset[str]) -> Ownership:
    """Return the owner at the beginning of a memory, and the thing.

    Args:
        text: Content of the memory.
        names: Folded words that are names, from `list_names`.
    """
    words = _split(text)
    ownership = _read_at(words, 0, names) if words else None
    if ownership is None and len(words) > 1 and words[0].casefold() == "the":
        ownership = _read_at(words, 1, names)
    if ownership is None and words[:1] == ["User"]:  # how models begin what they store of the user
        ownership = Ownership(USER)
    return ownership or Ownership()


def _read_at(words: list[str], position: int, names: frozenset[str]) -> Ownership | None:
    """Return the ownership that begins at a word, or None."""
    word = words[position].casefold()
    if end := _find_genitive_end(words, position):
        owner = _ENDING.sub("", " ".join(words[position:end]))
        return Ownership(_normalize(owner), "".join(words[end : end + 1]))
    if word in _FIRST_PERSON_GENITIVE:
        return Ownership(USER, "".join(words[position + 1 : position + 2]))
    is_user = word == "the" and [following.casefold() for following in words[position + 1 : position + 2]] == ["user"]
    if is_user or re.split("['\u2019]", word)[0] in _FIRST_PERSON:
        return Ownership(USER)
    return Ownership(words[position]) if word in names else None


def _find_genitive_end(words: list[str], position: int) -> int:
    """Return the position after the genitive of an owner, or 0."""
    first = words[position].casefold()
    may_be_lower = first == "the" or first in _FIRST_PERSON_GENITIVE
    end = 0
    for index in range(position, min(len(words), position + _OWNER_WORDS)):
        if _is_genitive(words[index]):
            end = index + 1
            break
        if not (may_be_lower or words[index][:1].isupper()):
            return 0
    while end and (further := next((n for n in (end, end + 1) if n < len(words) and _is_genitive(words[n])), None)):
        end = further + 1
    return end


def _is_genitive(word: str) -> bool:
    """Return True for "Ann's", not for "it's" or "that's"."""
    return _GENITIVE.fullmatch(word) is not None and bool(query_terms(_ENDING.sub("", word)))


def _normalize(owner: str) -> str:
    """Return an owner without its article, the first person as the user."""
    first, _, rest = owner.partition(" ")
    if first.casefold() in _FIRST_PERSON_GENITIVE:
        return f"{USER}'s {rest}"
    if owner.casefold() in {"user", USER}:
        return USER
    if owner.casefold().startswith(f"{USER}'s "):
        return f"{USER}{owner[len(USER) :]}"
    return rest if first.casefold() == "the" else owner


def _split(text: str) -> list[str]:
    """Return the first words of a text without outer punctuation."""
    return [bare for word in text[:_READ_CHARS].split() if (bare := _EDGES.sub("", word))]


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


def is_mostly(text: str, notes: Iterable[str]) -> bool:
    """Return True if a note is at least half of a text.

    The words of the note are in the text in their order, with nothing between.
    """
    words = _join_words(text)
    return any(note in words and 2 * len(note) >= len(words) for note in map(_join_words, notes))


def _join_words(text: str) -> str:
    """Return the words of a text, without case and outer marks."""
    return f" {' '.join(word.strip(_MARKS) for word in text.casefold().split())} "
