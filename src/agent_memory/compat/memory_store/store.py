"""`MemoryStore`: store, retrieve, change and count entries of one agent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Self

from agent_memory.care.importance import ImportanceCalculator, MemoryEntryType
from agent_memory.compat.memory_store.configs import MemoryStoreConfig, settings_of
from agent_memory.compat.memory_store.entries import (
    CHANGED_AT,
    CHILD,
    PARENT,
    RELATED,
    check_entry_id,
    checked,
    entry_of,
    external_id_of,
    fields_of,
    labels_of,
    links_of,
    metadata_of,
    said_besides,
)
from agent_memory.compat.memory_store.entries import text_of as words_of
from agent_memory.compat.memory_store.keeping import Kept
from agent_memory.compat.memory_store.managing import ArchivalManager, CleanupManager
from agent_memory.compat.memory_store.metrics import MemoryPerformanceMetrics
from agent_memory.compat.memory_store.reading import EntryReader
from agent_memory.errors import UnknownIdError, ValidationError
from agent_memory.memory import NOBODY, open_service
from agent_memory.memory.monitor import Background
from agent_memory.models import Memory, get_duplicate_key, to_text, utc_now
from agent_memory.redaction import quoted

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from datetime import datetime

    from agent_memory.compat.memory_store.entries import MemoryEntry
    from agent_memory.embeddings import Embedder
    from agent_memory.memory import Caller, MemoryService
    from agent_memory.memory.results import Imported
    from agent_memory.models import Clock, Record
    from agent_memory.settings import ServiceSettings


class MemoryStore(EntryReader):
    """Everything one agent knows, as entries. Opens nothing until the first call, and deletes nothing unasked.

    An entry is a view of a record: an interaction of a turn, a context of a document or a summary, all others of
    memories (docs/lifecycle.md). Whatever is stored goes through the one write path and has its secrets taken out.

    Args:
        config: How it works; the defaults when omitted.
        agent_id: Whose memory.
        settings: Of the memory below.
        service: An open one to work on, instead of one of its own, which `close` would close.
        embedder: One of the program's own.
        caller: The session that asks, or what returns the one that asks now.
        clock: Source of the present.

    Attributes:
        config, service: As given.
        importance_calculator: Says how important an entry is.
        cleanup_manager, archival_manager: Propose what is tidied, and do it.
        performance_metrics: What this store did, and how long it took.
        kept: Where the records are.

    Raises:
        ConfigurationError: `config` and `settings` say two things.
    """

    def __init__(
        self,
        config: MemoryStoreConfig | None = None,
        *,
        agent_id: str = "default",
        settings: ServiceSettings | None = None,
        service: MemoryService | None = None,
        embedder: Embedder | None = None,
        caller: Caller | Callable[[], Caller] = NOBODY,
        clock: Clock = utc_now,
    ) -> None:
        self.config = config or MemoryStoreConfig()
        self._owns_service, self._clock = service is None, clock
        self._caller = caller if callable(caller) else lambda: caller
        if service is None:
            service = open_service(agent_id, settings_of(self.config, settings, embedder), embedder)
        self.service = service
        self.kept = Kept(service, clock, self._caller, embedder)
        self.importance_calculator = ImportanceCalculator(clock=clock)
        self.performance_metrics = MemoryPerformanceMetrics()
        self.cleanup_manager = CleanupManager(self.kept, self.config.cleanup_config, self._caller)
        self.archival_manager = ArchivalManager(self.kept, self.config.archival_config, clock, self._caller)
        self._behind = Background()

    # -- writing ------------------------------------------------------------------------------------------------------

    async def store_entry(self, entry: MemoryEntry) -> str:
        """Keep an entry; when this returns, it is on disk.

        An entry whose id is known is changed; one whose text is known is not stored twice, and the id of the entry that
        has it is returned.

        Returns:
            The id that the entry was given, else that of its record.

        Raises:
            ValidationError: A field is wrong, or it is nothing but a secret; nothing was stored.
            StorageError: Nothing was stored.
        """
        with self.performance_metrics.timing("store"):
            entry = checked(entry)
            known = await self.kept.get(entry.entry_id) if entry.entry_id else None
            if known is not None:
                return external_id_of(await self._restored(known, entry))
            return external_id_of(await self.kept.store(entry))

    async def store_entries(self, entries: Sequence[MemoryEntry]) -> list[str]:
        """Store many entries in few changes; return their IDs in order.

        Memories are compared with others behind the answer.

        Raises:
            ValidationError: An entry is wrong. Nothing was stored if its type is unknown or it has no words; else those
                that were written before it are.
            StorageError: Some may be stored.
        """
        with self.performance_metrics.timing("store"):
            given = [checked(entry) for entry in entries]
            return await store_all(self.kept, given, self.store_entry, self._clock, self._caller())

    async def update_entry(self, entry_id: str, updates: dict[str, Any]) -> bool:
        """Change fields of an entry; tell whether there is one.

        What can be changed: content, summary, keywords, semantic_tags, importance_score (None: calculated again),
        related_entries, parent_entry, child_entries, temporal_context, expires_at, pinned. Of what was said and of
        documents all but the content.

        Raises:
            ValidationError: A field cannot be changed, or its value is wrong; nothing was changed.
            StorageError: Nothing was changed.
        """
        record = await self.kept.get(check_entry_id(entry_id))
        if record is None:
            return False
        await self.kept.update(record, changes_of(record, updates, self._clock()))
        return True

    async def delete_entry(self, entry_id: str) -> bool:
        """Forget an entry; tell whether there was one. Memories can be brought back for a time (`service.history`).

        Raises:
            ValidationError: The caller may not forget it.
            StorageError: Nothing was changed.
        """
        record = await self.kept.get(check_entry_id(entry_id))
        away = await self.kept.archived(entry_id) if record is None else None
        try:
            if away is not None:
                await self.kept.archive.forget(away.id, self._caller())
                return True
            if record is None:
                return False
            await self.kept.delete(record)
        except UnknownIdError:
            return False
        return True

    # -- tidying ------------------------------------------------------------------------------------------------------

    async def cleanup_old_entries(self, *, apply: bool = False, delete: bool = False) -> int:
        """Return how many memories would be tidied by `cleanup_config`; with `apply`, how many were.

        They go to the archive, from which they can be brought back; nothing is deleted unless `delete` says so.

        Args:
            apply: Do it.
            delete: Also delete for good what has been in the archive for long enough.

        Raises:
            ValidationError: The caller may not do it to one of them; nothing was done.
            StorageError: What was done before is safe.
        """
        return await self.cleanup_manager.perform_cleanup(apply=apply, delete=delete)

    async def archive_entries(self, archive_criteria: Mapping[str, Any], *, apply: bool = False) -> int:
        """Return how many memories meet criteria (`ArchivalManager.archive_entries`); with `apply`, archive them.

        Raises:
            ValidationError: A criterion is unknown or wrong, or the caller may not archive one; none was archived.
            StorageError: What was archived before is safe.
        """
        return await self.archival_manager.archive_entries(archive_criteria, apply=apply)

    async def settle(self) -> None:
        """Wait for background work: access counts and the service."""
        await self._behind.settle()
        await self.service.settle()

    async def close(self) -> None:
        """Finish background work and close. May be called more than once."""
        await self._behind.settle()
        await self.kept.close()
        if self._owns_service:
            await self.service.close()

    async def __aenter__(self) -> Self:
        """Return itself."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close."""
        await self.close()

    async def _restored(self, known: Record, entry: MemoryEntry) -> Record:
        """Return the updated record of an entry that is stored again."""
        updates: dict[str, Any] = {
            "summary": entry.summary,
            "keywords": entry.keywords,
            "semantic_tags": entry.semantic_tags,
            "temporal_context": entry.temporal_context,
            "related_entries": entry.related_entries,
            "parent_entry": entry.parent_entry,
            "child_entries": entry.child_entries,
        }
        if isinstance(known, Memory):
            updates["content"] = entry.content
        if entry.importance_score is not None and not entry.record_id:
            updates["importance_score"] = entry.importance_score
        return await self.kept.update(known, changes_of(known, updates, self._clock()))


