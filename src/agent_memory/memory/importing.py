"""Bringing in memories that were stored once already: from a file, from a server, to a server.

Ids and texts stay, and nothing that is there changes. What a file claims beyond its texts (trust, pins, what it makes
untrue, what is suspect or decided) counts only if the person who imports it vouches for it: any program can write a
file. Reads no file, knows no format.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal

from agent_memory.errors import ValidationError
from agent_memory.models import (
    MEMORY,
    Source,
    get_exact_import_id,
    get_import_id,
    is_only_folded_equal,
    is_told,
)
from agent_memory.store.cleaning import redact_fields, redact_record, with_fields

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from datetime import datetime

    from agent_memory.memory.caller import Caller
    from agent_memory.memory.path import WritePath
    from agent_memory.models import Memory
    from agent_memory.store.cleaning import Redacted

_AT_ONCE: Final = 100
_CHARACTERS_AT_ONCE: Final = 1 << 16
"""In one change: a line of the journal that is damaged, or finds no room, loses no more memories than these."""
_ASKED_AT_ONCE: Final = 1_000
_RAISED: Final = ("trust", "source", "pinned", "supersedes", "promoted_at", "links")
"""Claims that can still be believed afterwards: how often a memory was used has gone on since, and times stay."""


@dataclass(frozen=True, slots=True)
class Imported:
    """What became of one memory.

    Attributes:
        memory_id: Which.
        outcome: `stored`; `present`: it was there; `differs`: it is there with another text, which stays; `forgotten`:
            its text was forgotten or purged there, which stays so; `refused`.
        redacted: Kinds of secrets that were taken out before it was stored.
        lowered: Fields whose claims were not believed.
        error: Why it was refused; with `stored`, why a link to it was.
        raised: With `present`, fields that are now as claimed, and were as an import that believes nothing leaves them.
    """

    memory_id: str
    outcome: Literal["stored", "present", "differs", "forgotten", "refused"]
    redacted: tuple[str, ...] = ()
    lowered: tuple[str, ...] = ()
    error: ValidationError | None = None
    raised: tuple[str, ...] = ()


@dataclass(slots=True)
class Import:
    """One import, or one transfer.

    Attributes:
        writing: The write path to where they go.
        caller: The session that asks.
        now: The present.
        trusted: Whether all that the memories claim is believed, and what was forgotten here is brought back by it.
        dry_run: Whether to report the outcome that each would have, and store none.
        is_transfer: Whether they come from another storage of the same agent: all is believed, and what was forgotten
            here stays forgotten.
    """

    writing: WritePath
    caller: Caller
    now: datetime
    trusted: bool = False
    dry_run: bool = False
    is_transfer: bool = False
    _texts: dict[str, str] = field(default_factory=dict, init=False)
    _among: Collection[str] = field(default=(), init=False)
    _is_synced: bool = field(default=False, init=False)

    async def run(self, memories: Sequence[Memory], each: Callable[[Imported], object]) -> None:
        """Keep what is missing, in the given order; `each` receives every outcome, in that order, once it is safe.

        Some at a time are stored in one change. A memory may supersede one that comes later or one that was forgotten
        before the export: such links are kept.

        Raises:
            StorageError: What `each` received before is on disk; doing it all again does the rest.
        """
        self._among = {memory.id for memory in memories}
        for at in range(0, len(memories), _ASKED_AT_ONCE):
            some = memories[at : at + _ASKED_AT_ONCE]
            self._among -= (await self.writing.storage.texts_of([memory.id for memory in some])).keys()
        for some in _portions(memories):
            for imported in await self._take(some):
                each(imported)

    async def _take(self, memories: Sequence[Memory]) -> list[Imported]:
        """Keep some memories, if possible in one change; return what became of each."""
        outcomes: list[Imported] = []
        drafts: list[Redacted[Memory]] = []
        known = await self.writing.storage.texts_of([memory.id for memory in memories])
        new = [memory.content for memory in memories if memory.id not in known]
        brings_back = self.trusted and not self.is_transfer
        forgotten = set[str]() if brings_back else await self.writing.storage.forgotten_among(new)
        for each in await asyncio.to_thread(self._cleaned, memories):
            imported, draft = await self._judge(each, known, forgotten)
            outcomes.append(imported)
            drafts += [draft] if draft is not None else []
        if not (self.dry_run or self._is_synced) and any(imported.outcome == "present" for imported in outcomes):
            await self.writing.storage.touch(())  # counts nothing, and makes durable what a killed import left unsynced
            self._is_synced = True
        kept = {} if self.dry_run else await self._keep(drafts)
        for position, imported in enumerate(outcomes):
            if imported.memory_id in kept and imported.outcome == "stored":
                stored, error = kept[imported.memory_id]
                outcomes[position] = replace(imported, outcome="stored" if stored else "refused", error=error)
                if stored is not None:
                    await self.writing.announce(stored, imported.redacted, self.caller)
        return outcomes

    def _cleaned(self, memories: Sequence[Memory]) -> list[_Cleaned]:
        """Return each memory as far as it is believed, without its secrets; in a thread: some 0.2 ms for each.

        One without a secret is not touched: an import must not so much as trim a text.
        """
        return [self._clean(memory) for memory in memories]

    def _clean(self, memory: Memory) -> _Cleaned:
        memory = self._readable(memory)
        believed, lowered = memory, tuple[str, ...]()
        if self.is_transfer:
            believed = memory.model_copy(update={"agent_id": self.writing.storage.agent_id})
        elif not self.trusted:
            believed, lowered = _lowered(memory, self._among, self.now)
        try:
            return _Cleaned(memory, lowered, redact_record(MEMORY, believed, self.writing.redactor))
        except ValidationError as error:
            return _Cleaned(memory, lowered, error)

    def _readable(self, memory: Memory) -> Memory:
        """Return a memory without words of what was purged here."""
        if (purged := self.writing.purged) is None:
            return memory
        fields = self._with_dates(memory)
        readable = purged.readable(memory.id, fields)
        if readable == fields:
            return memory
        return MEMORY.model.from_record(memory.agent_id, memory.id, {**readable, "timestamp": memory.timestamp})

    def _with_dates(self, memory: Memory) -> dict[str, Any]:
        """Return a memory's fields; no timestamp if the export has none."""
        fields = memory.to_record()
        return fields if memory.timestamp < self.now else {**fields, "timestamp": None}

    async def _judge(
        self, cleaned: _Cleaned, stored_texts: Mapping[str, str], forgotten: Collection[str]
    ) -> tuple[Imported, Redacted[Memory] | None]:
        """Return the outcome for a memory, and its draft if it is new.

        Args:
            cleaned: Memory to judge, without secrets.
            stored_texts: Stored texts by ID, at least of its own ID.
            forgotten: Texts that were forgotten in this storage.
        """
        memory, draft, lowered = cleaned.memory, cleaned.draft, cleaned.lowered
        if isinstance(draft, ValidationError):
            return Imported(memory.id, "refused", error=draft), None
        content = draft.value.content
        if (text := self._texts.get(memory.id, stored_texts.get(memory.id))) is not None:
            if text != content:
                if memory.id == get_import_id(memory.content) and is_only_folded_equal(text, content):
                    return await self._judge_under_exact_id(cleaned, draft, forgotten)
                return Imported(memory.id, "differs"), None
            believes = self.trusted and not self.is_transfer
            return (await self._raise(memory) if believes else Imported(memory.id, "present")), None
        if memory.content in forgotten or self._bars(memory, content):
            return Imported(memory.id, "forgotten"), None
        self._texts[memory.id] = content
        return Imported(memory.id, "stored", draft.kinds, lowered), draft

    async def _judge_under_exact_id(
        self, cleaned: _Cleaned, draft: Redacted[Memory], forgotten: Collection[str]
    ) -> tuple[Imported, Redacted[Memory] | None]:
        """Judge a memory whose import ID belongs to a variant text.

        The variant has other capitals or compatibility forms.
        """
        memory_id = get_exact_import_id(cleaned.memory.content)
        memory = cleaned.memory.model_copy(update={"id": memory_id})
        stored_texts = await self.writing.storage.texts_of([memory_id])
        return await self._judge(
            replace(cleaned, memory=memory, draft=with_fields(draft, id=memory_id)), stored_texts, forgotten
        )

    def _bars(self, memory: Memory, content: str) -> bool:
        purged = self.writing.purged
        return purged is not None and purged.bars(memory.id, {**self._with_dates(memory), "content": content})

    async def _keep(
        self, drafts: Sequence[Redacted[Memory]]
    ) -> dict[str, tuple[Memory | None, ValidationError | None]]:
        """Store memories in one change, or one by one if one of them is refused.

        Each has its link in the same line of the journal: an import broken off leaves none without it.

        Returns:
            Each by id as it was stored, or None; why it was not, or why its link was left out: memories would have gone
            round in a circle.
        """
        try:
            if drafts:
                await self.writing.storage.store_many(drafts)
        except ValidationError as error:
            if len(drafts) > 1:
                return {memory_id: one for draft in drafts for memory_id, one in (await self._keep([draft])).items()}
            draft, memory_id = drafts[0], drafts[0].value.id
            if draft.value.supersedes is None:
                return {memory_id: (None, error)}
            stored, problem = (await self._keep([with_fields(draft, supersedes=None)]))[memory_id]
            return {memory_id: (stored, problem or error)}
        return {draft.value.id: (draft.value, None) for draft in drafts}

    async def _raise(self, memory: Memory) -> Imported:
        """Believe now what an earlier import of the same memory did not; what was changed since stays as it is."""
        present = Imported(memory.id, "present")
        known = await self.writing.storage.get(memory.id)
        lowered, claims = _lowered(memory, (), self.now)
        if known is None or any(getattr(known, name) != getattr(lowered, name) for name in _RAISED[:3]):
            return present
        believed = [name for name in claims if name in _RAISED and getattr(known, name) == getattr(lowered, name)]
        if not believed:
            return present
        try:
            fields = {name: getattr(memory, name) for name in believed}
            cleaned = await asyncio.to_thread(redact_fields, MEMORY, fields, self.writing.redactor)
            if not self.dry_run:
                await self.writing.storage.update(memory.id, cleaned)
                await self.writing.changed(memory.id, believed, cleaned.kinds, self.caller)
        except ValidationError as error:
            return replace(present, error=error)
        return replace(present, redacted=cleaned.kinds, raised=tuple(believed))


