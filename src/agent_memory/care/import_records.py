"""`MemoryImporter`: memories from an export or another storage.

Existing memories do not change. Claims of an export beyond its texts (trust, pins, `supersedes`, conflicts) count only
if the person who imports it vouches for it: any program can write a file. Reads no file.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from agent_memory.errors import ValidationError
from agent_memory.memory.events import read_withdrawn_ids
from agent_memory.memory.results import Imported
from agent_memory.models import MEMORY, Source, get_exact_import_id, get_import_id, is_only_folded_equal, is_told
from agent_memory.models.record import get_origin
from agent_memory.store.record_redaction import redact_fields, redact_record, with_fields

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from datetime import datetime
    from pathlib import Path

    from agent_memory.journal import PurgeList
    from agent_memory.memory.caller import Caller
    from agent_memory.memory.monitor import Monitor
    from agent_memory.models import Memory
    from agent_memory.redaction import Redactor
    from agent_memory.store.memory_storage import MemoryStorage
    from agent_memory.store.record_redaction import Redacted

_AT_ONCE: Final = 100
_CHARACTERS_AT_ONCE: Final = 1 << 16
"""Memories and characters of one change: a damaged line of the journal loses no more than these."""
_ASKED_AT_ONCE: Final = 1_000
_RAISED: Final = ("trust", "source", "pinned", "supersedes", "promoted_at", "links", "origin")
"""Claims that a later import may still believe: access counts have changed since, and times stay."""


@dataclass(slots=True)
class MemoryImporter:
    """One import, or one transfer between storages.

    Attributes:
        storage: Storage of the imported memories.
        redactor: Redactor for secrets in texts.
        purged: List of purged memories, which stay purged; None for no list.
        monitor: Receiver of events.
        caller: Session that asks for it.
        now: Time of the import.
        audit_file: Log of changes; None for no log.
        trusted: True to believe all claims, and to restore what was forgotten here.
        dry_run: True to report the outcomes and store nothing.
        is_transfer: True for memories of the same agent: all claims are believed, and what was forgotten stays so.
    """

    storage: MemoryStorage
    redactor: Redactor
    purged: PurgeList | None
    monitor: Monitor
    caller: Caller
    now: datetime
    audit_file: Path | None = None
    trusted: bool = False
    dry_run: bool = False
    is_transfer: bool = False
    _texts: dict[str, str] = field(default_factory=dict, init=False)
    _among: Collection[str] = field(default=(), init=False)
    _is_synced: bool = field(default=False, init=False)
    _withdrawn: set[str] | None = field(default=None, init=False)

    async def run(self, memories: Sequence[Memory], each: Callable[[Imported], object]) -> None:
        """Store what is missing, in the given order.

        Several are stored in one change. A memory may supersede one that comes later or one that was forgotten before
        the export: such links are kept.

        Args:
            memories: Memories as exported.
            each: Receives the outcome of each memory in order, once it is on disk.

        Raises:
            StorageError: Outcomes that `each` received are on disk; the same import again does the rest.
        """
        self._among = {memory.id for memory in memories}
        for start in range(0, len(memories), _ASKED_AT_ONCE):
            asked = memories[start : start + _ASKED_AT_ONCE]
            self._among -= (await self.storage.texts_of([memory.id for memory in asked])).keys()
        for batch in _split_batches(memories):
            for imported in await self._import_batch(batch):
                each(imported)

    async def _import_batch(self, memories: Sequence[Memory]) -> list[Imported]:
        """Store memories, if possible in one change; return their outcomes."""
        outcomes: list[Imported] = []
        drafts: list[Redacted[Memory]] = []
        stored_texts = await self.storage.texts_of([memory.id for memory in memories])
        new = [memory.content for memory in memories if memory.id not in stored_texts]
        brings_back = self.trusted and not self.is_transfer
        forgotten = set[str]() if brings_back else await self.storage.forgotten_among(new)
        if forgotten and not self.is_transfer:
            withdrawn = await self._read_withdrawn()
            forgotten -= {
                memory.content
                for memory in memories
                if not withdrawn.isdisjoint((memory.id, get_exact_import_id(memory.content)))
            }
        # Cleaning takes 0.2 ms for each memory. Other text is unchanged, even its spaces.
        for cleaned in await asyncio.to_thread(lambda: [self._clean(memory) for memory in memories]):
            imported, draft = await self._judge(cleaned, stored_texts, forgotten)
            outcomes.append(imported)
            drafts += [draft] if draft is not None else []
        if not (self.dry_run or self._is_synced) and any(imported.outcome == "present" for imported in outcomes):
            await self.storage.touch(())  # counts nothing, and makes durable what a killed import left unsynced
            self._is_synced = True
        stored = {} if self.dry_run else await self._store(drafts)
        for position, imported in enumerate(outcomes):
            if imported.memory_id in stored and imported.outcome == "stored":
                memory, error = stored[imported.memory_id]
                outcomes[position] = replace(imported, outcome="stored" if memory else "refused", error=error)
                if memory is not None:
                    backend = self.storage.backend
                    await self.monitor.report_stored(memory, imported.redacted, self.caller, backend=backend)
        return outcomes

    async def _read_withdrawn(self) -> set[str]:
        """Return the IDs of memories that the undo of an import forgot."""
        if self._withdrawn is None:
            file = self.audit_file
            self._withdrawn = set() if file is None else await asyncio.to_thread(read_withdrawn_ids, file)
        return self._withdrawn

    def _clean(self, memory: Memory) -> _CleanedMemory:
        memory = self._remove_purged(memory)
        believed, lowered = memory, tuple[str, ...]()
        if self.is_transfer:
            believed = memory.model_copy(update={"agent_id": self.storage.agent_id})
        elif not self.trusted:
            believed, lowered = _lower_claims(memory, self._among, self.now)
        try:
            return _CleanedMemory(memory, lowered, redact_record(MEMORY, believed, self.redactor))
        except ValidationError as error:
            return _CleanedMemory(memory, lowered, error)

    def _remove_purged(self, memory: Memory) -> Memory:
        """Return a memory without words of what was purged here."""
        if (purged := self.purged) is None:
            return memory
        fields = self._get_fields(memory)
        readable = purged.readable(memory.id, fields)
        if readable == fields:
            return memory
        return MEMORY.model.from_record(memory.agent_id, memory.id, {**readable, "timestamp": memory.timestamp})

    def _get_fields(self, memory: Memory) -> dict[str, Any]:
        """Return a memory's fields; no timestamp if the export has none."""
        fields = memory.to_record()
        return fields if memory.timestamp < self.now else {**fields, "timestamp": None}

    async def _judge(
        self, cleaned: _CleanedMemory, stored_texts: Mapping[str, str], forgotten: Collection[str]
    ) -> tuple[Imported, Redacted[Memory] | None]:
        """Return the outcome of a memory, and the draft if new.

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
            return (await self._raise_claims(memory) if believes else Imported(memory.id, "present")), None
        if memory.content in forgotten or self._is_purged(memory, content):
            return Imported(memory.id, "forgotten"), None
        self._texts[memory.id] = content
        return Imported(memory.id, "stored", draft.kinds, lowered), draft

    async def _judge_under_exact_id(
        self, cleaned: _CleanedMemory, draft: Redacted[Memory], forgotten: Collection[str]
    ) -> tuple[Imported, Redacted[Memory] | None]:
        """Judge a memory whose import ID belongs to a variant text.

        The variant has other capitals or compatibility forms.
        """
        memory_id = get_exact_import_id(cleaned.memory.content)
        memory = cleaned.memory.model_copy(update={"id": memory_id})
        stored_texts = await self.storage.texts_of([memory_id])
        return await self._judge(
            replace(cleaned, memory=memory, draft=with_fields(draft, id=memory_id)), stored_texts, forgotten
        )

    def _is_purged(self, memory: Memory, content: str) -> bool:
        purged = self.purged
        return purged is not None and purged.bars(memory.id, {**self._get_fields(memory), "content": content})

    async def _store(
        self, drafts: Sequence[Redacted[Memory]]
    ) -> dict[str, tuple[Memory | None, ValidationError | None]]:
        """Store memories in one change, or one by one after a refusal.

        Returns:
            By ID, the stored memory or None; and why it was refused, or why its `supersedes` was left out: it would
            have made a circle.
        """
        try:
            if drafts:
                await self.storage.store_many(drafts)
        except ValidationError as error:
            if len(drafts) > 1:
                return {key: value for draft in drafts for key, value in (await self._store([draft])).items()}
            draft, memory_id = drafts[0], drafts[0].value.id
            if draft.value.supersedes is None:
                return {memory_id: (None, error)}
            stored, problem = (await self._store([with_fields(draft, supersedes=None)]))[memory_id]
            return {memory_id: (stored, problem or error)}
        return {draft.value.id: (draft.value, None) for draft in drafts}

    async def _raise_claims(self, memory: Memory) -> Imported:
        """Believe claims that an earlier import did not; fields changed since stay."""
        present = Imported(memory.id, "present")
        stored = await self.storage.get(memory.id)
        lowered, claims = _lower_claims(memory, (), self.now)
        if stored is None or any(getattr(stored, name) != getattr(lowered, name) for name in ("source", "pinned")):
            return present
        believed = [name for name in claims if name in _RAISED and getattr(stored, name) == getattr(lowered, name)]
        if stored.trust == "medium" != memory.trust and "trust" in claims:  # accepted since, or of an earlier version
            believed.insert(0, "trust")
        if not believed:
            return present
        try:
            fields = {name: getattr(memory, name) for name in believed}
            cleaned = await asyncio.to_thread(redact_fields, MEMORY, fields, self.redactor)
            if not self.dry_run:
                await self.storage.update(memory.id, cleaned)
                await self.monitor.report_changed(memory.id, believed, cleaned.kinds, self.caller)
        except ValidationError as error:
            return replace(present, error=error)
        return replace(present, redacted=cleaned.kinds, raised=tuple(believed))


@dataclass(frozen=True, slots=True)
class _CleanedMemory:
    """Memory to import.

    Attributes:
        memory: Memory as exported.
        lowered: Fields whose claims are not believed.
        draft: Memory to store, or why it is refused.
    """

    memory: Memory
    lowered: tuple[str, ...]
    draft: Redacted[Memory] | ValidationError


def _split_batches(memories: Sequence[Memory]) -> Iterator[list[Memory]]:
    """Yield batches of memories with different IDs."""
    batch: dict[str, Memory] = {}
    length = 0
    for memory in memories:
        length += len(memory.content)
        if batch and (memory.id in batch or len(batch) == _AT_ONCE or length > _CHARACTERS_AT_ONCE):
            yield list(batch.values())
            batch, length = {}, len(memory.content)
        batch[memory.id] = memory
    if batch:
        yield list(batch.values())


def _lower_claims(memory: Memory, among: Collection[str], now: datetime) -> tuple[Memory, tuple[str, ...]]:
    """Return a memory without raising claims, and their fields.

    Args:
        memory: Memory as exported.
        among: IDs of new memories of the same export, which it may supersede.
        now: The present; later times are lowered to it.
    """
    moments = {name: getattr(memory, name) for name in ("timestamp", "observed_at", "evicted_at")}
    believed = {
        "trust": "low",
        "source": Source(kind="import", detail=memory.source.detail) if memory.source.kind == "user" else memory.source,
        "origin": memory.origin if memory.origin and get_origin(memory).kind == "import" else "import",
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