_IN_METADATA: Final = frozenset(
    {"content", "summary", "keywords", "temporal_context", "related_entries", "parent_entry", "child_entries"}
)
_LINKED: Final = frozenset({"related_entries", "parent_entry", "child_entries"})
_LABELS: Final = frozenset({"keywords", "semantic_tags"})
_OWN: Final = {"importance_score": "importance", "expires_at": "expires_at", "pinned": "pinned"}
CHANGEABLE: Final = _IN_METADATA | _LABELS | _OWN.keys()
"""What `update_entry` takes; all other fields are given by the store, or counted."""
_KEPT: Final = frozenset({"external_id", "summary", "keywords", "content", "temporal_context", "elsewhere"})
_OF_TYPE: Final = frozenset({"outcome", "entry_type"})
_ENDS: Final = frozenset({RELATED, PARENT, CHILD})


def changes_of(record: Record, updates: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    """Return the changes to a record for updates of its entry.

    Raises:
        ValidationError: A field cannot be changed, or has a value of a wrong type.
    """
    if not isinstance(updates, dict):
        raise ValidationError(f"Nothing was changed: updates are a mapping, got {type(updates).__name__}.")
    if closed := sorted(set(updates) - CHANGEABLE, key=str):
        raise ValidationError(
            f"Nothing was changed: {quoted(str(closed[0]))} of an entry cannot be changed.",
            code="not_changeable",
            recovery=f"Changeable are: {', '.join(sorted(CHANGEABLE))}.",
        )
    entry = entry_of(record, record.timestamp)
    before = _as_it_stands(record)
    entry.keywords, entry.summary = before["keywords"], before["summary"]
    for name, value in updates.items():
        _check(name, value)
        setattr(entry, name, value)
    changes = {_OWN[name]: value for name, value in updates.items() if name in _OWN}
    changes["metadata"] = dict(record.metadata)
    if updates.keys() & _IN_METADATA:
        kept = {key: value for key, value in record.metadata.items() if key not in before["keys"]}
        entry.entry_id = before["external_id"]
        changes["metadata"] = kept | metadata_of(entry, corrects=record.supersedes is not None)
    changes["metadata"] |= {CHANGED_AT: to_text(now)}
    if updates.keys() & _LABELS:
        changes["tags"] = labels_of(entry)
    if updates.keys() & _LINKED:
        others = [link for link in record.links if link.rel not in _ENDS]
        changes["links"] = [*others, *links_of(entry)]
    if "content" in updates:
        changes["content"] = words_of(entry.content, entry.summary)
    return changes


def _as_it_stands(record: Record) -> dict[str, Any]:
    """Return an entry without the keywords and summary of its view."""
    said = record.metadata
    words, summary = said.get("keywords"), said.get("summary")
    return {
        "keywords": [each for each in words if isinstance(each, str)] if isinstance(words, list) else [],
        "summary": summary if isinstance(summary, str) else "",
        "external_id": str(said.get("external_id") or record.id),
        "keys": _KEPT | _OF_TYPE if isinstance(record, Memory) else _KEPT,
    }


_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "content": (dict,),
    "summary": (str,),
    "keywords": (list,),
    "semantic_tags": (list,),
    "temporal_context": (dict,),
    "related_entries": (list,),
    "child_entries": (list,),
    "parent_entry": (str, type(None)),
}