@dataclass(frozen=True, slots=True)
class _Cleaned:
    """A memory that is to be imported.

    Attributes:
        memory: As it was given.
        lowered: Fields whose claims are not believed.
        draft: What may be stored of it, or why it is refused.
    """

    memory: Memory
    lowered: tuple[str, ...]
    draft: Redacted[Memory] | ValidationError


def _portions(memories: Sequence[Memory]) -> Iterator[list[Memory]]:
    """Yield some memories after the other; what is there twice is compared with the first once that is stored."""
    some: dict[str, Memory] = {}
    length = 0
    for memory in memories:
        length += len(memory.content)
        if some and (memory.id in some or len(some) == _AT_ONCE or length > _CHARACTERS_AT_ONCE):
            yield list(some.values())
            some, length = {}, len(memory.content)
        some[memory.id] = memory
    if some:
        yield list(some.values())


def _lowered(memory: Memory, among: Collection[str], now: datetime) -> tuple[Memory, tuple[str, ...]]:
    """Return a memory without the claims that would put it above others, and the fields that had one.

    Args:
        memory: What a file says.
        among: Ids that come with it and were not there before: what it may replace. Not among them is what was
            forgotten here, which its owner may bring back.
        now: The present; nothing can have been stored after it.
    """
    moments = {name: getattr(memory, name) for name in ("timestamp", "observed_at", "evicted_at")}
    believed = {
        "trust": "medium" if memory.trust == "high" else memory.trust,
        "source": Source(kind="import", detail=memory.source.detail) if memory.source.kind == "user" else memory.source,
        "pinned": False,
        "supersedes": memory.supersedes if memory.supersedes in among else None,
        "access_count": 0,
        "last_accessed": None,
        "promoted_at": None,
        "links": [link for link in memory.links if is_told(link.rel)],
        **{name: moment and min(moment, now) for name, moment in moments.items()},
    }
    claims = {name: value for name, value in believed.items() if getattr(memory, name) != value}
    return (memory.model_copy(update=claims) if claims else memory), tuple(claims)
