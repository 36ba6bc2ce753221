"""`Kept`: entries of an agent in its service and its knowledge."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from agent_memory.care.archive import Archive, archive_exists
from agent_memory.care.importance import MemoryEntryType
from agent_memory.compat.memory_store.entries import (
    EXTERNAL_ID,
    fields_of,
    is_record_id,
    labels_of,
    metadata_of,
    record_id_of,
    said_besides,
)
from agent_memory.embeddings.registry import embedder_of
from agent_memory.errors import ValidationError
from agent_memory.knowledge.intake.drafts import UNKNOWN, ReceivedDocument, ReceivedTurn
from agent_memory.knowledge.intake.ingest import Ingest
from agent_memory.knowledge.intake.withdrawal import drawn_from_alone, forget_known
from agent_memory.knowledge.records import Knowledge
from agent_memory.models import EPISODE, MEMORY, RESOURCE, SUMMARY, Episode, Listing, Resource, SearchFilters, sees

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Sequence

    from agent_memory.compat.memory_store.entries import MemoryEntry
    from agent_memory.embeddings import Embedder
    from agent_memory.embeddings.protocol import EmbedderIdentity, Matrix, Vector
    from agent_memory.memory import Caller, MemoryService
    from agent_memory.memory.caller import Report
    from agent_memory.models import ArchivedMemory, Clock, Kind, Record
    from agent_memory.store.record_storage import RecordStorage

_PAGE: Final = 500
_CONVERSATION: Final = "conversation"


class Kept:
    """Looks up, stores and forgets the records of entries.

    Args:
        service: Where memories are.
        clock: Source of the present.
        caller: Returns the session that asks.
        embedder: One of the program's own.

    Attributes:
        service: As given.
    """

    def __init__(
        self, service: MemoryService, clock: Clock, caller: Callable[[], Caller], embedder: Embedder | None
    ) -> None:
        self.service = service
        self._clock, self._caller, self._embedder = clock, caller, embedder
        self._opened: Knowledge | None = None
        self._taking: Taking | None = None
        self._names = Names()
        self._archive: Archive | None = None

    @property
    def knowledge(self) -> Knowledge:
        """Turns, documents and summaries.

        Raises:
            ConfigurationError: The memory is on a server, which keeps memories alone.
        """
        if self._opened is None:
            settings = self.service.settings
            known = self._embedder or embedder_of(settings)
            asked = None if known is None else AskedOnce(known)
            self._opened = Knowledge(self.service.agent_id, settings, clock=self._clock, embedder=asked)
        return self._opened

    @property
    def taking(self) -> Taking:
        """The way in for turns and documents."""
        if self._taking is None:
            self._taking = Taking(self.knowledge, self.service.report, self._caller)
        return self._taking

    @property
    def archive(self) -> Archive:
        """What was put away.

        Raises:
            ConfigurationError: The memory is on a server, which has no archive.
        """
        if self._archive is None:
            self._archive = Archive(self.service, clock=self._clock)
        return self._archive

    async def archived(self, entry_id: str) -> ArchivedMemory | None:
        """Return the memory of an entry in the archive."""
        if not archive_exists(self.service.agent_id, self.service.settings):
            return None
        away = await self.archive.get(record_id_of(entry_id, self._caller().group or ""))
        return away if away is not None and sees(self._caller().group, away.facets) else None

    def storages(self) -> list[RecordStorage[Any]]:
        """Return the existing storages of turns, documents and summaries."""
        if self.service.settings.backend == "server":
            return []
        known = self.knowledge
        storages: list[RecordStorage[Any]] = [known.episodes, known.resources, known.summaries]
        return [each for each in storages if (known.folder.path / each.kind.journal).exists()]

    async def store(self, entry: MemoryEntry) -> Record:
        """Store an entry as a turn, a document or a memory.

        Raises:
            ValidationError: A field is wrong, or it is nothing but a secret; nothing was stored.
            StorageError: Nothing was stored.
        """
        if entry.entry_type not in (MemoryEntryType.INTERACTION, MemoryEntryType.CONTEXT):
            caller = self._caller()
            return (await self.service.store(fields_of(entry, self._clock(), caller.group or ""), caller)).memory
        taking = self.taking
        is_turn = entry.entry_type == MemoryEntryType.INTERACTION
        record = await (taking.turn(entry) if is_turn else taking.document(entry))
        besides = said_besides(entry, record)
        return await self.update(record, besides) if besides else record

    async def get(self, entry_id: str) -> Record | None:
        """Return the record of an entry by its ID or given ID."""
        kind = next((each for each in (EPISODE, RESOURCE, SUMMARY) if entry_id.startswith(each.prefix)), None)
        if is_record_id(entry_id) and kind is not None:
            return self._seen(await self.knowledge.of(kind.name).get(entry_id))
        memory = await self.service.storage.get(record_id_of(entry_id, self._caller().group or ""))
        if memory is not None or is_record_id(entry_id):
            return self._seen(memory)
        return self._seen(await self._names.find(entry_id, self.storages()))

    async def update(self, record: Record, changes: dict[str, Any]) -> Record:
        """Change fields of a record.

        Raises:
            ValidationError: A value is wrong; nothing was changed.
            StorageError: Nothing was changed.
        """
        if record.id.startswith(MEMORY.prefix):
            return (await self.service.update(record.id, changes, self._caller())).memory
        if "content" in changes:
            raise ValidationError(
                "What was said, and what a document says, stays as it was; nothing was changed.",
                code="not_changeable",
                recovery="Store a correction.",
            )
        changed: Record = await self.knowledge.of(_kind_of(record).name).update(record.id, changes)
        return changed

    async def delete(self, record: Record) -> None:
        """Forget a record; what was drawn from a turn or a document alone goes with it, unless it is pinned.

        Raises:
            UnknownIdError: It is gone already.
            ValidationError: The caller may not forget it.
            StorageError: What was forgotten before stays forgotten.
        """
        caller = self._caller()
        if record.id.startswith(MEMORY.prefix):
            await self.service.forget(record.id, caller)
            return
        items = await drawn_from_alone(self.service, [record.id], caller)
        await self.service.writer.deletion.forget_many([item.id for item in items if not item.pinned], caller)
        await forget_known([record.id], self.knowledge)
        await self.knowledge.of(_kind_of(record).name).delete(record.id)

    async def memories(self, filters: SearchFilters | None = None) -> list[Record]:
        """Return valid memories and items that meet the filters, newest first."""
        wanted = (filters or SearchFilters()).with_items.within(self._caller().group)
        return [*(await self.service.storage.browse(Listing(filters=wanted))).records]

    async def others(self, kind: Kind[Any] | None = None) -> AsyncIterator[Record]:
        """Yield turns, documents and summaries, the newest of each kind first."""
        for storage in self.storages():
            if kind is not None and kind is not storage.kind:
                continue
            offset = 0
            while True:
                filters = SearchFilters(include_items=True, group=self._caller().group)
                part = (await storage.browse(Listing(filters=filters, offset=offset, limit=_PAGE))).records
                for record in part:
                    if is_entry(record):
                        yield record
                offset += len(part)
                if len(part) < _PAGE:
                    break

    async def text_of(self, record: Record) -> str:
        """Return all words of a record."""
        if isinstance(record, Resource | Episode):
            return await self.knowledge.text_of(record)
        return str(getattr(record, "content", ""))

    async def close(self) -> None:
        """Close turns, documents and the archive."""
        if self._archive is not None:
            await self._archive.close()
        if self._opened is not None:
            await self._opened.close()

    def _seen(self, record: Record | None) -> Record | None:
        """Return a record that the caller may see."""
        return record if record is not None and sees(self._caller().group, record.facets) else None


def is_entry(record: Record) -> bool:
    """Return True if a record is an entry; conversations are not."""
    return getattr(record, "resource_type", "") != _CONVERSATION


def _kind_of(record: Record) -> Kind[Any]:
    return next(kind for kind in (EPISODE, RESOURCE, SUMMARY) if record.id.startswith(kind.prefix))


class Names:
    """Find records other than memories by a program's own names."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}
        self._through: dict[str, int] = {}

    async def find(self, name: str, storages: Iterable[RecordStorage[Any]]) -> Record | None:
        """Return the record of this name that is there, whichever process stored it; None for none.

        Raises:
            StorageError: The records cannot be read.
        """
        for storage in storages:
            kind = storage.kind.name
            changed = await storage.changed_after(self._through.get(kind, 0))
            records = await storage.valid_among([one for _, one in changed.records]) if changed.records else {}
            for one, record in records.items():
                given = record.metadata.get(EXTERNAL_ID)
                if isinstance(given, str):
                    self._known[given] = one
            self._through[kind] = changed.last
            known = self._known.get(name)
            if known is not None and known.startswith(storage.kind.prefix):
                found: Record | None = await storage.get(known)
                return found
        return None