def _check(name: str, value: object) -> None:
    """Refuse a value of another type; the rest is checked with the record.

    Raises:
        ValidationError: Names the field.
    """
    wanted = _TYPES.get(name)
    if wanted is not None and not isinstance(value, wanted):
        raise ValidationError(f"Nothing was changed: {name} is a {wanted[0].__name__}, got {type(value).__name__}.")


_ONE_BY_ONE = frozenset({MemoryEntryType.CONTEXT, MemoryEntryType.CORRECTION})


async def store_all(
    kept: Kept,
    entries: Sequence[MemoryEntry],
    store: Callable[[MemoryEntry], Awaitable[str]],
    clock: Clock,
    caller: Caller,
) -> list[str]:
    """Store checked entries and return their ids, in their order.

    An entry with an id of its own, a correction, a context, one whose text is known or was forgotten, and what a caller
    of low trust brings is stored by itself: each of these asks for more than to be written.

    Args:
        kept: Where records are.
        entries: What to store.
        store: Stores one entry.
        clock: Source of the present.
        caller: The session that asks.

    Raises:
        ValidationError: An entry is refused; those that were written before it are on the disk.
        StorageError: Likewise.
    """
    ids: dict[int, str] = {}
    memories, turns = await _sorted(kept, entries, caller)
    for session in {entries[at].session_id for at in turns}:
        of_session = [at for at in turns if entries[at].session_id == session]
        taken = await kept.taking.turns([entries[at] for at in of_session])
        for at, record in zip(of_session, taken, strict=True):
            if not isinstance(record, str):
                besides = said_besides(entries[at], record)
                ids[at] = external_id_of(await kept.update(record, besides) if besides else record)
    ids |= await _imported(kept, {at: entries[at] for at in memories}, clock, caller)
    for at, entry in enumerate(entries):
        if at not in ids:
            ids[at] = await store(entry)
    return [ids[at] for at in range(len(entries))]


async def _sorted(kept: Kept, entries: Sequence[MemoryEntry], caller: Caller) -> tuple[list[int], list[int]]:
    """Return the memories and turns that only have to be written."""
    if caller.trust == "low":
        return [], []
    plain = [index for index, entry in enumerate(entries) if not entry.entry_id and entry.entry_type not in _ONE_BY_ONE]
    turns = [index for index in plain if entries[index].entry_type == MemoryEntryType.INTERACTION]
    duplicate_keys = {get_duplicate_key(str(getattr(memory, "content", ""))) for memory in await kept.memories()}
    memories = []
    for index in plain:
        duplicate_key = get_duplicate_key(entries[index].text)
        if entries[index].entry_type != MemoryEntryType.INTERACTION and duplicate_key not in duplicate_keys:
            duplicate_keys.add(duplicate_key)
            memories.append(index)
    return memories, turns


async def _imported(kept: Kept, entries: dict[int, MemoryEntry], clock: Clock, caller: Caller) -> dict[int, str]:
    """Store new memories in portions; return their IDs."""
    drafts: dict[int, Memory] = {}
    for at, entry in entries.items():
        fields = fields_of(entry, clock(), caller.group or "")
        fields.setdefault("created_by_session", caller.session_id)
        drafts[at] = Memory(agent_id=kept.service.agent_id, **fields)
    stored: set[str] = set()

    def noted(imported: Imported) -> None:
        if imported.outcome == "stored":
            stored.add(imported.memory_id)

    if drafts:
        await kept.service.writer.import_memories(list(drafts.values()), noted, caller, trusted=True)
    return {at: draft.id for at, draft in drafts.items() if draft.id in stored}