class AskedOnce:
    """Another embedder, and the last question it embedded. Thread-safe, as storages ask from threads of their own.

    Args:
        embedder: Turns texts into vectors.
    """

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._asking = threading.Lock()
        self._last: tuple[str, Vector] | None = None

    @property
    def identity(self) -> EmbedderIdentity:
        """Whose vectors these are."""
        return self._embedder.identity

    @property
    def dimension(self) -> int:
        """Length of the vectors."""
        return self._embedder.dimension

    @property
    def similarity_threshold(self) -> float:
        """Least cosine that tells something."""
        return self._embedder.similarity_threshold

    def embed_documents(self, texts: list[str]) -> Matrix:
        """Return a vector for each text."""
        return self._embedder.embed_documents(texts)

    def embed_query(self, text: str) -> Vector:
        """Return the vector of a question; equal questions wait for it."""
        with self._asking:
            if self._last is None or self._last[0] != text:
                self._last = (text, self._embedder.embed_query(text))
            return self._last[1]

    def __getattr__(self, name: str) -> Any:
        """Return what else the embedder has, such as what it has charged."""
        return getattr(self._embedder, name)


_ROLES: Final = frozenset({"user", "assistant", "tool", "system"})


class Taking:
    """Takes in what an agent hears and reads.

    Args:
        knowledge: Where it goes.
        report: Sends events.
        caller: Returns the session that asks.
    """

    def __init__(self, knowledge: Knowledge, report: Report, caller: Callable[[], Caller]) -> None:
        self._knowledge, self._caller = knowledge, caller
        self._ingest = Ingest(knowledge, report)
        self._placing = asyncio.Lock()
        self._next: dict[str, int] = {}

    async def document(self, entry: MemoryEntry) -> Record:
        """Take in a context; what is said of it besides is for the caller to add.

        Raises:
            ValidationError: It is too long, or nothing but a secret; nothing was stored.
            StorageError: Nothing was stored.
        """
        caller = self._caller()
        given = ReceivedDocument(entry.text, entry.summary, said_at=entry.timestamp)
        taken = await self._ingest.resource(
            given, group=caller.group or "", tags=labels_of(entry), metadata=metadata_of(entry), caller=caller
        )
        return taken.record

    async def turn(self, entry: MemoryEntry) -> Record:
        """Store an interaction as a session's next turn; raises as `document`."""
        (taken,) = await self.turns([entry])
        if isinstance(taken, str):
            raise ValidationError("Nothing was stored of a turn that cannot be kept.", code=taken)
        return taken

    async def turns(self, entries: Sequence[MemoryEntry]) -> list[Record | str]:
        """Take in interactions of one session in as few changes as they fit in.

        Returns:
            For each its record, or the code of why it cannot be kept.

        Raises:
            StorageError: Some may be on the disk.
        """
        caller = self._caller()
        caller = replace(caller, session_id=entries[0].session_id or caller.session_id)
        group, said = caller.group or "", [_turn_of(entry) for entry in entries]
        key = caller.session_id or self._knowledge.agent_id
        begun = await self._ingest.conversation(key, group=group, caller=caller)
        conversation = begun.record.id
        async with self._placing:
            first = await self._place(conversation, len(said))
            kept, refused = await self._ingest.turns(
                said, conversation=conversation, first=first, group=group, is_live=True, caller=caller
            )
        why, records = dict(refused), iter([each.record for each in kept])
        return [why[first + at] if first + at in why else next(records) for at in range(len(said))]

    async def _place(self, conversation: str, count: int) -> int:
        """Return the position after the last turn of a conversation."""
        if conversation not in self._next:
            known = await self._knowledge.episodes.linked_to(conversation)
            self._next[conversation] = 1 + max((each.order for each in known), default=-1)
        order = self._next[conversation]
        self._next[conversation] = order + count
        return order


def _read_role(entry: MemoryEntry) -> str:
    """Return the role that an entry states, else one from its source."""
    role = entry.content.get("role")
    if role is not None:
        return role if role in _ROLES else UNKNOWN
    return "user" if entry.source.startswith("user") else "assistant"


def _turn_of(entry: MemoryEntry) -> ReceivedTurn:
    speaker = entry.content.get("speaker")
    return ReceivedTurn(
        entry.text,
        _read_role(entry),
        speaker if isinstance(speaker, str) else "",
        entry.timestamp,
        metadata=metadata_of(entry),
        tags=tuple(labels_of(entry)),
    )
